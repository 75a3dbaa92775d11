"""Counts over a partial order, broken down by public attributes."""
