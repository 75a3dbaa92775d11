"""Every outcome of a mechanism on curves with its exact probability: the code that releases, walked through.

:class:`Outcomes` answers the choices of a mechanism from a script instead of at random, and keeps their
probabilities. Running the mechanism once for every script enumerates its output distribution.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.curves import circuits as selection
from isotone.curves.circuits import Circuit, CircuitTables, descend
from isotone.curves.cuts import Curve
from isotone.curves.problem import Records

__all__ = [
    "Outcomes",
    "curve_key",
    "datasets",
    "distribution",
    "neighbours_of",
    "records_of",
    "scripted",
    "worst_ratio",
]

FAR = 10**12
"""Noisy sums are looked at far below and far above every true sum: there the ratio of densities is largest."""


@contextmanager
def scripted(draws: Any) -> Generator[None]:
    """Fits and releases take their draws from here, which they would refuse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "ExactCurveDraws", lambda: draws)
        patch.setattr(selection, "require_exact", lambda draws: draws)
        yield


class _Unadded:
    """Gaussian noise that is left out. It keeps what it would have been added to."""

    __array_ufunc__ = None  # so that values + noise asks the noise

    def __init__(self, means: list[float], deviation: float) -> None:
        self.means, self.deviation = means, deviation

    def reshape(self, *shape: Any) -> _Unadded:
        return self

    def __radd__(self, values: Any) -> Any:
        self.means += (values.ravel() / self.deviation).tolist()
        return values


class Outcomes:
    """Choices that follow a script; beyond its end the first possibility is taken. Noisy sums come out at one of two ``sides``."""

    def __init__(self, script: Sequence[int], sides: tuple[int, int] = (-FAR, FAR)) -> None:
        self.script, self.sides = script, sides
        self.taken: list[int] = []
        self.options: list[int] = []
        self.log_probability = 0.0
        self.noisy: list[tuple[int, ...]] = []
        self.means: list[float] = []  # what Gaussian noise was to be added to, in its standard deviations

    def decide(self, log_weights: Sequence[float]) -> int:
        alive = [place for place, weight in enumerate(log_weights) if weight > -math.inf]
        top = max(log_weights)
        total = top + math.log(sum(math.exp(weight - top) for weight in log_weights))
        step = self.script[len(self.taken)] if len(self.taken) < len(self.script) else 0
        self.taken.append(step)
        self.options.append(len(alive))
        self.log_probability += log_weights[alive[step]] - total
        return alive[step]

    def choice(self, scores: Any, rate: Fraction) -> int:
        return self.decide([-float(rate * score) for score in scores.tolist()])

    def geometrics(self, rate: Fraction, size: int) -> Any:
        return self.perturb(np.zeros(size, dtype=np.int64), rate)

    def uneven(self, values: Any, line: Any) -> Any:
        raise NotImplementedError("no mechanism on curves draws these")

    def rounded_gaussians(self, variance: Fraction, size: int) -> Any:
        return _Unadded(self.means, float(variance) ** 0.5)

    def discrete_gaussians(self, variance: Fraction, size: int) -> Any:
        raise NotImplementedError("no mechanism on curves draws these")

    def one_sided_geometrics(self, rate: Fraction, size: int) -> Any:
        raise NotImplementedError("no mechanism on curves draws these")

    def lazy_geometrics(self, rate: Fraction, size: int) -> Any:
        return self.geometrics(rate, size)

    def geometric_sums(self, rate: Fraction, terms: int, size: int) -> Any:
        raise NotImplementedError("no mechanism on curves draws these")

    def coins(self, rate: Fraction, multiples: Any) -> Any:
        raise NotImplementedError("no mechanism on curves draws these")

    def words(self, size: int) -> Any:
        raise NotImplementedError("no mechanism on curves draws these")

    def segments(
        self, scores: Any, offsets: Any, rates: Sequence[Fraction], multiplicity: Any, size: int | None = None
    ) -> Any:
        chosen = []
        for start, stop, rate in zip(offsets[:-1].tolist(), offsets[1:].tolist(), rates, strict=True):
            weights = [
                math.log(count) - float(rate * score) if count else -math.inf
                for score, count in zip(
                    scores[start:stop].tolist(), multiplicity[start:stop].tolist(), strict=True
                )
            ]
            chosen.append(self.decide(weights))
        return np.array(chosen, dtype=np.int64)

    def below(self, sizes: Any) -> Any:
        return np.array([self.decide([0.0] * size) for size in sizes.tolist()], dtype=np.int64)

    def perturb(self, values: Any, rate: Fraction) -> Any:
        flat = values.ravel().tolist()
        out = []
        for value in flat:
            out.append(self.sides[self.decide([0.0, 0.0])])
            self.log_probability += math.log(2.0) + float(rate * (abs(out[-1]) - abs(out[-1] - value)))
        self.noisy.append(tuple(out))
        return np.array(out, dtype=np.int64).reshape(values.shape)

    def select(self, circuit: Circuit, costs: Any, rate: Fraction) -> Any:
        tables = CircuitTables(circuit, costs, rate)

        def choose(node: int) -> int:
            weights = tables.weights(node)
            return self.decide([math.log(weight) if weight > 0 else -math.inf for weight in weights])

        return descend(circuit, choose)


