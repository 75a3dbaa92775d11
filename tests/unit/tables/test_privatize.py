"""Distribution privatisers: sensitivities, exact privacy of the default, inverses, odd tables."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import noise
from isotone.errors import InputError
from isotone.privacy.calibration import sigma_squared
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.tables import Distribution, fixed_point, privatize_distribution, simulate_distribution
from isotone.tables.distribution import (
    Cumulative,
    Cyclic,
    Haar,
    HistogramStrategy,
    IntervalHierarchy,
    Method,
    Plain,
    top_coded,
)

PURE: tuple[Method, ...] = ("cumulative", "cyclic-laplace", "laplace", "privelet", "hierarchical")


def strategies(n: int) -> dict[str, HistogramStrategy]:
    return {
        "cumulative": Cumulative(),
        "cyclic": Cyclic(),
        "plain": Plain(),
        "haar": Haar(n),
        "tree": IntervalHierarchy(n),
    }


@pytest.mark.parametrize("n", [2, 3, 7, 16, 17, 64, 100, 300])
def test_one_step_moves_the_measurements_by_at_most_l1_and_some_step_by_just_that(n: int) -> None:
    bins = np.eye(n, dtype=np.int64)
    for name, strategy in strategies(n).items():
        moves = [
            int(np.abs(strategy.measure(bins[f + 1]) - strategy.measure(bins[f])).sum()) for f in range(n - 1)
        ]
        assert max(moves) == strategy.l1, name


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 40, 257, 300])
def test_without_noise_every_strategy_gives_the_histogram_back(n: int) -> None:
    histogram = np.random.default_rng(n).integers(0, 50, n)
    for name, strategy in strategies(n).items():
        back = strategy.estimate(strategy.measure(histogram).astype(float), int(histogram.sum()))
        assert np.abs(back - histogram).max() <= 1e-9, name


@pytest.mark.parametrize(("n", "branching"), [(5, 2), (9, 3), (20, 16), (17, 4), (16, 2)])
def test_the_hierarchy_is_the_least_squares_fit(n: int, branching: int) -> None:
    tree = IntervalHierarchy(n, branching)
    system = np.column_stack([tree.measure(e) for e in np.eye(n, dtype=np.int64)]).astype(float)
    noisy = np.random.default_rng(1).normal(size=len(system)) * 5 + 10
    size = 60
    basis = np.vstack([np.eye(n - 1), -np.ones(n - 1)])  # histograms that sum to `size`
    start = np.append(np.zeros(n - 1), size)
    free = np.linalg.lstsq(system @ basis, noisy - system @ start, rcond=None)[0]
    assert np.abs(tree.estimate(noisy, size) - (start + basis @ free)).max() <= 1e-9


def test_the_cumulative_privatiser_is_private_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every noise vector of a box through the code, for all tables of up to 3 categories with counts 0..2."""
    epsilon, reach = math.log(2), 4
    box = [np.array(v) for v in itertools.product(range(-reach, reach + 1), repeat=2)]
    queue: list[np.ndarray] = []
    monkeypatch.setattr(noise, "two_sided_geometrics", lambda rate, size: queue.pop())

    def law(table: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = {}
        for v in box:
            queue.append(v)
            out = privatize_distribution(table, 2, epsilon)
            assert out.noisy_cumulative is not None
            found[tuple(out.noisy_cumulative.tolist())] = math.exp(-epsilon * float(np.abs(v).sum()))
        return found

    worst = 0.0
    for size in (1, 2, 3):
        laws = {table: law(table) for table in itertools.product(range(3), repeat=size)}
        for table, held in laws.items():
            for k in range(size):
                if table[k] == 2:
                    continue
                other = laws[(*table[:k], table[k] + 1, *table[k + 1 :])]
                shared = held.keys() & other.keys()
                assert len(shared) >= (2 * reach) * (2 * reach + 1)
                worst = max(worst, *(abs(math.log(held[o] / other[o])) for o in shared))
    assert abs(worst - epsilon) <= 1e-12


@pytest.mark.parametrize("method", PURE)
def test_the_noise_has_the_rate_that_the_unit_and_the_sensitivity_ask_for(
    method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[Fraction] = []

    def draw(rate: Fraction, size: int) -> np.ndarray:
        rates.append(rate)
        return np.zeros(size, np.int64)

    monkeypatch.setattr(noise, "two_sided_geometrics", draw)
    privatize_distribution([1, 2, 3], 40, "0.6", method)
    replaced = Guarantee.pure("0.6", neighbours="replace")
    privatize_distribution([1, 2, 3], 40, replaced, method, contributions=3)
    movement = {"cumulative": 1, "cyclic-laplace": 1, "laplace": 2, "privelet": 12, "hierarchical": 4}[method]
    assert rates == [Fraction("0.6") / movement, Fraction("0.6") / movement / 6]


@pytest.mark.parametrize("unit", [Unit(), Unit(3), Unit(3, "replace")])
def test_the_variance_is_that_of_all_steps_in_one_direction(
    unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three countings of one person may all move one count: the distance is 3, and 6 for a person replaced."""
    asked: list[Fraction] = []

    def draw(variance: Fraction, size: int) -> np.ndarray:
        asked.append(variance)
        return np.zeros(size, np.int64)

    monkeypatch.setattr(noise, "rounded_gaussians", draw)
    guarantee = unit.approximate("0.6", "1e-6")
    privatize_distribution([1, 2, 3], 40, guarantee, "cyclic-gaussian", contributions=unit.contributions)
    steps = unit.contributions * (2 if unit.neighbours == "replace" else 1)
    assert asked == [sigma_squared(Fraction("0.6"), Fraction("1e-6"), steps**2)]


def budget_for(method: Method, epsilon: Any) -> Guarantee:
    return Guarantee.approximate(epsilon, "1e-6") if method == "cyclic-gaussian" else Guarantee.pure(epsilon)


@pytest.mark.parametrize("post", ["isotonic", "clip"])
@pytest.mark.parametrize("method", [*PURE, "cyclic-gaussian"])
def test_the_result_is_a_distribution_and_says_how_it_was_made(method: Method, post: str) -> None:
    counts, budget = np.random.default_rng(2).integers(0, 30, 400), budget_for(method, "0.3")
    z = privatize_distribution(counts, 20, budget, method, post=post)  # type: ignore[arg-type]
    assert isinstance(z, Distribution)
    assert z.probabilities.min() >= 0
    assert abs(z.probabilities.sum() - 1) <= 1e-12
    assert (len(z), z.upper, z.size, z.method, z.post) == (21, 20, 400, method, post)
    assert z.epsilon == Fraction(3, 10)
    assert z.guarantee == budget
    assert (z.noisy_cumulative is not None) == (method in ("cumulative", "cyclic-laplace", "cyclic-gaussian"))
    assert fixed_point(z, 1).fixed_point_error(z) <= 1e-12
    with pytest.raises(ValueError, match="read-only"):
        z.probabilities[0] = 1


def test_with_no_noise_to_speak_of_the_true_distribution_comes_back() -> None:
    counts = np.repeat([0, 1, 1, 4], 25)
    for method in PURE:
        z = privatize_distribution(counts, 5, 10**4, method)
        assert np.allclose(z.probabilities, [0.25, 0.5, 0, 0, 0.25, 0], atol=1e-12)


def test_the_isotonic_projection_is_the_nearest_rising_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "two_sided_geometrics", lambda rate, size: np.array([5, -4, 1, -90]))
    z = privatize_distribution([0, 1, 2, 3, 4], 4, 1)  # cumulative 1 2 3 4 becomes 6 -2 4 -86
    assert np.allclose(np.cumsum(z.probabilities), [0, 0, 0, 0, 1])
    monkeypatch.setattr(noise, "two_sided_geometrics", lambda rate, size: np.array([2, 0, -2, 90]))
    z = privatize_distribution([0, 1, 2, 3, 4], 4, 1)  # 3 2 1 94: the first three share their mean, 94 is 5
    assert np.allclose(np.cumsum(z.probabilities) * 5, [2, 2, 2, 5, 5])


def test_clipping_drops_negative_bins_and_rescales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "two_sided_geometrics", lambda rate, size: np.array([0, -3, 1]))
    z = privatize_distribution([0, 1, 2, 2], 2, 1, "laplace", post="clip")  # bins 1 1 2 become 1 -2 3
    assert np.allclose(z.probabilities, [0.25, 0, 0.75])
    monkeypatch.setattr(noise, "two_sided_geometrics", lambda rate, size: np.array([-5, -5, -5]))
    z = privatize_distribution([0, 1, 2, 2], 2, 1, "laplace", post="clip")
    assert np.allclose(z.probabilities, 1 / 3)


@pytest.mark.parametrize("method", PURE)
def test_no_categories_and_a_single_count_are_released_like_any_other(method: Method) -> None:
    assert np.allclose(privatize_distribution([], 3, 1, method).probabilities, 0.25)
    assert np.allclose(privatize_distribution([7, 0], 0, 1, method).probabilities, 1)
    assert len(privatize_distribution([3], 9, 1, method)) == 10


def test_counts_above_upper_are_top_coded() -> None:
    low = privatize_distribution([2, 2, 2, 2], 2, 10**4)
    high = privatize_distribution([2, 3, 10**9, 10**30], 2, 10**4)
    assert np.array_equal(low.probabilities, high.probabilities)


@pytest.mark.parametrize(
    "counts",
    [
        [3, -61789],
        [0.5, 61789.25],
        [float("nan"), 61789],
        [float("inf")],
        ["61789"],
        [None, 61789],
        [[61789]],
        [[1, 2], [61789]],
        61789,
    ],
)
def test_what_is_no_count_is_refused_and_never_quoted(counts: object) -> None:
    with pytest.raises(InputError, match="counts must be") as caught:
        privatize_distribution(counts, 5, 1)  # type: ignore[arg-type]
    assert "61789" not in str(caught.value)
    with pytest.raises(InputError, match="counts must be") as caught:
        fixed_point([0.5, 0.5], 1).release(counts)  # type: ignore[arg-type]
    assert "61789" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"upper": -1}, "upper"),
        ({"upper": 2.5}, "upper"),
        ({"epsilon": 0}, "epsilon"),
        ({"method": "magic"}, "method"),
        ({"post": "magic"}, "post"),
        ({"epsilon": Guarantee.approximate(1, "0.1")}, "the guarantee must be"),
        ({"epsilon": Guarantee.zcdp(1)}, "the guarantee must be"),
        ({"method": "cyclic-gaussian"}, "pass Guarantee.approximate"),
        ({"method": "cyclic-gaussian", "epsilon": Guarantee.zcdp(1)}, "pass Guarantee.approximate"),
        ({"contributions": 0}, "contributions"),
    ],
)
def test_public_arguments_are_refused_before_the_table_is_seen(arguments: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        privatize_distribution([-1, "x"], **{"upper": 3, "epsilon": 1, **arguments})  # type: ignore[list-item]


def test_a_simulated_distribution_is_the_same_every_time_and_never_released() -> None:
    counts = np.random.default_rng(3).integers(0, 9, 500)
    for method in (*PURE, "cyclic-gaussian"):
        first, again = (
            simulate_distribution(counts, 9, budget_for(method, 1), method, rng=np.random.default_rng(7))
            for _ in range(2)
        )
        assert np.array_equal(first.probabilities, again.probabilities)
        mechanism = fixed_point(first, 1)
        assert mechanism.simulate(counts, np.random.default_rng(1)).shape == counts.shape
        with pytest.raises(InputError, match="simulated"):
            mechanism.release(counts)


def test_simulated_counts_are_refused_by_a_release() -> None:
    t = fixed_point([0.5, 0.5], 1)
    with pytest.raises(InputError, match="simulate"):
        t.release(t.simulate([0, 1], np.random.default_rng(0)))


def test_counts_of_more_than_32_bits_are_top_coded() -> None:
    for wide in (
        np.array([2**32 + 3, 2**62, 2]),
        np.array([2**64 - 1, 2**63, 2], np.uint64),
        [10**30, 2**32, 2],
    ):
        assert top_coded(wide, 5).tolist() == [5, 5, 2]
