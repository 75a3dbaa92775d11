"""Calibration of a frozen classifier, whose probabilities then mean what they say."""
