"""One draw of noise for several groups whose units may be replaced, against linear programs, hulls and enumeration."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from scipy.stats import gamma, kstest
from tests.support.bipartitions import extended_bipartitions
from tests.support.chisquare import FALSE_ALARM
from tests.support.count_plans import plan
from tests.support.filters import filters
from tests.support.posets import all_posets
from tests.support.rounded_plane import rounded_law
from tests.support.tape import follow_all_paths

from isotone import noise
from isotone.audit import audit_exact
from isotone.audit.exact import _neighbouring_counts
from isotone.counts import DifferenceBodyMechanism, GroupedDifferenceMechanism
from isotone.counts.count_plan import Setting, choose_mechanism
from isotone.counts.difference import LARGEST_STACK, spans
from isotone.errors import InputError
from isotone.order import Poset
from isotone.order.building import stacked_copies
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import Guarantee

ONE = Poset.antichain("a")
PAIRS = all_posets(2)
V = Poset("xvy", [("x", "v")])
PARTITION = Poset.from_mapping({"a": "all", "b": "all"}, children="partition")
CASES = [*((P, 2) for P in [ONE, *PAIRS, V]), (ONE, 3)]


def records(P: Poset, groups: int) -> list[np.ndarray]:
    """Every record of every group, flat, the empty one included."""
    found = [np.zeros(groups * len(P), np.int64)]
    for g in range(groups):
        for f in filters(P)[1:]:
            one = np.zeros((groups, len(P)), np.int64)
            one[g] = f
            found.append(one.ravel())
    return found


def moves(P: Poset, groups: int, neighbours: str, k: int) -> np.ndarray:
    """Every change by a unit of up to k records, each in a group of its own."""
    sums = {tuple(np.sum(some, axis=0)) for some in product(records(P, groups), repeat=k)}
    others = sums if neighbours == "replace" else {(0,) * (groups * len(P))}
    forward = {tuple(np.subtract(a, b)) for a in sums for b in others}
    return np.array(sorted(forward | {tuple(np.negative(a)) for a in forward}))


@pytest.mark.parametrize(("P", "groups"), CASES, ids=str)
def test_the_norm_is_that_of_all_differences_of_records_in_groups(P, groups):
    m, rng = GroupedDifferenceMechanism(P, 1, groups=groups), np.random.default_rng(4)
    all_records = records(P, groups)
    corners = np.unique([a - b for a in all_records for b in all_records], axis=0)
    for y in [*rng.normal(size=(3, corners.shape[1])), *rng.integers(-3, 4, (4, corners.shape[1]))]:
        assert m.norm(y) == pytest.approx(linprog(np.ones(len(corners)), A_eq=corners.T, b_eq=y).fun)
    if corners.shape[1] <= 4:
        n, volume = corners.shape[1], ConvexHull(corners).volume
        assert m.log_density(np.zeros(n)) == pytest.approx(-math.log(math.factorial(n) * volume), abs=1e-7)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("k", [1, 2])
def test_the_density_is_private_for_every_change_within_and_between_groups(neighbours, k):
    rng = np.random.default_rng(2)
    for P, groups in [(ONE, 3), *((P, 2) for P in PAIRS)]:
        m = GroupedDifferenceMechanism(P, "3/2", neighbours, k, groups=groups)
        assert m.rate == Fraction(3, 2 * k)
        y = rng.normal(scale=3, size=(80, groups * len(P)))
        every = moves(P, groups, neighbours, k)
        worst = max(float(np.max(m.log_density(y) - m.log_density(y - move))) for move in every)
        assert 1.35 < worst <= 1.5 + 1e-9
        assert m.norm(every).max() == k


def test_a_draw_for_each_group_would_cost_twice():
    """What the joint norm of a unit that changes groups is, and what two norms of one group each are together."""
    change = np.array([[1, 1], [-1, -1]])
    one, both = DifferenceBodyMechanism(PAIRS[0], 1), GroupedDifferenceMechanism(PAIRS[0], 1, groups=2)
    assert sum(one.norm(change)) == 2
    assert both.norm(change) == 1


Ends = tuple[tuple[int, ...], ...]


def ends_of(m: GroupedDifferenceMechanism, orders: np.ndarray, sizes: np.ndarray, slots: np.ndarray) -> Ends:
    """Where the steps of each count begin and end, on both sides, by the code that releases."""
    ends = (*spans(m.sampler.order, orders, sizes, slots), *m._starts(orders, sizes, slots))
    return tuple(tuple(end[0].tolist()) for end in ends)


def ends_by_group(P: Poset, groups: int) -> Counter[Ends]:
    """The same by hand: a bipartition for each group, and any interleaving of the two sides of all of them."""
    order, n, expected = P.canonical.order, groups * len(P), Counter[Ends]()
    less = order.leq_matrix()
    for each in product(list(extended_bipartitions(order)), repeat=groups):
        for slots in combinations(range(1, n + 1), sum(len(A) for A, _ in each)):
            rest = [t for t in range(1, n + 1) if t not in slots]
            found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
            for side, where in enumerate((list(slots), rest)):
                upper, start, begin = list[int](), list[int](), 0
                for block in (sides[side] for sides in each):
                    own, where = where[: len(block)], where[len(block) :]
                    for x in range(len(P)):
                        last = [t for t, y in zip(own, block, strict=True) if less[y, x]]
                        upper.append(max(last, default=begin))
                        start.append(begin)
                    begin = own[-1] if own else begin
                found.append((tuple(upper), tuple(start)))
            expected[found[0][0], found[1][0], found[0][1], found[1][1]] += 1
    return expected


@pytest.mark.parametrize(("P", "groups"), [*((P, 2) for P in PAIRS), (ONE, 3)], ids=str)
def test_bipartitions_of_the_stack_are_those_of_the_groups(P, groups):
    m, found = GroupedDifferenceMechanism(P, 1, groups=groups), Counter[Ends]()
    n = groups * len(P)
    for A, B in extended_bipartitions(m.sampler.order):
        for slots in combinations(range(1, n + 1), len(A)):
            places = [*slots, *(t for t in range(1, n + 1) if t not in slots)]
            found[ends_of(m, np.array([[*A, *B]], np.int32), np.array([len(A)]), np.array([places]))] += 1
    assert found == ends_by_group(P, groups)


def test_all_paths_draw_every_pair_equally_often(monkeypatch):
    """Through the code that releases: the law of its draws, exactly, and not by chance."""
    m = GroupedDifferenceMechanism(ONE, 1, groups=3)
    sources = ["isotone.noise.bits.random_below"]
    law = follow_all_paths(lambda: ends_of(m, *m.sampler.draw_slots(ExactDraws())), monkeypatch, sources)
    expected = ends_by_group(ONE, 3)
    assert law.unexplored == 0
    assert law.reached == {ends: Fraction(times, sum(expected.values())) for ends, times in expected.items()}


@pytest.mark.parametrize("epsilon", ["1/4", 2])
def test_released_integers_are_private_by_integration(epsilon):
    m = GroupedDifferenceMechanism(ONE, epsilon, groups=2)
    law, worst = rounded_law(m, reach=8), 0.0  # pyright: ignore[reportArgumentType]
    for move in moves(ONE, 2, "replace", 1).tolist():
        for (a, b), p in law.items():
            q = law.get((a - move[0], b - move[1]))
            worst = max(worst, abs(math.log(p / q)) if q else 0.0)
    assert 0.9 * float(m.epsilon) < worst <= float(m.epsilon) * (1 + 1e-9)


def test_released_noise_has_the_norm_of_the_theory():
    """1,000 draws: false alarm 1e-8; a scale two fifths too large is a distance of 0.27, and missed with e^-60."""
    m = GroupedDifferenceMechanism(V, "1/4096", groups=2)
    rows = np.array([m.release(np.zeros((2, 3), int)) for _ in range(1_000)])
    assert kstest(m.norm(rows), gamma(6, scale=4096).cdf).pvalue > FALSE_ALARM
    assert kstest(m.norm(rows), gamma(6, scale=4096 * 1.4).cdf).pvalue < FALSE_ALARM


def test_the_error_of_one_count_in_groups_has_a_closed_form():
    for g in (1, 2, 3, 5, 10, 30):
        exact = 4 * g * (2 * g + 1) / ((g + 1) * (g + 2))
        assert GroupedDifferenceMechanism(ONE, 1, groups=g).error().variance == pytest.approx([exact])
    assert GroupedDifferenceMechanism(V, 1, groups=1).error().variance == pytest.approx(
        DifferenceBodyMechanism(V, 1).error().variance
    )


@pytest.mark.parametrize("P", [V, PARTITION], ids=["order", "partition"])
def test_errors_are_those_of_simulated_noise_in_every_group(P):
    """The seed is fixed: no chance."""
    m = GroupedDifferenceMechanism(P, "1/2", groups=3)
    assert m.error().method == "exact"
    law = m.group_law("test", 20_000).draws.reshape(-1, 3, len(P))
    assert (law.astype(float) ** 2).mean(axis=0) == pytest.approx(
        np.tile(m.error().variance + 1 / 6, (3, 1)), rel=0.04
    )
    total, alone = law[:, :, 0].sum(axis=1).var(), 3 * law[:, 0, 0].var()
    assert total < 0.8 * alone  # groups are not independent: what is more in one is less in another
    assert np.asarray(m.simulate(4_000, np.random.default_rng(3))).var(axis=0) == pytest.approx(
        m.error().variance, rel=0.15
    )


def test_counts_of_partitions_add_up_in_every_group():
    out = GroupedDifferenceMechanism(PARTITION, 1, groups=2).release([[3, 2, 5], [0, 1, 1]])
    assert np.array_equal(out[:, 0] + out[:, 1], out[:, 2])


def test_spans_that_begin_later_are_rounded_jointly():
    """Shared steps cancel exactly, and a span that begins at 2 has the steps that follow."""
    ends = np.array([[5, 3, 6, 4], [5, 3, 4, 6]]), np.array([[2, 1, 2, 4], [2, 1, 4, 2]])
    rows = np.array(
        [
            noise.rounded_exponential_spans(
                Fraction(1, 512), ends[0][0], ends[0][1], (ends[1][0], ends[1][1])
            )
            for _ in range(600)
        ]
    )
    assert not rows[:, :2].any()
    # (2, 6] against nothing, and its mirror image
    assert np.array_equal(rows[:, 2], -rows[:, 3])
    assert kstest(rows[:, 2], gamma(4, scale=512).cdf).pvalue > FALSE_ALARM
    assert kstest(rows[:, 2], gamma(4, scale=870).cdf).pvalue < FALSE_ALARM
    with pytest.raises(InputError, match="end before"):
        noise.rounded_exponential_spans(
            Fraction(1), np.array([1]), np.array([1]), (np.array([2]), np.array([0]))
        )


def test_open_roundings_are_settled_by_further_digits(monkeypatch):
    """With one binary place at first nearly every rounding stays open; a number and its mirror image still agree."""
    monkeypatch.setattr("isotone.noise.exponential.first_places", lambda *_: 1)
    ends, starts = (np.array([4, 3]), np.array([3, 4])), (np.array([1, 2]), np.array([2, 1]))
    rows = np.array(
        [noise.rounded_exponential_spans(Fraction(1, 64), *ends, starts) for _ in range(200)]
    )  # (1, 4] less (2, 3] is two steps
    assert np.array_equal(rows[:, 0], -rows[:, 1])
    assert kstest(rows[:, 0], gamma(2, scale=64, loc=-0.5).cdf).pvalue > FALSE_ALARM
    assert rows[:, 0].min() >= 0


def test_a_stack_has_its_copies_one_after_the_other():
    order = V.canonical.order
    S = stacked_copies(order, 11).canonical.order
    matrix = S.leq_matrix()
    for i, j in product(range(11), repeat=2):
        block = matrix[3 * i : 3 * i + 3, 3 * j : 3 * j + 3]
        assert np.array_equal(block, order.leq_matrix() if i == j else np.full((3, 3), i < j))


def test_the_plan_for_groups_compares_one_draw_with_a_draw_each():
    guarantee = Guarantee.pure(1, neighbours="replace")
    found = plan(V, 1, neighbours="replace", groups=2)
    assert isinstance(found.best, GroupedDifferenceMechanism)
    assert type(choose_mechanism(Setting(V, groups=2), guarantee, None)) is GroupedDifferenceMechanism
    others = {row.name: row.mechanism for row in found.rows[1:]}
    assert others["PosetMechanism"].guarantee == Guarantee.pure("1/2")
    assert "GroupedDifferenceMechanism hides it with ε = 1 only" in found.advice
    alone = plan(V, 1, groups=2)  # adding or removing a unit changes one group
    assert alone.best.guarantee == Guarantee.pure(1)
    assert found.epsilon_for(20) < 2 * alone.epsilon_for(20)


@pytest.mark.parametrize(
    ("groups", "why"), [(0, "groups"), (2.5, "groups"), (LARGEST_STACK, "the most for one draw")]
)
def test_odd_numbers_of_groups_are_refused(groups, why):
    with pytest.raises(InputError, match=why):
        GroupedDifferenceMechanism(V, 1, groups=groups)


def test_what_does_not_fit_is_refused():
    m = GroupedDifferenceMechanism(V, 1, groups=2)
    guarantee = Guarantee.pure(1, neighbours="replace")
    with pytest.raises(InputError, match="a row for each of the 2 groups"):
        m.release([[0, 0, 0]])
    with pytest.raises(InputError, match="no total"):
        m.release_with_total([0, 0, 0], 5)
    with pytest.raises(InputError, match="2 groups"):
        choose_mechanism(Setting(V, groups=3), guarantee, m)
    with pytest.raises(InputError, match="several groups"):
        choose_mechanism(Setting(V), guarantee, "GroupedDifferenceMechanism")
    assert choose_mechanism(Setting(V, groups=2), guarantee, m) is m


def test_the_audit_lets_a_unit_change_groups():
    m = GroupedDifferenceMechanism(PAIRS[0], 1, groups=2)
    pairs = [(base, others) for base, others in _neighbouring_counts(m) if base.any()]
    assert any(base[:2].any() and any(other[2:].any() for other in others) for base, others in pairs)
    for claimed, broken in ((1, False), ("9/10", True)):
        guarantee = Guarantee.pure(claimed, neighbours="replace")
        found = audit_exact(m, pairs[0][0], pairs[0][1][:2], claimed=guarantee, starts=60, rounds=12)
        assert found.broken == broken
