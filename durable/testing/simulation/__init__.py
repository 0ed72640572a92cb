"""A model test of the turn protocol on the real engine: one run, or one lineage, and every interleaving that fits into many seeds."""