def scripts(
    run: Callable[[Outcomes], Any], sides: tuple[int, int] = (-FAR, FAR)
) -> Iterator[tuple[Any, Outcomes]]:
    """Run once for every possible sequence of choices."""
    stack: list[list[int]] = [[]]
    while stack:
        script = stack.pop()
        outcomes = Outcomes(script, sides)
        yield run(outcomes), outcomes
        for place in range(len(script), len(outcomes.taken)):
            stack += [[*outcomes.taken[:place], other] for other in range(1, outcomes.options[place])]


def distribution(
    run: Callable[[Outcomes], Any], key: Callable[[Any], Any], sides: tuple[int, int] = (-FAR, FAR)
) -> dict[Any, float]:
    """The probability of every output, or a multiple of it that is the same for all data; noisy sums are part of it."""
    law: dict[Any, float] = {}
    for output, outcomes in scripts(run, sides):
        name = (key(output), tuple(outcomes.noisy))
        law[name] = law.get(name, 0.0) + math.exp(outcomes.log_probability)
    return law


def curve_key(curve: Curve) -> tuple[Any, ...]:
    """A curve as something to compare."""
    return tuple(curve.knots.tolist()), tuple(round(value, 9) for value in curve.values.tolist())


def records_of(rows: Sequence[tuple[int, int]], weights: Sequence[int] | None = None) -> Records:
    """Records from pairs (point, level)."""
    cells = np.array([row[0] for row in rows], dtype=np.int64)
    levels = np.array([row[1] for row in rows], dtype=np.int64)
    heavy = np.ones(len(rows), dtype=np.int64) if weights is None else np.array(weights, dtype=np.int64)
    return Records(cells, levels, heavy).sorted()


def datasets(kinds: Sequence[tuple[int, int]], most: int) -> list[tuple[tuple[int, int], ...]]:
    """All multisets of at most ``most`` records."""
    return [rows for size in range(most + 1) for rows in itertools.combinations_with_replacement(kinds, size)]


def neighbours_of(
    rows: tuple[tuple[int, int], ...], kinds: Sequence[tuple[int, int]], relation: str
) -> list[tuple[tuple[int, int], ...]]:
    """The data sets with one record more, or with one record replaced."""
    if relation == "add-remove":
        return [tuple(sorted((*rows, kind))) for kind in kinds]
    return [
        tuple(sorted((*rows[:place], kind, *rows[place + 1 :])))
        for place in range(len(rows))
        for kind in kinds
        if kind > rows[place]
    ]


def worst_ratio(
    law_of: Callable[[tuple[tuple[int, int], ...]], dict[Any, float]],
    kinds: Sequence[tuple[int, int]],
    most: int,
    relation: str = "add-remove",
) -> float:
    """The largest |log ratio| of an output's probability over all neighbouring data sets."""
    laws = {rows: law_of(rows) for rows in datasets(kinds, most)}
    worst = 0.0
    for rows, law in laws.items():
        for other in neighbours_of(rows, kinds, relation):
            if other in laws:
                assert law.keys() == laws[other].keys(), "an output is possible with one data set only"
                worst = max(worst, *(abs(math.log(law[key] / laws[other][key])) for key in law))
    return worst
