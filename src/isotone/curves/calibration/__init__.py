"""Calibration of a frozen classifier: probabilities that mean what they say."""
