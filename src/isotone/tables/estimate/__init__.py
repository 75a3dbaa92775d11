"""One estimator: the histogram of a table, and each count, from the private measurements."""
