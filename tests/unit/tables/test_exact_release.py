"""Releases are exactly private: the integer weights, the draws at their boundaries, and exact two-row checks."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from tests.support.tables_exact import exact_geometric, product, shapes

from isotone import noise
from isotone.noise.bits import OPEN, powers_of_exp
from isotone.privacy.draws import ExactDraws
from isotone.published.tables.scales import ScaleMechanism, levels_by_row
from isotone.tables import fixed_point, unfixed_optimum
from isotone.tables.matrices.factored import UNIT, FactoredMechanism, comonotone, draw_remap, single_row


def exact_remap(t: FactoredMechanism) -> list[list[Fraction]]:
    """The remap as the draws use it: integer ceilings, no floats."""
    dense = [[Fraction(0)] * t.n for _ in range(t.n)]
    for k in range(t.n):
        floor = 0
        for e in range(t.remap.starts[k], t.remap.starts[k + 1]):
            dense[k][int(t.remap.columns[e])] += Fraction(int(t.remap.ceilings[e]) - floor, UNIT)
            floor = int(t.remap.ceilings[e])
    return dense


def test_the_integer_sampler_is_private_between_any_two_neighbouring_rows_exactly() -> None:
    """Exact noise at a = 1/2 times the stored integers: rows sum to 1 and ratios are within 2, as rationals."""
    half = Fraction(1, 2)
    rng = np.random.default_rng(1)
    for z in [*shapes(8, rng).values(), rng.dirichlet(np.ones(8))]:
        for t in (
            fixed_point(z, float(np.log(2))),
            fixed_point(z, float(np.log(2)), price="0.1"),
            unfixed_optimum(z, 1),
        ):
            assert isinstance(t, FactoredMechanism)
            law = product(exact_geometric(8, half), exact_remap(t))
            assert all(sum(row) == 1 for row in law)
            for here, following in pairwise(law):
                assert all(a * half <= b and b * half <= a for a, b in zip(here, following, strict=True))


def test_a_draw_from_the_remap_is_exact_at_every_boundary() -> None:
    rng = np.random.default_rng(2)
    remap = comonotone(rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(9)))
    for k in range(9):
        entries = range(remap.starts[k], remap.starts[k + 1])
        floor = 0
        for e in entries:
            for uniform in {floor, int(remap.ceilings[e]) - 1}:
                words = np.array(
                    [uniform << 2, (uniform << 2) + 3], dtype=np.uint64
                )  # the low bits are not used
                drawn = draw_remap(np.array([k, k]), words, remap.starts, remap.columns, remap.ceilings)
                assert drawn.tolist() == [remap.columns[e]] * 2
            floor = int(remap.ceilings[e])


def test_the_noise_is_added_and_clamped_before_the_remap(monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(3).dirichlet(np.ones(5))
    t = unfixed_optimum(z, 1)
    added = np.array([0, -3, 9, 1 << 62, -(1 << 62)])
    rates: list[Fraction] = []
    monkeypatch.setattr(noise, "two_sided_geometrics", lambda rate, size: rates.append(rate) or added)
    out = t.release([2, 2, 2, 4, 4])
    assert out.tolist() == t.remap.columns[[2, 0, 4, 4, 0]].tolist()
    assert rates == [Fraction(1)]


def scales_of(selector: str) -> list[ScaleMechanism]:
    found = []
    for z in shapes(7, np.random.default_rng(4)).values():
        t = fixed_point(z, "0.7", constructor="heuristic", selector=selector)  # type: ignore[arg-type]
        assert isinstance(t, ScaleMechanism)
        found.append(t)
    return found


def exact_rows(t: ScaleMechanism, bits: int) -> list[list[tuple[Fraction, Fraction]]]:
    """Brackets of every entry of the matrix, from the definition: terms, rest, goal, all rational but exp(-ε)."""
    powers = powers_of_exp(t.epsilon, t.n, bits)
    unit = Fraction(1, 1 << bits)
    goal = [Fraction(int(c), UNIT) for c in np.diff(t.goal.ceilings, prepend=0)]
    rows = []
    for levels in levels_by_row(t.terms):
        low, high = [Fraction(0)] * t.n, [Fraction(0)] * t.n
        for column, value, level in zip(t.terms.columns, t.terms.values, levels, strict=True):
            share = (1 - t.rest) * Fraction(float(value))
            low[column] += share * powers[level][0] * unit
            high[column] += share * powers[level][1] * unit
        least, most = 1 - sum(high), 1 - sum(low)
        assert least > 0
        rows.append([(a + least * g, b + most * g) for a, b, g in zip(low, high, goal, strict=True)])
    return rows


@pytest.mark.parametrize("selector", ["max", "sandwich"])
def test_a_sum_of_scales_is_private_between_any_two_neighbouring_rows_exactly(selector: str) -> None:
    """With exp(-ε) bracketed to 400 bits: no float takes part, and the margin is the brackets' width alone."""
    low, high = (Fraction(v, 1 << 400) for v in powers_of_exp(Fraction(7, 10), 1, 400)[1])
    for t in scales_of(selector):
        rows = exact_rows(t, 400)
        for here, following in pairwise(rows):
            for (a, b), (c, d) in zip(here, following, strict=True):
                slack = Fraction(1, 1 << 380)
                assert low * a <= d + slack
                assert low * c <= b + slack
                assert high >= low


