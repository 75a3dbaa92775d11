"""Every mechanism as a measurement of the real OpenDP: its domain, metric, measure and map are true."""

# OpenDP re-exports its names from the prelude without declaring them.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone.counts as counts
import isotone.tables as tables
from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.errors import InputError
from isotone.interop import opendp as bridge
from isotone.interop.opendp.columns import measure_and_map, round_up
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

dp.enable_features("contrib", "honest-but-curious")

P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
CHAIN = Poset.chain(["a", "b", "c"])
HIERARCHY = Poset.from_mapping({"a": "c", "b": "c"}, children="partition")
PURE, CONCENTRATED, APPROXIMATE = (
    dp.max_divergence(),
    dp.zero_concentrated_divergence(),
    dp.fixed_smoothed_max_divergence(),
)
COUNTS = [
    (counts.PosetMechanism(P, "1/2"), PURE, 0.5, 1.5),
    (counts.BoundedPosetMechanism(P, "1/2", max_size=2), PURE, 0.5, 1.5),
    (counts.DifferenceBodyMechanism(P, "1/2", neighbours="add-remove"), PURE, 0.5, 1.5),
    (counts.LInfinityMechanism(P, "1/2"), PURE, 0.5, 1.5),
    (counts.LaplaceMechanism(P, "1/2", max_size=1), PURE, 0.5, 1.5),
    (counts.DiscreteLaplaceMechanism(P, "1/2"), PURE, 0.5, 1.5),
    (counts.HierarchicalMechanism(CHAIN, "1/2"), PURE, 0.5, 1.5),
    (counts.MatrixMechanism(CHAIN, "1/2"), PURE, 0.5, 1.5),
    (counts.TreeFieldMechanism(HIERARCHY, "1/2"), PURE, 0.5, 1.5),
    (counts.TreeLaplaceMechanism(HIERARCHY, "1/2"), PURE, 0.5, 1.5),
    (counts.TreeGaussianMechanism(HIERARCHY, rho="1/2"), CONCENTRATED, 0.5, 4.5),
    (counts.GaussianMechanism(P, rho="1/2"), CONCENTRATED, 0.5, 4.5),
    (counts.DiscreteGaussianMechanism(P, rho="1/2"), CONCENTRATED, 0.5, 4.5),
    (counts.OrderGaussianMechanism(P, rho="1/2"), CONCENTRATED, 0.5, 4.5),
    (counts.OrderGaussianMechanism(P, 1, "1/1024"), APPROXIMATE, (1.0, 2**-10), None),
    (counts.GaussianMechanism(P, 1, "1/1024"), APPROXIMATE, (1.0, 2**-10), None),
]


