"""Extended bipartitions of orders of two levels, by coupling from the past."""
