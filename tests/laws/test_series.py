"""Counts over time keep their guarantee on tiny products, whatever is released and whoever reacts.

Under pure epsilon the law is compared point by point over a box of outputs, for the effects of every history and both signs.
That covers every adversary (docs/theory/series.md, section 2). Under zCDP the worst adversary is found by backward induction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.counts import PosetMechanism
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.series import CausalGaussianMechanism, SeriesMechanism, TwoScaleMechanism
from isotone.series.two_scale import GAIN_BITS, Scales, over_time
from tests.support.noise_scripts import enumerated

TINY = [(Poset.chain("ab"), 2), (Poset.chain("ab"), 3), (Poset.chain("abc"), 2), (Poset.antichain("ab"), 2)]
NAMES = ["2×2", "2×3", "3×2", "2×2 without relations"]


def histories(stages: Poset, periods: int) -> list[NDArray[np.int64]]:
    """The effects of all histories but that of nobody, by brute force: filters that grow."""
    leq = stages.leq_matrix()
    filters = [
        f
        for f in itertools.product((0, 1), repeat=len(stages))
        if all(f[y] for x in np.flatnonzero(f) for y in np.flatnonzero(leq[x]))
    ]
    found = [
        np.array(sum(steps, ()))
        for steps in itertools.product(filters, repeat=periods)
        if all(a <= b for one, two in itertools.pairwise(steps) for a, b in zip(one, two, strict=True))
    ]
    return [history for history in found if history.any()]


def law_in(
    mechanism: TwoScaleMechanism, reaches: tuple[int, int], size: int, combined: Any
) -> NDArray[np.float64]:
    """The law of what is shown, by all pairs of draws within reach, through the code that combines two draws.

    Whole numbers have the weight ``exp(−rate·norm)`` there, so that a step costs exactly what the norm says.
    """
    grids: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    for part, reach in zip((mechanism.fine_noise, mechanism.coarse_noise), reaches, strict=True):
        points = np.array(list(itertools.product(range(-reach, reach + 1), repeat=len(part.P))), np.int64)
        grids.append((points, np.exp(-float(part.rate) * part.norm(points.astype(np.float64)))))
    (fine, weight), (coarse, share) = grids
    law = np.zeros([size] * len(mechanism.P))
    for anchor, mass in zip(coarse, share, strict=True):
        out = np.asarray(combined(fine, anchor, mechanism.gain)) + size // 2
        keep = np.all((out >= 0) & (out < size), axis=1)
        np.add.at(law, tuple(out[keep].T), mass * weight[keep])
    return law


def worst_loss(
    mechanism: TwoScaleMechanism, reaches: tuple[int, int], combined: Callable[..., Any] | None = None
) -> float:
    """The largest log ratio between outputs next to zero and their neighbours.

    A change takes draws within reach to draws within one more, so that the bound holds exactly for what is cut off there.
    """
    shown, size = combined or mechanism._combined, 2 * reaches[0] + 7
    less = law_in(mechanism, reaches, size, shown)
    more = law_in(mechanism, (reaches[0] + 1, reaches[1] + 1), size, shown)
    middle = np.array(list(itertools.product((-1, 0, 1), repeat=len(mechanism.P)))) + size // 2
    losses = [
        np.log(less[tuple(middle.T)] / more[tuple((middle + sign * d).T)]).max()
        for d in histories(mechanism.stages, mechanism.periods)
        for sign in (1, -1)
    ]
    return float(max(losses))


def two_scale(stages: Poset, periods: int, epsilon: int, **more: Any) -> TwoScaleMechanism:
    made: dict[str, Any] = {"anchors": [periods - 1], "share": "0.3", "fine": "product", **more}
    scales = Scales(*(made.pop(name) for name in Scales._fields))
    guarantee = Guarantee.pure(epsilon, neighbours=made.pop("neighbours", "add-remove"))
    return TwoScaleMechanism(stages, periods, guarantee, scales, **made)


REACHES = [(4, 4), (1, 4), (1, 2), (4, 4)]


@pytest.mark.parametrize(("case", "reaches"), [*zip(TINY, REACHES, strict=True)], ids=NAMES)
@pytest.mark.parametrize("fine", ["product", "chains"])
def test_the_law_of_two_scales_keeps_epsilon_pointwise(
    case: tuple[Poset, int], reaches: tuple[int, int], fine: str
) -> None:
    epsilon = 9
    loss = worst_loss(two_scale(*case, epsilon, fine=fine), reaches)
    assert loss <= epsilon * (1 + 1e-9)
    assert loss > 0.7 * epsilon, "these neighbours are too near to tell anything"


def test_halves_to_the_even_neighbour_and_a_gain_without_the_identity_break_epsilon() -> None:
    """Conditions of the proof that are taken away: what is shown then costs more."""
    epsilon, reaches = 2, (13, 13)
    gain = np.full((2, 1), 2 ** (GAIN_BITS - 1))
    mechanism = two_scale(Poset.chain("a"), 2, epsilon, gain=gain)

    def even(fine: Any, coarse: Any, gain: Any) -> Any:
        scaled = fine * 2**GAIN_BITS + (coarse - fine[..., mechanism.anchored]) @ gain.T
        return np.rint(scaled / 2**GAIN_BITS).astype(np.int64)

    def without(fine: Any, coarse: Any, gain: Any) -> Any:
        return mechanism._combined(fine, 0 * coarse, gain)

    assert worst_loss(mechanism, reaches) <= epsilon * (1 + 1e-9)
    assert worst_loss(mechanism, reaches, even) > epsilon * 1.05
    assert worst_loss(mechanism, reaches, without) > epsilon * 1.05


WALKED: list[tuple[str, Callable[[], Any]]] = [
    ("product", lambda: PosetMechanism(over_time(Poset.chain("a"), 2), 2)),
    ("two scales", lambda: two_scale(Poset.chain("a"), 2, 2)),
]


@pytest.mark.parametrize(("name", "make"), WALKED, ids=[name for name, _ in WALKED])
def test_the_draws_of_a_whole_series_keep_epsilon_by_all_paths(name: str, make: Callable[[], Any]) -> None:
    """From the bits to the rounded noise of all periods: nothing of the law is assumed."""
    mechanism = SeriesMechanism(Poset.chain("a"), 2, make())
    floor, known = (1e-5, 2e-4) if name == "product" else (1e-6, 5e-4)
    law = enumerated(lambda: mechanism.draw(), floor)
    seen = {out: mass for out, mass in law.reached.items() if mass >= known}
    epsilon, losses = float(mechanism.epsilon), list[float]()
    for d in histories(mechanism.stages, 2):
        for out, mass in seen.items():
            other = tuple(a - b for a, b in zip(out, d.tolist(), strict=True))
            if other in seen:
                losses.append(abs(math.log(mass / seen[other])))
            else:
                assert mass * math.exp(-epsilon) <= 3 * known
    assert max(losses) <= epsilon * 1.04  # paths below the floor are missing
    assert max(losses) > 0.6 * epsilon


@pytest.mark.parametrize(("stages", "periods"), TINY, ids=NAMES)
@pytest.mark.parametrize(("neighbours", "contributions"), [("add-remove", 1), ("replace", 2)])
def test_no_history_costs_more_than_its_share_of_one_draw(
    stages: Poset, periods: int, neighbours: Any, contributions: int
) -> None:
    """The density of a draw over histories is ``exp(−rate·norm)``: every effect that a unit can have is tried."""
    mechanism = PosetMechanism(
        over_time(stages, periods), 1, neighbours=neighbours, contributions=contributions
    )
    found = [np.zeros(len(mechanism.P), np.int64), *histories(stages, periods)]
    effects = found if neighbours == "add-remove" else [a - b for a, b in itertools.product(found, repeat=2)]
    loss = float(mechanism.rate) * float(np.max(mechanism.norm(contributions * np.array(effects, float))))
    assert 0.99 <= loss <= 1 + 1e-9


@pytest.mark.parametrize(("stages", "periods"), TINY, ids=NAMES)
@pytest.mark.parametrize(("neighbours", "contributions"), [("add-remove", 3), ("replace", 1), ("replace", 3)])
@pytest.mark.parametrize("fine", ["product", "chains"])
def test_both_draws_of_two_scales_together_cost_epsilon(
    stages: Poset, periods: int, neighbours: Any, contributions: int, fine: str
) -> None:
    """What is shown is a function of both draws that moves with them, so that their losses for one effect add up."""
    mechanism = two_scale(stages, periods, 1, fine=fine, neighbours=neighbours, contributions=contributions)
    found = [np.zeros(len(mechanism.P), np.int64), *histories(stages, periods)]
    effects = found if neighbours == "add-remove" else [a - b for a, b in itertools.product(found, repeat=2)]
    moved = contributions * np.array(effects, float)
    parts = (mechanism.fine_noise, moved), (mechanism.coarse_noise, moved[:, mechanism.anchored])
    losses = sum(float(part.rate) * np.asarray(part.norm(changes)) for part, changes in parts)
    assert 0.9 <= float(np.max(losses)) <= 1 + 1e-9


@pytest.mark.parametrize(("stages", "periods"), TINY, ids=NAMES)
@pytest.mark.parametrize(
    ("neighbours", "contributions"), [("add-remove", 1), ("replace", 1), ("add-remove", 2)]
)
def test_the_worst_adversary_of_gaussian_noise_over_time_stays_within_rho(
    stages: Poset, periods: int, neighbours: Any, contributions: int
) -> None:
    """Backward induction over periods. A discrete Gaussian that is moved by a whole number ``s`` has the Rényi moment
    ``exp(α(α−1)s²/2σ²)`` for every whole α, so that the worth of a past is the largest sum of squares that can follow."""
    guarantee = Guarantee.zcdp("1/2", neighbours=neighbours)
    mechanism = CausalGaussianMechanism(stages, periods, guarantee, contributions)
    within, active = mechanism.strategy.within, mechanism.strategy.active
    Q = np.rint(within.multiply(np.eye(len(mechanism.P)))).astype(
        object
    )  # row x: what element x adds to all rows
    own = [tuple(h.tolist()) for h in [np.zeros(len(mechanism.P), int), *histories(stages, periods)]]
    effects = {tuple(contributions * x for x in h) for h in own}
    if neighbours == "replace":
        effects = {
            tuple(a - b for a, b in zip(one, two, strict=True)) for one, two in itertools.product(own, own)
        }
    size = len(stages)
    time = active // size

    def worth(past: tuple[int, ...]) -> int:
        """The largest sum of squares of what is measured from here on."""
        t = len(past) // size
        if t == periods:
            return 0
        best = 0
        for now in {d[: len(past) + size] for d in effects if d[: len(past)] == past}:
            known = np.array([*now, *[0] * (len(active) - len(now))], dtype=object)[active]
            shifts = known @ Q  # rows of this period and before do not look at what is still unknown
            rows = [int(s) for s, when in zip(shifts[: len(time)], time, strict=True) if when == t]
            best = max(best, sum(s * s for s in rows) + worth(now))
        return best

    later = time[:, None] > time[None, :]  # of an element and a row
    assert not np.any(Q[:, : len(time)][later]), "a row looks at a period that is not there yet"
    found = Fraction(worth(()), 1) / (2 * Fraction(mechanism.variance))
    assert found <= Fraction(1, 2)
    assert found > Fraction(1, 4 if neighbours == "replace" else 3), (
        "these neighbours are too near to tell anything"
    )
