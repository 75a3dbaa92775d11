"""The tree field: its law, its draws, and what one unit can change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from isotone.audit.exact import audit_exact
from isotone.counts import TreeFieldMechanism, tree_field
from isotone.counts import tree_field as field_shares
from isotone.counts.hierarchy import require_hierarchy
from isotone.counts.mechanism import cared_error
from isotone.counts.tree_field import FieldLaw, FieldSampler, FieldTypes
from isotone.errors import InputError, OrderError
from isotone.order import Poset
from isotone.privacy.draws import ExactDraws, SeededDraws

TREE = Poset.from_mapping({"a": "all", "b": "all", "a1": "a", "a2": "a"}, children="partition")
SHARES = {"all": "3/10", "a": "1/4", "b": "7/10", "a1": "9/20", "a2": "9/20"}
EXCLUSIVE = Poset.from_mapping({"a": "all", "b": "all", "a1": "a"}, children="exclusive")
SEVERAL = Poset.from_mapping({"a": "x", "b": "x", "y": None}, children="partition")


def scripted(geometrics: Any, coins: Any) -> Any:
    """Draws in which a test decides every number and every coin."""
    rng = np.random.default_rng(1)
    return SimpleNamespace(
        lazy_geometrics=geometrics,
        coins=coins,
        geometric_sums=lambda rate, terms, size: rng.integers(0, 3, size),
        below=lambda sizes: rng.integers(0, sizes),
    )


TREES = [TREE, EXCLUSIVE, SEVERAL, Poset("ab", (), [("exclusive", ["a", "b"])])]


def _box(m: TreeFieldMechanism, reach: int) -> Iterator[tuple[np.ndarray, float]]:
    """Noise on all nodes with leaves up to ``reach``, and its weight by the definition."""
    tree = m.tree
    shares = [float(m.node_law.types.shares[t]) for t in m.node_law.types.of]
    leaves = np.flatnonzero(tree.leaf)
    for values in product(range(-reach, reach + 1), repeat=leaves.size):
        h = np.zeros(len(tree), np.int64)
        h[leaves] = values
        h = tree.sums(h)
        yield h, math.exp(-float(m.rate) * float(np.abs(h) @ shares))


def _units(P: Poset, k: int) -> list[np.ndarray]:
    """The counts that a unit of up to k records can have."""
    tree = require_hierarchy(P)
    nodes = np.eye(len(tree), dtype=np.int64)[np.flatnonzero(tree.leaf)]
    rows = [tree.sums(row) for row in nodes] + [np.zeros(len(tree), np.int64)]
    return [sum(chosen, np.zeros(len(tree), np.int64)) for chosen in combinations_with_replacement(rows, k)]


@pytest.mark.parametrize("P", TREES)
def test_variances_and_probabilities_are_those_of_the_definition(P: Poset) -> None:
    m = TreeFieldMechanism(P, epsilon=6, care="levels")
    box = list(_box(m, 4))
    weights = np.array([weight for _, weight in box])
    rows = np.array([h for h, _ in box])
    variance = weights @ rows.astype(float) ** 2 / weights.sum()
    assert m.error().method == "exact"
    assert np.allclose(m.error().variance, variance[m.tree.node], rtol=2e-3)
    assert m.node_law.log_normaliser == pytest.approx(math.log(weights.sum()), abs=1e-3)
    for place in (0, len(rows) // 2, len(rows) // 3):
        found = m.log_probability(rows[place][m.tree.node])
        assert found == pytest.approx(math.log(weights[place]) - m.node_law.log_normaliser, abs=1e-9)
    half = m.half_widths(0.9)
    inside = [
        weights[np.abs(rows[:, v]) <= h].sum() / weights.sum() for v, h in zip(m.tree.node, half, strict=True)
    ]
    below = [
        weights[np.abs(rows[:, v]) < h].sum() / weights.sum() for v, h in zip(m.tree.node, half, strict=True)
    ]
    assert min(inside) >= 0.9 - 1e-3
    assert max(below) < 0.9 + 1e-3
    all_within = np.all(np.abs(rows[:, m.tree.node]) <= m.simultaneous_half_width(0.9), axis=1)
    assert weights[all_within].sum() / weights.sum() >= 0.9 - 1e-3


def test_every_path_of_the_sampler_has_the_probability_of_the_definition() -> None:
    # leaves of different shares, so that the source can tell them apart; what is kept the first time, in all ways
    P = Poset.from_mapping({"a": "all", "b": "all", "a1": "a", "a2": "a"}, children="partition")
    given = {"all": "3/10", "a": "1/4", "b": "7/10", "a1": "9/20", "a2": "2/5"}
    m = TreeFieldMechanism(P, epsilon=1, shares=given)
    node = dict(zip(P.elements, m.tree.node.tolist(), strict=True))
    leaf_rate = {m.rate * Fraction(given[x]): x for x in ("b", "a1", "a2")}
    for values in product((-2, 0, 1), repeat=3):
        chosen: dict[Any, int] = dict(zip(("b", "a1", "a2"), values, strict=True))
        spent: list[Fraction] = []

        def coins(rate: Fraction, multiples: np.ndarray, spent: list[Fraction] = spent) -> np.ndarray:
            spent.append(rate * int(multiples[0]))
            return np.ones(multiples.size, np.bool_)

        source = scripted(
            lambda rate, size, chosen=chosen: np.full(size, chosen[leaf_rate[rate]], np.int64), coins
        )
        drawn = FieldSampler(m.node_law.types, m.rate, m.node_law.acceptance).draw(1, source)[0]
        h = {x: int(drawn[node[x]]) for x in P.elements}
        assert h["a"] == chosen["a1"] + chosen["a2"]
        assert h["all"] == h["a"] + h["b"] == sum(values)
        assert all(h[x] == chosen[x] for x in chosen)
        leaves = sum(rate * abs(chosen[x]) for rate, x in leaf_rate.items())
        assert leaves + sum(spent) == m.rate * sum(Fraction(given[str(x)]) * abs(h[x]) for x in P.elements)


def test_sums_of_leaves_that_are_split_afterwards_have_the_law_of_the_definition() -> None:
    """Every way of the code that releases: all sums, all coins that keep, and all places of all balls."""
    m = TreeFieldMechanism(TREE, epsilon=10, shares=SHARES)
    node = dict(zip(TREE.elements, m.tree.node.tolist(), strict=True))
    sampler = FieldSampler(m.node_law.types, m.rate, m.node_law.acceptance)
    found: dict[tuple[int, ...], float] = {}
    q = math.exp(-float(m.rate * Fraction(SHARES["a1"])))
    for up, down, b in product(range(3), range(3), range(-1, 2)):
        weight = (up + 1) * (down + 1) * q ** (up + down)  # two leaves: so many ways to have the sum
        weight *= math.exp(-float(m.rate * Fraction(SHARES["b"])) * abs(b))
        for steps in product(*(range(2 + t) for total in (up, down) for t in range(total))):
            log_kept, left, asked = [0.0], list(steps), list[int]()

            def coins(rate: Fraction, multiples: np.ndarray, log_kept: list[float] = log_kept) -> np.ndarray:
                log_kept[0] -= float(rate * int(multiples[0]))
                return np.ones(multiples.size, np.bool_)

            def below(sizes: np.ndarray, left: list[int] = left, asked: list[int] = asked) -> np.ndarray:
                asked += sizes.tolist()
                return np.array([left.pop(0) for _ in sizes], np.int64)

            source = SimpleNamespace(
                lazy_geometrics=lambda rate, size, b=b: np.full(size, b),
                geometric_sums=lambda rate, terms, size, pair=(up, down): np.array([*pair] * (size // 2)),
                coins=coins,
                below=below,
            )
            drawn = sampler.draw(1, source)[0]  # type: ignore[arg-type]
            assert not left
            assert asked == [2 + t for total in (up, down) for t in range(total)]
            leaves = tuple(int(drawn[node[x]]) for x in ("a1", "a2", "b"))
            ways = math.factorial(up + 1) * math.factorial(down + 1)
            found[leaves] = found.get(leaves, 0.0) + weight * math.exp(log_kept[0]) / ways
    law = {tuple(h[[node[x] for x in ("a1", "a2", "b")]].tolist()): weight for h, weight in _box(m, 1)}
    ratio = np.array([found[leaves] / weight for leaves, weight in law.items()])
    assert np.ptp(ratio) < 2e-3 * ratio[0]  # sums above 2 are left out


def test_the_sampler_is_chosen_by_public_numbers() -> None:
    wide = Poset.from_mapping({str(i): "all" for i in range(150)}, children="partition")
    shares = {str(i): "1/2" for i in range(150)}
    field = TreeFieldMechanism(wide, epsilon=1, shares=shares | {"all": "1/2"})
    assert field.node_law.draws * field.node_law.acceptance[1] == pytest.approx(
        6
    )  # sums of 64, 64 and 22 leaves
    slow = TreeFieldMechanism(wide, epsilon="1/17", shares=shares | {"all": "1/2"})
    assert slow.node_law.draws * slow.node_law.acceptance[1] == pytest.approx(
        150
    )  # too small a rate for tables
    assert (
        TreeFieldMechanism(wide, epsilon=1, shares=shares).node_law.draws == 150
    )  # nothing is drawn in vain


def test_what_is_not_kept_is_drawn_again() -> None:
    m = TreeFieldMechanism(TREE, epsilon=1, shares=SHARES)
    rng, asked = np.random.default_rng(0), 0

    def coins(rate: Fraction, multiples: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += 1
        return np.full(multiples.size, asked > 6)

    source = scripted(lambda rate, size: rng.integers(-2, 3, size), coins)
    rows = FieldSampler(m.node_law.types, m.rate, m.node_law.acceptance).draw(3, source)
    assert asked > 6
    assert np.array_equal(m.tree.sums(rows), rows)


def test_released_noise_has_the_law_and_no_other() -> None:
    m = TreeFieldMechanism(TREE, epsilon=2, shares=SHARES)
    node = m.tree.node
    drawn = FieldSampler(m.node_law.types, m.rate, m.node_law.acceptance).draw(4000, ExactDraws())[:, node]
    seen: dict[tuple[int, ...], int] = {}
    for row in drawn.tolist():
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1

    def p_value(rate: float) -> float:
        shares = [float(m.node_law.types.shares[t]) for t in m.node_law.types.of]
        law = {tuple(h[node].tolist()): math.exp(-rate * float(np.abs(h) @ shares)) for h, _ in _box(m, 6)}
        total, value, cells, rest = sum(law.values()), 0.0, 0, 4000.0
        for outcome, weight in law.items():
            expected = 4000 * weight / total
            if expected >= 25:
                value += (seen.get(outcome, 0) - expected) ** 2 / expected
                cells, rest = cells + 1, rest - expected
        outside = 4000 - sum(seen.get(o, 0) for o, w in law.items() if 4000 * w / total >= 25)
        value += (outside - rest) ** 2 / rest
        return float(chi2.sf(value, cells))

    assert p_value(2.0) > 1e-8
    assert p_value(1.4) < 1e-8


@pytest.mark.parametrize("P", TREES)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("root", [None, "9/10", "1/10"])
def test_no_unit_moves_the_noise_by_more_than_epsilon(P: Poset, k: int, root: str | None) -> None:
    shares: Any = None
    tree = require_hierarchy(P)
    if root is not None:
        if tree.roots > 1:
            return
        top = str(P.maximal[0])
        rest = (1 - Fraction(root)) / 2
        # what is left goes to the leaves
        shares = {str(x): rest for x in P.elements} | {top: Fraction(root)}
        shares |= {str(x): 1 - Fraction(root) - rest * (len(P.up_set(x)) - 2) for x in P.minimal}
    for neighbours in ("add-remove", "replace"):
        m = TreeFieldMechanism(P, 1, neighbours, contributions=k, shares=shares)
        by_node = [m.node_law.types.shares[t] for t in m.node_law.types.of]
        units = _units(P, k)
        others = units if neighbours == "replace" else [np.zeros(len(tree), np.int64)]
        most = max(
            sum(share * abs(int(d)) for share, d in zip(by_node, one - other, strict=True))
            for one in units
            for other in others
        )
        assert m.rate * most <= 1
        assert m.rate * most > Fraction(9, 10)  # and nothing is wasted


def test_dropping_a_record_costs_a_whole_way_under_replace() -> None:
    shares = {"all": "9/10", "a": "1/20", "b": "1/10", "a1": "1/20", "a2": "1/20"}
    m = TreeFieldMechanism(TREE, 1, "replace", shares=shares)
    assert m.rate == 1  # not 1/(2 - 2·9/10) = 5
    assert TreeFieldMechanism(TREE, 1, "replace", shares=SHARES).rate == Fraction(10, 14)
    assert TreeFieldMechanism(SEVERAL, 1, "replace", contributions=3).rate == Fraction(1, 6)


def test_neighbouring_outputs_are_no_likelier_than_guaranteed() -> None:
    for neighbours in ("add-remove", "replace"):
        m = TreeFieldMechanism(TREE, 1, neighbours, care="nodes")
        units = [unit[m.tree.node] for unit in _units(TREE, 1)]
        base = 5 * sum(units)
        inputs = [base + unit for unit in units] if neighbours == "replace" else [base, base + units[0]]
        outputs = np.array([base + h[m.tree.node] for h, _ in _box(m, 3)])
        logs = np.array([m.log_probability(outputs, counts) for counts in inputs])
        assert np.ptp(logs, axis=0).max() <= 1 + 1e-9


def test_an_audit_sees_the_guarantee_and_not_more() -> None:
    m = TreeFieldMechanism(TREE, epsilon=1, shares=SHARES)
    place = {x: i for i, x in enumerate(TREE.elements)}
    one = np.zeros(5, np.int64)
    one[[place["b"], place["all"]]] = 1
    counts = np.zeros(5, np.int64)
    found = audit_exact(m, counts, [one], starts=50, rounds=20)
    assert not found.broken
    assert found.loss == pytest.approx(1, abs=1e-6)


def test_counts_add_up_and_remainders_have_noise_of_their_own() -> None:
    m = TreeFieldMechanism(TREE, epsilon=1)
    place = {x: i for i, x in enumerate(TREE.elements)}
    for _ in range(20):
        out = m.release({"a": 5, "b": 3, "a1": 3, "a2": 2, "all": 8})
        assert out[place["a"]] == out[place["a1"]] + out[place["a2"]]
        assert out[place["all"]] == out[place["a"]] + out[place["b"]]
    # a unit coded at "all" itself must not show as the exact difference of published counts
    e = TreeFieldMechanism(EXCLUSIVE, epsilon=1)
    where = {x: i for i, x in enumerate(EXCLUSIVE.elements)}
    rest = [
        int(out[where["all"]] - out[where["a"]] - out[where["b"]])
        for out in (e.release({"all": 9, "a": 2, "b": 3, "a1": 1}) for _ in range(60))
    ]
    assert len(set(rest)) > 3


def test_rows_of_a_breakdown_are_added_up_from_their_leaves() -> None:
    """A unit that was counted at an inner node alone would show: the noise of the node is that of its leaves."""
    T = Poset.from_mapping({"a": "all", "b": "all"}, children="partition")
    out = TreeFieldMechanism(T, 1).release_rows(np.array([[1, 2, 3], [1, 2, 9]]))
    assert np.array_equal(out[:, 0] + out[:, 1], out[:, 2])


def test_counts_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(OrderError, match="exclude each other"):
        TreeFieldMechanism(TREE, 1).release({"a": 5, "b": 3, "a1": 3, "a2": 2, "all": 9})


def test_elements_with_the_same_count_have_the_same_noise_and_their_shares_add_up() -> None:
    P = Poset.from_mapping({"only": "all", "x": "only", "y": "only"}, children="partition")
    shares = {"all": "1/5", "only": "1/10", "x": "7/10", "y": "7/10"}
    m = TreeFieldMechanism(P, epsilon=1, shares=shares)
    assert len(m.tree) == 3
    assert m.shares["all"] == "3/10"
    out = dict(zip(P.elements, m.release({"all": 4, "only": 4, "x": 1, "y": 3}), strict=True))
    assert out["all"] == out["only"] == out["x"] + out["y"]


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ({**SHARES, "a1": "1/2"}, "more than 1"),
        ({**SHARES, "b": "0"}, "above 0"),
        ({k: v for k, v in SHARES.items() if k != "a2"}, "above 0"),
        ({**SHARES, "nobody": "1/10"}, "not an element"),
        ({**SHARES, "all": "-1/10"}, "negative"),
    ],
)
def test_shares_that_break_the_guarantee_are_refused(shares: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        TreeFieldMechanism(TREE, epsilon=1, shares=shares)


def test_numpy_scalars_mean_their_values() -> None:
    m = TreeFieldMechanism(TREE, np.float32(0.5), contributions=np.uint8(200), shares=SHARES)  # pyright: ignore[reportArgumentType]
    assert m.rate == Fraction(1, 400)
    assert m.contributions == 200


@pytest.mark.parametrize("care", ["all", 3, {"nobody": 1}, {"a": -1}, {"a": 0}, {"a": float("nan")}])
def test_cares_that_mean_nothing_are_refused(care: Any) -> None:
    with pytest.raises(InputError):
        TreeFieldMechanism(TREE, epsilon=1, care=care)


@pytest.mark.parametrize(
    "P",
    [
        Poset.chain("abc"),
        Poset.antichain("ab"),
        Poset.from_mapping({"a": "q", "b": "q", "c": "r", "d": "r"}, children="exclusive"),
    ],
)
def test_orders_that_are_no_hierarchy_are_refused(P: Poset) -> None:
    with pytest.raises(InputError, match="no hierarchy"):
        TreeFieldMechanism(P, epsilon=1)


def test_too_many_draws_are_refused_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_field, "MOST_DRAWS", 3.5)
    monkeypatch.setattr(tree_field, "CHOSEN_DRAWS", 3.5)
    with pytest.raises(InputError, match="draws a release"):
        TreeFieldMechanism(TREE, epsilon=1, shares=SHARES)
    # left to itself it finds shares within the limit: nothing but leaves
    assert TreeFieldMechanism(TREE, epsilon=1).method == "leaves only, added up"


def test_a_large_tree_that_takes_too_many_draws_leaves_less_above_the_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    P = Poset.from_mapping({x: x // 2 for x in range(2, 64)}, children="partition")
    monkeypatch.setattr(field_shares, "_LARGE", 0)
    plenty = TreeFieldMechanism(P, epsilon=1, care="levels")
    monkeypatch.setattr(tree_field, "CHOSEN_DRAWS", 0.9 * plenty.node_law.draws)
    less = TreeFieldMechanism(P, epsilon=1, care="levels")
    assert len(P.minimal) < less.node_law.draws < plenty.node_law.draws
    leaves = TreeFieldMechanism(P, epsilon=1, shares=dict.fromkeys(P.minimal, 1))
    wanted = cared_error(P, "levels")
    assert wanted(plenty.error()) < wanted(less.error()) < wanted(leaves.error())


def test_a_grid_wide_enough_that_nothing_wraps_around() -> None:
    m = TreeFieldMechanism(TREE, epsilon="1/20", shares=SHARES)
    edge = m.node_law.messages[:, m.node_law.size // 2] / m.node_law.messages.max(axis=1)
    assert edge.max() < 1e-9
    wide = FieldLaw(FieldTypes.find(m.tree, [m.node_law.types.shares[t] for t in m.node_law.types.of]), 1e-5)
    assert wide.scale > 1
    assert np.allclose(wide.variance * 1e-10, m.node_law.variance / 400, rtol=2e-3)


def test_simulated_noise_has_the_stated_variance() -> None:
    m = TreeFieldMechanism(EXCLUSIVE, epsilon=1, care="worst")
    drawn = np.asarray(m.simulate(20_000, np.random.default_rng(0))) ** 2
    assert np.all(np.abs(drawn.mean(axis=0) - m.error().variance) < 6 * drawn.std(axis=0) / math.sqrt(20_000))


def test_the_same_order_described_otherwise_has_the_same_errors() -> None:
    other = Poset(reversed(TREE.elements), TREE.covers, TREE.choices)
    one, two = TreeFieldMechanism(TREE, 1), TreeFieldMechanism(other, 1)
    assert one.shares == two.shares
    assert np.array_equal(one.error().variance, two.error().variance[::-1])


@pytest.mark.parametrize("epsilon", ["1/300", "1/1000000"])
def test_the_worst_error_is_small_for_a_tiny_epsilon(epsilon: str) -> None:
    worst = TreeFieldMechanism(TREE, epsilon, care="worst").error().variance.max()
    assert worst <= TreeFieldMechanism(TREE, epsilon, care="nodes").error().variance.max()


def test_no_number_of_contributions_is_too_large_to_be_refused() -> None:
    with pytest.raises(InputError, match=r"too small|at most"):
        TreeFieldMechanism(TREE, epsilon=1, contributions=10**400)


@pytest.mark.filterwarnings("error")
def test_a_huge_epsilon_leaves_no_noise() -> None:
    m = TreeFieldMechanism(TREE, epsilon=800, care="worst")
    assert not m.error().variance.any()


def test_simulations_draw_leaves_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """At small rates to split sums would take many times longer, and gigabytes."""
    monkeypatch.delattr(SeededDraws, "geometric_sums")
    monkeypatch.delattr(SeededDraws, "below")
    m = TreeFieldMechanism(TREE, epsilon=1, shares=SHARES)
    assert np.asarray(m.simulate(3, np.random.default_rng(0))).shape == (3, len(TREE))
