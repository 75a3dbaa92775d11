"""Counts over an order, broken down by public attributes, with margins that add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.counts.breakdowns.cells import Breakdown, Margin
from isotone.counts.breakdowns.margin_shares import best_shares, importance_of, precisions, require_shares
from isotone.counts.breakdowns.margins_least_squares import (
    Components,
    Estimator,
    components_of,
    estimator_of,
)
from isotone.counts.breakdowns.nested import NestedComponents
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.errors import InputError
from isotone.linear.law import gaussian_reach, log_concave_reach, rounding_reach
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated
from isotone.privacy.checks import Number, confidence_level, exact
from isotone.privacy.guarantee import Guarantee

__all__ = ["Margins", "MarginsMechanism"]

_ROUNDING_PART = 50
"""One part in so many of the probability outside an interval is for rounding."""

_WHOLE_REACH, _WHOLE_VARIANCE = 1.0, 1 / 3
"""How near whole noise is to a log-concave number, and how much more variance that has (Lemma 4 of the theory)."""

_SUM_VARIANCE = 1 / 2
"""The same for the whole numbers of a weighted sum, some of which are Gaussians that were rounded."""

_SQUARE = 10**12


@dataclass(frozen=True, eq=False)
class Margins:
    """The noisy integers of the margins that were measured (else None), and the tables of all margins."""

    measured: list[Ints | None]
    values: list[Floats]


@dataclass(frozen=True, init=False)
class MarginsMechanism:
    """Counts over an order in the cells of several margins, which add up.

    A record is in one cell of each margin. Each cell of a margin with a share s has a draw of its own of ``base`` with a
    part of the budget: epsilon times s, or, where squares add up (zCDP, Gaussian noise), a variance over s. The shares add
    up to 1. All margins are then estimated from all noisy integers by least squares (nearly, where several attributes have
    levels whose nodes are not alike and the limits of section 3 are passed), which is post-processing.

    ``base`` must be for adding or removing a record: a record that is replaced may change its cell, which costs both.
    ``importance`` says which margins matter: all "margins" alike, all "cells" alike, or weights by margin; the shares
    are chosen for it without data, unless they are given.

    Guarantee: that of ``base``, for records that are in one cell each (docs/theory/breakdowns.md, section 1).
    Error: exact, including the rounding of each measured number.

    >>> from isotone.counts import PosetMechanism
    >>> from isotone.counts.breakdowns.cells import read_breakdown
    >>> from isotone.order import Poset
    >>> b = read_breakdown(["sex"], {"sex": ["f", "m"]}, ["", "sex"])
    >>> m = MarginsMechanism(PosetMechanism(Poset.chain("ab"), epsilon=1), b, shares=["1/2", "1/2"])
    >>> total, by_sex = m.release(np.array([[10, 20], [5, 9]])).values
    >>> bool(np.allclose(by_sex.sum(axis=0), total[0]))
    True
    """

    base: AdditiveMechanism
    breakdown: Breakdown
    shares: tuple[Fraction, ...]
    importance: tuple[float, ...]
    guarantee: Guarantee
    gap: float = field(repr=False, compare=False)

    def __init__(
        self,
        base: AdditiveMechanism,
        breakdown: Breakdown,
        importance: Any = None,
        shares: Sequence[Any] | None = None,
        rho: Number | None = None,
    ) -> None:
        """``rho`` is for a base of pure privacy under zCDP. Epsilons are then shared so that their squares add up."""
        if base.unit.adjacency.units > 1:
            raise InputError(
                "The noise of a breakdown must be for add-remove: a unit that is replaced may change its cell."
            )
        whole = base.guarantee
        if rho is not None:
            whole = Guarantee.zcdp(rho, neighbours=whole.neighbours, unit=whole.unit)
            if base.guarantee.kind != "pure" or not base.guarantee.within(whole):
                raise InputError(
                    f"rho is for a base of pure privacy within it, and this one guarantees {base.guarantee}."
                )
        set_ = object.__setattr__
        set_(self, "base", base)
        set_(self, "breakdown", breakdown)
        set_(self, "guarantee", whole)
        weights = importance_of(breakdown, importance)
        set_(self, "importance", tuple(weights.tolist()))
        if shares is None:
            found = best_shares(breakdown, self.importance, squares_add=self.squares_add)
            set_(self, "shares", found.shares)
            set_(self, "gap", found.gap)
        else:
            given = tuple(exact(share, "a share") for share in shares)
            require_shares(breakdown, given)
            set_(self, "shares", given)
            set_(self, "gap", math.nan)
        assert sum(self.shares, Fraction(0)) == 1

    @cached_property
    def components(self) -> Components | NestedComponents:
        """What the margins have in common."""
        return components_of(self.breakdown)

    @property
    def squares_add(self) -> bool:
        """Whether a share is one of ρ, or of a Gaussian's precision, and not of ε."""
        return self.guarantee.kind == "zcdp" or self.base.guarantee.kind != "pure"

    @cached_property
    def parts(self) -> list[AdditiveMechanism | None]:
        """The mechanism for the cells of each margin that is measured."""
        return [self._part(share) if share else None for share in self.shares]

    def _part(self, share: Fraction) -> AdditiveMechanism:
        if self.base.guarantee.kind == "pure" and self.squares_add:
            # rounded down, so that the sum of ε² stays below what ρ allows
            share = Fraction(math.isqrt(math.floor(share * _SQUARE**2)), _SQUARE)
        return self.base.part(share)

    @cached_property
    def fit(self) -> Estimator:
        """The estimates from the noisy tables."""
        return estimator_of(self.components, precisions(self.shares, squares_add=self.squares_add))

    def release(self, counts: Ints) -> Margins:
        """Release all margins, given the counts of all cells, a row each and a column for each element.

        Exactly private, from cryptographic bits: each noisy integer is a draw of a mechanism for counts, and what follows
        is a function of the noisy integers alone.
        """
        rows = np.asarray(counts)
        if rows.shape != (self.breakdown.cells, len(self.base.P)) or rows.dtype.kind not in "iu":
            raise InputError(
                "The counts must be integers, a row for each cell and a column for each element."
            )
        measured: list[Ints | None] = []
        for table, part in zip(self.breakdown.tables(rows.astype(np.int64)), self.parts, strict=True):
            if part is None:
                measured.append(None)
            else:
                noisy = part.release_rows(table.reshape(-1, table.shape[-1]))
                measured.append(noisy.reshape(table.shape))
        return Margins(measured, self.estimate(measured))

    def estimate(self, measured: Sequence[Ints | None]) -> list[Floats]:
        """The tables of all margins from the noisy integers, which is post-processing."""
        return self.fit.estimate(measured)

    def simulate(self, size: int, rng: np.random.Generator) -> list[Simulated]:
        """Simulate the noise on the tables of all margins, ``size`` draws as a first axis, for planning."""
        drawn: list[list[Floats]] = []
        for _ in range(size):
            tables = [
                self._simulated(margin, part, rng)
                for margin, part in zip(self.breakdown.margins, self.parts, strict=True)
            ]
            drawn.append(self.fit.estimate(tables))
        return [Simulated.wrap(np.stack(tables)) for tables in zip(*drawn, strict=True)]

    def _simulated(
        self, margin: Margin, part: AdditiveMechanism | None, rng: np.random.Generator
    ) -> Floats | None:
        if part is None:
            return None
        sizes = self.breakdown.sizes(margin)
        noise = np.asarray(part.simulate_released(math.prod(sizes), rng), dtype=np.float64)
        return noise.reshape(*sizes, len(self.base.P))

    def error(self) -> Error:
        """The variance of every value, margin after margin, in the sequence of :meth:`release`."""
        return Error(np.concatenate([table.ravel() for table in self.variances()]), self._error_method)

    @property
    def _error_method(self) -> str:
        return self.base.error().method

    def variances(self) -> list[Floats]:
        """The variance of every value, a table for each margin."""
        noise = [
            0 if part is None else part.error().variance + part.rounding_variance() for part in self.parts
        ]
        return [self._spread(margin, noise) for margin in self.breakdown.margins]

    def mean_variances(self) -> Floats:
        """The mean variance over cells and elements of each margin."""
        return np.array([table.mean() for table in self.variances()])

    def half_widths(self, confidence: float = 0.95) -> list[Floats]:
        """How far each value alone stays from the truth with at least the given probability, a table for each margin."""
        outside = 1 - confidence_level(confidence)
        rounding = outside / _ROUNDING_PART
        whole = self.base.whole_parts is not None  # near a log-concave number of more variance
        gaussian = self.base.guarantee.kind != "pure" and not whole
        reach = (gaussian_reach if gaussian else log_concave_reach)(outside - rounding)
        noise, moved = list[Any](), list[tuple[Any, Any]]()
        for part in self.parts:
            weights = 0.0 if part is None else _whole_weights(part)
            noise.append(0 if part is None else part.error().variance + _more_variance(part) * weights)
            moved.append((_WHOLE_REACH**2 * weights, 0 if part is None else part.rounding**2))
        kinds = [self._bounded(each) for each in zip(*moved, strict=True) if any(map(np.any, each))]
        bound = rounding_reach(rounding / max(len(kinds), 1))
        return [
            reach * np.sqrt(self._spread(margin, noise)) + bound * sum(kind[place] for kind in kinds)
            for place, margin in enumerate(self.breakdown.margins)
        ]

    def _bounded(self, squares: Sequence[Any]) -> list[Floats]:
        """The root of the sum of squared weights for numbers that are bounded, a table for each margin."""
        return [np.sqrt(self._spread(margin, squares)) for margin in self.breakdown.margins]

    def _spread(self, margin: Margin, noise: Sequence[Any]) -> Floats:
        """The variance of every value of a margin, given that of the measured cells of each margin by element."""
        each = np.array([np.broadcast_to(one, len(self.base.P)) for one in noise], dtype=np.float64)
        return self.fit.spread(margin, each)

    def __str__(self) -> str:
        margins = ", ".join(self.breakdown.label(margin) for margin in self.breakdown.margins)
        return f"MarginsMechanism of {type(self.base).__name__} over {margins}, {self.guarantee}"


def _whole_weights(part: AdditiveMechanism) -> Any:
    """The most that the squared weights of the whole numbers in the noise on a count add up to."""
    parts = part.whole_parts
    if parts is None:
        return 0.0
    variance = part.error().variance
    return np.divide(variance, parts, out=np.ones_like(variance), where=np.asarray(parts) > 0)


def _more_variance(part: AdditiveMechanism) -> float:
    return _WHOLE_VARIANCE if part.rounding == 0 else _SUM_VARIANCE
