"""Kept to reproduce the papers: tested and importable, and no release depends on it."""
