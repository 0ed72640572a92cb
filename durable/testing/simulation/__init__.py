"""A model test of the turn protocol on the real engine: one run, many seeds, every interleaving that fits into them."""
