"""The most plausible histogram that scatters about a smooth intensity.

Its evidence is computed too.

The model (docs/theory/tables-whole.md, section 3): log-intensities ``θ`` with small differences, a histogram
``η`` that scatters about ``exp(θ)`` with ``dispersion`` times the variance of a Poisson count, and the two
noisy views of its cumulative sums. The joint mode is found by Newton steps on ``(θ, u, F)`` interleaved, where
``u`` stands for ``covariance⁻¹·(F - indirect)``: a quasi-definite matrix of seven diagonals, so a step is O(n).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isotone.tables.estimate import banded_matrices as bands
from isotone.tables.estimate.gaussian_views import DenseSystem, GaussianViews
from isotone.tables.estimate.views import Views

__all__ = ["Fit", "Penalty", "fit", "roughness"]

_END = 3.0  # the standard deviation of the first and the last difference: zero or top inflation
_TILT = 0.5  # of the mean slope of the log-intensity, for second differences only
_SMOOTHEST = 1e-4  # of a difference: beyond it systems of long tables would be hard to solve
_FLOOR = -25.0  # of a log-intensity: exp(-25) categories are none
_LEAST = 1e-12  # categories on a count
_STEPS = 40
_SETTLED = 1e-3  # a gain in log-plausibility that is not worth another step


@dataclass(frozen=True, eq=False)
class Penalty:
    """The penalty ``½·θᵀ·R·θ``.

    The bands of ``R`` and the log-determinant of ``R`` on vectors with ``θ[0] = 0``.
    """

    band: NDArray[np.float64]
    log_determinant: float


def roughness(n: int, order: int, scale: float, falling: bool = False) -> Penalty:
    """The penalty for normal differences of ``order`` 1 or 2.

    Their standard deviation is ``scale``, or ``scale/(1 + t)`` from count ``t`` on if it is falling, as where a distribution
    is smooth in the logarithm of the count. The end ones are free.
    """
    band = np.zeros((3, n))
    spread = np.full(n - order, scale)
    if falling:
        spread = np.maximum(spread / np.arange(1, n - order + 1), _SMOOTHEST)
    spread[[0, -1]] = np.maximum(spread[[0, -1]], _END)
    _add_squares(band, np.array([-1.0, 1.0] if order == 1 else [1.0, -2.0, 1.0]), spread)
    if order == 2:
        _add_squares(band, np.array([-1.0, 1.0]), np.full(n - 1, _TILT * np.sqrt(n - 1)))
    return Penalty(band, bands.factor(np.ascontiguousarray(band[:, 1:])).log_determinant)


def _add_squares(
    band: NDArray[np.float64], stencil: NDArray[np.float64], spread: NDArray[np.float64]
) -> None:
    for a in range(len(stencil)):
        for c in range(a, len(stencil)):
            band[c - a, a : a + len(spread)] += stencil[a] * stencil[c] / spread**2


@dataclass(frozen=True, eq=False)
class Fit:
    """The mode of one model, and its evidence, the log-plausibility of the views under the model (Laplace)."""

    logs: NDArray[np.float64]
    histogram: NDArray[np.float64]
    evidence: float

    @classmethod
    def start(cls, histogram: NDArray[np.float64]) -> Fit:
        """A first guess from which to step."""
        return cls(np.log(histogram), histogram, -np.inf)


@dataclass(frozen=True, eq=False)
class _SmoothPoint:
    """A point of the model.

    Intensities, histogram, its cumulative sums, minus log-plausibility, gradient.
    """

    logs: NDArray[np.float64]
    intensity: NDArray[np.float64]
    histogram: NDArray[np.float64]
    value: float
    slope: NDArray[np.float64]  # interleaved (θ, u, F)


def fit(views: Views | GaussianViews, penalty: Penalty, dispersion: NDArray[np.float64], start: Fit) -> Fit:
    """The joint mode of intensity and histogram, by damped Newton steps from ``start``.

    ``dispersion`` has an entry for each count.
    """
    state = _evaluate(views, penalty, dispersion, start.logs, start.histogram)
    for _ in range(_STEPS):
        system = _system(views, penalty, dispersion, state)
        move = system.solve(-state.slope)
        after, length = _line_search(views, penalty, dispersion, state, move)
        gain, state = state.value - after.value, after
        if gain < _SETTLED and (length > 0.5 or gain <= 0):
            break
    system = _system(views, penalty, dispersion, state)
    # the scatter of the histogram is normal about its mode; its normalising factor is what the curvature has
    scatter = np.sum(np.log(np.minimum(state.histogram, state.intensity) * dispersion))
    evidence = -state.value - 0.5 * (system.log_determinant - penalty.log_determinant + float(scatter))
    return Fit(state.logs, state.histogram, evidence)


def _evaluate(
    views: Views | GaussianViews,
    penalty: Penalty,
    dispersion: NDArray[np.float64],
    logs: NDArray[np.float64],
    histogram: NDArray[np.float64],
) -> _SmoothPoint:
    intensity = np.exp(logs)
    misfit, pull = views.misfit(np.cumsum(histogram)[:-1])
    bent = bands.multiply(penalty.band, logs)
    ratio = np.log(histogram) - logs
    scatter = float(np.sum((histogram * ratio - histogram + intensity) / dispersion))
    slope = np.zeros(3 * len(logs) - 2)
    slope[0::3] = (intensity - histogram) / dispersion + bent
    tilt = ratio / dispersion
    slope[2::3] = pull - (tilt[1:] - tilt[:-1])
    return _SmoothPoint(logs, intensity, histogram, misfit + scatter + 0.5 * float(logs @ bent), slope)


def _system(
    views: Views | GaussianViews, penalty: Penalty, dispersion: NDArray[np.float64], state: _SmoothPoint
) -> bands.Factor | DenseSystem:
    """The factored second derivatives, in bands where the views allow it."""
    if isinstance(views, GaussianViews):
        hold = 1 / (dispersion * np.minimum(state.histogram, state.intensity))
        return DenseSystem(views, penalty.band, dispersion, state.intensity, hold)
    return bands.factor(_curvature(views, penalty, dispersion, state))


def _curvature(
    views: Views, penalty: Penalty, dispersion: NDArray[np.float64], state: _SmoothPoint
) -> NDArray[np.float64]:
    """The second derivatives, as bands over θ_0, u_0, F_0, θ_1, ….

    They are made convex where a count tops its intensity.
    """
    n = len(state.logs)
    hold = 1 / (dispersion * np.minimum(state.histogram, state.intensity))
    matrix = np.zeros((7, 3 * n - 2))
    theta, dual, total = matrix[:, 0::3], matrix[:, 1::3], matrix[:, 2::3]
    theta[0] = state.intensity / dispersion + penalty.band[0]
    theta[3, :-1] = penalty.band[1, :-1]
    theta[6, :-2] = penalty.band[2, :-2]
    theta[2, :-1] = -1 / dispersion[:-1]  # θ_i pulls η_i = F_i - F_{i-1}
    total[1] = 1 / dispersion[1:]
    dual[0] = -views.covariance[0]
    dual[3] = -views.covariance[1]
    dual[1] = 1.0
    total[0] = views.precision + hold[:-1] + hold[1:]
    total[3, :-1] = -hold[1:-1]
    return matrix


def _line_search(
    views: Views | GaussianViews,
    penalty: Penalty,
    dispersion: NDArray[np.float64],
    state: _SmoothPoint,
    move: NDArray[np.float64],
) -> tuple[_SmoothPoint, float]:
    """The first point along ``move`` that is no worse.

    The start itself if rounding hides every gain.
    """
    bend, rise = move[0::3], np.empty(len(state.histogram))
    rise[:-1], rise[-1] = move[2::3], 0.0  # differences of the cumulative numbers, from 0 to 0
    rise[1:] -= move[2::3]
    length = min(1.0, 3.0 / max(float(np.max(np.abs(bend))), 3.0))
    falling = rise < 0
    if np.any(falling):  # stay inside: every bin keeps a tenth of what it has
        length = min(length, 0.9 * float(np.min(-state.histogram[falling] / rise[falling])))
    for _ in range(12):
        logs = np.maximum(state.logs + length * bend, _FLOOR)
        histogram = np.maximum(state.histogram + length * rise, _LEAST)
        after = _evaluate(views, penalty, dispersion, logs, histogram)
        if after.value <= state.value:
            return after, length
        length *= 0.4
    return replace(state), 0.0
