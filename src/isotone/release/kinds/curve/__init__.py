"""Curves, y as a monotone function of x."""
