"""Counts broken down by public attributes with margins that add up: shares of the budget, mechanism, law and plan.

How the budget is shared between margins, chosen without data.

Noise of share s has precision s² under pure privacy, where epsilons add up, and s where squares add up (zCDP and Gaussian
noise). The second problem is convex, with a bound for every other choice; the first is not, and is solved from many
starts that are always the same (docs/theory/breakdowns.md, section 4).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.breakdown import MOST_NUMBERS, Breakdown, Margin, margin_of
from isotone.counts.count_plan import Setting, choose_mechanism, spelling
from isotone.counts.hierarchy import TreeGaussianMechanism
from isotone.counts.knorm import PosetMechanism
from isotone.counts.margins_least_squares import (
    Components,
    Estimator,
    NestedComponents,
    components_of,
    estimator_of,
)
from isotone.counts.mechanism import AdditiveMechanism, Care
from isotone.counts.order_gaussian import OrderGaussianMechanism
from isotone.errors import InputError
from isotone.linear.mechanism import (
    FALSE_CONFIDENCE,
    LAW_STREAM,
    Law,
    gaussian_reach,
    log_concave_reach,
    rounding_reach,
    upper_draw,
)
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated, public_stream
from isotone.order.building import is_hierarchy
from isotone.planning import Column, Plan, Row
from isotone.privacy.checks import Number, confidence_level, exact, one_of, shown
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import Guarantee

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
    result, gap = _convex(components, weights, _CLOSE if squares_add else _ROUGH)
    if not squares_add:
        result, gap = _pure(components, weights, result), float("nan")
    return MarginShares(_exact(breakdown, result), gap)


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
    result = [components.mean_variances(row * row) for row in s]
    return np.array([weights @ value for value, _ in result]), np.array(
        [-(weights @ slope) for _, slope in result]
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
    for name, weight in pairs:  # pyright: ignore[reportUnknownVariableType]
        number = exact(weight, "importance")
        if not _LEAST <= number <= 1 / _LEAST:
            raise InputError(f"The importance of a margin must be between 1e-9 and 1e9, not {shown(weight)}.")
        weights[_known(breakdown, name)] = float(number)
    return np.array([weights[margin] for margin in margins])


def _known(breakdown: Breakdown, words: Any) -> Margin:
    margin = margin_of(breakdown, words)
    if margin not in breakdown.margins:
        raise InputError(f"importance names {shown(words)}, which is not among the margins.")
    return margin


# Counts over an order, broken down by public attributes, with margins that add up.

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
class MarginsMechanism(AdditiveMechanism):
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
    >>> from isotone.counts.breakdown import read_breakdown
    >>> from isotone.order import Poset
    >>> b = read_breakdown(["sex"], {"sex": ["f", "m"]}, ["", "sex"])
    >>> m = MarginsMechanism(PosetMechanism(Poset.chain("ab"), epsilon=1), b, shares=["1/2", "1/2"])
    >>> total, by_sex = m.margins(m.release(np.array([[10, 20], [5, 9]]))).values
    >>> bool(np.allclose(by_sex.sum(axis=0), total[0]))
    True
    """

    base: AdditiveMechanism
    breakdown: Breakdown
    shares: tuple[Fraction, ...]
    importance: tuple[float, ...]
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
        guarantee = base.guarantee
        if rho is not None:
            guarantee = Guarantee.zcdp(rho, neighbours=guarantee.neighbours, unit=guarantee.unit)
            if base.guarantee.kind != "pure" or not base.guarantee.within(guarantee):
                raise InputError(
                    f"rho is for a base of pure privacy within it, and this one guarantees {base.guarantee}."
                )
        self._settle(base.P, guarantee, base.contributions, base.max_size)
        weights = tuple(importance_of(breakdown, importance).tolist())
        self._set(base=base, breakdown=breakdown, importance=weights)
        if shares is None:
            result = best_shares(breakdown, self.importance, squares_add=self.squares_add)
            self._set(shares=result.shares, gap=result.gap)
        else:
            parts = tuple(exact(share, "a share") for share in shares)
            require_shares(breakdown, parts)
            self._set(shares=parts, gap=math.nan)
        assert sum(self.shares, Fraction(0)) == 1

    @property
    def size(self) -> int:
        """One number for each element of each cell of each margin."""
        return sum(math.prod(shape) for shape in self._shapes)

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        elements = len(self.P)
        return [(*sizes, elements) for sizes in self.breakdown.shapes]

    def tables(self, values: Floats) -> list[Floats]:
        """Values of all margins (last axis), margin after margin, as a table for each margin."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        parts = zip(np.split(values, ends[:-1], axis=-1), self._shapes, strict=True)
        return [part.reshape(*part.shape[:-1], *shape) for part, shape in parts]

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

    def release(self, counts: Ints) -> Ints:
        """Release the noisy integers of all measured margins, cell after cell, of which :meth:`margins` makes the tables.

        The counts are those of all cells, a row each and a column for each element. Exactly private, from cryptographic
        bits: each noisy integer is a draw of a mechanism for counts.
        """
        rows = np.asarray(counts)
        if rows.shape != (self.breakdown.cells, len(self.base.P)) or rows.dtype.kind not in "iu":
            raise InputError(
                "The counts must be integers, a row for each cell and a column for each element."
            )
        tables = zip(self.breakdown.tables(rows.astype(np.int64)), self.parts, strict=True)
        noisy = [part.release_rows(table.reshape(-1, table.shape[-1])) for table, part in tables if part]
        return np.concatenate([table.ravel() for table in noisy])

    def margins(self, drawn: Ints) -> Margins:
        """The noisy integers as tables, and the tables of all margins, which is post-processing."""
        measured: list[Ints | None] = []
        for shape, part in zip(self._shapes, self.parts, strict=True):
            own = math.prod(shape) if part else 0
            measured.append(drawn[:own].reshape(shape) if part else None)
            drawn = drawn[own:]
        return Margins(measured, self.estimate(measured))

    def estimate(self, measured: Sequence[Ints | None]) -> list[Floats]:
        """The tables of all margins from the noisy integers, which is post-processing."""
        return self.fit.estimate(measured)

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` draws of the noise on all values, one per row, for planning only, as they are not private."""
        drawn = np.empty((size, self.size))
        for row in drawn:
            tables = [
                self._simulated(margin, part, rng)
                for margin, part in zip(self.breakdown.margins, self.parts, strict=True)
            ]
            row[:] = _flat(self.fit.estimate(tables))
        return Simulated.wrap(drawn)

    def simulate_released(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the noise on all values, which are not rounded."""
        return self.simulate_independent(size, rng)

    def _integer_noise(self, draws: ExactDraws) -> Ints:
        return self.release(np.zeros((self.breakdown.cells, len(self.P)), np.int64))

    def part(self, share: Fraction) -> MarginsMechanism:
        """Refuse, since a breakdown shares its budget itself."""
        raise InputError("A breakdown shares its budget between margins, and is no part of another.")

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
        return Error(_flat(self.variances()), self.base.error().method)

    def variances(self) -> list[Floats]:
        """The variance of every value, a table for each margin."""
        noise = [
            0 if part is None else part.error().variance + part.rounding_variance() for part in self.parts
        ]
        return self._spreads(noise)

    def mean_variances(self) -> Floats:
        """The mean variance over cells and elements of each margin."""
        return np.array([table.mean() for table in self.variances()])

    @property
    def rounding(self) -> float:
        """Values are not rounded."""
        return 0.0

    @property
    def whole_parts(self) -> None:
        """Values are no whole numbers."""
        return None

    def unrounded_half_widths(self, confidence: float = 0.95) -> Floats:
        """How far each value alone stays from the truth with at least the given probability."""
        return self.half_widths(confidence)

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* values stay from the truth, at once, with at least the given probability."""
        return self.unrounded_simultaneous_half_width(confidence)

    def half_widths(self, confidence: float = 0.95) -> Floats:
        """How far each value alone stays from the truth with at least the given probability.

        The less of two: a bound for every law of the kind, and, where few enough numbers are measured, a quantile of public draws
        of this noise, which is below the true one with probability 1e-6 at most (docs/theory/breakdowns.md, section 5).
        """
        bound = self.bounded_half_widths(confidence)
        if not draws_of_margins(self, confidence):
            return bound
        drawn = [upper_draw(table, confidence) for table in _drawn(self)]
        whole = [np.broadcast_to(half, shape) for half, shape in zip(drawn, self._shapes, strict=True)]
        return np.minimum(bound, _flat(whole) * (1 + 1e-9) + 1e-9)

    def bounded_half_widths(self, confidence: float = 0.95) -> Floats:
        """The bound alone, which needs no draws."""
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
        return _flat(
            [
                reach * np.sqrt(table) + bound * sum(kind[place] for kind in kinds)
                for place, table in enumerate(self._spreads(noise))
            ]
        )

    def _bounded(self, squares: Sequence[Any]) -> list[Floats]:
        """The root of the sum of squared weights for numbers that are bounded, a table for each margin."""
        return [np.sqrt(table) for table in self._spreads(squares)]

    def _spreads(self, noise: Sequence[Any]) -> list[Floats]:
        """The variance of every value of each margin, given that of the measured cells of each margin by element."""
        elements = len(self.base.P)
        each = np.array([np.broadcast_to(one, elements) for one in noise], dtype=np.float64)
        return [self.fit.spread(margin, each) for margin in self.breakdown.margins]

    def __str__(self) -> str:
        margins = ", ".join(self.breakdown.label(margin) for margin in self.breakdown.margins)
        return f"MarginsMechanism of {type(self.base).__name__} over {margins}, {self.guarantee}"


def _flat(tables: Sequence[Floats]) -> Floats:
    return np.concatenate([np.ravel(table) for table in tables])


def _whole_weights(part: AdditiveMechanism) -> Any:
    """The most that the squared weights of the whole numbers in the noise on a count add up to."""
    parts = part.whole_parts
    if parts is None:
        return 0.0
    variance = part.error().variance
    return np.divide(variance, parts, out=np.ones_like(variance), where=np.asarray(parts) > 0)


def _more_variance(part: AdditiveMechanism) -> float:
    return _WHOLE_VARIANCE if part.rounding == 0 else _SUM_VARIANCE


# The law of the noise on cells of a breakdown. Draws of the noise on all measured cells, through least squares.
#
# Least squares mixes cells and never elements: it is a matrix over cells times the identity over elements. So the noise on
# the elements of some cells is the same combination of independent draws that the values are (docs/theory/inference.md,
# section 1).

_INTERVAL_NUMBERS, _MOST_DRAWS, _LEAST_DRAWS = 3_000_000, 20_000, 2_000
"""For intervals about so many numbers are drawn in all, and no more draws; with fewer draws the bound is as good."""


def draws_of_margins(mechanism: MarginsMechanism, confidence: float) -> int:
    """How many public draws of the noise intervals are taken from; 0 where the bound is all there is. Public."""
    draws = min(_MOST_DRAWS, _INTERVAL_NUMBERS // _measured(mechanism))
    known = confidence_level(confidence) ** draws <= FALSE_CONFIDENCE
    return draws if draws >= _LEAST_DRAWS and mechanism.base.law_draws >= _SLOW and known else 0


@lru_cache(maxsize=4)
def _drawn(mechanism: MarginsMechanism) -> list[Floats]:
    """Draws of the magnitude of the noise on the values of each margin, which can be spread over its table.

    Without levels all cells of a margin have one law, as values of an attribute can change places: then one cell is kept.
    """
    breakdown, n = mechanism.breakdown, len(mechanism.base.P)
    alike = mechanism.components.tree_axis is None
    sizes = [1 if alike else math.prod(shape) for shape in breakdown.shapes]
    cells = [(place, cell) for place, size in enumerate(sizes) for cell in range(size)]
    draws = min(_MOST_DRAWS, _INTERVAL_NUMBERS // _measured(mechanism))
    rows = np.abs(_simulated(mechanism, cells, draws, f"{LAW_STREAM} intervals of margins"))
    parts = np.split(rows, np.cumsum([size * n for size in sizes])[:-1], axis=1)
    shapes = [() if alike else shape for shape in breakdown.shapes]
    return [part.reshape(len(rows), *shape, n) for part, shape in zip(parts, shapes, strict=True)]


Cell = tuple[int, int]
"""The place of a margin, and that of a cell in its table."""

_NUMBERS, _FEWEST, _SCALES, _MOST = 6_000_000, 400, 400, 60_000_000
"""A law draws about so many numbers in all; it has at least so many draws; so many for scales; and no more numbers than that."""

_SLOW = 5_000
"""Noise whose own law has fewer draws takes long to draw."""

_CHUNK = 1_000_000


def margins_law(mechanism: MarginsMechanism, cells: Sequence[Cell], stream: str = "") -> Law:
    """The law of the noise on the values of some cells, the elements of the first cell before those of the next.

    Laws of different ``stream`` are independent of each other: those of different releases.
    """
    size = _draws(mechanism)
    rows = _simulated(mechanism, cells, size, f"{LAW_STREAM} cells {stream}")
    return Law(rows, _simulated(mechanism, cells, _SCALES, f"{LAW_STREAM} scales of cells {stream}"))


def _measured(mechanism: MarginsMechanism) -> int:
    """How many noisy integers there are."""
    shapes = mechanism.breakdown.shapes
    cells = [math.prod(shape) for shape, share in zip(shapes, mechanism.shares, strict=True) if share]
    return sum(cells) * len(mechanism.base.P)


def _draws(mechanism: MarginsMechanism) -> int:
    """How many draws the law has, a public number."""
    numbers, most = _measured(mechanism), mechanism.base.law_draws
    if most < _SLOW or numbers * _FEWEST > _MOST:
        raise InputError(
            "The law of figures derived from this breakdown would take too long to draw: it has "
            f"{numbers:,} noisy numbers. Its columns low and high hold for each value alone."
        )
    return min(most, max(_FEWEST, _NUMBERS // numbers))


def _simulated(mechanism: MarginsMechanism, cells: Sequence[Cell], size: int, label: str) -> Floats:
    """Independent draws of the noise on the values of the cells, a row each."""
    n, rng = len(mechanism.base.P), public_stream(label)
    result = np.empty((size, len(cells) * n))
    step = max(1, _CHUNK // _measured(mechanism))
    for start in range(0, size, step):
        rows = result[start : start + step]
        tables: list[Floats | None] = []
        for sizes, part in zip(mechanism.breakdown.shapes, mechanism.parts, strict=True):
            if part is None:
                tables.append(None)
                continue
            noise = np.asarray(part.simulate_released(len(rows) * math.prod(sizes), rng), dtype=np.float64)
            # to least squares a draw is one more element
            drawn = np.moveaxis(noise.reshape(len(rows), *sizes, n), 0, -2)
            tables.append(drawn.reshape(*sizes, len(rows) * n))
        estimates = mechanism.fit.estimate(tables)
        for k, (margin, cell) in enumerate(cells):
            own = estimates[margin].reshape(-1, len(rows), n)[cell]
            rows[:, k * n : (k + 1) * n] = own
    return result


# The plan of a breakdown: noise, shares of margins, and ways to share a budget.

# Choosing the noise and the shares of a breakdown. No data is needed.

_SMALL, _NEAR = 200, 1.2
"""For larger orders a second search could take long; and how much more error is taken for shorter intervals."""


def margins_mechanism(
    setting: Setting,
    breakdown: Breakdown,
    guarantee: Guarantee,
    mechanism: str | AdditiveMechanism | None = None,
    importance: Any = None,
) -> MarginsMechanism:
    """The mechanism for a breakdown that keeps ``guarantee``, with the best noise for the cells and the best shares.

    For replace neighbours the noise is for adding or removing, at so much less that replacing follows.
    """
    P, care = setting.P, setting.care
    numbers = breakdown.cells * len(P)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"{breakdown.cells:,} cells of {len(P)} counts are {numbers:,} numbers, and a breakdown has at most "
            f"{MOST_NUMBERS:,}. Take coarser lists, or fewer attributes."
        )

    weights = importance_of(breakdown, importance)

    def chosen(
        target: Guarantee, kind: str | AdditiveMechanism | None, cared: Care | None
    ) -> AdditiveMechanism:
        # a unit that is replaced may change its cell: each is guaranteed so much about adding that replacing follows
        return choose_mechanism(replace(setting, care=cared), target.of_one_unit(), kind)

    def shared(base: AdditiveMechanism) -> MarginsMechanism:
        if guarantee.kind != "zcdp" or base.guarantee.kind != "pure":
            return MarginsMechanism(base, breakdown, importance)
        return MarginsMechanism(base, breakdown, importance, rho=guarantee.of_one_unit().rho)

    def best(target: Guarantee) -> MarginsMechanism:
        """The noise that is best for the shares of the cells, which need not be that for the whole budget."""
        first = shared(chosen(target, None, care))
        if target.kind != "pure" or len(P) > _SMALL or is_hierarchy(P):
            return first
        result = {type(first.base): first}
        for share in {min(filter(None, first.shares)), max(first.shares)} - {1}:
            base = chosen(replace(target, epsilon=target.epsilon * share), None, care)
            result.setdefault(type(base), shared(base.part(1 / share)))
        if setting.max_size is None and PosetMechanism not in result:  # its intervals are the shortest
            result[PosetMechanism] = shared(chosen(target, PosetMechanism.__name__, None))
        return _shortest(list(result.values()), weights)

    if mechanism not in (None, "best"):
        return shared(chosen(guarantee, mechanism, care))
    if guarantee.kind != "approximate":
        return best(guarantee)
    # all parts of Gaussian noise together cost what one does, so it wins more often than for one table
    result = [best(Guarantee.pure(guarantee.epsilon, neighbours=guarantee.neighbours, unit=guarantee.unit))]
    gaussian = TreeGaussianMechanism if is_hierarchy(P) else OrderGaussianMechanism
    if is_hierarchy(P) or not any(choice.kind == "partition" for choice in P.choices):
        result.append(shared(chosen(guarantee, gaussian.__name__, care)))
    return min(result, key=lambda one: float(weights @ one.mean_variances()))


def _shortest(mechanisms: list[MarginsMechanism], weights: NDArray[np.float64]) -> MarginsMechanism:
    """Of those with nearly the least error the one with the shortest intervals.

    Those of noise on whole numbers are proved for any law of the kind, and wide.
    """
    errors = [math.sqrt(float(weights @ one.mean_variances())) for one in mechanisms]
    near = [one for one, error in zip(mechanisms, errors, strict=True) if error <= _NEAR * min(errors)]
    return min(
        near,
        key=lambda one: float(
            weights @ [float(half.mean()) for half in one.tables(one.bounded_half_widths())]
        ),
    )


# The plan of a breakdown, with several ways to share the budget between margins. Nothing is read and nothing is spent.


@dataclass(frozen=True)
class MarginsRow(Row):
    """One way to share the budget, with the root of the mean variance over margins, weighted, and that of the worst margin."""

    columns: ClassVar[tuple[Column, ...]] = (
        Column("rmse", "rms error", marker="o"),
        Column("worst", "worst margin", marker="|"),
    )

    mechanism: MarginsMechanism
    rmse: float
    worst: float

    @classmethod
    def of(cls, name: str, mechanism: MarginsMechanism) -> MarginsRow:
        """The row of a mechanism."""
        means, weights = mechanism.mean_variances(), np.array(mechanism.importance)
        return cls(name, mechanism, math.sqrt(weights @ means / weights.sum()), math.sqrt(means.max()))

    @property
    def note(self) -> str:
        """The share of each margin."""
        pairs = zip(self.mechanism.breakdown.margins, self.mechanism.shares, strict=True)
        return ", ".join(
            f"{self.mechanism.breakdown.label(margin)} {float(share):.3g}" for margin, share in pairs if share
        )


@dataclass(frozen=True)
class MarginsPlan(Plan[MarginsRow]):
    """Ways to share a budget between the margins of a breakdown, best first."""

    breakdown: Breakdown
    guarantee: Guarantee

    @property
    def title(self) -> str:
        """The number of counts and margins, and the guarantee."""
        size = len(self.best.base.P)
        return f"{size} counts in {len(self.breakdown.margins)} margins, {self.guarantee}"

    @property
    def best(self) -> MarginsMechanism:
        """The mechanism with the least error."""
        return self.rows[0].mechanism

    @property
    def remark(self) -> str:
        """The error of each margin with the best shares, and the noise of a cell."""
        best, breakdown = self.best, self.breakdown
        means = np.sqrt(best.mean_variances()).tolist()
        pairs = zip(breakdown.margins, means, strict=True)
        errors = ", ".join(f"{breakdown.label(margin)} {error:.3g}" for margin, error in pairs)
        alike = spelling(best.base.P)
        return f"{alike and alike + chr(10)}Rms errors of the margins with {self.rows[0].name}: {errors}. Noise of a cell: {type(best.base).__name__}."

    def plain(self) -> dict[str, Any]:
        """The plan as plain values, with the share and the error of each margin."""
        best, breakdown = self.best, self.breakdown
        margins = [
            {"margin": list(breakdown.names(margin)), "share": str(share), "rmse": error}
            for margin, share, error in zip(
                breakdown.margins, best.shares, np.sqrt(best.mean_variances()).tolist(), strict=True
            )
        ]
        return {**super().plain(), "base": type(best.base).__name__, "margins": margins}


def plan_margins(best: MarginsMechanism) -> MarginsPlan:
    """A mechanism beside the same noise with equal shares, and with all for the finest margin.

    >>> from isotone.counts.breakdown import read_breakdown
    >>> from isotone.order import Poset
    >>> lists = {"region": ["n", "e", "s", "w"], "sex": ["f", "m"]}
    >>> breakdown = read_breakdown(["region", "sex"], lists, ["", "region", "*"], "drop")
    >>> best = margins_mechanism(Setting(Poset.chain("ab")), breakdown, Guarantee.zcdp("0.5"))
    >>> [row.name for row in plan_margins(best)]
    ['best shares', 'equal shares', 'region × sex only']
    """
    breakdown, number = best.breakdown, len(best.breakdown.margins)
    ways: dict[str, list[Fraction]] = {"equal shares": [Fraction(1, number)] * number}
    finest = breakdown.finest
    if finest is not None and number > 1:
        only = [Fraction(int(margin == finest)) for margin in breakdown.margins]
        ways[f"{breakdown.label(finest)} only"] = only
    rho = best.guarantee.rho if best.squares_add and best.base.guarantee.kind == "pure" else None
    weights = list(zip(map(breakdown.names, breakdown.margins), best.importance, strict=True))
    rows = [MarginsRow.of("best shares", best)]
    for name, shares in ways.items():
        rows.append(MarginsRow.of(name, MarginsMechanism(best.base, breakdown, weights, shares, rho)))
    return MarginsPlan(tuple(sorted(rows, key=lambda row: row.rmse)), breakdown, best.guarantee)
