"""Exact choices from a list, by integer weights or by lazily refined real ones."""
