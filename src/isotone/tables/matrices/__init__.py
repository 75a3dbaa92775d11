"""Mechanisms for one count at a time: private transition matrices."""
