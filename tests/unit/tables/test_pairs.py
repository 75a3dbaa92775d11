"""The joint distribution of two columns: channels, margins, posterior means, transport; and that only noisy counts enter."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.privacy.draws import SeededDraws
from isotone.privacy.guarantee import Guarantee
from isotone.tables.pairs import _apportioned, _run, _transported, pair_means, simulate_pair
from isotone.tables.two_stage import GaussianTableMechanism, TwoStageMechanism


def columns(size: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    level = rng.gamma(1.0, 3.0, size)
    return np.minimum(rng.poisson(level), 12), np.minimum(rng.poisson(level), 12)


@pytest.mark.parametrize(
    "mechanism", [TwoStageMechanism(12, 1), GaussianTableMechanism(12, Guarantee.zcdp("1/2"))]
)
def test_the_joint_distribution_and_the_margins_are_kept(mechanism):
    first, second = columns(1500)
    rng = np.random.default_rng(1)
    made = simulate_pair(mechanism, first, second, rng)
    apart = np.asarray(made.table.values.view(np.ndarray)).reshape(2, -1)

    def law(a, b):
        cells = np.zeros((13, 13))
        np.add.at(cells, (a, b), 1 / len(a))
        return cells.cumsum(axis=0).cumsum(axis=1)

    truth, paired = law(first, second), law(*made.values.T)
    assert np.abs(paired - truth).mean() < 0.85 * np.abs(law(*apart) - truth).mean()
    correlation = np.corrcoef(first, second)[0, 1]
    assert abs(np.corrcoef(*made.values.T)[0, 1] - correlation) < 0.08
    for side, column in enumerate((first, second)):
        alone = made.table.estimates.reshape(2, -1)[side]
        assert np.mean((made.estimates[:, side] - column) ** 2) < np.mean((alone - column) ** 2)
        assert made.joint.sum(axis=1 - side) == pytest.approx(made.table.strata[side].probabilities, abs=1e-4)


def test_channels_are_the_laws_of_clamped_noise():
    plain, gaussian = (
        TwoStageMechanism(4, 1, "counts"),
        GaussianTableMechanism(4, Guarantee.zcdp("1/2"), emphasis="both"),
    )
    a = np.exp(-1.0)
    assert plain.measurement(100).channel()[1] == pytest.approx(
        np.array(
            [a / (1 + a), (1 - a) / (1 + a), a * (1 - a) / (1 + a), a**2 * (1 - a) / (1 + a), a**3 / (1 + a)]
        )
    )
    made = gaussian.measurement(100)
    weights = np.exp(-(np.arange(-60, 61) ** 2.0) / (2 * float(made.counts)))
    weights /= weights.sum()
    assert made.channel()[1, 1:4] == pytest.approx(weights[60:63])
    assert made.channel()[1, 0] == pytest.approx(weights[:60].sum())
    assert made.channel().sum(axis=1) == pytest.approx(np.ones(5))


def test_posterior_means_are_those_of_bayes():
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.ones(9)).reshape(3, 3)
    channels = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3), 3)
    for x in range(3):
        for y in range(3):
            weights = joint * np.outer(channels[0][:, x], channels[1][:, y])
            weights /= weights.sum()
            means = weights.sum(axis=1) @ np.arange(3), weights.sum(axis=0) @ np.arange(3)
            assert pair_means(joint, channels, np.array([[x, y]]))[0] == pytest.approx(means)


def test_the_transport_uses_every_pair_once_and_no_swap_helps():
    rng = np.random.default_rng(4)
    joint = rng.dirichlet(np.full(16, 0.5)).reshape(4, 4)
    means = rng.uniform(0, 3, (60, 2))
    found = _transported(means, joint, rng.integers(0, 2**63, 60).astype(np.uint64))
    assert sorted(map(tuple, found)) == sorted(map(tuple, _apportioned(joint, 60)))
    cost = ((means[:, None] - found[None]) ** 2).sum(axis=2)
    own = np.diag(cost)
    assert np.all(own[:, None] + own[None, :] <= cost + cost.T + 1e-9)


def test_a_few_categories_keep_their_noise():
    made = simulate_pair(TwoStageMechanism(5, 1), [1] * 10, [2] * 10, np.random.default_rng(0))
    assert np.array_equal(made.values.T.ravel(), np.asarray(made.table.values.view(np.ndarray)))


class Tape(SeededDraws):
    """Draws that lead from any two columns to the same noisy numbers."""

    def __init__(self, noisy: list[Any], true: list[Any]) -> None:
        super().__init__(np.random.default_rng(0))
        self.noise = [a - b for a, b in zip(noisy, true, strict=True)]

    def discrete_gaussians(self, variance: Fraction, size: int) -> Any:
        return self.noise.pop(0)


def test_with_the_outputs_fixed_no_column_depends_on_a_true_count():
    mechanism = GaussianTableMechanism(4, Guarantee.zcdp("1/2"))
    rng = np.random.default_rng(0)
    noisy = [np.arange(10, 50, 10), rng.integers(-2, 7, 60), np.arange(12, 52, 10), rng.integers(-2, 7, 60)]

    def published(first: Any, second: Any) -> list[Any]:
        below = [np.cumsum(np.bincount(column, minlength=5))[:-1] for column in (first, second)]
        true = [below[0], first, below[1], second]
        made = _run(mechanism, first, second, Tape(noisy, true))
        low, high = made.table.interval()
        return [made.values, made.estimates, made.joint, low, high, made.table.noisy, made.table.deviation]

    first, second = rng.integers(0, 5, 60), rng.integers(0, 5, 60)
    before = published(first, second)
    second[7] = (second[7] + 3) % 5
    for one, other in zip(before, published(first, second), strict=True):
        np.testing.assert_array_equal(one, other)
