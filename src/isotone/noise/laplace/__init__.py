"""Geometric and two-sided geometric variables, one at a time and in arrays."""
