"""Lines on more points, bins and values than can be walked through: the worst ratio of each draw by a search over paths.

A draw of increasing values has the weight ``exp(−rate·cost)`` for every path of a graph. Its worst ratio between two data
sets needs no list of outputs: it is the largest change of a path's cost, found bin by bin, less the change of the total.
Draws are looked at one after the other, given the same earlier outputs; what each may lose is its share of epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_cases import Weighted, slopes
from tests.support.curve_outcomes import records_of

from isotone.curves import lines as line_fit
from isotone.curves.circuits import Circuit, CircuitTables
from isotone.curves.cuts import DrawnValues, DrawShares, Imbalance, StepFit
from isotone.curves.lines import RefinedLineFit
from isotone.curves.losses import Absolute, Huber, Pinball
from isotone.curves.problem import FINE, CurveSetting
from isotone.curves.tree import AdditiveScore
from isotone.privacy.guarantee import Unit

ROUNDING = 1e-9
LOSSES = [
    Absolute(),
    Pinball(Fraction(3, 4)),
    Pinball(Fraction(1, 10)),
    Huber(Fraction(1, 4)),
    Huber(Fraction(1, 1000)),
    Huber(Fraction(5)),
]
SETTINGS = [
    CurveSetting(Fraction(1), Unit(contributions, neighbours), weight)
    for neighbours in ("add-remove", "replace")
    for contributions, weight in ((1, 1), (2, 3))
]
VALUES = 32


@dataclass
class Asked:
    """The draws that a mechanism asked for: costs of paths, and scores of the places of boundaries."""

    paths: list[tuple[Circuit, Any, Fraction]]
    places: list[tuple[Any, Fraction]]


class Fixed:
    """Choices whose first draw of values is given; the rest does not matter, and what was asked for is kept."""

    def __init__(self, values: Any) -> None:
        self.values, self.asked = values, Asked([], [])

    def segments(
        self, scores: Any, offsets: Any, rates: Any, multiplicity: Any, size: int | None = None
    ) -> Any:
        for start, stop, rate in zip(offsets[:-1], offsets[1:], rates, strict=True):
            self.asked.places.append((np.repeat(scores[start:stop], multiplicity[start:stop]), rate))
        return np.zeros(len(rates), np.int64)

    def below(self, sizes: Any) -> Any:
        return np.zeros_like(sizes)

    def perturb(self, values: Any, rate: Fraction) -> Any:
        return values

    def select(self, circuit: Circuit, costs: Any, rate: Fraction) -> Any:
        self.asked.paths.append((circuit, costs, rate))
        # value nodes have even numbers, bin by bin: see monotone_graph
        return 2 * (np.arange(self.values.size) * (VALUES + 1) + self.values)


def asked(mechanism: DrawnValues, values: Any, rows: Weighted) -> Asked:
    choices: Any = Fixed(values)
    mechanism.draw(records_of([row for row, _ in rows], [weight for _, weight in rows]), choices)
    return choices.asked


def loss_of_paths(one: Any, other: Any) -> float:
    """The largest |log ratio| over all increasing values."""
    circuit, costs, rate = one
    change = (other[1] - costs)[::2].reshape(-1, VALUES + 1)
    highest, lowest = change[0], change[0]
    for row in change[1:]:
        highest = np.maximum.accumulate(highest) + row
        lowest = np.minimum.accumulate(lowest) + row
    total = (
        CircuitTables(circuit, other[1], rate).log_total() - CircuitTables(circuit, costs, rate).log_total()
    )
    ends = float(rate * int(highest.max())), float(rate * int(lowest.min()))
    return max(abs(total + end) for end in ends)


def loss_of_places(one: Any, other: Any) -> float:
    """The largest |log ratio| over the places of a boundary."""
    (scores, rate), (others, _) = one, other
    assert scores.size == others.size
    logs = [-float(rate) * (s - s.min()) for s in (scores, others)]
    logs = [log - math.log(np.exp(log).sum()) for log in logs]
    return float(np.abs(logs[0] - logs[1]).max())


def losses(mechanism: DrawnValues, values: Any, one: Weighted, other: Weighted) -> tuple[float, float]:
    """What the first draw loses, and what all draws after it lose together."""
    a, b = asked(mechanism, values, one), asked(mechanism, values, other)
    paths = [loss_of_paths(p, q) for p, q in zip(a.paths, b.paths, strict=True)]
    places = [loss_of_places(p, q) for p, q in zip(a.places, b.places, strict=True)]
    return paths[0], sum(paths[1:]) + sum(places)


def lines(setting: CurveSetting, loss: Any, points: int, bins: int, fit: Any = RefinedLineFit) -> Any:
    """Half of epsilon for values, half for the second look; no cuts, so bins are equal."""
    half, score = Fraction(1, 2), Imbalance(slopes(loss), VALUES)
    cuts, table = AdditiveScore(slopes(loss)), loss.table(64, VALUES, Fraction(1))
    return fit(setting, points, cuts, 0, bins, score, DrawShares(Fraction(0), half, half), table=table)


def some_row(rng: np.random.Generator, points: int) -> tuple[int, int]:
    """Often at a value of the grid, or half a step beside one."""
    step = FINE // (2 * VALUES)
    level = int(rng.integers(0, 2 * VALUES + 1)) * step + int(rng.integers(-1, 2))
    return int(rng.integers(points)), min(max(level, 0), FINE)


def some_values(rng: np.random.Generator, bins: int) -> Any:
    """Increasing, with jumps: steps at few heights."""
    heights = np.sort(rng.choice(VALUES + 1, int(rng.integers(1, 6)), replace=False))
    return np.sort(heights[rng.integers(0, heights.size, bins)])


@pytest.mark.parametrize(
    "loss", LOSSES, ids=["absolute", "3/4", "1/10", "huber", "narrow huber", "wide huber"]
)
def test_no_draw_loses_more_than_its_share(loss: Any) -> None:
    rng, worst = np.random.default_rng(7), [0.0, 0.0]
    for turn in range(120):
        setting = SETTINGS[turn // 2 % len(SETTINGS)]
        points = int(rng.integers(2, 14))
        bins = int(rng.integers(1, min(points, 8) + 1))
        heavy = [1, 3, 40][turn % 3]
        rows = tuple((some_row(rng, points), int(rng.integers(heavy + 1))) for _ in range(rng.integers(0, 9)))
        units = [
            tuple((some_row(rng, points), setting.weight_steps) for _ in range(setting.unit.contributions))
            for _ in range(2)
        ]
        if setting.unit.neighbours == "add-remove":
            units[0] = ()
        # every second curve has steps, and all its boundaries are drawn again
        mechanism = lines(setting, loss, points, bins, StepFit if turn % 2 else RefinedLineFit)
        found = losses(mechanism, some_values(rng, bins), (*rows, *units[0]), (*rows, *units[1]))
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
    assert max(worst) <= 0.5 + ROUNDING
    assert min(worst) > 0.2, "data that lose so little tell nothing"


DIVIDED: Weighted = (((8, FINE // 4), 900), ((8, 3 * FINE // 4), 900))
"""Many values are balanced: one more low record spoils them, and helps those below."""


def test_a_unit_in_two_jumps_and_beside_them_loses_the_last_share_once() -> None:
    """Three records in three disjoint places lose a third of the share each; the share is used up."""
    setting = CurveSetting(Fraction(1), Unit(3))
    mechanism = lines(setting, Absolute(), 10, 5)
    values = np.array(
        [0, 10, 11, 22, 23]
    )  # jumps from the first bin to the second, from the third to the fourth
    rows: Weighted = (((1, 0), 900), ((2, FINE), 900), ((5, 0), 900), ((6, FINE), 900), *DIVIDED)
    unit: Weighted = (((1, FINE), 1), ((5, FINE), 1), ((8, 0), 1))
    _, last = losses(mechanism, values, rows, (*rows, *unit))
    assert 0.45 < last <= 0.5 + ROUNDING


def test_a_boundary_that_may_leave_its_bins_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has teeth: records beside a jump that both draws look at lose more than the share."""
    honest = line_fit.draw_boundaries

    def wider(records: Any, low: Any, high: Any, *rest: Any) -> Any:
        return honest(records, low, high + 4, *rest)

    monkeypatch.setattr(line_fit, "draw_boundaries", wider)
    mechanism = lines(CurveSetting(Fraction(1)), Absolute(), 10, 5)
    rows: Weighted = (((0, 0), 900), *DIVIDED)
    _, last = losses(mechanism, np.array([0, 0, 29, 30, 31]), rows, (*rows, ((8, 0), 1)))
    assert last > 0.6
