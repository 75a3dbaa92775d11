"""How closely tests look: quickly in ``make test``, closely in ``make audit``, which sets ``ISOTONE_CLOSELY``."""

from __future__ import annotations

import math
import os

__all__ = ["CLOSELY", "draws", "effort", "off"]

CLOSELY = bool(os.environ.get("ISOTONE_CLOSELY"))
_CLOSE = 0.1
"""The relative error of a scale that ``make audit`` notices."""


def effort(quick: int, closely: int) -> int:
    """How often something is repeated."""
    return closely if CLOSELY else quick


def off(by: float) -> float:
    """By how much a wrong scale is wrong: ``by`` in ``make test``, a tenth in ``make audit``."""
    return min(by, _CLOSE) if CLOSELY else by


def draws(number: int, by: float) -> int:
    """How many draws notice a scale that is wrong by ``off(by)``, where ``number`` notice one wrong by ``by``.

    A statistic moves with the square of the error and in proportion to the draws. A half is added, as it moves a
    little less than its square where errors are large.
    """
    return math.ceil(1.5 * number * (by / off(by)) ** 2) if CLOSELY else number
