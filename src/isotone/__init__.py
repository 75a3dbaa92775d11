"""Differentially private counts, tables and curves that respect order.

Describe the order, plan without data, release against a ledger, verify. See the README for a first example.
"""

from isotone import counts as counts
from isotone import curves as curves
from isotone import noise as noise
from isotone import order as order
from isotone import tables as tables
from isotone.lazy import public_names

__version__ = "0.1.0"

__all__, __getattr__ = public_names(__name__)
