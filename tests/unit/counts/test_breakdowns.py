"""Breakdowns: least squares as dense algebra has it, shares that keep the budget, and brute force on the code that releases."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from experiments._posets import survey_sections
from tests.support.count_plans import plan, plan_breakdown

from isotone.counts import (
    HierarchicalMechanism,
    LaplaceMechanism,
    MarginsMechanism,
    OrderGaussianMechanism,
    PosetMechanism,
    TreeGaussianMechanism,
)
from isotone.counts import margins_least_squares as nested_exact
from isotone.counts.breakdown import read_breakdown
from isotone.counts.count_plan import Setting
from isotone.counts.margins import best_shares, margins_mechanism
from isotone.counts.margins_least_squares import (
    Components,
    MarginLeastSquares,
    NestedComponents,
    NestedLeastSquares,
    NestedMeans,
    components_of,
    estimator_of,
)
from isotone.errors import InputError
from isotone.linear.mechanism import log_concave_reach
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

LISTS = {"a": list("xyz"), "b": ["0", "1"], "c": list("pqrs")}
FLAT = read_breakdown(list("abc"), LISTS, ["", "a", "b", "c", ("a", "b"), "*"])
LEVELS = read_breakdown(
    ["sex", "state", "county", "age"],
    {
        "sex": ["m", "f"],
        "state": ["A", "B", "C"],
        "county": {"a1": "A", "b1": "B", "b2": "B", "c1": "C", "a2": "A", "a3": "A"},
        "age": list("pqr"),
    },
    ["", "sex", "state", "county", ("county", "sex"), ("state", "age"), ("sex", "age")],
)
SURVEY = read_breakdown(
    ["region", "sex", "age"],
    {"region": [str(i) for i in range(51)], "sex": ["f", "m"], "age": list("123456")},
    ["", "region", "sex", "age", ("region", "sex"), "*"],
)
TREE = Poset.from_mapping({"l": "top", "r": "top"}, children="partition")


def matrix(breakdown, margin):
    """The sums of a margin over all cells, as a matrix."""
    parts = []
    for attribute, level in zip(breakdown.attributes, margin, strict=True):
        part = np.zeros((attribute.size(level), len(attribute.finest)))
        part[attribute.ancestors[level], np.arange(len(attribute.finest))] = 1
        parts.append(part)
    result = np.ones((1, 1))
    for part in parts:
        result = np.kron(result, part)
    return result


@pytest.mark.parametrize(
    ("breakdown", "tau"),
    [
        (FLAT, [0.3, 0.1, 0.5, 0.7, 0.2, 0.9]),
        (FLAT, [0, 0, 0.2, 0.1, 0.3, 0.5]),
        (LEVELS, [0.3, 0.1, 0.5, 0.7, 0.2, 0.9, 0.4]),
        (LEVELS, [0, 0, 0.3, 0, 0.5, 0.1, 0.4]),
    ],
)
def test_least_squares_and_its_variances_are_those_of_dense_algebra(breakdown, tau):
    rng, tau = np.random.default_rng(1), np.array(tau, dtype=np.float64)
    fit = MarginLeastSquares(Components(breakdown), tau)
    sums = [matrix(breakdown, margin) for margin in breakdown.margins]
    measured = [
        rng.normal(size=(*breakdown.sizes(m), 2)) if t else None
        for m, t in zip(breakdown.margins, tau, strict=True)
    ]
    inverse = np.linalg.pinv(sum(t * q.T @ q for t, q in zip(tau, sums, strict=True)))
    weights = [t * inverse @ q.T for t, q in zip(tau, sums, strict=True)]
    table = sum(w @ y.reshape(-1, 2) for w, y in zip(weights, measured, strict=True) if y is not None)
    # variances that are not those of the weights: each measured number also has its own rounding
    noise = np.where(tau > 0, 1 / np.where(tau > 0, tau, 1) + rng.uniform(0.1, 2, tau.size), 0)
    covariance = sum(v * w @ w.T for v, w in zip(noise, weights, strict=True))
    for margin, estimate, q in zip(breakdown.margins, fit.estimate(measured), sums, strict=True):
        np.testing.assert_allclose(estimate.reshape(-1, 2), q @ table, atol=1e-12)
        axis = fit.components.tree_axis
        shape = [size if i == axis else 1 for i, size in enumerate(breakdown.sizes(margin))]
        variance = np.broadcast_to((fit.gains(margin) @ noise).reshape(shape), breakdown.sizes(margin))
        np.testing.assert_allclose(variance.ravel(), np.diag(q @ covariance @ q.T), atol=1e-12)
    if np.all(tau > 0):
        means, slopes = fit.components.mean_variances(tau)
        dense = [np.diag(q @ inverse @ q.T).mean() for q in sums]
        np.testing.assert_allclose(means, dense)
        step = 1e-6 * np.arange(1, tau.size + 1)
        after = fit.components.mean_variances(np.asarray(tau + step, np.float64))[0]
        np.testing.assert_allclose(after - means, slopes @ step, rtol=1e-3)


PLACES = {"A": "xyz", "B": "u", "C": "vw"}
ALIKE = {"A": "xyz", "B": "uvw"}


def two_trees(places):
    """Places and occupations, each with two levels, and a flat attribute between them."""
    lists = {
        "state": list(places),
        "county": {county: state for state, all_ in places.items() for county in all_},
        "sex": ["f", "m"],
        "major": ["1", "2"],
        "minor": {"1a": "1", "1b": "1", "2a": "2"} if places is PLACES else {"1a": "1", "2a": "2"},
    }
    margins = ["", "state", ("state", "major"), ("county", "major"), "minor", ("minor", "sex"), "*"]
    return read_breakdown(list(lists), lists, margins)


@pytest.mark.parametrize(
    ("places", "widest"), [(PLACES, 64), (PLACES, 2), (ALIKE, 64)], ids=["uneven", "too wide", "alike"]
)
@pytest.mark.parametrize("tau", [(0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.4), (0, 0.5, 0, 0.4, 0, 0, 0.2)])
def test_several_attributes_may_have_levels(places, widest, tau, monkeypatch):
    """Unbiased, margins that add up, exact variances; least squares, or near to it where matrices would be too wide."""
    monkeypatch.setattr(nested_exact, "_WIDEST", widest)
    breakdown, tau = two_trees(places), np.array(tau, dtype=np.float64)
    fit = estimator_of(components_of(breakdown), tau)
    exact = places is PLACES and widest == 64
    assert isinstance(fit, NestedLeastSquares if exact else NestedMeans)
    truth = [t.astype(float) for t in breakdown.tables(np.arange(breakdown.cells)[:, None] ** 2)]
    for estimate, table in zip(fit.estimate(truth), truth, strict=True):
        np.testing.assert_allclose(estimate, table, atol=1e-9)
    sizes = [math.prod(breakdown.sizes(m)) for m in breakdown.margins]
    noise = np.random.default_rng(1).uniform(0.5, 2, (len(sizes), 1))
    variances, ends = [np.zeros(size) for size in sizes], np.cumsum([0, *sizes])
    for cell in range(ends[-1]):  # the whole estimator as a matrix, column by column
        m = int(np.searchsorted(ends, cell, side="right")) - 1
        if tau[m]:
            each = [np.zeros((*breakdown.sizes(margin), 1)) for margin in breakdown.margins]
            each[m].reshape(-1)[cell - ends[m]] = 1
            for total, column in zip(variances, fit.estimate(each), strict=True):
                total += column.ravel() ** 2 * noise[m]
    for margin, variance in zip(breakdown.margins, variances, strict=True):
        np.testing.assert_allclose(fit.spread(margin, noise).ravel(), variance, atol=1e-12)
    sums = [matrix(breakdown, margin) for margin in breakdown.margins]
    inverse = np.linalg.inv(sum(t * q.T @ q for t, q in zip(tau, sums, strict=True)))
    for margin, q in zip(breakdown.margins, sums, strict=True):
        own = fit.spread(margin, 1 / np.maximum(tau, 1e-9)[:, None]).mean()
        assert 1 - 1e-9 <= own / np.diag(q @ inverse @ q.T).mean() <= (1.1 if widest == 2 else 1 + 1e-9)


@pytest.mark.parametrize("least", [Fraction(1, 10**4), Fraction(1, 10**5), Fraction(1, 10**12)])
@pytest.mark.parametrize("breakdown", [LEVELS, two_trees(PLACES)], ids=["one tree", "two trees"])
def test_a_small_share_of_the_finest_margin_moves_no_large_count(breakdown, least):
    """Matrices of unequal precisions lose digits, and are singular in the end."""
    shares = [(1 - least) / 6] * 7
    shares[4 if breakdown is LEVELS else 6] = least
    m = MarginsMechanism(PosetMechanism(Poset.chain("ab"), 1), breakdown, shares=shares)
    truth = breakdown.tables(np.random.default_rng(0).integers(0, 10**9, (breakdown.cells, 2)))
    for estimate, table in zip(m.estimate(truth), truth, strict=True):
        np.testing.assert_allclose(estimate, table, rtol=0, atol=1e-3)
    assert np.all(np.isfinite(m.half_widths()))


def test_exact_least_squares_are_left_where_they_take_long(monkeypatch):
    components, tau = NestedComponents(two_trees(PLACES)), np.full(7, 1 / 7)
    assert nested_exact.is_small(components, tau)
    kinds = len(NestedLeastSquares(components, tau).contexts[1])
    monkeypatch.setattr(nested_exact, "_WORK", kinds * 7 * 6**3 - 1)
    assert not nested_exact.is_small(components, tau)


def test_a_breakdown_with_two_trees_is_planned_and_released():
    breakdown = two_trees(PLACES)
    for guarantee in (Guarantee.pure(1), Guarantee.zcdp("1/2")):
        m = margins_mechanism(Setting(Poset.chain("ab")), breakdown, guarantee)
        released = m.margins(m.release(np.zeros((breakdown.cells, 2), np.int64)))
        total, *_, cells = released.values
        np.testing.assert_allclose(cells.sum(axis=(0, 1, 2)), total.ravel(), atol=1e-9)
        assert [t.shape for t in m.tables(m.half_widths())] == [t.shape for t in released.values]
        equal = MarginsMechanism(m.base, breakdown, shares=[Fraction(1, 7)] * 7)
        assert m.mean_variances().mean() < 1.001 * equal.mean_variances().mean()


def test_estimates_of_tables_that_add_up_are_those_tables():
    rng = np.random.default_rng(2)
    for breakdown in (FLAT, LEVELS):
        tables = breakdown.tables(rng.integers(0, 50, (breakdown.cells, 3)))
        fit = MarginLeastSquares(Components(breakdown), np.ones(len(tables)))
        for estimate, table in zip(fit.estimate(tables), tables, strict=True):
            np.testing.assert_allclose(estimate, table, atol=1e-9)


def test_the_shares_reach_the_targets_and_add_up_to_exactly_one():
    # survey of 15 × 51 × 2 × 6: equal shares without least squares have 37.0
    pure = margins_mechanism(Setting(survey_sections(3)), SURVEY, Guarantee.pure(1))
    assert sum(pure.shares) == 1
    assert math.sqrt(pure.mean_variances().mean()) <= 25.4
    concentrated = margins_mechanism(Setting(survey_sections(3)), SURVEY, Guarantee.zcdp("1/2"))
    assert sum(concentrated.shares) == 1
    assert concentrated.gap <= 1e-6
    assert math.sqrt(concentrated.mean_variances().mean()) <= 4.56  # 4.54 and the rounding of measured cells


def test_gaussian_shares_are_within_their_bound_of_any_other():
    rng, weights = np.random.default_rng(0), np.ones(7)
    parts = Components(LEVELS)
    best = best_shares(LEVELS, (1.0,) * 7, squares_add=True)
    value = weights @ parts.mean_variances(np.array([max(float(s), 1e-9) for s in best.shares]))[0]
    assert best.gap < 0.01
    for _ in range(30):
        other = rng.dirichlet(np.ones(7))
        assert weights @ parts.mean_variances(other)[0] >= value * (1 - 1e-3)


def losses(mechanism, monkeypatch):
    """How much the tables of two sets of records differ in the norm of the noise, through the code that releases."""
    seen = []

    def record(part, rows):
        seen.append((part, rows.copy()))
        return rows

    monkeypatch.setattr(PosetMechanism, "release_rows", record)

    def between(first, second):
        seen.clear()
        mechanism.release(first)
        mechanism.release(second)
        half = len(seen) // 2
        total = 0.0
        for (part, one), (_, two) in zip(seen[:half], seen[half:], strict=True):
            total += float(part.rate) * float(np.sum(part.norm(one - two)))
        return total

    return between


@pytest.mark.parametrize("contributions", [1, 2])
def test_every_change_by_one_unit_costs_epsilon_at_most_in_all_margins_together(contributions, monkeypatch):
    chain = Poset.chain("ab")
    breakdown = read_breakdown(["x", "y"], {"x": ["1", "2"], "y": list("pqr")}, ["", "x", "y", "*"])
    base = PosetMechanism(chain, epsilon=1, contributions=contributions)
    shares = ["1/10", "2/10", "3/10", "4/10"]
    between = losses(MarginsMechanism(base, breakdown, shares=shares), monkeypatch)
    nobody = np.zeros((6, 2), int)
    filters = [np.array(f) for f in ((0, 0), (0, 1), (1, 1))]
    one = []
    for cell, answers in itertools.product(range(6), filters):
        record = nobody.copy()
        record[cell] += answers
        one.append(record)
    units = [sum(records) for records in itertools.combinations_with_replacement(one, contributions)]
    others = nobody + 5
    adding = [between(others, others + unit) for unit in units]
    assert max(adding) == pytest.approx(1)  # attained, and never more
    if contributions == 1:
        replacing = [between(a, b) for a, b in itertools.combinations(units, 2)]
        assert max(replacing) == pytest.approx(2)  # so replace neighbours have half the rate


def test_replacing_has_half_the_rate():
    breakdown = read_breakdown(["x"], {"x": ["1", "2"]}, ["", "x"])
    guarantee = Guarantee.pure(1, neighbours="replace")
    found = margins_mechanism(Setting(Poset.chain("ab")), breakdown, guarantee)
    assert found.base.epsilon == Fraction(1, 2)
    assert found.guarantee.replacing() == guarantee
    with pytest.raises(InputError, match="add-remove"):
        MarginsMechanism(PosetMechanism(Poset.chain("ab"), 1, neighbours="replace"), breakdown)


def test_released_margins_add_up():
    mechanism = MarginsMechanism(PosetMechanism(Poset.chain("ab"), 1), LEVELS)
    released = mechanism.margins(mechanism.release(np.ones((LEVELS.cells, 2), np.int64))).values
    by = dict(zip(map(LEVELS.label, LEVELS.margins), released, strict=True))
    np.testing.assert_allclose(by["sex × county"].sum(axis=0, keepdims=True), by["county"], atol=1e-8)
    np.testing.assert_allclose(by["county"].sum(axis=1, keepdims=True), by["total"], atol=1e-8)
    np.testing.assert_allclose(by["sex × age"].sum(axis=3 - 0 - 1, keepdims=True), by["sex"], atol=1e-8)


@pytest.mark.parametrize("epsilon", [1, 4, 30])
def test_intervals_of_rounded_sums_of_whole_noise_hold_by_enumeration(epsilon):
    """A chain of two counts by sums of a tree: three whole numbers, weighted, added up and rounded."""
    breakdown = read_breakdown(["s"], {"s": ["f"]}, ["s"])
    m = MarginsMechanism(HierarchicalMechanism(Poset.chain("ab"), epsilon), breakdown)
    tree, rate = m.base.strategy.trees[0], float(m.base.rate)  # pyright: ignore
    z = np.arange(-30, 31)  # all but a millionth
    law = math.tanh(rate / 2) * np.exp(-rate * np.abs(z))
    nodes = np.stack(np.meshgrid(z, z, z, indexing="ij"), axis=-1).reshape(-1, 3).astype(float)
    joint = (law[:, None, None] * law[:, None] * law).ravel()
    noise = np.rint(tree.running_sums(nodes))
    for value, half in enumerate(np.concatenate([m.half_widths(0.95), m.bounded_half_widths(0.95)])):
        value %= m.size
        assert joint[np.abs(noise[:, value]) > half].sum() <= 0.05


def test_gaussian_trees_have_the_reach_of_log_concave_noise():
    """Sums of whole numbers are no Gaussians, though they are nearly that."""
    tree = Poset.from_mapping({"a": "all", "b": "all"}, children="partition")
    m = MarginsMechanism(TreeGaussianMechanism(tree, rho="1/1000000"), FLAT)
    for half, variance in zip(m.bounded_half_widths(0.95), m.error().variance, strict=True):
        assert np.all(half > log_concave_reach(0.05) * np.sqrt(variance))


def test_weights_of_whole_numbers_in_sums_of_a_tree():
    m = HierarchicalMechanism(Poset.chain(range(7)), 1, branching=3)
    (tree,) = m.strategy.trees
    squares = np.sum(tree.running_sums(np.eye(m.strategy.rows)) ** 2, axis=0)
    np.testing.assert_allclose(m.error().variance / m.whole_parts, squares)


@pytest.mark.parametrize("rate", [0.1, 1.0, 2.5, 5.0])
def test_rounding_adds_a_twelfth_to_the_variance_of_noise_on_a_count(rate):
    """Lemma 5 of the theory, for up to five steps up and down: tails of differences of gamma numbers are exact here."""
    h, w = np.polynomial.laguerre.laggauss(12)
    t = np.arange(int(60 / rate) + 40) + 0.5

    def beyond(up: int, down: int) -> np.ndarray:
        """The probability that ``up`` steps less ``down`` steps are above t."""
        x = rate * t[:, None] + (h / 2 if down else 0 * h[:1])
        tail = sum(x**k / math.factorial(k) for k in range(up))
        if not down:
            return np.exp(-rate * t) * np.ravel(tail)
        return np.exp(-rate * t) * (tail * (h / 2) ** (down - 1) * w).sum(axis=1) / 2 / math.gamma(down)

    for up, down in itertools.product(range(6), repeat=2):
        if up + down == 0:
            continue
        both = sum(beyond(*pair) if pair[0] else 0.0 for pair in ((up, down), (down, up)))
        rounded = np.sum((2 * t) * both)  # 2j + 1 at t = j + 1/2
        exact_ = ((up - down) ** 2 + up + down) / rate**2
        assert abs(rounded - exact_ - 1 / 12) <= rate**2 / 120 + 1e-9


def test_the_plan_compares_ways_to_share():
    plan = plan_breakdown(Poset.chain("ab"), ["a", "b"], {"a": LISTS["a"], "b": LISTS["b"]}, epsilon=1)
    assert plan.rows[0].name in ("best shares", "a × b only")
    assert plan["best shares"].rmse <= plan["equal shares"].rmse
    assert plan.best.guarantee == Guarantee.pure(1)
    assert "a × b" in str(plan)
    assert plan.plain()["margins"][-1]["margin"] == ["a", "b"]


def test_gaussian_noise_is_taken_where_it_is_better_under_delta():
    guarantee = Guarantee.approximate(1, "1e-6")
    found = margins_mechanism(Setting(survey_sections(3)), SURVEY, guarantee)
    assert isinstance(found.base, OrderGaussianMechanism)
    assert found.guarantee == guarantee
    assert all(part.guarantee == guarantee for part in found.parts if part is not None)


def test_pure_noise_under_zcdp_shares_squares():
    base = PosetMechanism(TREE, epsilon=1)
    found = MarginsMechanism(base, FLAT, rho="1/2")
    assert sum(part.epsilon**2 for part in found.parts if part) <= 1
    assert sum(part.epsilon**2 for part in found.parts if part) > Fraction(999, 1000)
    with pytest.raises(InputError, match="rho"):
        MarginsMechanism(base, FLAT, rho="1/3")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"margins": ["region"]}, "does not exist"),
        ({"margins": ["", ""]}, "twice"),
        ({"margins": []}, "1 to 64 margins"),
        ({"margins": "a"}, "list"),
        ({"margins": [7]}, "A margin is"),
        ({"margins": ["", "a"]}, "in no margin"),
        ({"margins": [("a", "a"), "b"]}, "twice"),
        ({"by": ["a", "a"]}, "twice"),
        ({"by": ["a"]}, "same attributes"),
        ({"by": []}, "1 to"),
        ({"groups": {"a": ["x", "x"], "b": ["0"]}}, "distinct"),
        ({"groups": {"a": [], "b": ["0"]}}, "distinct"),
        ({"groups": {"a": {"x": "y"}, "b": ["0"]}}, "coarser"),
        ({"groups": {"a": ["x"], "b": {"0": "z"}}}, "does not list"),
        ({"groups": {"a": ["x", "y"], "b": {"0": "x"}}}, "has no value"),
        ({"unlisted": "keep"}, "unlisted"),
        ({"unlisted": "other", "groups": {"a": ["other"], "b": ["0"]}}, "not listed"),
    ],
)
def test_bad_breakdowns_are_refused_with_the_reason(change, words):
    given: dict[str, Any] = {
        "by": ["a", "b"],
        "groups": {"a": ["x", "y"], "b": ["0", "1"]},
        "margins": None,
        **change,
    }
    with pytest.raises(InputError, match=words):
        read_breakdown(**given)


@pytest.mark.parametrize("shares", [["1/2"] * 6, ["1/6"] * 5, [1, 0, 0, 0, 0, 0], ["2", "-1", 0, 0, 0, 0]])
def test_bad_shares_are_refused(shares):
    with pytest.raises(InputError):
        MarginsMechanism(PosetMechanism(Poset.chain("ab"), 1), FLAT, shares=shares)


@pytest.mark.parametrize("importance", ["levels", {"d": 1}, {"a": 0}, 7, {("b", "c"): 1}])
def test_bad_importance_is_refused(importance):
    with pytest.raises(InputError):
        MarginsMechanism(PosetMechanism(Poset.chain("ab"), 1), FLAT, importance)


def test_importance_moves_the_shares():
    base = PosetMechanism(Poset.chain("ab"), 1)
    cells = MarginsMechanism(base, SURVEY, "cells")
    assert cells.shares[-1] > Fraction(85, 100)  # 0.907 where every cell counts alike
    region = MarginsMechanism(base, SURVEY, {"region": 1000, "*": "0.001"})
    assert region.mean_variances()[1] < cells.mean_variances()[1]


def test_the_stated_variance_is_that_of_simulated_releases():
    # 800 draws of 4 margins: a mean square over a table has a standard error below 8 % (kurtosis 6, at least one cell of
    # two elements); 60 % off is more than 7 of them (false alarm below 1e-10), and twice the variance is always seen.
    breakdown = read_breakdown(["a", "b"], {"a": LISTS["a"], "b": LISTS["b"]}, ["", "a", "b", "*"])
    mechanism = MarginsMechanism(
        LaplaceMechanism(Poset.chain("ab"), 1), breakdown, shares=["1/10", "2/10", "3/10", "4/10"]
    )
    drawn = mechanism.simulate(800, np.random.default_rng(5))
    stacked = np.concatenate([table.ravel() for table in mechanism.variances()])
    np.testing.assert_array_equal(mechanism.error().variance, stacked)
    halves = mechanism.tables(mechanism.half_widths(0.95))
    tables = mechanism.tables(np.asarray(drawn))
    for noise, variance, half in zip(tables, mechanism.variances(), halves, strict=True):
        np.testing.assert_allclose((noise**2).mean(), variance.mean(), rtol=0.6)
        # true coverage is above 0.96; of 1,600 or more draws, below 0.92 has a probability below 1e-7
        assert (np.abs(noise) <= half).mean() > 0.92


def test_the_noise_of_cells_is_chosen_for_their_shares_and_short_intervals() -> None:
    """At ε = 6 trees have the least error on one table, and bounds of intervals that are more than twice as long here."""
    lists = {"region": list("nesw"), "sex": list("fm")}
    assert type(plan(Poset.chain("abc"), 6).best).__name__ == "HierarchicalMechanism"
    cells = read_breakdown(["region", "sex"], lists, ["", "region", "*"])
    best = margins_mechanism(Setting(Poset.chain("abc")), cells, Guarantee.pure(6))
    assert type(best.base).__name__ == "PosetMechanism"
    assert best.base.epsilon == 6
    tree = MarginsMechanism(HierarchicalMechanism(Poset.chain("abc"), 6), best.breakdown)
    for short, long in zip(best.bounded_half_widths(), tree.bounded_half_widths(), strict=True):
        assert np.all(2 * short < long)
