import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from tests.support.filters import changes, filters
from tests.support.posets import all_posets

from isotone.counts import BoundedPosetMechanism, LaplaceMechanism, PosetMechanism, cut_all
from isotone.counts.count_plan import Setting, best_mechanism, candidates
from isotone.counts.independent import _differences, _magnitude
from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.reading.records import RecordRules, RecordSource, count_records

PAIR = Poset.antichain("ab")


def test_it_has_the_shape_of_a_mechanism():
    m = BoundedPosetMechanism(PAIR, 1, max_size=1)
    assert isinstance(m, Mechanism)
    assert m == BoundedPosetMechanism(PAIR, 1, max_size=1)
    assert m != BoundedPosetMechanism(PAIR, 1, max_size=2)
    assert m.rate == 1
    assert BoundedPosetMechanism(PAIR, 1, "replace", contributions=3, max_size=1).rate == Fraction(1, 6)
    assert BoundedPosetMechanism(PAIR, 10**6, max_size=1).release([7, 5]).tolist() == [7, 5]


def test_the_bounds_of_a_magnitude_are_the_least_and_the_largest_one():
    for low in range(-4, 5):
        for high in range(low, 5):
            magnitudes = [abs(x) for x in range(low, high + 1)]
            assert _magnitude(low, high) == (min(magnitudes), max(magnitudes))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_density_is_private_for_every_change_by_short_records(neighbours):
    rng = np.random.default_rng(2)
    for P in all_posets(3):
        for max_size in (1, 2):
            m = BoundedPosetMechanism(P, "3/2", neighbours, contributions=2, max_size=max_size)
            y = rng.normal(scale=3, size=(200, len(P)))
            moves = [np.array(move) for move in sorted(changes(P, neighbours, 2, max_size))]
            worst = max(float(np.max(m.log_density(y) - m.log_density(y - move))) for move in moves)
            assert worst <= 1.5 + 1e-9
            if neighbours == "add-remove":
                assert worst > 1.4


def test_short_records_have_norm_one_and_long_ones_more():
    for P in all_posets(4):
        m = BoundedPosetMechanism(P, 1, max_size=2)
        assert np.all(m.norm(filters(P, 2)[1:]) == 1)
        assert m.norm(np.ones(4)) == 2


def test_the_acceptance_is_the_ratio_of_the_volumes():
    m = BoundedPosetMechanism(PAIR, 1, max_size=1)
    assert m.acceptance == pytest.approx(2 / 3, abs=0.02)  # a square of area 2 in a hexagon of area 3
    y = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 1.0]])
    assert m.log_density(y) == pytest.approx(LaplaceMechanism(PAIR, 1, max_size=1).log_density(y), abs=0.03)
    error = m.error()
    assert np.all(np.abs(error.variance - 2.0) <= 5 * error.standard_error)  # a fixed seed: no false alarm
    assert np.all(error.standard_error < 0.1)


def test_a_bound_that_binds_nothing_changes_nothing():
    P = Poset.chain("abc")
    m, plain = BoundedPosetMechanism(P, 1, max_size=3), PosetMechanism(P, 1)
    assert m.acceptance == 1
    y = np.random.default_rng(0).normal(size=(20, 3))
    assert m.log_density(y) == pytest.approx(plain.log_density(y))
    assert BoundedPosetMechanism(P, 1, max_size=9).norm(y) == pytest.approx(plain.norm(y))


def test_it_is_better_than_both_others_between_short_and_long_records():
    P = Poset.antichain(range(10))
    m = BoundedPosetMechanism(P, 1, max_size=3)
    others = PosetMechanism(P, 1).error().total, LaplaceMechanism(P, 1, max_size=3).error().total
    assert m.error().total < 0.8 * min(others)


def test_what_is_not_practical_is_refused_with_what_to_use_instead():
    with pytest.raises(InputError, match=r"one in 1000 draws.*LaplaceMechanism"):
        BoundedPosetMechanism(Poset.antichain(range(40)), 1, max_size=1)
    with pytest.raises(InputError, match="needs max_size"):
        BoundedPosetMechanism(PAIR, 1)
    with pytest.raises(InputError, match="BoundedPosetMechanism"):
        PosetMechanism(PAIR, 1, max_size=1)
    with pytest.raises(InputError, match="no total"):
        BoundedPosetMechanism(PAIR, 1, max_size=1).release_with_total([1, 1], 2)


def test_the_log_density_adds_up_to_one():
    m = BoundedPosetMechanism(PAIR, 1, max_size=1)
    grid = np.arange(-12, 12, 0.05) + 0.025
    cells = np.stack(np.meshgrid(grid, grid), axis=-1)
    assert math.isclose(float(np.exp(m.log_density(cells)).sum()) * 0.05**2, 1, abs_tol=0.02)


