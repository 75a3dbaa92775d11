"""Noise for exclusive options: the hull of the records that can be, and no other."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from tests.support.andxor import all_forests, records_of
from tests.support.bipartitions import bipartitions_by_sides
from tests.support.effort import effort

from isotone.audit.exact import (
    _neighbouring_counts,  # pyright: ignore[reportPrivateUsage]
    audit_exact,
)
from isotone.counts import (
    DifferenceBodyMechanism,
    LaplaceMechanism,
    PosetMechanism,
)
from isotone.counts.count_plan import Setting, best_mechanism
from isotone.counts.mechanism import Sensitivity, cut_all, largest_record
from isotone.counts.sampler import difference_norms, norms
from isotone.errors import OrderError
from isotone.order import Poset
from isotone.privacy.guarantee import REPLACING, Guarantee, Unit

SMALL = [P for n in range(2, 5) for P in all_forests(n) if P.choices]
FIVE_AND_SIX = [P for n in (5, 6) for P in all_forests(n) if P.choices]
LARGER = FIVE_AND_SIX[:: effort(40, 1)]
"""All and/xor trees of five and six elements in ``make audit``, and every 40th in ``make test``."""
COLOURS = Poset.from_mapping({"red": "any", "blue": "any", "dark": "blue"}, children="partition")


def _norm_by_lp(generators: np.ndarray, y: np.ndarray) -> float:
    return linprog(np.ones(len(generators)), A_eq=generators.T, b_eq=y, method="highs").fun


def test_norms_are_those_of_linear_programs_over_all_records() -> None:
    rng = np.random.default_rng(0)
    for P in [*SMALL, *LARGER]:
        records = np.array(records_of(P), dtype=float)
        # a vector in the span of the records, so that partitions add up
        y = rng.integers(-3, 4, len(records)) @ records
        assert norms(P, y) == pytest.approx(_norm_by_lp(np.concatenate((records, -records)), y), abs=1e-8)
        differences = np.unique([a - b for a, b in product(records, repeat=2)], axis=0)
        assert difference_norms(P, y) == pytest.approx(_norm_by_lp(differences, y), abs=1e-8)


def test_no_record_and_no_pair_of_records_is_longer_than_the_noise_covers() -> None:
    for P in [*SMALL, *LARGER]:
        records = np.array(records_of(P), dtype=float)
        assert norms(P, records).max() <= 1
        pairs = np.array([a - b for a, b in product(records, repeat=2)])
        assert norms(P, pairs).max() <= 2
        assert difference_norms(P, pairs).max() <= 1


def test_two_options_at_once_would_not_be_covered() -> None:
    # the norm of what the rules keep out: a record with both options, or with none of a partition
    P = Poset("ab", (), [("exclusive", ["a", "b"])])
    assert norms(P, [1.0, 1.0]) == 2
    assert norms(COLOURS, [1.0 if x in ("any",) else 0.0 for x in COLOURS.elements]) == np.inf


def test_the_number_of_cones_is_the_volume_of_the_hull() -> None:
    for P in [*SMALL, *FIVE_AND_SIX[:: effort(200, 1)]]:
        # the last option of a partition is its parent less the others, so that volumes are those without it
        last = {choice.options[-1] for choice in P.choices if choice.kind == "partition"}
        free = [i for i, x in enumerate(P.elements) if x not in last]
        assert len(free) == len(P.coding.order)
        records = np.array(records_of(P), dtype=float)[:, free]
        both = np.concatenate((records, -records))
        volume = ConvexHull(both).volume if len(free) > 1 else float(np.ptp(both))
        assert P.coding.order.count_extended_bipartitions() == round(volume * math.factorial(len(free)))


class _Steps:
    """Draws in which the exponential steps are given, those up first, for one row or for all of them."""

    words = bernoulli = None

    def __init__(self, steps: np.ndarray, up: np.ndarray) -> None:
        self.steps, self.up = steps, np.asarray(up)[..., None]

    def exponential_sums(self, _: object, plus: np.ndarray, minus: np.ndarray) -> np.ndarray:
        along = np.append(0, np.cumsum(self.steps))
        return along[plus] - (along[self.up + minus] - along[self.up])

    exponential_rows = exponential_sums


def test_the_law_of_what_is_released_is_that_of_the_hull(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the code that releases, for every draw: a sum of steps along records, as long as the steps are together.

    Draws are uniform (tests/statistical), as many as the hull has cones, and no two have the same generators: so the
    noise has the density of the hull. All trees of up to four elements, and every 80th of five and six; all of these
    are in ``make audit``.
    """
    rng = np.random.default_rng(3)
    for P in [*SMALL, *FIVE_AND_SIX[:: effort(80, 1)]]:
        m = PosetMechanism(P, 1)
        order = m.sampler.order
        drawn = [(np.array([*A, *B], np.int32), len(A)) for A, B in bipartitions_by_sides(order)]
        orders, sizes = np.stack([both for both, _ in drawn]), np.array([size for _, size in drawn])
        assert len(drawn) == order.count_extended_bipartitions()
        monkeypatch.setattr(type(m.sampler), "draw_rows", lambda *_, all=(orders, sizes): all)
        lengths = rng.integers(1, 1000, len(order))
        *ways, found = (
            m._integer_noises(len(orders), _Steps(steps, sizes))  # pyright: ignore
            for steps in [*np.eye(len(order), dtype=np.int64), lengths]
        )
        assert np.all(norms(P, found) == lengths.sum())
        signs = np.where(np.arange(len(order)) < sizes[:, None], 1, -1)
        powers = 3 ** np.arange(len(P))
        codes = np.stack(ways, axis=1) @ powers * signs
        # digits -1, 0 and 1 to the base 3 are those of one number only
        assert np.all(np.abs(np.stack(ways)) <= 1)
        assert np.isin(codes, np.array(records_of(P)) @ powers).all()
        assert len(np.unique(np.sort(codes * signs, axis=1), axis=0)) == len(drawn)
        # one release alone takes the same steps
        row = int(rng.integers(len(drawn)))
        monkeypatch.setattr(type(m.sampler), "draw", lambda *_, one=drawn[row]: one)
        alone = m._integer_noise(_Steps(lengths, sizes[row]))  # pyright: ignore
        assert np.array_equal(alone, found[row])