def answers(P: Poset, rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({x: rng.integers(0, 2, rows) for x in P.elements})


def test_every_mechanism_for_counts_is_tried_here():
    # those kept for comparison, those whose counts are of many cells or groups, and a fixed root are not offered
    others = {
        "LpMechanism",
        "L2Mechanism",
        "MarginsMechanism",
        "GroupedDifferenceMechanism",
        "FixedRootMechanism",
    }
    names = {name for name in counts.__all__ if name.endswith("Mechanism")} - others
    assert {type(row[0]).__name__ for row in COUNTS} == names


def test_noise_for_several_groups_is_refused_before_any_data():
    several = counts.GroupedDifferenceMechanism(P, 1, "add-remove", groups=2)
    with pytest.raises(InputError, match="2 groups"):
        bridge.make_counts(bridge.table_domain(), dp.symmetric_distance(), several)


def test_a_fixed_root_is_refused_before_any_data():
    fixed = counts.FixedRootMechanism(HIERARCHY, 1, records=9, catch_all="b")
    with pytest.raises(InputError, match="public number"):
        bridge.make_counts(bridge.table_domain(), dp.symmetric_distance(), fixed)


@pytest.mark.parametrize(("mechanism", "measure", "one", "three"), COUNTS)
def test_every_mechanism_for_counts_is_a_measurement(mechanism, measure, one, three):
    made = bridge.make_counts(bridge.table_domain(), dp.symmetric_distance(), mechanism)
    assert made.output_measure == measure
    assert made.map(1) == one
    if three is None:
        epsilon, delta = made.map(3)
        assert epsilon == 3.0
        assert delta == pytest.approx(2**-10 * (1 + math.e + math.e**2), rel=1e-9)
        assert delta >= 2**-10 * (1 + math.e + math.e**2)
    else:
        assert made.map(3) == three
    released = made(answers(mechanism.P))
    assert released.dtype == np.int64
    assert released.shape == (len(mechanism.P),)


@pytest.mark.parametrize(
    "mechanism",
    [
        tables.TwoStageMechanism(9, "1/2"),
        tables.truncated_geometric(10, "1/2"),
        tables.fixed_point(np.full(10, 0.1), "1/2"),
        tables.unfixed_optimum(np.full(10, 0.1), "1/2"),
        tables.staircase(10, "1/2"),
    ],
)
def test_every_mechanism_for_tables_is_a_measurement(mechanism):
    made = bridge.make_table(
        bridge.table_domain(),
        dp.symmetric_distance(),
        mechanism,
        category="county",
        categories=["x", "y", "z"],
    )
    assert (made.output_measure, made.map(1), made.map(3)) == (PURE, 0.5, 1.5)
    released = made(pd.DataFrame({"county": ["x", "y", "y", "nowhere", None]}))
    assert released.shape == (3,)
    assert 0 <= released.min() <= released.max() <= 9


def test_the_discrete_gaussian_for_tables_is_a_measurement_of_its_own_kind():
    mechanism = tables.discrete_gaussian(10, "1/2", "1/1024")
    made = bridge.make_table(
        bridge.table_domain(), dp.symmetric_distance(), mechanism, category="c", categories=["x"]
    )
    assert made.output_measure == APPROXIMATE
    assert made.map(1) == (0.5, 2**-10)
    assert made(pd.DataFrame({"c": ["x"] * 4})).shape == (1,)


@pytest.mark.parametrize(
    "method", ["cumulative", "cyclic-laplace", "laplace", "privelet", "hierarchical", "cyclic-gaussian"]
)
def test_every_private_distribution_is_a_measurement(method):
    delta = "1/1024" if method == "cyclic-gaussian" else None
    made = bridge.make_distribution(
        bridge.table_domain(),
        dp.symmetric_distance(),
        "1/2",
        category="county",
        categories=["x", "y", "z"],
        upper=5,
        method=method,
        delta=delta,
    )
    assert made.map(1) == (0.5 if delta is None else (0.5, 2**-10))
    z = made(pd.DataFrame({"county": ["x", "y", "y"]}))
    assert z.probabilities.shape == (6,)
    assert tables.fixed_point(z, "1/2").release([1, 2, 0]).shape == (3,)


@pytest.mark.parametrize(
    ("estimator", "x"),
    [
        (PrivateIsotonicRegression("1/2", (0, 10), (0, 1)), "number"),
        (PrivatePosetRegression(P, "1/2", (0, 1)), "element"),
        (
            PrivatePosetRegression.from_features([(0, 10), (0, 10)], bins=4, epsilon="1/2", y_range=(0, 1)),
            ["number", "other"],
        ),
    ],
)
def test_every_regression_is_a_measurement(estimator, x):
    made = bridge.make_curve(bridge.table_domain(), dp.symmetric_distance(), estimator, x=x, y="y")
    assert (made.output_measure, made.map(1), made.map(3)) == (PURE, 0.5, 1.5)
    rows = {
        "number": [1, 9, None, "many"] * 50,
        "other": [1, 9, 2, 3] * 50,
        "element": ["meds", "hyp", None, "unheard of"] * 50,
        "y": [0, 1, 0.5, None] * 50,
    }
    fitted = made(pd.DataFrame(rows))
    places = {"number": [1, 9], "element": ["meds", "hyp"]}.get(str(x), [[1, 1], [9, 9]])
    low, high = fitted.predict(places)
    assert 0 <= low <= high <= 1
    assert not hasattr(estimator, "epsilon_spent_")


def filters(P: Poset):
    every = itertools.product([0, 1], repeat=len(P))
    return {tuple(P.close_all(np.array([record], dtype=bool))[0].astype(int)) for record in every}


@pytest.mark.parametrize(
    "P", [P, CHAIN, Poset.antichain("abc"), Poset("abcd", map(tuple, ["ab", "ac", "bd", "cd"]))]
)
def test_rows_are_the_right_distance_and_no_distance_of_counts_is(P):
    """One row moves the counts by at most 1 in the mechanism's norm; a unit step in ℓ∞ may be a long way."""
    mechanism = counts.PosetMechanism(P, 1)
    moves = np.array(sorted(filters(P)), dtype=float)
    assert mechanism.norm(moves).max() <= 1 + 1e-12
    two = np.array([a + s * b for a in moves for b in moves for s in (1, -1)])
    assert mechanism.norm(two).max() <= 2 + 1e-12
    if P.height > 1:
        steps = np.array([x for x in itertools.product([-1, 0, 1], repeat=len(P)) if any(x)], dtype=float)
        assert mechanism.norm(steps).max() > 1.5  # so an ℓ∞ metric on counts would guarantee too much


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_what_is_counted_is_the_closed_rows_in_any_order(rows):
    table = answers(P, rows)
    exact = counts.DiscreteLaplaceMechanism(P, 10**6)  # all but noiseless
    made = bridge.make_counts(bridge.table_domain(), dp.symmetric_distance(), exact)
    by_hand = P.close_all(table.to_numpy(dtype=bool)).sum(axis=0)
    assert made(table).tolist() == made(table[::-1]).tolist() == by_hand.tolist()


@given(st.fractions(min_value="1/1000", max_value=1000), st.integers(0, 50))
def test_maps_round_up_and_never_down(amount, d):
    _, pure = measure_and_map(Guarantee.pure(amount))
    assert amount * d <= Fraction(pure(d)) <= amount * d * (1 + Fraction(1, 2**52))
    _, concentrated = measure_and_map(Guarantee.zcdp(amount))
    assert Fraction(concentrated(d)) >= amount * d**2


@given(st.fractions(min_value="1/100", max_value=3), st.integers(1, 40))
def test_the_map_of_approximate_guarantees_is_that_of_a_chain_of_neighbours(epsilon, d):
    _, approximate = measure_and_map(Guarantee.approximate(epsilon, "1e-9"))
    loss, delta = approximate(d)
    by_hand = min(1.0, math.fsum(1e-9 * math.exp(i * float(epsilon)) for i in range(d)))
    assert Fraction(loss) >= epsilon * d
    assert by_hand * (1 - 1e-12) <= delta <= by_hand * (1 + 1e-9)


def test_a_map_beyond_all_floats_guarantees_nothing():
    _, approximate = measure_and_map(Guarantee.approximate(10, "1e-9"))
    assert approximate(10**6) == (10.0**7, 1.0)
    assert round_up(Fraction(10) ** 400) == math.inf


def test_units_with_several_rows_are_one_record_under_a_metric_with_an_identifier():
    rows = {"person": ["a", "a", "b", None], "hyp": [0, 0, 1, 1], "twice": [1, 0, 0, 1], "meds": [0, 1, 0, 1]}
    exact = counts.DiscreteLaplaceMechanism(P, 10**6)
    made = bridge.make_counts(bridge.table_domain(), dp.symmetric_id_distance("person"), exact)
    assert made(pd.DataFrame(rows)).tolist() == [2, 1, 1]
    assert made.map(2) == 2.0 * 10**6
    long = pd.DataFrame({"person": ["a", "a", "b"], "item": ["meds", "meds", "hyp"]})
    made = bridge.make_counts(
        bridge.table_domain(), dp.symmetric_id_distance("person"), exact, bridge.RowRules(element="item")
    )
    assert made(long).tolist() == [2, 0, 1]
    several = counts.DiscreteLaplaceMechanism(P, 10**6, contributions=2)
    made = bridge.make_counts(bridge.table_domain(), dp.symmetric_id_distance("person"), several)
    assert made(pd.DataFrame(rows)).tolist() == [3, 1, 1]


def test_the_number_of_records_comes_along_where_the_mechanism_has_it():
    exact = counts.PosetMechanism(P, 10**6)
    made = bridge.make_counts(bridge.table_domain(), dp.symmetric_distance(), exact, total=True)
    values, records = made(answers(P, 40))
    assert records == 40
    assert values.tolist() == P.close_all(answers(P, 40).to_numpy(dtype=bool)).sum(axis=0).tolist()
    assert made.map(1) == 10.0**6
    plain = counts.LaplaceMechanism(P, 1)
    with pytest.raises(InputError, match="number of records for free"):
        bridge.make_counts(bridge.table_domain(), dp.symmetric_distance(), plain, total=True)


def test_regressions_bound_each_unit_whatever_the_order_of_its_rows():
    table = pd.DataFrame({"person": ["a"] * 400, "x": [0, 10] * 200, "y": [0, 1] * 200})
    for estimator, x in [
        (PrivateIsotonicRegression(1000, (0, 10), (0, 1), contributions=2, public_n=2), "x"),
        (PrivatePosetRegression(Poset.chain(["0", "10"]), 1000, (0, 1), contributions=2, public_n=2), "x"),
    ]:
        made = bridge.make_curve(
            bridge.table_domain(), dp.symmetric_id_distance("person"), estimator, x=x, y="y"
        )
        assert made.map(1) == 1000.0
        made(table)


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateIsotonicRegression(1000, (0, 10), (0, 1), contributions=2),
        PrivatePosetRegression(Poset.chain(["5"]), 1000, (0, 1), contributions=2),
    ],
)
def test_a_unit_with_many_rows_does_not_outweigh_the_others(estimator):
    """One person says 1 in 400 rows, forty say 0 once: two rows of the first count."""
    people = pd.DataFrame(
        {"person": [*map(str, range(40)), *["loud"] * 400], "x": 5, "y": [0] * 40 + [1] * 400}
    )
    distance = dp.symmetric_id_distance("person")
    made = bridge.make_curve(bridge.table_domain(), distance, estimator, x="x", y="y")
    assert made(people).predict([5] if isinstance(estimator, PrivateIsotonicRegression) else ["5"])[0] < 0.5


