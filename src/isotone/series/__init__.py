"""Counts over time: who has reached which stage, period by period, under one charge.

Mechanisms for the whole series, the register of what each unit has reached, and the state of an open series.
"""

from isotone.lazy import public_names

__all__, __getattr__ = public_names(__name__)