def test_errors_are_those_of_simulated_noise() -> None:
    rng = np.random.default_rng(1)
    for P in [SMALL[k] for k in (0, 5, 20, 40, 60)]:
        for kind in (PosetMechanism, DifferenceBodyMechanism):
            m = kind(P, epsilon=1)
            assert m.error().method == "exact"
            squares = np.asarray(m.simulate(10_000, rng)) ** 2
            spread = squares.std(axis=0) / 100
            assert np.all(np.abs(squares.mean(axis=0) - m.error().variance) < 6 * spread)


def test_errors_by_simulation_agree_with_exact_ones() -> None:
    P = Poset.from_mapping({"a": "q", "b": "q", "c": "q", "a1": "a", "a2": "a"}, children="exclusive")
    for kind in (PosetMechanism, DifferenceBodyMechanism):
        m = kind(P, epsilon=2)
        simulated = m._simulated_errors()  # pyright: ignore[reportPrivateUsage]
        off = np.abs(simulated.variance - m.error().variance)
        assert np.all(off <= 6 * simulated.standard_error + 1e-12)


def test_partitions_add_up_in_every_release() -> None:
    place = {x: i for i, x in enumerate(COLOURS.elements)}
    for kind in (PosetMechanism, DifferenceBodyMechanism):
        m = kind(COLOURS, epsilon=1)
        for _ in range(20):
            out = m.release({"red": 3, "blue": 4, "dark": 4, "any": 7})
            assert out[place["red"]] + out[place["blue"]] == out[place["any"]]
            assert out[place["blue"]] == out[place["dark"]]


def test_a_density_is_zero_where_partitions_do_not_add_up() -> None:
    m = PosetMechanism(COLOURS, epsilon=1)
    y = np.array([1.0 if x in ("any", "red") else 0.0 for x in COLOURS.elements])
    assert np.isfinite(m.log_density(y))
    y[0] += 1
    assert m.log_density(y) == -np.inf


def test_an_audit_finds_the_claim_and_not_more() -> None:
    m = PosetMechanism(COLOURS, epsilon=1)
    pairs = [(base, others) for base, others in _neighbouring_counts(m) if others]
    found = max((audit_exact(m, *pair, starts=60, rounds=20) for pair in pairs), key=lambda found: found.loss)
    assert not found.broken
    assert found.loss == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("counts", [[1, 1, 0, 3], [2, 2, 2, 3], [1, 0, 0, 3]])
def test_counts_that_no_records_have_are_refused(counts: list[int]) -> None:
    with pytest.raises(OrderError, match="exclude each other"):
        PosetMechanism(COLOURS, 1).release(dict(zip(("red", "blue", "dark", "any"), counts, strict=True)))


def test_independent_noise_knows_how_long_a_record_can_be() -> None:
    for P in [*SMALL, *LARGER]:
        records = np.array(records_of(P))
        assert largest_record(P) == records.sum(axis=1).max()
        differences = max(int(np.abs(a - b).sum()) for a, b in product(records, repeat=2))
        assert Sensitivity.of(P, Unit(neighbours=REPLACING)).coordinates >= differences
    questions = {f"q{i}": None for i in range(5)} | {
        f"q{i}o{j}": f"q{i}" for i in range(5) for j in range(10)
    }
    survey = Poset.from_mapping(questions, children="exclusive")
    assert LaplaceMechanism(survey, epsilon=1).error().rmse == pytest.approx(14.14, abs=0.01)


def test_five_questions_with_ten_exclusive_options() -> None:
    questions = {f"q{i}": None for i in range(5)} | {
        f"q{i}o{j}": f"q{i}" for i in range(5) for j in range(10)
    }
    best = best_mechanism(Setting(Poset.from_mapping(questions, children="exclusive")), Guarantee.pure(1))
    assert best.error().rmse == pytest.approx(6.6135, abs=1e-3)
    assert PosetMechanism(Poset.from_mapping(questions), epsilon=1).error().rmse == pytest.approx(
        20.9, abs=0.1
    )


def test_records_with_exclusive_options_are_cut_and_covered() -> None:
    for P in SMALL:
        records = records_of(P)
        for size in range(1, len(P)):
            kept = cut_all(P, records, size).astype(int)
            assert {*map(tuple, kept.tolist())} <= {*records}  # what is cut is a record still
            assert kept.sum(axis=1).max() <= size
            pairs = np.abs(kept[:, None] - kept[None]).sum(axis=-1)
            for neighbours, moves in (("add-remove", kept.sum(axis=1)), ("replace", pairs)):
                m = LaplaceMechanism(P, 1, neighbours, max_size=size)  # pyright: ignore[reportArgumentType]
                assert m.sensitivity.l1 >= moves.max()


def test_plans_look_at_cut_records_with_exclusive_options() -> None:
    questions: dict[str, str | None] = {f"q{i}": None for i in range(12)}
    questions |= {f"q{i}o{j}": f"q{i}" for i in range(12) for j in range(2)}
    P = Poset.from_mapping(questions, children="exclusive")
    best = best_mechanism(Setting(P, max_size=2), Guarantee.pure(1))
    assert best.max_size == 2
    assert best.error().rmse < 0.5 * best_mechanism(Setting(P), Guarantee.pure(1)).error().rmse
