"""Surfaces, y as a function of two columns that rises or falls with each."""
