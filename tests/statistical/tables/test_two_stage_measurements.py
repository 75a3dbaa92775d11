"""The noise of both measurements has exactly the law that was promised.

Each test accepts the true law with a false-alarm rate of 1e-6, and rejects one whose ε is wrong by a tenth.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, chi_square_p

from isotone.tables import TwoStageMechanism
from isotone.tables.matrices.geometric import geometric_matrix


def two_sided_geometric(epsilon: float, reach: int) -> np.ndarray:
    """Probabilities of -reach..reach."""
    k = np.arange(-reach, reach + 1)
    return np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(k))


@pytest.mark.parametrize(("contributions", "neighbours"), [(1, "add-remove"), (2, "replace")])
def test_noisy_counts_carry_clamped_geometric_noise_of_the_second_stage(
    contributions: int, neighbours: str
) -> None:
    steps = contributions * (2 if neighbours == "replace" else 1)
    mechanism = TwoStageMechanism(
        upper=8,
        epsilon=2,
        split="0.5",
        remap="rows",
        contributions=contributions,
        neighbours=neighbours,  # pyright: ignore[reportArgumentType]
    )
    noisy = mechanism.release_in_full(np.full(40_000, 3)).noisy_counts
    seen = np.bincount(noisy, minlength=9)
    assert chi_square_p(seen, geometric_matrix(9, 1 / steps)[3]) > FALSE_ALARM
    assert chi_square_p(seen, geometric_matrix(9, 1.1 / steps)[3]) < FALSE_ALARM
    assert chi_square_p(seen, geometric_matrix(9, 0.9 / steps)[3]) < FALSE_ALARM


def test_noisy_cumulative_histograms_carry_geometric_noise_of_the_first_stage() -> None:
    mechanism = TwoStageMechanism(upper=200, epsilon=2, split="0.25", remap="rows")
    counts = np.arange(0, 200, 20)
    truth = np.cumsum(np.bincount(counts, minlength=201))[:-1]
    noise = np.concatenate([mechanism.release_in_full(counts).noisy_cumulative - truth for _ in range(200)])
    reach = 30
    seen = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=2 * reach + 1)

    def p_value(epsilon: float) -> float:
        law = two_sided_geometric(epsilon, reach)
        law[[0, -1]] += (1 - law.sum()) / 2
        return chi_square_p(seen, law)

    assert p_value(0.5) > FALSE_ALARM
    assert p_value(0.55) < FALSE_ALARM
    assert p_value(0.45) < FALSE_ALARM


def test_the_two_measurements_are_independent() -> None:
    mechanism = TwoStageMechanism(upper=1, epsilon=2, split="0.5", remap="rows")
    pairs = np.array(
        [
            (full.noisy_cumulative[0], full.noisy_counts[0])
            for full in (mechanism.release_in_full([0]) for _ in range(4000))
        ]
    )
    first, second = np.clip(pairs[:, 0], -1, 3), pairs[:, 1]
    together = np.zeros((5, 2))
    np.add.at(together, (first + 1, second), 1)
    expected = np.outer(together.sum(axis=1), together.sum(axis=0)) / len(pairs)
    assert chi_square_p(together, expected) > FALSE_ALARM
    copied = np.zeros((5, 2))
    np.add.at(copied, (first + 1, (first > 1).astype(int)), 1)
    assert chi_square_p(copied, expected) < FALSE_ALARM
