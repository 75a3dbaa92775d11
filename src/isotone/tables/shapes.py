"""Guesses at the shape of a distribution of counts, for planning before any data is read."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.checks import one_of, whole_number
from isotone.tables.distribution.distribution import DistributionLike, probabilities_of

__all__ = ["Shape", "apportioned", "guessed"]

Shape = Literal["uniform", "binomial", "skewed", "zero-inflated", "constant"]


def guessed(shape: Shape | DistributionLike, upper: int | None) -> NDArray[np.float64]:
    """The probabilities of the counts ``0..upper`` for a named shape, or those of a public prior.

    ``uniform``; ``binomial``: a bell about the middle; ``skewed``: falls geometrically, with a fifth of the
    range as its mean; ``zero-inflated``: half of the categories at 0, the others skewed; ``constant``: all
    categories at the middle.

    >>> guessed("zero-inflated", upper=2).round(3)
    array([0.908, 0.077, 0.015])
    """
    if not isinstance(shape, str):
        p = probabilities_of(shape, "shape")
        if upper is not None and len(p) != whole_number(upper, "upper", least=0) + 1:
            raise InputError(f"shape has {len(p)} probabilities, but the counts 0..{upper} need {upper + 1}.")
        return p
    name = one_of(shape, "shape", get_args(Shape))
    if upper is None:
        raise InputError(f"upper, the largest count, is needed with the shape {shape!r}.")
    n = whole_number(upper, "upper", least=0) + 1
    counts = np.arange(n)
    if name == "uniform":
        weights = np.ones(n)
    elif name == "binomial":
        from scipy.stats import binom

        weights = np.asarray(binom.pmf(counts, n - 1, 0.5))
    elif name == "constant":
        weights = np.asarray(counts == n // 2, np.float64)
    else:
        weights = np.exp(-counts / max(n / 5, 0.5))
        if name == "zero-inflated":
            weights = 0.5 * weights / weights.sum() + 0.5 * (counts == 0)
    return weights / weights.sum()


def apportioned(probabilities: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """A table of ``size`` categories whose distribution is as near to ``probabilities`` as whole numbers are.

    >>> apportioned(np.array([0.5, 0.3, 0.2]), 4)
    array([0, 0, 1, 2])
    """
    ends = np.floor(np.cumsum(probabilities) * size + 0.5).astype(np.int64)
    ends[-1] = size
    return np.repeat(np.arange(len(probabilities)), np.diff(ends, prepend=0))
