"""Breakdowns with margins: noise on the full table, on margins alike, ResidualPlanner, and OpenDP's contingency table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from experiments._posets import survey_sections
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks._rivals.contingency import WAYS
from benchmarks._rivals.counts import best_sums
from benchmarks._rivals.environments import run_arrays
from benchmarks._rivals.rows import Key, Row
from isotone.counts import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    MarginsMechanism,
)
from isotone.counts.breakdown import Breakdown, read_breakdown
from isotone.counts.count_plan import Setting
from isotone.counts.margins import margins_mechanism
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

__all__ = ["residual_planner", "rows"]

PURE, CONCENTRATED = "ε = 1", "ρ = ½"
NEAREST = "Gaussian noise, best shares, nearest table of people"
DRAWS = 8


@dataclass(frozen=True)
class Case:
    """Questions about people, by attributes with so many values, and the margins that are wanted."""

    name: str
    P: Poset
    sizes: dict[str, int]
    margins: Sequence[Any]
    seen: bool = False

    @property
    def breakdown(self) -> Breakdown:
        groups = {a: [str(i) for i in range(n)] for a, n in self.sizes.items()}
        return read_breakdown(list(self.sizes), groups, list(self.margins))

    @property
    def subsets(self) -> list[frozenset[str]]:
        """The attributes of each margin."""
        return [_attributes(margin, self.sizes) for margin in self.margins]


def _attributes(margin: Any, sizes: dict[str, int]) -> frozenset[str]:
    if margin == "*":
        return frozenset(sizes)
    return frozenset([margin] if isinstance(margin, str) else margin) - {""}


def cases(quick: bool) -> list[Case]:
    """The survey of the page on breakdowns, people by the same attributes, and two that nothing was tried on."""
    people, wide = Poset(["people"]), {"canton": 26, "sex": 2, "age": 18}
    some = [Case("people by canton × sex × age, 8 margins", people, wide, _all(wide))]
    if quick:
        return some
    small = {"school": 12, "grade": 4, "sex": 2, "origin": 5}
    region = {"region": 51, "sex": 2, "age": 6}
    margins = ["", "region", "sex", "age", ("region", "sex"), "*"]
    return [
        *some,
        Case(
            "11 ordered answers by school × grade × sex × origin, pairs",
            survey_sections(2),
            small,
            _pairs(small),
        ),
        Case("people by region × sex × age, 6 margins", people, region, margins, seen=True),
        Case(
            "15 ordered answers by region × sex × age, 6 margins",
            survey_sections(3),
            region,
            margins,
            seen=True,
        ),
    ]


def _all(sizes: dict[str, int]) -> list[Any]:
    return ["", *(c for k in range(1, len(sizes)) for c in itertools.combinations(sizes, k)), "*"]


def _pairs(sizes: dict[str, int]) -> list[Any]:
    return ["", *sizes, *itertools.combinations(sizes, 2)]


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Every rival on every breakdown, at both promises; the error is the mean over margins, all alike."""
    todo = cases(quick)
    for done, case in enumerate(todo):
        progress(done / len(todo), case.name)
        for guarantee in (PURE, CONCENTRATED):
            for rival, squared, more in _rivals(case, guarantee):
                yield _row(case, guarantee, rival, squared, **more)
    if not quick:
        yield from _contingency(todo[0])


def _row(case: Case, guarantee: str, rival: str, squared: float, **more: Any) -> Row:
    return Row(*_key(case, guarantee, rival), math.sqrt(squared), **more)


def _key(case: Case, guarantee: str, rival: str) -> Key:
    return "breakdowns", case.name, guarantee, "rms error, margins alike", case.seen, rival


