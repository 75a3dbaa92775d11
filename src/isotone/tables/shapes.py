"""Guesses at the shape of a distribution of counts, for planning before any data is read."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.checks import one_of, whole_number
from isotone.tables.distribution.distribution import DistributionLike, probabilities_of

__all__ = ["Shape", "apportioned", "families", "guessed"]

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


def families(n: int) -> dict[str, NDArray[np.float64]]:
    """Probabilities of the counts ``0..n-1`` for eight shapes like those the release is judged on. None was used to tune it.

    A guess is wrong by some amount; the range of errors over these says by how much a plan may be.

    >>> [name for name, p in families(40).items() if p[0] > 0.4]
    ['half empty', 'power law', 'nearly all zero']
    """
    counts = np.arange(n)
    x = (counts + 0.5) / n
    first = counts == 0
    bells = ((0.5, 0.11, 0.03), (0.35, 0.41, 0.07), (0.15, 0.82, 0.045))
    weights = {
        "half empty": np.exp(-7 * x) / np.sum(np.exp(-7 * x)) + first,
        "u-shaped": x**-0.6 * (1 - x) ** -0.4,
        "power law": (counts + 1.0) ** -1.7,
        "triangle": np.where(x < 1 / 7, 7 * x, 7 / 6 * (1 - x)),
        "three bells": sum(share / wide * np.exp(-(((x - at) / wide) ** 2) / 2) for share, at, wide in bells),
        "stairs": np.array([0.55, 0.3, 0.1, 0.05])[np.minimum((4 * x).astype(int), 3)],
        "heaps of five": np.exp(-2 * np.log(3 * x) ** 2) / x * np.where(counts % 5 == 0, 1 + 10 / 3, 1.0),
        "nearly all zero": np.exp(-2.5 * counts),
    }
    return {name: np.asarray(each / np.sum(each), np.float64) for name, each in weights.items()}


def apportioned(probabilities: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """A table of ``size`` categories whose distribution is as near to ``probabilities`` as whole numbers are.

    >>> apportioned(np.array([0.5, 0.3, 0.2]), 4)
    array([0, 0, 1, 2])
    """
    ends = np.floor(np.cumsum(probabilities) * size + 0.5).astype(np.int64)
    ends[-1] = size
    return np.repeat(np.arange(len(probabilities)), np.diff(ends, prepend=0))
