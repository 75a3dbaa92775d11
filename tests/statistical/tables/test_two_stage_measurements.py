"""The noise of both measurements has exactly the law that was guaranteed.

Each test accepts the true law with a false-alarm rate of 1e-8, and rejects one whose ε is wrong by a quarter.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, assert_tells, chi_square_p
from tests.support.effort import draws, off

from isotone.privacy.draws import ExactDraws
from isotone.tables import TwoStageMechanism
from isotone.tables.matrices.geometric import geometric_matrix
from isotone.tables.thresholds import Thresholds


def two_sided_geometric(epsilon: float, reach: int) -> np.ndarray:
    """Probabilities of -reach..reach."""
    k = np.arange(-reach, reach + 1)
    return np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(k))


@pytest.mark.parametrize(("contributions", "neighbours"), [(1, "add-remove"), (2, "replace")])
def test_noisy_counts_carry_geometric_noise_that_is_stronger_across_a_threshold(
    contributions: int, neighbours: str
) -> None:
    steps = contributions * (2 if neighbours == "replace" else 1)
    mechanism = TwoStageMechanism(
        upper=8,
        epsilon="0.5",
        emphasis="distribution",
        contributions=contributions,
        neighbours=neighbours,  # pyright: ignore[reportArgumentType]
    )
    spent = mechanism.measurement(90)
    assert 0 < len(spent.places) < 8
    made, _, noisy = spent.measure(np.full(draws(40_000, 0.25), 3), ExactDraws())
    assert 3 in made.finer  # between two thresholds, with all categories
    shares = [spent.share * (f in made.places) + spent.finer_share * (f in made.finer) for f in range(8)]
    seen = np.bincount(np.clip(noisy, 0, 8), minlength=9)
    rates = np.array([0.5 / steps * (1 - float(share)) for share in shares])
    wrong = np.full(8, 0.5 / steps), (1 + off(0.25)) * rates, (1 - off(0.25)) * rates
    assert_tells(seen, *(geometric_matrix(9, each)[3] for each in (rates, *wrong)))


def test_noisy_cumulative_numbers_carry_geometric_noise_of_their_share() -> None:
    counts = np.arange(0, 200, 4)
    spent = Thresholds(200, Fraction(2), tuple(range(200)), Fraction(5, 100))
    rate = float(spent.rate)
    truth = np.cumsum(np.bincount(counts, minlength=201))[:-1]
    noise = np.concatenate([spent.measure(counts, ExactDraws())[1] - truth for _ in range(draws(200, 0.25))])
    reach = 60
    seen = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=2 * reach + 1)

    def law(factor: float) -> np.ndarray:
        found = two_sided_geometric(factor * rate, reach)
        found[[0, -1]] += (1 - found.sum()) / 2
        return found

    assert_tells(seen, law(1), law(1 + off(0.25)), law(1 - off(0.25)))


def test_the_two_measurements_are_independent() -> None:
    spent = TwoStageMechanism(upper=1, epsilon="0.9", emphasis="0.5").measurement(100)
    pairs = np.array([np.append(*spent.measure(np.array([0]), ExactDraws())[1:]) for _ in range(4000)])
    first, second = np.clip(pairs[:, 0], -1, 3), np.clip(pairs[:, 1], 0, 1)
    together = np.zeros((5, 2))
    np.add.at(together, (first + 1, second), 1)
    expected = np.outer(together.sum(axis=1), together.sum(axis=0)) / len(pairs)
    assert chi_square_p(together, expected) > FALSE_ALARM
    copied = np.zeros((5, 2))
    np.add.at(copied, (first + 1, (first > 1).astype(int)), 1)
    assert chi_square_p(copied, expected) < FALSE_ALARM
