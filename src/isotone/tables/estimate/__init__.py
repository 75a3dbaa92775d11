"""Estimate the histogram of a table, and each count, from the private measurements.

One entry, :func:`~isotone.tables.estimate.whole.estimate_histogram`, takes a precision for each threshold and a rate for each
step of the noise. The rest turns its histogram into published counts, posterior means, intervals and sums.
"""
