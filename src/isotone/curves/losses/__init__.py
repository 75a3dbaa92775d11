"""Losses of curves, and what is computed from one alone."""
