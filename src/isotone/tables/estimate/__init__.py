"""Estimate the histogram of a table, and each count.

One estimator, from the private measurements.
"""
