"""The row-by-row optimum for symmetric f-DP, against linear programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr

from isotone.published.tables.row_by_row import (
    CanonicalNoise,
    approximate_trade_off,
    gaussian_trade_off,
    row_optimum,
)


def losses(n, m):
    i, j = np.arange(n)[:, None], np.arange(m)[None, :]
    return [(i - j) ** 2.0, abs(i - j) * 1.0, np.where(i > j, 0.8, 0.2) * abs(i - j), abs(i - j) ** 1.5]


def program(z, target, loss, curve):
    """The least loss of a matrix whose neighbouring rows have ``Σ max(0, T_i − e^ε T_k) ≤ δ`` for all (ε, δ) of ``curve``."""
    n, m = loss.shape
    pairs = [(i, i + s) for i in range(n) for s in (-1, 1) if 0 <= i + s < n]
    cases = [(pair, grow, delta) for pair in pairs for grow, delta in curve]
    size = n * m + m * len(cases)
    equal, right = [], []
    for i in range(n):
        row = np.zeros(size)
        row[i * m : (i + 1) * m] = 1
        equal.append(row)
        right.append(1.0)
    for j in range(m):
        row = np.zeros(size)
        row[j : n * m : m] = z
        equal.append(row)
        right.append(target[j])
    upper, most = [], []
    for c, ((i, k), grow, delta) in enumerate(cases):
        first = n * m + c * m
        for j in range(m):
            row = np.zeros(size)
            row[i * m + j], row[k * m + j], row[first + j] = 1, -grow, -1
            upper.append(row)
            most.append(0.0)
        row = np.zeros(size)
        row[first : first + m] = 1
        upper.append(row)
        most.append(delta)
    cost = np.concatenate([(z[:, None] * loss).ravel(), np.zeros(size - n * m)])
    found = linprog(cost, np.array(upper), most, np.array(equal), right, bounds=(0, None), method="highs")
    return found.fun


def excess(matrix, curve):
    """How far neighbouring rows pass the curve at most."""
    return max(
        float(np.maximum(matrix[i] - grow * matrix[k], 0).sum() - delta)
        for grow, delta in curve
        for i in range(len(matrix))
        for k in (i - 1, i + 1)
        if 0 <= k < len(matrix)
    )


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_no_matrix_with_the_same_output_is_better_under_epsilon_and_delta(delta):
    rng = np.random.default_rng(int(1000 * delta))
    for n, m, epsilon in ((2, 2, 1.0), (4, 4, 0.5), (5, 3, 2.0)):
        z, target = rng.dirichlet(np.full(n, 2.0)), rng.dirichlet(np.full(m, 2.0))
        target = z if n == m == 4 else target
        curve = [(math.exp(epsilon), delta)]
        best = row_optimum(z, approximate_trade_off(epsilon, str(delta)), target)
        assert best.sum(axis=1) == pytest.approx(np.ones(n))
        assert z @ best == pytest.approx(target, abs=1e-9)
        assert best.min() >= -1e-12
        assert excess(best, curve) <= 1e-9
        for loss in losses(n, m):
            assert (z[:, None] * loss * best).sum() == pytest.approx(
                program(z, target, loss, curve), abs=1e-7
            )


def test_no_matrix_is_better_under_gaussian_privacy():
    """(ε, δ(ε)) at some ε is a weaker guarantee, so that the program is a bound from below; with several it is close."""
    mu, z = 1.0, np.array([0.5, 0.2, 0.3])
    curve = [
        (math.exp(e), float(ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu)))
        for e in np.linspace(-2.5, 2.5, 21)
    ]
    best = row_optimum(z, gaussian_trade_off(mu))
    assert excess(best, curve) <= 1e-9
    for loss in losses(3, 3):
        value, bound = (z[:, None] * loss * best).sum(), program(z, z, loss, curve)
        assert bound - 1e-9 <= value <= 1.01 * bound


@pytest.mark.parametrize("trade_off", [approximate_trade_off("0.5", "0.01"), gaussian_trade_off(2)])
def test_canonical_noise_uses_the_guarantee_up(trade_off):
    noise = CanonicalNoise(trade_off)
    assert noise.cdf(0.0) == pytest.approx(0.5)
    for x in np.linspace(-4, 4, 33):
        assert noise.cdf(x - 1) == pytest.approx(trade_off(1 - noise.cdf(x)), abs=1e-9)
        assert noise.cdf(-x) == pytest.approx(1 - noise.cdf(x), abs=1e-9)
        assert noise.cdf(x + 0.1) >= noise.cdf(x)
