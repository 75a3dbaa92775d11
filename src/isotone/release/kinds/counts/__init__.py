"""Counts of yes answers over a partial order."""
