"""Estimate the histogram of a table, and each count, from the private measurements.

One entry, :func:`~isotone.tables.estimate.whole.estimate_histogram`, takes both views of a table, with a precision for each
threshold and the noise of the counts. The rest turns its histogram into published counts, posterior means, intervals and sums.
"""
