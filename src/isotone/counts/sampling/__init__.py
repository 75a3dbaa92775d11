"""Uniform extended bipartitions and the noise made of them: exact, relaxed and simulated."""
