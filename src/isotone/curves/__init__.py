"""Monotone curves. Private isotonic regression on chains and posets, with shape constraints."""

from isotone.lazy import public_names

# Estimators bring scikit-learn with them where it is installed: load them when they are first asked for.
__all__, __getattr__ = public_names(__name__)
