"""The public rule from an emphasis to thresholds: what it predicts, and what it chooses."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.errors import InputError
from isotone.tables import TwoStageMechanism
from isotone.tables.matrices.geometric import geometric_matrix
from isotone.tables.plan import scale
from isotone.tables.smooth import cumulative_covariance, noise_precision
from isotone.tables.thresholds import (
    POINTS,
    Design,
    checked_emphasis,
    chosen_design,
    designs,
    places_apart,
    predicted_errors,
    share_of,
    thresholds_for,
)


@pytest.mark.parametrize(
    ("upper", "apart", "share"), [(7, 1, "0.5"), (12, 3, "0.8"), (20, 4, "0.1"), (5, 1, "0")]
)
def test_predicted_errors_are_those_of_the_definition(upper: int, apart: int, share: str) -> None:
    """One count at a time, with matrices written out."""
    size, step, n = 700.0, Fraction(3, 10), upper + 1
    places = places_apart(upper, apart) if float(share) else ()
    rates = np.array([0.3 * (1 - float(share) * (t in places)) for t in range(upper)])
    channel = geometric_matrix(n, rates)
    variance = 0.0
    for noisy in range(n):
        posterior = channel[:, noisy] / channel[:, noisy].sum()
        mean = posterior @ np.arange(n)
        variance += channel[:, noisy].sum() / n * (posterior @ (np.arange(n) - mean) ** 2)
    band = cumulative_covariance(np.full(n, size / n), rates)
    through = np.diag(band[0]) + np.diag(band[1, :-1], 1) + np.diag(band[1, :-1], -1)
    histogram = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            histogram[a, b] = size / n * (a == b) + (size / n) ** 2 * np.exp(
                -(((a - b) / (0.2 * n)) ** 2) / 2
            )
    given_total = histogram - np.outer(histogram.sum(0), histogram.sum(0)) / histogram.sum()
    sums = np.array([[np.sum(given_total[: a + 1, : b + 1]) for b in range(upper)] for a in range(upper)])
    measured = np.diag([noise_precision(0.3 * float(share)) * (t in places) for t in range(upper)])
    covariance = np.linalg.inv(np.linalg.inv(sums) + np.linalg.inv(through) + measured)
    wanted = variance**0.5, 0.8 * np.sqrt(np.diag(covariance)).sum() / size
    assert predicted_errors(size, upper, step, [(places, Fraction(share))])[0] == pytest.approx(
        wanted, rel=1e-6
    )


@pytest.mark.parametrize(("size", "upper", "step"), [(1000, 20, "0.3"), (10_000, 60, "0.1"), (300, 9, "1")])
def test_no_design_of_the_list_has_a_smaller_loss(size: int, upper: int, step: str) -> None:
    half_powers = round(2 * np.log2(size))
    listed = designs(half_powers, upper, Fraction(step))
    for e in (0.05, 0.25, 0.5, 0.8):
        allowed = [
            d
            for d in listed
            if (d.share >= Fraction(16, 100) or Fraction(step) >= 1)
            and (d.apart == 1 or d.share <= (0.8 if e <= 0.5 else 0.95))
        ]
        best = min(d.estimate for d in allowed), min(d.distance for d in allowed)

        def loss(d: Design, e: float = e, best: tuple[float, float] = best) -> float:
            return max((1 - e) * np.log(d.estimate / best[0]), e * np.log(d.distance / best[1]))

        chosen, _ = chosen_design(Fraction(repr(e)), size, upper, Fraction(step))
        assert loss(chosen) <= min(map(loss, allowed)) + 2e-3


def test_the_ends_of_the_scale_are_the_counts_alone_and_the_distribution_alone() -> None:
    for size, upper, step in ((1000, 20, "0.1"), (10_000, 60, "1"), (500, 200, "0.3")):
        least, _ = chosen_design(Fraction(0), size, upper, Fraction(step))
        assert least.share == (0 if step == "1" else Fraction(16, 100))
        assert least.estimate <= 1.02 * min(
            d.estimate for d in designs(round(2 * np.log2(size)), upper, Fraction(step))
        )
        every, finer = chosen_design(Fraction(1), size, upper, Fraction(step))
        assert (every.apart, every.share, finer) == (1, Fraction(98, 100), 0)


def test_both_errors_move_one_way_along_the_scale() -> None:
    for size, upper, step in ((1000, 20, "0.3"), (10_000, 60, "1"), (3000, 300, "0.1")):
        points = scale(upper, Fraction(step), size)
        assert [float(point.emphasis) for point in points][:4] == [0, 0.02, 0.05, 0.1]
        assert [point.name for point in points if point.name] == list(POINTS)
        for one, two in itertools.pairwise(points):
            # the number of categories enters the choice rounded: next to nothing may be lost
            assert two.estimate >= 0.97 * one.estimate
            assert two.distance <= 1.03 * one.distance
        assert points[-1].distance < 0.6 * points[0].distance


def test_below_an_epsilon_of_1_something_is_measured_at_every_emphasis() -> None:
    """Without it intervals at a small ε held for 58 % of the categories of a long table, where 95 % were promised."""
    assert thresholds_for(Fraction(0), 500, Fraction(99, 100), 150).places
    assert not thresholds_for(Fraction(0), 60, Fraction(1), 1000).places
    for seed in range(2):
        counts = np.random.default_rng(seed).geometric(0.05, 3000) - 1
        full = TwoStageMechanism(1000, "0.1", 0).simulate_in_full(counts, np.random.default_rng(seed))
        low, high = full.interval(0.95)
        assert np.mean((low <= counts) & (counts <= high)) > 0.92


def test_rough_gaps_have_the_share_that_all_thresholds_would_have() -> None:
    chosen, finer = chosen_design(Fraction(1, 10), 1024, 60, Fraction(1, 10))
    assert chosen.apart > 1
    listed = designs(20, 60, Fraction(1, 10))
    everywhere = {d.share: d for d in listed if d.apart == 1 and d.share}
    best = min(d.estimate for d in listed if 100 * d.share >= 16), min(d.distance for d in listed)
    losses = {
        share: max(0.9 * np.log(d.estimate / best[0]), 0.1 * np.log(d.distance / best[1]))
        for share, d in everywhere.items()
    }
    assert losses[finer] <= min(losses.values()) + 2e-3


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**7),
    st.integers(1, 5000),
    st.fractions(Fraction(1, 10_000), 100, max_denominator=10_000),
    st.fractions(0, 1, max_denominator=50),
)
def test_any_public_numbers_have_thresholds(
    size: int, upper: int, step: Fraction, emphasis: Fraction
) -> None:
    made = thresholds_for(emphasis, upper, step, size)
    assert 0 <= made.share <= Fraction(98, 100)
    assert 0 <= made.finer_share <= Fraction(98, 100)
    assert all(0 <= place < upper for place in made.places)
    assert made == thresholds_for(emphasis, upper, step, size)


@pytest.mark.parametrize("wrong", ["some", "", "2", -1, 1.01, float("nan"), True, None, [0.5], "1/0"])
def test_an_emphasis_is_a_number_from_0_to_1_or_a_name(wrong: Any) -> None:
    with pytest.raises(InputError, match="emphasis"):
        checked_emphasis(wrong)
    assert checked_emphasis("distribution") == Fraction(1, 2)
    assert checked_emphasis("1/3") == Fraction(1, 3)
    assert checked_emphasis(0.1) == Fraction(1, 10)


def test_the_share_of_rho_rises_with_the_emphasis() -> None:
    shares = [share_of(Fraction(k, 100)) for k in range(101)]
    assert shares == sorted(set(shares))
    assert (shares[0], shares[2], shares[5], shares[10], shares[50], shares[100]) == tuple(
        Fraction(k, 100) for k in (1, 3, 8, 12, 50, 98)
    )