PARTS = Poset.from_mapping(
    {"a": "q", "b": "q", "x": "q", "a1": "a", "a2": "a", "r": None},
    children={"q": [("partition", ["a", "b"])], "a": "partition"},
)
OPTIONS = Poset.from_mapping(
    {"a": "q", "b": "q", "b1": "b", "b2": "b", "r": None}, children={"q": "exclusive"}
)


def possible(P: Poset) -> np.ndarray:
    """All records that are filters with at most one option of each choice, and one of a partition."""
    rows = np.array(list(itertools.product((False, True), repeat=len(P))))
    fits = [np.array_equal(P.close_all(row[None, :])[0], row) for row in rows]
    parent = dict(P.covers)
    for choice in P.choices:
        number = rows[:, [P.index(x) for x in choice.options]].sum(axis=1)
        fits &= number <= 1
        if choice.kind == "partition":
            fits &= number == rows[:, P.index(parent[choice.options[0]])]
    return rows[fits]


@pytest.mark.parametrize("P", [PARTS, OPTIONS])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_cut_records_with_options_are_records_and_have_norm_one(P: Poset, size: int) -> None:
    records = possible(P)
    cut = cut_all(P, records, size)
    assert {row.tobytes() for row in cut} <= {row.tobytes() for row in records}
    assert cut.sum(axis=1).max() <= size
    short = records.sum(axis=1) <= size
    assert np.array_equal(cut[short], records[short])
    m = BoundedPosetMechanism(P, 1, max_size=size)
    assert m.norm(cut.astype(float)).max() == pytest.approx(1)
    assert m.largest == min(size, int(records.sum(axis=1).max()))
    longer = records[records.sum(axis=1) > size].astype(float)
    assert not longer.size or m.norm(longer).max() > 1  # what is not cut costs more


@pytest.mark.parametrize("P", [PARTS, OPTIONS])
def test_bounded_noise_with_options_has_its_law_and_adds_up(P: Poset) -> None:
    """The mean norm of noise is known: within 6.5 standard errors (false alarm below 1e-9), and not at 1.6 times the scale."""
    m = BoundedPosetMechanism(P, "1/20", max_size=2)
    drawn = np.array([m.release(np.zeros(len(P), np.int64)) for _ in range(300)])
    assert np.array_equal(m.possible_outputs(drawn.astype(float)), drawn)
    simulated = np.asarray(m.simulate(20_000, np.random.default_rng(0)))
    norms = [m.norm(rows) * float(m.rate) for rows in (simulated, possible_rows(m, drawn))]
    # the norm of the noise is a sum of as many exponentials as there are free counts
    free = len(P.coding.order)
    assert abs(norms[0].mean() - free) < 6.5 * math.sqrt(free / 20_000)
    assert abs(norms[1].mean() - free) < 6.5 * math.sqrt(free / 300) + 0.1  # of rounding
    # at another scale: 0.6·free is more than 20 standard errors, so that this fails with probability below 1e-15
    assert abs(1.6 * norms[1].mean() - free) > 6.5 * math.sqrt(free / 300) + 0.1
    assert np.allclose(m.error().sd, np.sqrt((simulated**2).mean(axis=0)), rtol=0.15)


def possible_rows(m: BoundedPosetMechanism, rows: np.ndarray) -> np.ndarray:
    return m.possible_outputs(rows.astype(float))


def test_plans_look_at_bounded_records_with_options() -> None:
    def looked_at(P: Poset, size: int | None) -> int:
        return len(candidates(Setting(P, max_size=size), Guarantee.pure(1)))

    for P in (PARTS, OPTIONS):
        assert looked_at(P, 2) == looked_at(P, None) + 1
    tree = Poset.from_mapping({"a": "q", "b": "q"}, children="partition")
    assert (
        best_mechanism(Setting(tree, max_size=2), Guarantee.pure(1)).max_size is None
    )  # every record has two yeses


def test_rows_are_cut_as_records_are() -> None:
    frame = pl.DataFrame({str(x): possible(PARTS)[:, PARTS.index(x)] for x in PARTS.elements})
    source, rules = RecordSource(frame), RecordRules(max_size=2)
    counted, _ = count_records(source, source.open(PARTS, rules, None), PARTS, rules)
    assert counted[0].tolist() == cut_all(PARTS, possible(PARTS), 2).sum(axis=0).tolist()


def test_bounds_of_differences_hold_for_all_totals() -> None:
    totals = [(x, x + 2) for x in (0, -3, 5, 1, 4)]
    coding = PARTS.coding
    assert len(coding.order) == len(totals)
    for values in itertools.product(*(range(low, high + 1) for low, high in totals)):
        counts = coding.decode(np.array(values, np.int64)).tolist()
        bounds = _differences(totals, coding)
        assert all(low <= count <= high for count, (low, high) in zip(counts, bounds, strict=True))
    assert _differences(totals, None) == totals
