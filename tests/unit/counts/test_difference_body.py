"""Noise shaped by differences of records, against linear programs, hulls and enumeration."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from tests.support.bipartitions import extended_bipartitions
from tests.support.filters import changes, filters
from tests.support.posets import all_posets
from tests.support.rounded_plane import rounded_law

from isotone.audit import audit_exact
from isotone.counts import DifferenceBodyMechanism, LInfinityMechanism, PosetMechanism, Relaxation
from isotone.counts.sampler import difference_norms
from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.order import Poset
from isotone.order.bipartitions.counting import loosened, tables
from isotone.privacy.guarantee import Guarantee
from isotone.release.manifest import rebuild_count_mechanism, recipe_of

SURVEY = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
SMALL = [P for n in (1, 2, 3, 4) for P in all_posets(n)]


def differences(P: Poset) -> np.ndarray:
    """Every difference of two records."""
    records = filters(P)
    return np.unique([J - K for J in records for K in records], axis=0)


def by_enumeration(P: Poset) -> tuple[np.ndarray, int]:
    """The expected squares at rate 1, and the number of pairs of an extended bipartition and an interleaving."""
    less, n, total, pairs = P.leq_matrix(), len(P), np.zeros(len(P)), 0
    for A, B in extended_bipartitions(P):
        for slots in combinations(range(1, n + 1), len(A)):
            rest = [t for t in range(1, n + 1) if t not in slots]
            ends = [
                [max((t for t, y in zip(side, who, strict=True) if less[y, x]), default=0) for x in range(n)]
                for side, who in ((slots, A), (rest, B))
            ]
            steps = np.abs(np.array(ends[0]) - np.array(ends[1]))
            total += steps * (steps + 1)
            pairs += 1
    return total / pairs, pairs


def test_it_has_the_shape_of_a_mechanism():
    m = DifferenceBodyMechanism(SURVEY, "0.5")
    assert isinstance(m, Mechanism)
    assert m.guarantee == Guarantee.pure("1/2", neighbours="replace")
    assert m == DifferenceBodyMechanism(SURVEY, 0.5)
    assert m != PosetMechanism(SURVEY, 0.5, "replace")
    assert DifferenceBodyMechanism(SURVEY, 10**6).release({"meds": 3, "hyp": 12, "twice": 8}).tolist() == [
        12,
        8,
        3,
    ]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_rate_counts_the_records_of_a_unit_once_for_both_neighbours(neighbours):
    assert DifferenceBodyMechanism(SURVEY, 1, neighbours).rate == 1
    assert DifferenceBodyMechanism(SURVEY, 1, neighbours, contributions=3).rate == Fraction(1, 3)
    assert DifferenceBodyMechanism(SURVEY, 1, neighbours, contributions=np.int8(3)).rate == Fraction(1, 3)  # pyright: ignore[reportArgumentType]


def test_the_norm_is_that_of_the_hull_of_all_differences():
    rng = np.random.default_rng(5)
    for P in SMALL:
        corners = differences(P)
        for y in [*rng.normal(size=(2, len(P))), *rng.integers(-3, 4, (3, len(P)))]:
            found = linprog(np.ones(len(corners)), A_eq=corners.T, b_eq=y)
            assert difference_norms(P, y) == pytest.approx(found.fun, abs=1e-9)


def test_the_total_weight_is_the_volume_of_the_hull():
    for P in SMALL:
        volume = math.exp(loosened(tables(P)).log_count)
        exact = ConvexHull(differences(P)).volume if len(P) > 1 else 2.0
        assert volume == pytest.approx(exact, rel=1e-7)
        m = DifferenceBodyMechanism(P, 2)
        n = len(P)
        assert m.log_density(np.zeros(n)) == pytest.approx(
            n * math.log(2) - math.log(math.factorial(n) * exact), abs=1e-7
        )


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("contributions", [1, 2])
def test_the_density_is_private_for_every_change_on_every_small_order(neighbours, contributions):
    rng = np.random.default_rng(2)
    for P in [P for P in SMALL if len(P) < 4]:
        m = DifferenceBodyMechanism(P, "3/2", neighbours, contributions)
        y = rng.normal(scale=3, size=(60, len(P)))
        moves = [np.array(move) for move in sorted(changes(P, neighbours, contributions, None))]
        worst = max(float(np.max(m.log_density(y) - m.log_density(y - move))) for move in moves)
        assert worst <= 1.5 + 1e-9
        assert worst > 1.4  # so a rate wrong by a tenth would show


def test_every_change_by_one_unit_has_norm_at_most_the_number_of_its_records():
    for P in SMALL:
        for k in (1, 2):
            for neighbours in ("add-remove", "replace"):
                moves = np.array(sorted(changes(P, neighbours, k, None)))
                assert difference_norms(P, moves).max() == k


@pytest.mark.parametrize("P", all_posets(2), ids=str)
@pytest.mark.parametrize("epsilon", ["1/4", 1, 3])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_released_integers_are_private_by_integration(P, epsilon, neighbours):
    m = DifferenceBodyMechanism(P, epsilon, neighbours)
    law, worst = rounded_law(m, reach=8), 0.0
    for move in changes(P, neighbours, 1, None):
        for (a, b), p in law.items():
            q = law.get((a - move[0], b - move[1]))
            worst = max(worst, abs(math.log(p / q)) if q else 0.0)
    assert worst <= float(m.epsilon) * (1 + 1e-9)
    assert worst > 0.9 * float(m.epsilon)


def test_the_error_is_that_of_all_pairs_of_bipartitions_and_interleavings():
    for P in SMALL:
        error = DifferenceBodyMechanism(P, 2).error()
        exact, pairs = by_enumeration(P)
        exact /= 4
        assert math.exp(DifferenceBodyMechanism(P, 1).sampler.log_count) == pytest.approx(pairs, rel=1e-7)
        if error.method == "exact":
            assert error.variance == pytest.approx(exact, rel=1e-7)
        else:
            assert np.all(np.abs(error.variance - exact) < 6 * error.standard_error)
            assert np.all(error.standard_error < 0.02 * exact)
    assert DifferenceBodyMechanism(N_ORDER, 1).error().method == "simulated"


def test_surveys_chains_and_stars_have_the_errors_of_the_theory():
    relations = [(1, 0), (2, 1), (3, 0), *((k, 4) for k in range(5, 11)), *((k, 11) for k in range(12, 15))]
    parents = {"a2": "a1", "a3": "a2", "a4": "a1", "b2": "b1", "b3": "b1", "c2": "c1", "c3": "c1", "c4": "c1"}
    cases = [
        (Poset.from_mapping(parents), 9.7603),
        (Poset(range(15), relations), 17.1665),
        (Poset.chain(range(5)), 11 / 6),
        (Poset.chain(range(20)), 41 / 6),
        (Poset(range(15), [(k, 0) for k in range(1, 15)]), 19.2664),
    ]
    for P, mean in cases:
        m = DifferenceBodyMechanism(P, 2)
        assert m.error().variance.mean() == pytest.approx(mean, abs=5e-4)
        others = LInfinityMechanism(P, 2, "replace"), PosetMechanism(P, 2, "replace")
        assert all(np.all(m.error().variance <= other.error().variance + 1e-9) for other in others)


def test_an_antichain_has_the_noise_of_the_cube():
    P = Poset.antichain("abc")
    m, cube = DifferenceBodyMechanism(P, 1), LInfinityMechanism(P, 1, "replace")
    y = np.random.default_rng(0).normal(size=(50, 3))
    assert m.log_density(y) == pytest.approx(cube.log_density(y), abs=1e-7)
    assert m.error().variance == pytest.approx(cube.error().variance)


def test_its_body_is_a_section_of_that_of_the_order_with_a_top():
    """Twice the norm is the norm of the change together with a number of records that stays."""
    rng = np.random.default_rng(3)
    for P in SMALL:
        rooted = PosetMechanism(Poset.series(P, Poset.chain(["all"])), 1)
        y = rng.normal(size=(20, len(P)))
        assert 2 * difference_norms(P, y) == pytest.approx(
            rooted.norm(np.append(y, np.zeros((20, 1)), axis=1))
        )


def test_no_total_comes_with_it():
    m = DifferenceBodyMechanism(SURVEY, 1)
    assert not m.has_total
    with pytest.raises(InputError, match="element above all others"):
        m.release_with_total([3, 2, 1], 5)
    with pytest.raises(InputError, match="number of records"):
        m.total_variance()
    with pytest.raises(InputError, match="no use for max_size"):
        DifferenceBodyMechanism(SURVEY, 1, max_size=2)


def test_a_total_in_the_noise_of_one_rate_would_leak():
    """The change (record, 0) of counts and total has norm 2 in the body of add-remove: why it is refused."""
    rooted = PosetMechanism(Poset.series(SURVEY, Poset.chain(["all"])), 1)
    moves = [[*move, 0] for move in changes(SURVEY, "replace", 1, None)]
    assert rooted.norm(moves).max() == 2


def test_one_draw_for_each_group_would_cost_twice():
    """A unit that changes groups moves both: in two draws at full rate its norms add up to 2."""
    m = DifferenceBodyMechanism(SURVEY, 1)
    assert float(m.norm([1, 1, 1]) + m.norm([-1, -1, -1])) == 2


def test_an_audit_finds_the_guarantee_and_not_more():
    m = DifferenceBodyMechanism(SURVEY, 1)
    found = audit_exact(m, [1, 1, 0], [[1, 0, 1], [0, 0, 0]])
    assert found.loss == pytest.approx(1, abs=1e-6)
    assert not found.broken


def test_a_recipe_makes_it_again():
    m = DifferenceBodyMechanism(SURVEY, "1/3", "add-remove", contributions=2)
    assert rebuild_count_mechanism(SURVEY, recipe_of(m)) == m
    relaxed = DifferenceBodyMechanism(N_ORDER, 1, relaxation=Relaxation.of([("a", "c"), ("b", "d")]))
    again = rebuild_count_mechanism(N_ORDER, recipe_of(relaxed))
    assert again.method == relaxed.method
    assert relaxed.method.name == "rejection"


def test_rejection_keeps_the_share_of_the_volumes():
    relaxed = DifferenceBodyMechanism(N_ORDER, 1, relaxation=Relaxation.of([("a", "c"), ("b", "d")]))
    two_chains = Poset("abcd", [("a", "c"), ("b", "d")])
    share = ConvexHull(differences(N_ORDER)).volume / ConvexHull(differences(two_chains)).volume
    assert relaxed.method.acceptance == pytest.approx(share, abs=0.02)
    exact = DifferenceBodyMechanism(N_ORDER, 1)
    assert relaxed.log_density(np.zeros(4)) == pytest.approx(exact.log_density(np.zeros(4)), abs=0.05)


def test_the_shape_of_a_relaxed_order_is_private_too():
    P = Poset(["relaxed", *"bcd"], [("relaxed", "c"), ("b", "c"), ("b", "d")])
    m = DifferenceBodyMechanism(P, 1, relaxation=Relaxation.of([("relaxed", "c"), ("b", "d")], restored=[]))
    assert m.method.name == "relaxed"
    assert m.method.cost + 4 * m.method.cost_error > 1
    assert m.norm(differences(P)).max() <= 1
    assert m.error().total > 0.95 * DifferenceBodyMechanism(P, 1).error().total