def test_replaced_records_have_their_own_metric():
    replaced = counts.PosetMechanism(P, 1, neighbours="replace")
    made = bridge.make_counts(bridge.table_domain(), dp.change_one_distance(), replaced)
    assert made.map(1) == 1.0
    with pytest.raises(InputError, match="neighbours='replace'"):
        bridge.make_counts(bridge.table_domain(), dp.change_one_distance(), counts.PosetMechanism(P, 1))
    with pytest.raises(InputError, match="neighbours='add-remove'"):
        bridge.make_counts(bridge.table_domain(), dp.symmetric_distance(), replaced)


def test_a_column_is_handed_to_opendp_row_by_row():
    ages = bridge.make_column(bridge.table_domain(), dp.symmetric_distance(), "age")
    assert ages.map(3) == 3
    found = ages(pd.DataFrame({"age": ["30", "old", None, " 7.5"]}))
    assert [x for x in found if not math.isnan(x)] == [30.0, 7.5]
    assert len(found) == 4


L2 = counts.L2Mechanism(P, 1)
TWICE = counts.PosetMechanism(P, 1, contributions=2)
ONCE = counts.PosetMechanism(P, 1)
CURVE = PrivateIsotonicRegression(1, (0, 1), (0, 1))


class Book:
    def charge(self, guarantee, description): ...


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d, m: bridge.make_counts(d, m, L2), "cannot release"),
        (lambda d, m: bridge.make_counts(d, m, TWICE), "contributions=1"),
        (lambda d, m: bridge.make_counts(d, dp.l1_distance(T=int), ONCE), "must count rows"),
        (lambda d, m: bridge.make_counts(d, dp.change_one_distance(), ONCE), "neighbours='replace'"),
        (
            lambda d, m: bridge.make_counts(d, m, counts.PosetMechanism(P, 1, "replace")),
            "neighbours='add-remove'",
        ),
        (lambda d, m: bridge.make_counts(dp.vector_domain(dp.atom_domain(T=int)), m, ONCE), "table_domain"),
        (lambda d, m: bridge.make_counts(d, m, ONCE, bridge.RowRules(element="item")), "belongs to units"),
        (lambda d, m: bridge.make_column(d, dp.insert_delete_distance(), "age"), "no particular order"),
        (
            lambda d, m: bridge.make_curve(
                d, m, PrivateIsotonicRegression(1, (0, 1), (0, 1), ledger=Book()), x="x", y="y"
            ),
            "leave out the estimator's ledger",
        ),
        (
            lambda d, m: bridge.make_curve(
                d, m, PrivateIsotonicRegression(Guarantee.zcdp(5), (0, 1), (0, 1)), x="x", y="y"
            ),
            "guarantees ε here",
        ),
        (lambda d, m: bridge.make_curve(d, m, CURVE, x=["x", "z"], y="y"), "must name one column"),
        (
            lambda d, m: bridge.make_curve(
                d, m, PrivatePosetRegression.from_features([(0, 1)], y_range=(0, 1)), x="x", y="y"
            ),
            "columns of the features",
        ),
        (
            lambda d, m: bridge.make_table(
                d, m, tables.TwoStageMechanism(5, 1), category="c", categories=["a", "a"]
            ),
            "distinct",
        ),
    ],
)
def test_what_would_not_be_true_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make(bridge.table_domain(), dp.symmetric_distance())


