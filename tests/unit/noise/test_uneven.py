"""Geometric noise on a line of uneven steps: its exact law, by all outcomes of the code that draws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.chisquare import FALSE_ALARM, chi_square_p

from isotone import noise
from isotone.errors import InputError
from isotone.noise import UnevenLine, simulate, uneven_geometrics
from isotone.noise import laplace as uneven


def matrix(line: UnevenLine, room: int) -> NDArray[np.float64]:
    """``ω[k]·exp(-distance)`` on the line and ``room`` points on either side of it, ends clamped."""
    edge = np.full(room, float(line.unit) * line.outside)
    rates = np.concatenate([edge, line.rates, edge])
    place = np.concatenate([[0.0], np.cumsum(rates)])
    a = np.concatenate([[0.0], np.exp(-rates), [0.0]])
    weights = (1 - a[:-1] * a[1:]) / ((1 + a[:-1]) * (1 + a[1:]))
    return weights * np.exp(-np.abs(place[:, None] - place[None, :]))


def law(line: UnevenLine, value: int, room: int) -> NDArray[np.float64]:
    """The law of the code that draws, summed over its geometric variable, its words and its directions."""
    floors = np.sort([crossing.floor / 2**63 for crossing in line.crossings])
    cuts = np.concatenate([[0.0], floors, [1.0]])
    rate = float(line.unit)
    far = np.arange(math.ceil(75 / rate))
    weight = np.exp(-rate * far) * -math.expm1(-rate)
    found = np.zeros(len(line.weights) + 1 + 2 * room)
    own = np.array([crossing.floor / 2**63 for crossing in line.crossings])
    for low, high in itertools.pairwise(cuts):
        passed = np.tile((low + high) / 2 > own, (len(far), 1))
        for up in (True, False):
            to = line.moved(np.full(len(far), value), far, np.full(len(far), up), passed)
            np.add.at(found, np.clip(to + room, 0, len(found) - 1), weight * (high - low) / 2)
    return found


BEYOND = 4
"""Values up to so far beyond the line are looked at, less one."""

lines = st.builds(
    UnevenLine,
    st.fractions(Fraction(1, 10), 1, max_denominator=40),
    st.lists(st.integers(1, 4), min_size=0, max_size=5).map(tuple),
    st.integers(1, 4),
)


@settings(max_examples=60, deadline=None)
@given(lines)
def test_the_law_is_that_of_the_matrix_for_every_value(line: UnevenLine) -> None:
    room = 12
    wanted = matrix(line, room)
    for value in range(len(line.weights) + BEYOND):
        np.testing.assert_allclose(law(line, value, room), wanted[value + room], atol=1e-13)


@settings(max_examples=60, deadline=None)
@given(lines)
def test_a_step_costs_exactly_its_rate(line: UnevenLine) -> None:
    rows = np.array([law(line, value, BEYOND) for value in range(len(line.weights) + BEYOND)])
    losses = np.abs(np.diff(np.log(rows), axis=0)).max(axis=1)
    outside = [float(line.unit) * line.outside] * (BEYOND - 1)
    np.testing.assert_allclose(losses, [*line.rates, *outside], atol=1e-7)


def walk_of_coins(line: UnevenLine, start: int, room: int) -> NDArray[np.float64]:
    """The same law another way: a walk that crosses one step after the other by coins of its own."""

    def rate(step: int) -> float:
        inside = 0 <= step < len(line.weights)
        return float(line.unit) * (line.weights[step] if inside else line.outside)

    def cross(step: int, before: int) -> float:
        first = 1 / (1 + math.exp(rate(step)))
        return first + (1 - first) * math.exp(-rate(step) - rate(before))

    found = np.zeros(len(line.weights) + 1 + 2 * room)
    up = 1 / (1 + math.exp(rate(start)))
    down = (1 - up) * cross(start - 1, start)
    found[start + room] = 1 - up - down
    for direction, mass in ((1, up), (-1, down)):
        at = start + direction
        while 0 <= at + room < len(found):
            here, there = (at - 1, at) if direction > 0 else (at, at - 1)
            on = cross(there, here)
            found[at + room] += mass * (1 - on)
            mass, at = mass * on, at + direction
    return found


@settings(max_examples=30, deadline=None)
@given(lines)
def test_the_law_is_that_of_a_walk_of_coins(line: UnevenLine) -> None:
    room = 10
    for value in range(len(line.weights) + BEYOND):
        inner = slice(1, -1)  # the ends of the other hold what lies beyond
        np.testing.assert_allclose(
            walk_of_coins(line, value, room)[inner], law(line, value, room)[inner], atol=1e-12
        )


LINE = UnevenLine(Fraction(1, 5), (1, 4, 4, 1, 4), 4)


@pytest.mark.parametrize("start", [0, 2, 5, 7])
def test_draws_have_the_law_and_not_that_of_even_steps(start: int) -> None:
    drawn = uneven_geometrics(np.full(40_000, start), LINE)
    seen = np.bincount(np.clip(drawn + 8, 0, 21), minlength=22)
    wanted = matrix(LINE, 40)[start + 40]
    kept = np.concatenate([[wanted[:33].sum()], wanted[33:53], [wanted[53:].sum()]])
    assert chi_square_p(seen, kept) > FALSE_ALARM
    even = matrix(UnevenLine(Fraction(4, 5), (1,) * 5, 1), 40)[start + 40]
    wrong = np.concatenate([[even[:33].sum()], even[33:53], [even[53:].sum()]])
    assert chi_square_p(seen, wrong) < FALSE_ALARM


def test_simulated_draws_have_the_same_law() -> None:
    drawn = np.asarray(simulate.uneven_geometrics(np.random.default_rng(3), np.full(40_000, 3), LINE))
    seen = np.bincount(np.clip(drawn + 8, 0, 21), minlength=22)
    wanted = matrix(LINE, 40)[43]
    kept = np.concatenate([[wanted[:33].sum()], wanted[33:53], [wanted[53:].sum()]])
    assert chi_square_p(seen, kept) > FALSE_ALARM


def test_every_value_takes_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Any]] = []

    def geometrics(rate: Fraction, size: int) -> NDArray[np.int64]:
        asked.append(("geometrics", (rate, size)))
        return np.arange(size) % 7

    def words(size: int) -> NDArray[np.uint64]:
        asked.append(("words", size))
        return np.full(size, 1 << 40, np.uint64)

    monkeypatch.setattr(uneven, "geometrics", geometrics)
    monkeypatch.setattr(uneven, "random_words", words)
    for values in (np.zeros(9, np.int64), np.full(9, 5), np.array([0, 1, 2, 3, 4, 5, 0, 10**9, 2])):
        uneven_geometrics(values, LINE)
    assert asked == [("geometrics", (LINE.unit, 9)), ("words", 9)] * 3


def test_a_word_on_a_threshold_is_decided_by_further_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    first = LINE.crossings[0]
    on_the_edge = 4 + first.whole
    monkeypatch.setattr(uneven, "geometrics", lambda rate, size: np.full(size, on_the_edge))
    monkeypatch.setattr(uneven, "random_words", lambda size: np.full(size, (first.floor << 1) | 1, np.uint64))
    decided = []
    for bits in (0, (1 << 64) - 1):
        monkeypatch.setattr(uneven, "random_bits", lambda count, bits=bits: bits)
        decided.append(uneven._decided(LINE.crossings, first.floor)[0])
        moved = uneven_geometrics(np.array([2]), LINE)
        decided.append(bool(moved[0] > 2))
    assert decided == [False, False, True, True]


@pytest.mark.parametrize(
    "unit", [Fraction(1, 10**9), Fraction(1, 10**4), Fraction(7, 3), Fraction(100), Fraction(10**5)]
)
@pytest.mark.parametrize("weight", [1, 2, 5, 100])
def test_crossings_are_exact_at_every_scale(unit: Fraction, weight: int) -> None:
    crossing = uneven.Crossing.of(unit, weight)
    assert -weight - 1 <= 2 * crossing.whole <= 0
    assert 0 <= crossing.floor < 1 << 63
    low, high = uneven._short(unit, weight, crossing.whole, 200)
    assert low >> 137 == crossing.floor == min(high, (1 << 200) - 1) >> 137
    rate = float(unit)
    short = math.expm1(-rate * crossing.rest) / math.expm1(-rate)
    assert short == pytest.approx(crossing.floor / 2**63, rel=1e-6, abs=1e-6)


def test_a_line_needs_rates_above_zero_and_values_on_it() -> None:
    with pytest.raises(InputError, match="rate above 0"):
        UnevenLine(Fraction(1), (1, 0), 1)
    with pytest.raises(InputError, match="values of at least 0"):
        noise.uneven_geometrics(np.array([-1]), LINE)