def _rivals(case: Case, guarantee: str) -> Iterator[tuple[str, float, dict[str, Any]]]:
    breakdown, number = case.breakdown, len(case.margins)
    ours = _ours(case, guarantee)
    plain = (
        DiscreteLaplaceMechanism(case.P, 1)
        if guarantee == PURE
        else DiscreteGaussianMechanism(case.P, rho="1/2")
    )
    yield f"isotone, best shares of {type(ours.base).__name__}", _mean(ours), {}
    kind = "Laplace" if guarantee == PURE else "Gaussian"
    if breakdown.finest in breakdown.margins:
        only = [Fraction(int(margin == breakdown.finest)) for margin in breakdown.margins]
        yield (
            f"{kind} noise on the full table, added up",
            _mean(MarginsMechanism(plain, breakdown, shares=only)),
            {},
        )
    part = plain.part(Fraction(1, number))
    yield f"{kind} noise on each margin, alike", part.error().rmse ** 2, {}
    alike = [Fraction(1, number)] * number
    yield (
        f"{kind} noise on each margin, alike, least squares",
        _mean(MarginsMechanism(plain, breakdown, shares=alike)),
        {},
    )
    shared = _mean(MarginsMechanism(plain, breakdown))
    yield f"{kind} noise, best shares, least squares", shared, {}
    if guarantee == PURE and len(case.P) > 1:  # noise of another shape has the same shares and another size
        sums = 2 * best_sums(case.P).error / len(case.P)
        yield (
            "Laplace noise on sums of the answers, best shares, least squares",
            shared * sums / plain.error().rmse ** 2,
            {},
        )
    if guarantee == CONCENTRATED:
        unit = residual_planner(case.sizes, case.subsets)
        yield "ResidualPlanner, Gaussian noise", unit * len(case.P), {}
        if len(case.P) > 1:
            yield (
                "ResidualPlanner with isotone's noise on the answers",
                unit * ours.base.error().rmse ** 2,
                {},
            )


def _ours(case: Case, guarantee: str) -> MarginsMechanism:
    """What isotone plans."""
    promise = Guarantee.pure(1) if guarantee == PURE else Guarantee.zcdp("1/2")
    return margins_mechanism(Setting(case.P), case.breakdown, promise)


def _mean(mechanism: MarginsMechanism) -> float:
    return float(np.mean(mechanism.mean_variances()))


def residual_planner(sizes: dict[str, int], margins: Sequence[frozenset[str]]) -> float:
    """The least mean variance over margins of Gaussian noise on their interactions, at ρ = ½ (Xiao, He, Zhang and Kifer 2023).

    The interaction of the attributes A is measured with variance ``σ²`` in its own space. A record moves it by
    ``p = Π (1 - 1/n)`` squared, and a cell of a margin M around A has ``σ²·p·Π n⁻²`` of it, over the attributes of M that
    are not in A. With ``Σ p/σ² = 1`` the least ``Σ σ²·v`` is ``(Σ √(p·v))²``.

    >>> residual_planner({"sex": 2}, [frozenset({"sex"})])  # one histogram: one measured with variance 1
    1.0
    """
    below = {frozenset(c) for m in margins for k in range(len(m) + 1) for c in itertools.combinations(m, k)}
    total = 0.0
    for interaction in below:
        p = math.prod(1 - 1 / sizes[a] for a in interaction)
        v = math.fsum(
            p * math.prod(sizes[a] ** -2 for a in m - interaction) for m in margins if interaction <= m
        )
        total += math.sqrt(p * v / len(margins))
    return total**2


def population(case: Case) -> Any:
    """30,000 people in the cells, with shares that differ as those of regions do."""
    rng = np.random.default_rng(11)
    shares = rng.lognormal(0, 1, list(case.sizes.values()))
    return rng.multinomial(30_000, (shares / shares.sum()).ravel()).reshape(shares.shape)


