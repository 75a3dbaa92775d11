"""ρ-zCDP by Gaussian sums: what a unit can cost, over all pairs of neighbours on a small grid, through the code that releases.

Gaussian noise of variance σ² on values that move by Δ costs ‖Δ‖²/(2σ²), and rounding is post-processing. The noise is
scripted, so that the bins of the second round are the same for both data sets, as in the proof.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_outcomes import records_of, scripted
from tests.support.estimators import grouped

from isotone.curves import PrivateIsotonicRegression
from isotone.curves.bands import PosteriorFit
from isotone.curves.problem import FINE, ConcentratedSetting
from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit

RHO = Fraction(1, 2)
POINTS = (0, 2)
LEVELS = (0, FINE // 4, FINE)


class Silent:
    """No noise, but for a first answer that places the bins; keeps what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Fraction, int]] = []

    def rounded_gaussians(self, variance: Fraction, size: int) -> Any:
        self.asked.append((variance, size))
        return np.zeros(size, np.int64)


def looks(
    mechanism: PosteriorFit, rows: tuple[tuple[int, int], ...], weight: int
) -> list[tuple[Any, Fraction]]:
    """What each round measures before noise, with the variance of the noise; even bins in the second round too."""
    found: list[tuple[Any, Fraction]] = []
    records = records_of(rows, [weight] * len(rows))
    for share, starts in ((mechanism.shares.coarse, [0]), (mechanism.shares.fine, [0, 1])):
        silent: Any = Silent()
        sums = mechanism.sums(records, np.array(starts), share, silent)
        found.append((np.concatenate([sums.ones, sums.zeros]), silent.asked[0][0]))
    return found


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize(
    ("neighbours", "contributions", "weight"),
    [("add-remove", 1, 1), ("replace", 1, 1), ("add-remove", 2, 3), ("replace", 2, 1)],
)
def test_no_unit_costs_more_than_rho(
    labels: bool, neighbours: Neighbours, contributions: int, weight: int
) -> None:
    setting = ConcentratedSetting.of(RHO, Unit(contributions, neighbours), weight)
    mechanism = PosteriorFit(setting, 3, 10, 1, 2, 3, labels)
    rows = list(itertools.product(POINTS, LEVELS))
    units = [chosen for size in range(contributions + 1) for chosen in itertools.product(rows, repeat=size)]
    pairs = itertools.product(units, [()] if neighbours == "add-remove" else units)
    worst = Fraction(0)
    for one, other in pairs:
        cost = Fraction(0)
        for (a, variance), (b, _) in zip(
            looks(mechanism, one, weight), looks(mechanism, other, weight), strict=True
        ):
            cost += Fraction(int(((a - b) ** 2).sum())) / (2 * variance)
        worst = max(worst, cost)
    assert worst <= RHO
    # replaced records change two sums at a time: their length is shorter than their sum
    assert worst >= RHO * Fraction(99, 100) * (Fraction(1, 2) if neighbours == "replace" else 1)


def test_counting_and_both_rounds_share_rho() -> None:
    model = PrivateIsotonicRegression(Guarantee.zcdp("1/2"), bounds=(0, 1), y_values=(0, 1), x_grid=3)
    silent: Any = Silent()
    with scripted(silent):
        model.fit([0, 1] * 40, [0, 1] * 40)
    spent = [1 / (2 * variance) for variance, _ in silent.asked]
    assert spent == [RHO / 50, RHO * Fraction(98, 100) / 10, RHO * Fraction(98, 100) * 9 / 10]
    assert sum(spent) == RHO


def test_a_fit_guarantees_what_it_spent() -> None:
    x = np.arange(2_000) % 100
    model = PrivateIsotonicRegression(
        Guarantee.zcdp(50), bounds=(0, 100), y_values=(0, 1), x_grid=101, public_n=2_000
    )
    found = model.fit(x, (x >= 50) * 1.0)
    assert (found.guarantee_.kind, found.guarantee_.rho) == ("zcdp", 50)
    assert found.epsilon_spent_ is None
    assert np.abs(found.predict([20, 80]) - [0.0, 1.0]).max() < 0.15


@pytest.mark.parametrize(
    "given",
    [
        {"loss": "absolute"},
        {"method": "bins"},
        {"method": "bins", "loss": "absolute"},
        {"method": "baseline", "value_levels": 4},
        {"shape": ("constant", 2)},
        {"increasing": "auto"},
    ],
)
def test_every_method_keeps_rho(given: dict[str, Any]) -> None:
    x = np.arange(60) % 10
    model = PrivateIsotonicRegression(**grouped(rho=2, bounds=(0, 9), y_range=(0, 1), x_grid=10, **given))
    assert model.fit(x, x / 9).guarantee_.rho == 2


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 2},
        {"epsilon": np.array([1, 2])},
        {"rho": 0},
        {"rho": "1e-40"},
        {"rho": "1e18"},
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused_before_the_charge(given: dict[str, Any]) -> None:
    class Ledger:
        def charge(self, guarantee: Any, description: str) -> None:
            raise AssertionError("charged")

    every: dict[str, Any] = {"rho": 1, "bounds": (0, 1), "y_range": (0, 1), "ledger": Ledger()}
    with pytest.raises(InputError, match="rho" if np.ndim(given.get("epsilon", 1)) == 0 else "epsilon"):
        PrivateIsotonicRegression(**grouped(**{**every, **given})).fit([0.5], [0.5])
