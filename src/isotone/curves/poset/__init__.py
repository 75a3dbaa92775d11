"""Private isotonic regression on a partial order."""