def test_records_longer_than_the_noise_is_made_for_are_cut():
    short = counts.LaplaceMechanism(Poset.chain("ab"), 10**6, max_size=1)
    made = bridge.make_counts(bridge.table_domain(), dp.symmetric_distance(), short)
    assert made(pd.DataFrame({"a": [1] * 5, "b": [1] * 5})).tolist() == [0, 5]


@pytest.mark.parametrize("contributions", [1, 2])
def test_a_unit_counts_in_no_more_categories_than_the_noise_is_made_for(contributions):
    import polars as pl

    table = tables.TwoStageMechanism(5, 10**6, contributions=contributions)
    people = dp.symmetric_id_distance(pl.col("person"))
    made = bridge.make_table(bridge.table_domain(), people, table, category="c", categories=["x", "y", "z"])
    rows = pd.DataFrame({"person": ["me"] * 3, "c": ["x", "y", "z"]})
    assert sum(made(rows).tolist()) == contributions


def test_tables_are_members_of_the_domain_and_lists_are_not():
    assert bridge.table_domain().member(pd.DataFrame({"a": [1]}))
    assert bridge.table_domain().member("data.csv")
    assert not bridge.table_domain().member([1, 2, 3])


def test_equal_orders_with_other_sequences_of_elements_get_their_own_mechanism():
    """Counts come in the sequence of the order's elements: a mechanism kept for another would refuse or blur them."""
    relations = [("a", "b"), ("b", "c")]
    answers = pd.DataFrame({"a": [1, 0], "b": [1, 0], "c": [1, 1]})
    for elements in (["c", "b", "a"], ["a", "b", "c"]):
        measure = bridge.make_isotone_counts(
            bridge.table_domain(), dp.symmetric_distance(), Poset(elements, relations), 1e6
        )
        assert dict(zip(elements, measure(answers).tolist(), strict=True)) == {"a": 1, "b": 1, "c": 2}


