"""The noise of margins, its parts and rows, and the intervals that follow from it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from isotone.counts import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    LInfinityMechanism,
    MarginsMechanism,
    OrderGaussianMechanism,
    PosetMechanism,
    TreeFieldMechanism,
    TreeGaussianMechanism,
)
from isotone.counts.breakdown import read_breakdown
from isotone.counts.margins import draws_of_margins
from isotone.errors import InputError
from isotone.linear.mechanism import log_concave_reach
from isotone.noise import rounded_exponential_rows
from isotone.order import Poset

LISTS = {"a": list("xyz"), "b": ["0", "1"], "c": list("pqrs")}
FLAT = read_breakdown(list("abc"), LISTS, ["", "a", "b", "c", ("a", "b"), "*"])
TREE = Poset.from_mapping({"l": "top", "r": "top"}, children="partition")

MECHANISMS = [
    PosetMechanism(Poset.chain("abc"), 2),
    PosetMechanism(Poset.from_mapping({"a": "q", "b": "q"}, children="exclusive"), 2),
    LaplaceMechanism(Poset.chain("abc"), 2),
    DiscreteLaplaceMechanism(Poset.chain("abc"), 2),
    LInfinityMechanism(Poset.chain("abc"), 2),
    TreeFieldMechanism(TREE, 2),
    OrderGaussianMechanism(Poset.chain("abc"), rho=2),
    OrderGaussianMechanism(Poset.chain("abc"), epsilon=1, delta="1e-6"),
    GaussianMechanism(Poset.chain("abc"), rho=2),
    DiscreteGaussianMechanism(Poset.chain("abc"), epsilon=1, delta="1e-6"),
    TreeGaussianMechanism(TREE, rho=2),
]


@pytest.mark.parametrize("whole", MECHANISMS, ids=lambda m: f"{type(m).__name__} {m.guarantee.kind}")
def test_parts_of_a_mechanism_add_up_to_it(whole):
    share = Fraction(1, 4)
    part = whole.part(share)
    if whole.guarantee.kind == "pure":
        assert part.guarantee.epsilon == whole.epsilon * share
        assert part.rate == whole.rate * share
    else:  # the precision of Gaussian noise is divided
        name = "parameter" if isinstance(whole, DiscreteGaussianMechanism) else "variance"
        scale = [
            getattr(m, name) / getattr(getattr(m, "strategy", None), "sensitivity_squared", 1)
            for m in (whole, part)
        ]
        assert scale[1] == scale[0] / share
        assert part.guarantee.rho == whole.guarantee.rho * share
    assert whole.part(Fraction(1)).error().variance == pytest.approx(whole.error().variance)


@pytest.mark.parametrize("whole", MECHANISMS, ids=lambda m: f"{type(m).__name__} {m.guarantee.kind}")
def test_rows_have_the_noise_of_the_mechanism(whole):
    # The mean square of 20,000 rows has a standard error below 3 % (kurtosis at most 10 by far); 20 % off is 6.6 of
    # them (false alarm below 1e-9), and noise of 1.5 times the scale, 125 % off, is missed with less than that.
    size = (
        2_000
        if isinstance(whole, (LInfinityMechanism, OrderGaussianMechanism, TreeGaussianMechanism))
        else 20_000
    )
    slack = 0.2 if size > 2_000 else 0.55
    part = whole.part(Fraction(1, 8))
    drawn = part.release_rows(np.zeros((size, 3), np.int64))
    assert drawn.dtype == np.int64
    expected = part.error().variance + part.rounding_variance()
    np.testing.assert_allclose((drawn**2).mean(axis=0), expected, rtol=slack)
    assert abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 7 / math.sqrt(size)


@pytest.mark.parametrize("variance", [1.0, 7.3])
def test_rounding_adds_a_twelfth_to_the_variance_of_each_measured_number(variance):
    """By the sum over all whole numbers. From a variance of 1 on, the rounding of Gaussian noise adds 1/12 up to 1e-7."""
    whole = GaussianMechanism(Poset.chain("ab"), rho=Fraction(variance) ** -1)
    (real,) = set(whole.error().variance.tolist())
    assert real == pytest.approx(variance)
    k = np.arange(-99, 100)
    law = np.diff(norm.cdf((np.arange(-99, 101) - 0.5) / math.sqrt(real)))
    rounded = float(law @ k**2)
    assert real + whole.rounding_variance() == pytest.approx(rounded, abs=1e-6)
    cells = MarginsMechanism(whole, read_breakdown(["b"], {"b": ["0", "1"]}, ["*"]))
    assert cells.error().variance == pytest.approx(rounded, abs=1e-6)


def test_rows_of_sums_are_exactly_rounded_and_share_nothing():
    plus, minus = np.tile([0, 1, 3], (500, 1)), np.tile([0, 0, 2], (500, 1))
    drawn = rounded_exponential_rows(Fraction(1, 3), plus, minus)
    assert np.all(drawn[:, 0] == 0)
    assert np.all(drawn[:, 1] >= 0)
    assert len(set(drawn[:, 1].tolist())) > 5
    with pytest.raises(InputError, match="tables"):
        rounded_exponential_rows(Fraction(1), plus[0], minus[0])


def test_intervals_hold_for_the_worst_law_and_are_not_absurd():
    # the exponential law itself, and one that is cut off, which reaches farther for its standard deviation
    assert log_concave_reach(0.05) > math.log(20) / math.sqrt(2)
    assert log_concave_reach(0.05) < 2.18
    assert log_concave_reach(0.9) > 0.1 * math.sqrt(3)
    mechanism = MarginsMechanism(PosetMechanism(Poset.chain("ab"), "1/8"), FLAT)
    for half, variance in zip(mechanism.bounded_half_widths(0.95), mechanism.error().variance, strict=True):
        assert np.all(half > 2.16 * np.sqrt(variance))
        assert np.all(half < 2.6 * np.sqrt(variance))


@pytest.mark.parametrize("power", [1, 2, 4])
@pytest.mark.parametrize("rate", [0.02, 0.3, 1.0, 3.0])
def test_whole_noise_is_near_a_log_concave_number(power, rate):
    """Lemma 4 of the theory by enumeration, for geometric and Gaussian laws, and others that end sooner."""
    k = np.arange(2000)
    p = np.exp(-np.minimum(rate * k.astype(float) ** power, 700))
    p /= 2 * p.sum() - p[0]
    steps = -np.diff(np.log(p))
    between = np.where(steps > 0, -np.diff(p) / np.maximum(steps, 1e-300), p[1:])  # masses of the density
    beyond = np.append(np.cumsum(between[::-1])[::-1], 0) / between.sum()  # |W| > k
    at_least = 2 * np.cumsum(p[::-1])[::-1] - p[0] * (k == 0)  # |Z| >= k
    assert np.all(beyond <= at_least + 1e-12)
    assert np.all(at_least[1:] <= beyond[:-1] + 1e-12)
    lines = np.sum((beyond[:-1] + beyond[1:]) / 2 * (2 * k[:-1] + 1) + (beyond[1:] - beyond[:-1]) / 6)
    assert lines <= 2 * np.sum(k**2 * p) + 1 / 3 + 1e-9


@pytest.mark.parametrize("epsilon", ["1/2", 2, 8])
def test_intervals_of_whole_noise_hold_by_enumeration(epsilon):
    """Two cells and their total, all measured: the exact probability that least squares leave the interval."""
    breakdown = read_breakdown(["s"], {"s": ["f", "m"]}, ["", "s"])
    m = MarginsMechanism(
        DiscreteLaplaceMechanism(Poset.chain("a"), epsilon), breakdown, shares=["1/2", "1/2"]
    )
    rate = float(m.parts[0].rate)  # pyright: ignore
    z = np.arange(-60, 61)  # all but a millionth
    law = math.tanh(rate / 2) * np.exp(-rate * np.abs(z))
    weights = np.stack(
        [
            np.concatenate([t.ravel() for t in m.estimate([np.full((1, 1), x), np.array([[y], [w]])])])
            for x, y, w in np.eye(3, dtype=np.int64)
        ]
    )
    joint = law[:, None, None] * law[:, None] * law
    assert np.all(m.half_widths(0.95) <= m.bounded_half_widths(0.95))
    for value, (half, bound) in enumerate(zip(m.half_widths(0.95), m.bounded_half_widths(0.95), strict=True)):
        a, b, c = weights[:, value]
        noise = np.abs(a * z[:, None, None] + b * z[:, None] + c * z)
        for width in (half, bound):
            assert joint[noise > width].sum() <= 0.05
        assert joint[noise > 0.9 * half].sum() > 0.05  # a tenth less is too little


def test_intervals_of_few_numbers_are_as_long_as_the_noise_asks():
    """Against fresh draws: each keeps its promise, and is on average at most 7 % longer than they ask; nine tenths of it do not."""
    lists = {"sex": ["f", "m"], "region": list("abcdefghij")}
    breakdown = read_breakdown(list(lists), lists, ["", "region", "*"])
    m = MarginsMechanism(PosetMechanism(Poset(["a", "b", "c"], [("b", "a"), ("c", "a")]), "1/2"), breakdown)
    draws = np.abs(m.simulate(4_000, np.random.default_rng(11)))
    half, bound = m.half_widths(0.95), m.bounded_half_widths(0.95)
    # of 4,000 draws more than 0.068 lie outside with a probability below 1e-6 if 0.05 do
    assert np.all((draws > half).mean(axis=0) < 0.068)
    assert np.all((draws > 0.9 * half).mean(axis=0) > 0.05)
    wanted = np.asarray(np.quantile(draws, 0.95, axis=0))
    assert np.mean(half / wanted) < 1.07 < 1.12 < np.mean(bound / wanted)


def test_without_enough_draws_the_bound_is_all_there_is():
    lists = {"place": [f"p{i}" for i in range(800)]}
    large = MarginsMechanism(
        PosetMechanism(Poset.chain("ab"), 1), read_breakdown(["place"], lists, ["", "place"])
    )
    assert draws_of_margins(large, 0.95) == 0
    np.testing.assert_array_equal(large.half_widths(), large.bounded_half_widths())
    small = MarginsMechanism(PosetMechanism(Poset.chain("ab"), 1), FLAT)
    assert draws_of_margins(small, 0.95) > 0
    assert draws_of_margins(small, 0.9999) == 0  # so few draws cannot tell
