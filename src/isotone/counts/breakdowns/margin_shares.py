"""How the budget is shared between margins, chosen without data.

Noise of share s has precision s² under pure privacy, where epsilons add up, and s where squares add up (zCDP and Gaussian
noise). The second problem is convex, with a bound for every other choice; the first is not, and is solved from many
starts that are always the same (docs/theory/breakdowns.md, section 4).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from isotone.array_types import Floats
from isotone.counts.breakdowns.cells import Breakdown, Margin, margin_of
from isotone.counts.breakdowns.margins_least_squares import Components, components_of
from isotone.counts.breakdowns.nested import NestedComponents
from isotone.errors import InputError
from isotone.privacy.checks import exact, one_of, shown

__all__ = ["MarginShares", "best_shares", "importance_of", "precisions", "require_shares"]

UNIT = 10_000
"""Shares are multiples of one over this."""

_STEPS, _TREE_STEPS, _PACE = 400, 60, 0.35
_MOST_SETS, _RANDOM, _TREE_STARTS = 8, 200, 4
_CLOSE, _ROUGH = 1e-6, 1e-2
_LEAST = Fraction(1, 10**9)


@dataclass(frozen=True)
class MarginShares:
    """Shares that add up to 1, and how far the error is above the best for Gaussian noise on margins, if known."""

    shares: tuple[Fraction, ...]
    gap: float


@lru_cache(maxsize=32)
def best_shares(breakdown: Breakdown, importance: tuple[float, ...], *, squares_add: bool) -> MarginShares:
    """The shares with the nearly least mean variance over margins, weighted."""
    if len(breakdown.margins) == 1:
        return MarginShares((Fraction(1),), 0.0)
    components, weights = components_of(breakdown), np.array(importance)
    found, gap = _convex(components, weights, _CLOSE if squares_add else _ROUGH)
    if not squares_add:
        found, gap = _pure(components, weights, found), float("nan")
    return MarginShares(_exact(breakdown, found), gap)


def precisions(shares: Sequence[Fraction], *, squares_add: bool) -> Floats:
    """The precisions of the noise, up to a common factor."""
    s = np.array([float(share) for share in shares])
    return s if squares_add else s**2


def _convex(components: Components | NestedComponents, weights: Floats, close: float) -> tuple[Floats, float]:
    """Shares where squares add up, by multiplicative steps, and how far above the best they are at most.

    One over the error is concave and homogeneous in the shares, so the best linear gain bounds it.
    """
    s = np.full(weights.size, 1 / weights.size)
    gap = np.inf
    for _ in range(5 * _STEPS if components.tree_axis is None else 2 * _TREE_STEPS):
        value, slope = components.mean_variances(s)
        gain = -(weights @ slope)
        gap = float(gain.max() / (weights @ value)) - 1
        if gap < close:
            break
        s = s * np.sqrt(gain)
        s = np.maximum(s / s.sum(), 1e-12)
    return s / s.sum(), gap


def _pure(components: Components | NestedComponents, weights: Floats, guess: Floats) -> Floats:
    """Shares where epsilons add up, the best of many descents by multiplicative steps."""
    k, rng = weights.size, np.random.default_rng(0)
    starts = [np.full(k, 1 / k), guess]
    if components.tree_axis is None:
        # the best shares leave out some margins: begin with each set of them, or with random ones if there are too many
        chosen = (
            itertools.product((0.0, 1.0), repeat=k) if k <= _MOST_SETS else rng.integers(0, 2, (_RANDOM, k))
        )
        starts += [np.array(some, dtype=float) + 0.01 for some in chosen]
        starts += list(rng.dirichlet(np.full(k, 0.5), _RANDOM) + 1e-6)
    else:  # a step is a pass over the levels
        starts += list(0.05 + np.eye(k))[-_TREE_STARTS:]
    s = np.array(starts)
    for _ in range(_STEPS if components.tree_axis is None else _TREE_STEPS):
        _, gain = _pure_errors(components, weights, s)
        s = s * (s * gain) ** _PACE
        s = np.maximum(s / s.sum(axis=1, keepdims=True), 1e-9)
    errors, _ = _pure_errors(components, weights, s)
    best = s[np.argmin(errors)]
    return best / best.sum()


def _pure_errors(
    components: Components | NestedComponents, weights: Floats, s: Floats
) -> tuple[Floats, Floats]:
    """The weighted error for each row of shares, and how fast it falls with each precision."""
    if components.tree_axis is None:
        spreads, shares = components.closed_form
        precision, by_component = (s * s) @ shares.T, weights @ spreads
        return np.sum(by_component / precision, axis=1), (by_component / precision**2) @ shares
    found = [components.mean_variances(row * row) for row in s]
    return np.array([weights @ value for value, _ in found]), np.array(
        [-(weights @ slope) for _, slope in found]
    )


def _exact(breakdown: Breakdown, shares: Floats) -> tuple[Fraction, ...]:
    """Fractions near the shares whose sum is exactly 1. A margin that no other covers has some."""
    needed = [
        not any(other != margin and breakdown.covers(other, margin) for other in breakdown.margins)
        for margin in breakdown.margins
    ]
    units = np.floor(UNIT * shares + 0.5).astype(np.int64)
    units = np.where(needed, np.maximum(units, 1), units)
    units[np.argmax(units)] += UNIT - units.sum()
    exactly = tuple(Fraction(int(unit), UNIT) for unit in units)
    require_shares(breakdown, exactly)
    return exactly


def require_shares(breakdown: Breakdown, shares: Sequence[Fraction]) -> None:
    """Refuse shares that do not add up to 1, or leave a margin unknown."""
    if len(shares) != len(breakdown.margins):
        raise InputError(f"shares must have one number for each of the {len(breakdown.margins)} margins.")
    if any(share < 0 for share in shares) or sum(shares, Fraction(0)) != 1:
        raise InputError(
            f"The shares of the margins must be 0 or more and add up to 1, not to {sum(shares)}."
        )
    measured = [margin for margin, share in zip(breakdown.margins, shares, strict=True) if share]
    for margin in breakdown.margins:
        if not any(breakdown.covers(other, margin) for other in measured):
            raise InputError(
                f"The margin {breakdown.label(margin)!r} has no share, and no margin with a share contains it."
            )


def importance_of(breakdown: Breakdown, importance: Any) -> Floats:
    """The weights of the mean variances of the margins.

    ``None`` or "margins": all margins alike; "cells": all cells alike; or weights by margin, 1 where none is given.
    """
    margins = breakdown.margins
    if importance is None or isinstance(importance, str):
        how = one_of(importance or "margins", "importance", ("margins", "cells"))
        return np.array([1.0 if how == "margins" else float(np.prod(breakdown.sizes(m))) for m in margins])
    pairs: Any = list(importance.items()) if isinstance(importance, Mapping) else importance  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        raise InputError(
            f"importance must be 'margins', 'cells' or a weight for each margin, not {shown(importance)}."
        )
    weights = dict.fromkeys(margins, 1.0)
    for said, weight in pairs:  # pyright: ignore[reportUnknownVariableType]
        number = exact(weight, "importance")
        if not _LEAST <= number <= 1 / _LEAST:
            raise InputError(f"The importance of a margin must be between 1e-9 and 1e9, not {shown(weight)}.")
        weights[_known(breakdown, said)] = float(number)
    return np.array([weights[margin] for margin in margins])


def _known(breakdown: Breakdown, said: Any) -> Margin:
    margin = margin_of(breakdown, said)
    if margin not in breakdown.margins:
        raise InputError(f"importance names {shown(said)}, which is not among the margins.")
    return margin
