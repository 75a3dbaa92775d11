"""Curves from noisy histograms, for losses without means."""
