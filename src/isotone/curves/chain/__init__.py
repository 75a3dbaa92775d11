"""Private isotonic regression on a chain."""
