"""Tables whose counts have no bound: what every step costs, on every climb, and what a release says of what lies beyond."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import isotone as iso
from isotone.errors import InputError
from isotone.noise import UnevenLine
from isotone.privacy.draws import SeededDraws
from isotone.release.kinds.table.kind import KIND
from isotone.tables import TwoStageMechanism
from isotone.tables import thresholds as thresholds_module
from isotone.tables.smooth import Views
from isotone.tables.thresholds import HEIGHTS, Climb, Thresholds, any_deviation

HIGHEST, MOST, STEP = (0, 1, 2, 4), 7, Fraction(2, 5)
CLIMBS = [
    (*low, high)
    for number in range(len(HIGHEST))
    for low in itertools.product((-3, 1), repeat=number)
    for high in ((2, 300) if number < len(HIGHEST) - 1 else (-3, 2, 300))
]
"""Noisy numbers of at most 0, 1, 2, 4 of two categories: too low ones and then one that is high enough, or none until the end."""


class Recorder(SeededDraws):
    """Leads to given numbers on the climb, keeps what noise is asked for with which rates, and adds none."""

    def __init__(self, table: tuple[int, ...], climb: tuple[int, ...]) -> None:
        super().__init__(np.random.default_rng(0))
        below = [sum(count <= height for count in table) for height in HIGHEST]
        self.noise = [number - true for number, true in zip(climb, below, strict=False)]
        self.truths, self.rates = below[: len(climb)], list[float]()

    def geometrics(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        self.rates += [float(rate)] * size
        return np.array([self.noise.pop(0)]) if self.noise else np.zeros(size, np.int64)

    def uneven(self, values: NDArray[np.int64], line: UnevenLine) -> NDArray[np.int64]:
        self.values, self.line = values, line
        return values


def places(values: NDArray[np.int64], line: UnevenLine) -> NDArray[np.float64]:
    """Where values are on a line by the rates of its steps, also those beyond it."""
    on_line = np.minimum(values, len(line.weights))
    return float(line.unit) * (line.positions[on_line] + line.outside * (values - on_line).astype(float))


def loss(climb: Climb, one: tuple[int, ...], two: tuple[int, ...], numbers: tuple[int, ...]) -> float:
    """The largest log-ratio of one outcome of two tables, given the numbers of the climb. All that is independent adds up."""
    (first, noisy, draws), (second, again, other) = (
        (made, cumulative, draws)
        for table in (one, two)
        for draws in [Recorder(table, numbers)]
        for made, cumulative, _ in [climb.measure(np.array(table), draws)]
    )
    assert (first, draws.rates, draws.line) == (second, other.rates, other.line), (
        "the noise depends on the table"
    )
    assert tuple(noisy[: len(numbers)]) == numbers
    seen = [abs(n - a) - abs(n - b) for n, a, b in zip(numbers, draws.truths, other.truths, strict=True)]
    climbed = float(np.dot(draws.rates[: len(seen)], seen))
    moved = np.abs(noisy - again)[len(seen) :]
    rest = float(np.dot(draws.rates[len(seen) :], moved))
    rest += float(np.sum(np.abs(places(draws.values, draws.line) - places(other.values, other.line))))
    return abs(climbed) + rest


def worst(emphasis: Fraction | None) -> list[float]:
    climb = Climb(STEP, emphasis, 2)
    tables = itertools.product(range(MOST + 1), repeat=2)
    pairs = [(table, (table[0] + 1, table[1])) for table in tables]
    return [loss(climb, *pair, numbers) for pair in pairs for numbers in CLIMBS]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of two categories are measured like large ones, and climbs are short."""
    for name, value in (("SMALL", 1), ("FEW", 1), ("HEIGHTS", HIGHEST)):
        monkeypatch.setattr(thresholds_module, name, value)
    monkeypatch.setattr(thresholds_module, "thresholds_for", cache(thresholds_module.thresholds_for))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("emphasis", [None, Fraction(0), Fraction(1, 2), Fraction(1)])
def test_a_step_costs_epsilon_on_every_climb(emphasis: Fraction | None) -> None:
    assert worst(emphasis) == pytest.approx([float(STEP)] * 8 * 8 * len(CLIMBS), abs=1e-9)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("wrong", ["CLIMB", "BEYOND"])