def test_floats_and_integers_pick_the_same_term() -> None:
    for t in scales_of("min")[:4]:
        words = noise.random_words(60)
        counts = np.arange(60) % 7
        chosen = t._choose(counts, words)
        for count, word, place in zip(counts, words, chosen, strict=True):
            assert place in (OPEN, t._settle(int(count), int(word), ExactDraws()))


def test_a_word_on_a_boundary_is_left_to_the_integers() -> None:
    t = scales_of("min")[0]
    first = next(levels_by_row(t.terms)).copy()
    boundary = int(t._brackets(first, 64)[0][0])  # where the first term of row 0 ends, within a unit or two
    words = np.array([boundary - 1, boundary, boundary + 1], dtype=np.uint64)
    assert t._choose(np.zeros(3, np.int64), words).tolist() == [OPEN] * 3
    assert all(t._settle(0, int(word), ExactDraws()) in (0, 1) for word in words)
    assert t._settle(0, boundary - 5, ExactDraws()) == 0
    assert t._settle(0, boundary + 5, ExactDraws()) == 1


def test_a_release_asks_the_integers_where_floats_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    t = scales_of("max")[0]
    boundary = int(t._brackets(next(levels_by_row(t.terms)).copy(), 64)[0][0])
    words = np.array([boundary - 5, boundary + 5], dtype=np.uint64)
    monkeypatch.setattr(noise, "random_words", lambda size: words)
    first, second = t.terms.columns[:2].tolist()
    assert first != second
    assert t.release([0, 0]).tolist() == [first, second]


def test_brackets_are_tight_hold_the_floats_and_add_up_to_one() -> None:
    shared = fixed_point(np.full(7, 1 / 7), "2.1", constructor="heuristic", contributions=3)
    assert isinstance(shared, ScaleMechanism)
    for t in [*scales_of("max"), shared]:
        levels = next(levels_by_row(t.terms)).copy()
        lower, upper = t._brackets(levels, 128)
        assert all(low <= high for low, high in zip(lower, upper, strict=True))
        assert sum(upper) - sum(lower) <= 8 * len(lower)
        assert sum(lower) <= 1 << 128 <= sum(upper)
        row = next(t._rows())[1]
        assert np.allclose(row, [low / 2**128 for low in lower[:-1]], rtol=1e-9, atol=1e-30)


def test_the_goal_of_the_rest_is_a_row_of_integers() -> None:
    p = np.random.default_rng(5).dirichlet(np.ones(6))
    row = single_row(p)
    assert row.ceilings[-1] == UNIT
    assert np.abs(row.weights - p).max() <= 1e-15
