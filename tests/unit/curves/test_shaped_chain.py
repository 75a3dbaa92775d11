"""Chains whose states carry a shape: means against all paths of tiny chains, and the shape of what comes out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from isotone.curves.shape_posterior import ENDS, REDRAWS, TURNS, ShapedChain


def laws(chain: ShapedChain) -> np.ndarray:
    """The probability of every slope after every other, by prior."""
    size = chain.slopes.size
    found = np.zeros((len(chain.weights), size, size))
    for prior, rate in enumerate((*REDRAWS, TURNS, 0.0)):
        redraw, weights = min(0.9, rate / chain.points), chain.weights[prior]
        for here, there in itertools.product(range(size), repeat=2):
            options = weights[here:] if chain.upward else weights
            if there >= here or not chain.upward:
                found[prior, here, there] = redraw * weights[there] / (options.sum() or 1.0)
            found[prior, here, there] += (1 - redraw) * (here == there)
    return found


def mean_of_all_paths(chain: ShapedChain, likelihood: np.ndarray) -> np.ndarray:
    """Every start, every slope at every point, every rounding. Priors are averaged by their evidence."""
    top, after = chain.values - 1, laws(chain)
    seen, nothing, total = (np.zeros((len(after), size)) for size in (1, 1, chain.points))
    for slopes in itertools.product(range(chain.slopes.size), repeat=chain.points):
        chance = chain.weights[:, slopes[0]].copy()
        for here, there in itertools.pairwise(slopes):
            chance *= after[:, here, there]
        if not chance.any():
            continue
        for first, *up in itertools.product(range(top + 1), *([(0, 1)] * (chain.points - 1))):
            path, weight = [first], 1 + ENDS * (first in (0, top))
            for slope, more in zip(chain.slopes[list(slopes)].tolist(), up, strict=False):
                over = slope - int(slope)
                weight *= over if more else 1 - over
                path.append(path[-1] + int(slope) + more)
            if weight and path[-1] <= top:
                each = (chance * weight)[:, None]
                fits = each * np.prod(likelihood[np.arange(chain.points), path])
                seen, nothing, total = seen + fits, nothing + each, total + fits * np.array(path) / top
    return np.average(total / seen, axis=0, weights=(seen / nothing)[:, 0])


@pytest.mark.parametrize(("steepest", "upward"), [(1.0, True), (0.4, False)])
def test_the_mean_is_that_of_all_paths(steepest: float, upward: bool) -> None:
    chain = ShapedChain(3, 3, steepest, upward)
    likelihood = np.random.default_rng(4).random((3, 3)) ** 2
    wanted = mean_of_all_paths(chain, likelihood)
    rises = np.diff(wanted)
    assert rises.max() < steepest
    if upward and rises[1] < rises[0]:  # rounded slopes may bend the other way by less than a value
        wanted[1] = (wanted[0] + wanted[2]) / 2
    assert chain.mean(np.log(likelihood)) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("steepest", "upward"), [(1.0, True), (0.02, False)])
def test_data_that_contradict_the_shape_are_still_fitted_by_it(steepest: float, upward: bool) -> None:
    """A step of a million records is neither convex nor of bounded slope: no weight may vanish."""
    points, values = 33, 129
    grid = np.linspace(0, 1, values)
    step = np.where(np.arange(points) < 11, 0.1, 0.9)
    found = ShapedChain(points, values, steepest, upward).mean(-1e6 * (grid - step[:, None]) ** 2)
    rises = np.diff(found)
    assert np.isfinite(found).all()
    assert rises.min() >= -1e-12
    assert rises.max() <= steepest + 1e-12
    assert not upward or np.diff(rises).min() >= -1e-12
    assert found[0] >= 0
    assert found[-1] <= 1
    if upward:  # no convex curve is nearer than 0.236
        assert np.sqrt(np.mean((found - step) ** 2)) < 0.25