def test_what_is_measured_and_not_paid_for_would_be_seen(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Thresholds.line.func  # type: ignore[attr-defined]

    def free(self: Thresholds) -> UnevenLine:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(thresholds_module, wrong, Fraction(0))
            return plain(self)

    monkeypatch.setattr(Thresholds, "line", property(free))
    assert max(worst(None)) > float(STEP) * 1.05


def test_a_climb_ends_where_nearly_all_categories_are_below() -> None:
    rng = np.random.default_rng(5)
    table = np.minimum(rng.geometric(0.05, 2000), 200)
    tops = []
    for draw in range(30):
        made, cumulative, _ = Climb(Fraction(1), None, 2000).measure(
            table, SeededDraws(np.random.default_rng(draw))
        )
        assert made.places[: made.climbed] == HEIGHTS[: made.climbed]
        assert made.upper == HEIGHTS[made.climbed - 1] + 1
        beyond = int(np.maximum(table - made.upper, 0).sum())
        assert (
            abs(int(cumulative[-1]) - beyond) < 14 / 0.1 + 1
        )  # false alarm at most 30·e^-14, about 2e-5: seeded
        tops.append(made.upper)
    assert set(tops) <= {65, 129, 257}
    assert np.mean([np.mean(table > top) for top in tops]) < 0.03


def test_the_view_through_the_table_has_no_bias_where_counts_lie_beyond() -> None:
    """Its mean over many draws is the truth. Clamped at the end, as where counts are top-coded, it is far off."""
    table, top = np.append(np.arange(600) % 6, np.full(400, 30)), 5
    made = Thresholds(top, Fraction(1, 2), (0,), Fraction(1, 2), climbed=1)
    truth = np.cumsum(np.bincount(np.minimum(table, top), minlength=top + 1))[:-1]
    open_views, clamped = [], []
    for draw in range(200):
        _, _, noisy = made.measure(table, SeededDraws(np.random.default_rng(draw)), np.array([0]))
        rates, none = made.line.rates, np.zeros(top)
        seen = np.clip(noisy, 0, top + 1)
        views = Views.of(np.zeros(top, np.int64), seen, none, rates, float(made.step) * 0.9)
        open_views.append(views.indirect)
        clamped.append(Views.of(np.zeros(top, np.int64), np.minimum(seen, top), none, rates).indirect)
    far = np.abs(np.mean(open_views, axis=0) - truth) / (np.std(open_views, axis=0) / 200**0.5)
    assert np.all(far < 6)
    bias = np.abs(np.mean(clamped, axis=0) - truth) / (np.std(clamped, axis=0) / 200**0.5)
    assert bias[-1] > 20


def test_a_bound_that_was_found_keeps_the_shares_of_counts_beyond() -> None:
    table = np.append(np.arange(600) % 6, np.full(400, 30))
    made = Thresholds(5, Fraction(1, 2), (0,), Fraction(1, 2), climbed=1)
    shares = []
    for draw in range(5):
        measured, cumulative, noisy = made.measure(
            table, SeededDraws(np.random.default_rng(draw)), np.array([100])
        )
        histogram, _ = measured.histogram(cumulative, noisy)
        shares.append(histogram[-1] / 1000)
    assert np.mean(shares) == pytest.approx(0.5, abs=0.08)


def test_no_design_has_more_noise_than_is_stated() -> None:
    step = Fraction(1, 2)
    known = any_deviation(step)
    assert TwoStageMechanism(None, step).error().rmse == pytest.approx(known)
    shares = [Fraction(share, 50) for share in (1, 2, 5, 10, 25, 40, 49, 50)]
    for left, right in itertools.product(shares, repeat=2):
        line = UnevenLine(step / 50, (int(50 * left), int(50 * right)), 45)
        assert thresholds_module.largest_deviation(line) <= known * (1 + 1e-9)


@pytest.mark.parametrize("top", [0, 4, 100, 10**7])
def test_a_climb_ends_only_beside_its_thresholds(top: int) -> None:
    with pytest.raises(InputError, match="No climb ends"):
        TwoStageMechanism(None, 1).measurement(1000, top)


NAMES = [f"c{i}" for i in range(80)]
COUNTS = np.append(np.arange(79) % 9, 10**6)


def table(**more: Any) -> iso.Table:
    given: dict[str, Any] = {"count": "n", "unit": iso.Unit(name="case")}
    return iso.Table("c", NAMES, **(given | more))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("open")
    with iso.Ledger(folder / "l.ledger", epsilon=100, unit="case") as ledger:
        rows = pa.table({"c": NAMES, "n": COUNTS})
        return table().release(rows, epsilon=20, ledger=ledger, folder=folder / "out"), folder / "out"


def test_a_release_without_a_bound_goes_on_beyond_the_end_of_its_distribution(release: Any) -> None:
    made, folder = release
    top = made.manifest["top"]
    assert top == 9
    assert made.manifest["description"].get("upper") is None
    assert abs(made.manifest["beyond"] - (10**6 - 9)) < 20  # a false alarm with a probability below e^-40
    assert made.columns["value"][-1] == top
    assert abs(made.columns["noisy"][-1] - 10**6) < 5
    assert made.sum().high > 10**6
    assert iso.verify(folder).holds
    assert "no bound" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("change", [{"top": 8}, {"top": None}, {"beyond": None}, {"top": 17}])
def test_another_end_is_noticed(release: Any, change: dict[str, Any]) -> None:
    made, _ = release
    assert not KIND.faults(made)
    assert KIND.faults(replace(made, manifest=replace(made.manifest, **change)))


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"strata": ["a", "b"] * 40}, "need upper"),
        (
            {"count": None, "counts": ["n", "m"], "unit": iso.Unit(name="case", contributions=1)},
            "upper must be",
        ),
    ],
)
def test_strata_and_pairs_need_a_bound(given: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        table(**given)


def test_few_categories_and_gaussian_noise_need_a_bound() -> None:
    with pytest.raises(InputError, match="fewer than 50 categories"):
        iso.Table("c", NAMES[:49], unit="p")
    with pytest.raises(InputError, match="Under rho a table needs upper"):
        table().plan(rho=1)
    with pytest.raises(InputError, match="epsilon is missing"):
        TwoStageMechanism(9)
