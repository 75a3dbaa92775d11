"""Code that only reproduces the papers.

It is tested and importable, and no release depends on it.
"""
