"""Partial orders, and all that can be computed about them. No files, no private data, no release."""

from isotone.lazy import public_names

__all__, __getattr__ = public_names(__name__)
