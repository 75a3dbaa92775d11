"""Paths of the exact samplers that real bits take once in 2**32 draws or less: the test leads into them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.noise_scripts import cube_law
from tests.support.tape import follow_all_paths

from isotone import noise
from isotone.noise import bits, exponential, gaussian
from isotone.noise.bits import bernoulli_exp_lazily

DRAWS = 3_000


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(3)])
@pytest.mark.parametrize("size", [1, 2])
def test_a_cube_that_is_known_to_one_place_at_first_has_its_law(rate, size, monkeypatch):
    """Every end is undecided at first, and read on: with the digits left out it would be kept too often."""
    monkeypatch.setattr(exponential, "first_places", lambda *_: 1)
    drawn = [tuple(noise.rounded_cube(rate, size).tolist()) for _ in range(DRAWS)]
    law = dict(cube_law(float(rate), size))
    likely = [cell for cell, mass in law.items() if mass * DRAWS > 10]
    seen = [drawn.count(cell) for cell in likely]
    masses = [law[cell] for cell in likely]
    assert chi_square_p([*seen, DRAWS - sum(seen)], [*masses, 1 - sum(masses)]) > FALSE_ALARM


@pytest.mark.parametrize("fraction", [Fraction(0), Fraction(3, 16), Fraction(11, 16), Fraction(15, 16)])
def test_an_end_of_a_cube_is_kept_with_the_probability_of_the_digits_read(fraction, monkeypatch):
    """The half-side is known to one place, and then to four more at a time: all paths of the bits, exactly."""

    class Digits:
        places = 1

        def read_on(self) -> None:
            self.places += 4
            assert self.places < 400, "digits are read for ever"

        def partial_sum(self, terms: int) -> int:
            return int(
                (fraction + Fraction(1, 2)) * 2**self.places
            )  # the half-side plus one half has this fraction

    def kept() -> bool:
        side = object.__new__(exponential._HalfSide)
        side.__dict__.update(terms=2, digits=Digits())
        return side.is_end_kept()

    law = follow_all_paths(kept, monkeypatch, ["isotone.noise.exponential.random_bits"], Fraction(1, 2**14))
    assert law.unexplored < Fraction(1, 100)
    assert law.allows(True, fraction)
    assert law.allows(False, 1 - fraction)


@pytest.mark.parametrize("draw", [noise.rounded_gaussians, noise.discrete_gaussians])
def test_an_undecided_gaussian_is_decided_by_the_word_it_was_undecided_with(draw, monkeypatch):
    """A new word would be another law, in one draw of 2**40: the word is in the bracket, which a new one need not be."""
    given: list[tuple[int, int]] = []
    words: list[int] = []
    plain = gaussian.accept

    def undecided(
        values: Any, proposals: Any, uniforms: Any, fractions: Any, shape: Any, places: int, state: Any
    ):
        if not words:
            words.append(int(uniforms[state[gaussian.PROPOSAL]]))
            return gaussian.UNDECIDED
        return plain(values, proposals, uniforms, fractions, shape, places, state)

    def lazily(exponents: Any, *known: int) -> bool:
        given.append(known)  # type: ignore[arg-type]
        return bernoulli_exp_lazily(exponents, *known)

    monkeypatch.setattr(gaussian, "accept", undecided)
    monkeypatch.setattr(gaussian, "bernoulli_exp_lazily", lazily)
    draw(Fraction(3), 4)
    assert given == [(words[0] >> 1, 63)]


@pytest.mark.parametrize("rejected", [0, 1, 2, 5])
def test_numbers_below_a_bound_are_drawn_again_until_they_are_below(rejected, monkeypatch):
    script = [7] * rejected + [3]
    monkeypatch.setattr(bits, "random_bits", lambda count: script.pop(0))
    assert bits.random_below(5) == 3
    assert script == []
    below = 2**64 % 5
    rounds = [np.array([below - 1], np.uint64)] * rejected + [np.array([13], np.uint64)]
    monkeypatch.setattr(bits, "random_words", lambda count: rounds.pop(0).copy())
    assert bits.random_belows(np.array([5])).tolist() == [3]
    assert rounds == []
