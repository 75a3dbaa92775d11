"""Distributions of a number: all quantiles and shares, with a band, from one charge."""
