"""Uniform extended bipartitions and the noise made of them.

Exact, relaxed and simulated.
"""
