"""Differentially private statistics that respect order: counts, tables and curves."""

from isotone import counts, curves, noise, order, tables
from isotone.errors import IsotoneError
from isotone.guarantee import Guarantee

__all__ = ["Guarantee", "IsotoneError", "counts", "curves", "noise", "order", "tables"]
__version__ = "0.1.0"
