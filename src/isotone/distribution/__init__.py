"""How a number is distributed: its cumulative distribution function and survival curves, from one charge, with bands.

Counts of a public grid are measured on bins that a private partition has found (docs/theory/distribution.md).
"""

from isotone.lazy import public_names

__all__, __getattr__ = public_names(__name__)