def _contingency(case: Case) -> Iterator[Row]:
    """OpenDP's, on people; it fits a graphical model that is never negative, so isotone's row is rounded up to 0 as well."""
    cells = population(case)
    margins = np.array([[a in m for a in case.sizes] for m in case.subsets])
    truth = [cells.sum(axis=tuple(np.flatnonzero(~m).tolist())) for m in margins]
    named = Case(f"{case.name}, 30,000 people", case.P, case.sizes, case.margins, case.seen)
    own = f"isotone, best shares of {type(_ours(case, CONCENTRATED).base).__name__}"
    yield Row.of_draws(_key(named, CONCENTRATED, own), _simulated(case, truth))
    nearest = _nearest(case, cells, truth, np.array(_ours(case, CONCENTRATED).shares, np.float64))
    yield Row.of_draws(_key(named, CONCENTRATED, NEAREST), nearest)
    data = {"cells": cells, "margins": margins, "rho": 0.5, "draws": DRAWS}
    found = run_arrays("contingency", "benchmarks._rivals.contingency", data)
    for values in ("keys", "cuts"):
        name = f"OpenDP contingency_table, values as {values}"
        if found is None:
            yield _row(named, CONCENTRATED, name, math.nan, how="not to be had on this machine")
            continue
        drawn = {way: _squared(found, way, truth) for way in WAYS if way.startswith(values)}
        yield contingency_row(named, values, drawn, str(found["version"]))


def _nearest(case: Case, cells: Any, truth: Sequence[Any], shares: NDArray[np.float64]) -> list[float]:
    """Squared errors of the margins of the table, never below 0, that is nearest to margins with Gaussian noise of these shares."""
    rng, left = np.random.default_rng(4), [_others(case, m) for m in case.subsets]
    used = [place for place, share in enumerate(shares) if share > 0]
    squares: list[float] = []
    for _ in range(40):
        noisy = {k: truth[k] + rng.normal(size=np.shape(truth[k])) / shares[k] ** 0.5 for k in used}

        def objective(flat: NDArray[np.float64], noisy: dict[int, Any] = noisy) -> tuple[float, Any]:
            table, value, slope = flat.reshape(cells.shape), 0.0, np.zeros(cells.shape)
            for k, seen in noisy.items():
                apart = table.sum(axis=left[k], keepdims=True) - np.reshape(seen, _kept(cells.shape, left[k]))
                value += float(shares[k] * np.sum(apart**2))
                slope += 2 * shares[k] * apart
            return value, slope.ravel()

        limits = {"maxiter": 3_000, "maxfun": 6_000, "ftol": 1e-13}
        start, bounds = np.full(cells.size, cells.sum() / cells.size), [(0, None)] * cells.size
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
        table = found.x.reshape(cells.shape)
        apart = [table.sum(axis=axes) - true for axes, true in zip(left, truth, strict=True)]
        squares.append(float(np.mean([np.mean(np.square(each)) for each in apart])))
    return squares


def _others(case: Case, margin: frozenset[str]) -> tuple[int, ...]:
    """The axes that a margin adds up."""
    return tuple(axis for axis, name in enumerate(case.sizes) if name not in margin)


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def contingency_row(case: Case, values: str, drawn: dict[str, NDArray[Any]], version: str) -> Row:
    """The row of one way to name values, from the squared errors of draws; chance leaves much open, as the total is one number."""
    key = _key(case, CONCENTRATED, f"OpenDP contingency_table, values as {values}")
    found = {way: Row.of_draws(key, each.tolist(), version=version) for way, each in drawn.items()}
    least = min(found, key=lambda way: found[way].public)
    if len(found) == 1:
        return found[values]
    best = found[least]
    return replace(found[values], hindsight=best.public, hindsight_error=best.error, chosen=least)


def _squared(found: dict[str, Any], way: str, truth: Sequence[Any]) -> NDArray[Any]:
    """The mean squared error of each draw, margins alike."""
    errors = [found[f"{way}: {k}"] - true for k, true in enumerate(truth)]
    return np.mean([np.square(each).reshape(len(each), -1).mean(axis=1) for each in errors], axis=0)


def _simulated(case: Case, truth: Sequence[Any]) -> list[float]:
    noise = np.asarray(_ours(case, CONCENTRATED).simulate(40, np.random.default_rng(3)))
    ends = np.cumsum([np.size(true) for true in truth])
    squares: list[NDArray[Any]] = []
    for drawn, true in zip(np.split(noise, ends[:-1], axis=1), truth, strict=True):
        values = np.maximum(drawn + np.ravel(true), 0)
        squares.append(np.mean(np.square(values - np.ravel(true)), axis=1))
    return np.mean(squares, axis=0).tolist()
