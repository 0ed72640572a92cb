"""A model test of the protocols on the real engine: runs alone and with others, and every interleaving that fits into many seeds."""