NARROW = np.uint8(2)


@pytest.mark.parametrize("contributions", [1, 2, NARROW])
@pytest.mark.parametrize(("neighbours", "metric"), [("add-remove", "symmetric"), ("replace", "change_one")])
@pytest.mark.parametrize("d", [1, 3])
def test_a_map_is_the_largest_loss_of_a_group_of_units(contributions, neighbours, metric, d):
    """The loss of every change that d units can make, from the exact law: at most the map, and reached."""
    import polars as pl

    Q, k = Poset.antichain("ab"), int(contributions)
    mechanism = counts.DiscreteLaplaceMechanism(Q, "1/2", neighbours, contributions)
    rows = getattr(dp, f"{metric}_id_distance")(pl.col("person"))
    made = bridge.make_counts(bridge.table_domain(), rows, mechanism)
    records = [(0, 0), (1, 0), (0, 1), (1, 1)]
    moves = [tuple(k * x for x in r) for r in records]  # a unit whose k records are alike moves farthest
    if neighbours == "replace":
        moves = [tuple(a - b for a, b in zip(m, n, strict=True)) for m in moves for n in moves]
    outputs = np.stack(np.meshgrid(*[np.arange(-30, 31)] * 2), axis=-1).reshape(-1, 2)
    before = mechanism.log_probability(outputs)
    loss = max(
        float(np.max(np.abs(mechanism.log_probability(outputs - d * np.array(move)) - before)))
        for move in moves
    )
    assert loss <= made.map(d) + 1e-9
    assert loss == pytest.approx(made.map(d))


def test_what_libraries_say_about_a_value_is_not_heard_from_a_measurement():
    """A float longer than 64 bits is too large for one: numpy warns of it, or raises where a caller wants it so."""
    x = np.array([1, 2, 3], np.longdouble)
    x[0] = np.longdouble("1e400")
    rows = pd.DataFrame({"a": x, "b": 0, "c": 1})
    metric, domain = dp.symmetric_distance(), bridge.table_domain()
    curve = PrivateIsotonicRegression(epsilon=1, bounds=(0, 9), y_range=(0, 1))
    table = tables.TwoStageMechanism(upper=9, epsilon=1)
    measurements = [
        bridge.make_counts(domain, metric, counts.PosetMechanism(CHAIN, 1)),
        bridge.make_table(domain, metric, table, category="a", categories=["1", "2"]),
        bridge.make_distribution(domain, metric, 1, category="a", categories=["1"], upper=9),
        bridge.make_curve(domain, metric, curve, x="a", y="b"),
        bridge.make_column(domain, metric, "a"),
    ]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for measurement in measurements:
            measurement(rows)
