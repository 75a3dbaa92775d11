"""Isotonic regression: least squares onto the monotone functions on an order."""
