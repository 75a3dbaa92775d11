"""Counts of yes/no answers over a partial order.

Mechanisms, their errors, and the plan that picks one.
"""

from isotone.lazy import public_names

__all__, __getattr__ = public_names(__name__)
