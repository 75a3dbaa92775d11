"""The most plausible histogram about a smooth intensity, from two noisy views of one cumulative histogram.

Symmetric banded linear systems.

Solve, log-determinant and inverse take O(n) each.

A matrix with ``b`` diagonals on either side is stored as an array of shape ``(b + 1, n)`` whose entry
``[k, i]`` is the matrix entry ``(i + k, i)``. LAPACK solves. It has no inverse within the band, for which the matrices must be positive definite or
*quasi-definite* (a positive definite block, a negative definite block, anything between them, in any order):
those have a factor ``L·diag(d)·Lᵀ`` without pivoting (Vanderbei 1995), so bands never fill in.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.kernels import Floats as Cells
from isotone.kernels import Int, can_compile, kernel, most_steps
from isotone.tables.matrices.geometric import Rates, end_weights, push_through, step_rates

Band = NDArray[np.float64]

_many: ContextVar[bool] = ContextVar("many", default=False)


@contextmanager
def many_systems() -> Generator[None]:
    """Invert small matrices by compiled code too within, if there is a compiler: there are enough that loading it pays."""
    token = _many.set(True)
    try:
        yield
    finally:
        _many.reset(token)


@dataclass(frozen=True, eq=False)
class Factor:
    """A symmetric banded matrix with its triangular factors, in the form of LAPACK."""

    band: Band
    triangles: Band
    swaps: NDArray[np.int32]

    @property
    def _width(self) -> int:
        return len(self.triangles) // 3

    @property
    def log_determinant(self) -> float:
        """The logarithm of the absolute determinant."""
        return float(np.sum(np.log(np.abs(self.triangles[2 * self._width]))))

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """The solution of ``matrix @ x = right``."""
        return _lapack()[1](self.triangles, self._width, self._width, right, self.swaps)[0]

    def inverse(self) -> Band:
        """The inverse, within the band of the matrix only (Takahashi, Fagan and Chen 1973)."""
        n = self.band.shape[1]
        few = 2 * n * len(self.band) ** 2 <= most_steps() and not (_many.get() and can_compile())
        lower, pivots, inverse = self.band.ravel(), np.zeros(n), np.zeros(self.band.size)
        if few:  # as lists, whose numbers Python reaches quicker than those of arrays
            lower, pivots, inverse = lower.tolist(), pivots.tolist(), inverse.tolist()
        else:
            lower = lower.copy()
        (_inverse.plain if few else _inverse.compiled)(lower, pivots, len(self.band) - 1, n, inverse)
        return np.array(inverse).reshape(self.band.shape)


def factor(band: Band) -> Factor:
    """Factor a matrix that has an inverse.

    >>> factor(np.array([[2.0, 2.0], [1.0, 0.0]])).solve(np.array([3.0, 3.0]))
    array([1., 1.])
    """
    n, width = band.shape[1], min(band.shape) - 1
    both = np.zeros((3 * width + 1, n), order="F")
    for k in range(width + 1):
        both[2 * width - k, k:] = both[2 * width + k, : n - k] = band[k, : n - k]
    triangles, swaps, _ = _lapack()[0](both, width, width, overwrite_ab=True)
    return Factor(band, triangles, swaps)


@cache
def _lapack() -> tuple[Any, Any]:
    """The functions that factor and solve."""
    from scipy.linalg import get_lapack_funcs

    factored, solved = get_lapack_funcs(("gbtrf", "gbtrs"))
    return factored, solved


def multiply(band: Band, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product of a symmetric banded matrix with a vector."""
    product = band[0] * x
    for k in range(1, min(len(band), len(x))):
        product[:-k] += band[k, :-k] * x[k:]
        product[k:] += band[k, :-k] * x[:-k]
    return product


@kernel
def _factor(lower: Cells, pivots: Cells, width: Int, n: Int) -> None:
    """Turn a matrix into its factor, in place. Bands lie one after the other in ``lower``."""
    for j in range(n):
        pivot = lower[j]
        pivots[j] = pivot
        end = j + n * min(width, n - 1 - j) + 1
        for a in range(j + n, end, n):  # subtract the outer product of column j from what is left
            share = lower[a] / pivot
            if share == 0.0:  # as most are where unknowns of several kinds take turns
                continue
            place = j + (a - j) // n
            for c in range(a, end, n):
                lower[place] -= share * lower[c]
                place += n
        for a in range(j + n, end, n):
            lower[a] /= pivot
        lower[j] = 1.0


@kernel
def _inverse(lower: Cells, pivots: Cells, width: Int, n: Int, inverse: Cells) -> None:
    """Entries of the inverse inside the band, from the last column back, as each needs only later ones.

    The matrix in ``lower`` is turned into its factor.
    """
    _factor(lower, pivots, width, n)
    for j in range(n - 1, -1, -1):
        reach = min(width, n - 1 - j)
        for a in range(reach, -1, -1):
            total = 1.0 / pivots[j] if a == 0 else 0.0
            for c in range(1, a + 1):  # the inverse is symmetric, and its lower half is kept
                total -= lower[c * n + j] * inverse[(a - c) * n + j + c]
            for c in range(a + 1, reach + 1):
                total -= lower[c * n + j] * inverse[(c - a) * n + j + a]
            inverse[a * n + j] = total


# Two private views of one cumulative histogram.
#
# What each says of it, and with what error.
#
# The number of categories with count ``<= t`` is seen twice: *directly*, as the noisy cumulative histogram, at the
# thresholds where it was measured, and *through the table*, whose every count carries geometric noise. Both views are
# unbiased, their noises are independent, and their covariances are exact for the fixed table at hand
# (docs/theory/tables-whole.md, section 2).

SILENT = 30.0
"""An ε so large that its noise is never seen: larger ones are judged as this one, without overflow."""


def unbiased_cumulative(observed: NDArray[np.float64], epsilon: Rates) -> NDArray[np.float64]:
    """From the histogram of counts with clamped geometric noise, the cumulative histogram without it.

    Unbiased, whatever the table is. A noisy count ``k`` contributes ``[k <= t] + up_k·[k = t] - down_k·[k = t+1]``
    with the corrections below.

    >>> truth = np.array([5.0, 0.0, 1.0, 4.0])
    >>> unbiased_cumulative(push_through(truth, 0.7), 0.7)
    array([5., 5., 6.])
    """
    up, down = corrections(len(observed), epsilon)
    return np.cumsum(observed)[:-1] + (up * observed)[:-1] - (down * observed)[1:]


def cumulative_covariance(histogram: NDArray[np.float64], epsilon: Rates) -> NDArray[np.float64]:
    """The covariance of ``unbiased_cumulative`` when the table has ``histogram``.

    It is tridiagonal and given by its bands.

    A sum over the categories of the table as it is, not over tables drawn from a distribution: at large ε the
    second is larger many times over.
    """
    up, down = corrections(len(histogram), epsilon)
    seen = push_through(histogram, np.minimum(epsilon, SILENT))
    covariance = np.zeros((2, len(histogram) - 1))
    covariance[0] = (up * (1 + up) * seen)[:-1] + (down * (1 + down) * seen)[1:]
    covariance[1, :-1] = -(up * down * seen)[1:-1]
    return covariance


def noise_precision(epsilon: float) -> float:
    """One over the variance of two-sided geometric noise, ``(1-a)²/(2a)`` with ``a = exp(-epsilon)``.

    It is 0 for an ε of 0, at which nothing is measured.
    """
    return float(2 * np.sinh(min(epsilon, SILENT) / 2) ** 2)


def first_guess(observed: NDArray[np.int64]) -> NDArray[np.float64]:
    """A positive histogram to start from.

    The noisy one with one more category on each count, rescaled.
    """
    size, n = int(np.sum(observed)), len(observed)
    return np.asarray((observed + 1) * (size / (size + n)), np.float64)


def corrections(n: int, epsilon: Rates) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``up[k]`` and ``down[k]``, with which row ``k`` of the inverse of G is ``-down, 1 + down + up, -up``.

    ``up[k] = a_k/((1-a_k²)·w_k)`` with ``a_k`` that of the step above ``k``, and ``down[k]`` with that of the step below.
    """
    rates = np.minimum(step_rates(n, epsilon), SILENT)
    weights = end_weights(n, rates)
    slope = np.exp(-rates) / -np.expm1(-2 * rates)
    return np.append(slope, 0.0) / weights, np.insert(slope, 0, 0.0) / weights


@dataclass(frozen=True, eq=False)
class Views:
    """The two views of the cumulative histogram of ``size`` categories.

    ``direct`` has independent errors of variance ``1/precision[t]``, and a precision of 0 where it was not measured;
    ``indirect`` has the tridiagonal ``covariance`` (its bands). A histogram ``η`` has the misfit
    ``½·(F-indirect)ᵀ·covariance⁻¹·(F-indirect) + ½·Σ precision·(F-direct)²`` with ``F`` its cumulative sums. The covariance
    is that of the histogram that is ``believed``.
    """

    direct: NDArray[np.float64]
    precision: NDArray[np.float64]
    indirect: NDArray[np.float64]
    covariance: NDArray[np.float64]
    size: int
    rates: NDArray[np.float64]
    believed: NDArray[np.float64]
    beyond: float | None = None

    @classmethod
    def of(
        cls,
        direct: NDArray[np.int64],
        noisy_counts: NDArray[np.int64],
        precision: float | NDArray[np.float64],
        rates: Rates,
        beyond: float | None = None,
    ) -> Views:
        """From the noisy cumulative histogram with its precisions, and the noisy table with the rates of its steps.

        ``noisy_counts`` carry clamped geometric noise of ``rates[f]`` for the step from ``f`` to ``f + 1``. If true counts may be
        larger than the last one, ``beyond`` is the rate of the steps there, and noisy counts beyond it are one more than it.
        At first :func:`first_guess` is believed.
        """
        n = len(direct) + 1
        observed = np.bincount(noisy_counts, minlength=n if beyond is None else n + 1)
        within = step_rates(n, rates)
        steps = within if beyond is None else np.append(within, beyond)
        believed = first_guess(np.append(observed[: n - 1], np.sum(observed[n - 1 :])))
        return cls(
            direct=np.asarray(direct, np.float64),
            precision=step_rates(n, precision),
            indirect=unbiased_cumulative(observed.astype(np.float64), steps)[: n - 1],
            covariance=_covariance(believed, within, beyond),
            size=len(noisy_counts),
            rates=within,
            believed=believed,
            beyond=beyond,
        )

    def given(self, histogram: NDArray[np.float64]) -> Views:
        """The same views, their errors judged by a better idea of the histogram."""
        covariance = _covariance(histogram, self.rates, self.beyond)
        return replace(self, covariance=covariance, believed=histogram)

    @property
    def complete(self) -> bool:
        """Whether every threshold was measured."""
        return bool(np.all(self.precision > 0))

    @cached_property
    def _factored(self) -> Factor:
        return factor(self.covariance)

    def misfit(self, cumulative: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The misfit of a cumulative histogram, and its gradient."""
        through = cumulative - self.indirect
        weighted = self._factored.solve(through)
        straight = cumulative - self.direct
        value = 0.5 * float(through @ weighted) + 0.5 * float((self.precision * straight) @ straight)
        return value, weighted + self.precision * straight


def _covariance(
    histogram: NDArray[np.float64], rates: NDArray[np.float64], beyond: float | None
) -> NDArray[np.float64]:
    """The covariance of the view through the table, all counts beyond the last one being taken for it."""
    if beyond is None:
        return cumulative_covariance(histogram, rates)
    covariance = cumulative_covariance(np.append(histogram, 0.0), np.append(rates, beyond))[:, :-1]
    covariance[1, -1] = 0.0
    return covariance


# Two views of one cumulative histogram when both carry Gaussian noise.
#
# The direct view has independent errors at every threshold. The view through the table is the histogram of noisy counts in bins
# a quarter of the noise wide: its mean is linear in the histogram, and its covariance is exact for the fixed table at hand. Gaussian
# noise cannot be taken out of a count as geometric noise can, so nothing is inverted and matrices are full.

BINNED = 256
"""Up to so many counts the table itself is looked at. Beyond, matrices would be large, and the direct view is used alone."""
_RIDGE = 0.05  # categories of variance that are added to every bin: nearly empty ones are not normal


@dataclass(frozen=True, eq=False)
class GaussianViews:
    """The two views of the cumulative histogram of ``size`` categories.

    ``direct`` has independent errors of variance ``1/precision``. ``observed`` has the mean ``histogram @ channel``, and the
    covariance of the histogram that is ``believed``.
    """

    direct: Floats
    precision: float
    observed: Floats
    channel: Floats = field(repr=False)
    size: int
    believed: Floats

    @classmethod
    def of(
        cls,
        direct: NDArray[np.int64],
        noisy: NDArray[np.int64],
        precision: float,
        variance: float,
        upper: int,
    ) -> GaussianViews:
        """From the noisy cumulative histogram, and the noisy counts with the variance of their noise."""
        deviation = variance**0.5
        reach, width = int(3 * deviation) + 1, max(1, int(deviation / 4))
        starts = np.arange(-reach, upper + reach + 1, width)  # the first and the last bin are open
        observed = np.bincount(
            np.clip(np.searchsorted(starts, noisy, side="right") - 1, 0, None), minlength=len(starts)
        )
        channel = binned_channel(upper + 1, starts, variance)
        seen, believed = observed.astype(np.float64), _guessed(noisy, upper)
        return cls(direct.astype(np.float64), precision, seen, channel, len(noisy), believed)

    def given(self, histogram: Floats) -> GaussianViews:
        """The same views, their errors judged by a better idea of the histogram."""
        return replace(self, believed=histogram)

    @cached_property
    def _weighed(self) -> tuple[Floats, Floats, float]:
        """The quadratic misfit of the observed bins, its matrix, its linear part and its constant."""
        mean = self.believed @ self.channel
        blurred = 1 - np.max(
            self.channel, axis=0
        )  # a bin whose noise is never seen is known, however empty it is
        covariance = np.diag(mean + _RIDGE * blurred + 1e-6 * np.max(mean, initial=0.0))
        covariance -= (self.channel.T * self.believed) @ self.channel
        weighed = np.linalg.solve(covariance, np.column_stack([self.channel.T, self.observed]))
        matrix, linear = self.channel @ weighed[:, :-1], self.channel @ weighed[:, -1]
        return (matrix + matrix.T) / 2, linear, float(self.observed @ weighed[:, -1])

    @cached_property
    def curvature(self) -> Floats:
        """The second derivatives of the misfit in the cumulative histogram."""
        matrix = self._weighed[0]
        through = matrix[:-1, :-1] - matrix[:-1, 1:] - matrix[1:, :-1] + matrix[1:, 1:]
        return through + self.precision * np.eye(len(self.direct))

    def misfit(self, cumulative: Floats) -> tuple[float, Floats]:
        """The misfit of a cumulative histogram, and its gradient."""
        matrix, linear, constant = self._weighed
        histogram = np.diff(cumulative, prepend=0.0, append=float(self.size))
        pull = matrix @ histogram - linear
        straight = cumulative - self.direct
        value = 0.5 * float((pull - linear) @ histogram + constant)
        value += 0.5 * self.precision * float(straight @ straight)
        return value, self.precision * straight - np.diff(pull)


def _guessed(noisy: NDArray[np.int64], upper: int) -> Floats:
    return first_guess(np.bincount(np.clip(noisy, 0, upper), minlength=upper + 1))


def binned_channel(n: int, starts: NDArray[np.int64], variance: float) -> Floats:
    """The probability of every bin given every count, for discrete Gaussian noise."""
    most = int(max(n - starts[0], starts[-1])) + 1
    apart = np.arange(-most, most + 1)
    below = np.cumsum(np.exp(-(apart**2.0) / (2 * variance)))
    below = np.concatenate([[0.0], below / below[-1]])  # at place d + most: less than d
    lower = below[np.clip(starts[None, :] - np.arange(n)[:, None] + most, 0, len(below) - 1)]
    lower[:, 0] = 0.0
    return np.diff(lower, axis=1, append=1.0)


class DenseSystem:
    """The Newton system of a model with :class:`GaussianViews`, with the interface of a banded factor.

    Log-intensities have a banded block, which is eliminated; that of the cumulative histogram is full. Vectors are interleaved as
    there, with unused places for the second of every three.
    """

    def __init__(
        self, views: GaussianViews, penalty: Floats, dispersion: Floats, intensity: Floats, hold: Floats
    ) -> None:
        from scipy.linalg import cho_factor, cho_solve_banded, cholesky_banded

        n = len(intensity)
        band = penalty[: min(len(penalty), n)].copy()
        band[0] += intensity / dispersion
        totals, at = views.curvature.copy(), np.arange(n - 1)
        totals[at, at] += hold[:-1] + hold[1:]
        totals[at[:-1], at[1:]] -= hold[1:-1]
        totals[at[1:], at[:-1]] -= hold[1:-1]
        self._mixed = np.zeros((n, n - 1))
        self._mixed[at, at], self._mixed[at + 1, at] = -1 / dispersion[:-1], 1 / dispersion[1:]
        self._band = cholesky_banded(band, lower=True)
        self._passed = cho_solve_banded((self._band, True), self._mixed)
        self._factor = cho_factor(totals - self._mixed.T @ self._passed, lower=True)

    @property
    def log_determinant(self) -> float:
        """The logarithm of the determinant."""
        full = np.diag(self._factor[0])
        return 2 * float(np.sum(np.log(self._band[0])) + np.sum(np.log(full)))

    def solve(self, right: Floats) -> Floats:
        """The solution for an interleaved right side."""
        from scipy.linalg import cho_solve, cho_solve_banded

        out = np.zeros(len(right))
        out[2::3] = cho_solve(self._factor, right[2::3] - self._passed.T @ right[0::3])
        out[0::3] = cho_solve_banded((self._band, True), right[0::3] - self._mixed @ out[2::3])
        return out


class DirectViews(Views):
    """The direct view alone, for tables with too many counts for full matrices."""

    @classmethod
    def alone(cls, direct: NDArray[np.int64], noisy: NDArray[np.int64], precision: float) -> DirectViews:
        """From the noisy cumulative histogram. The noisy counts are where a fit begins, and say next to nothing."""
        seen, n, size = direct.astype(np.float64), len(direct), len(noisy)
        silent = np.zeros((2, n))
        silent[0] = 1e6 * max(size, 1) ** 2
        return cls(seen, np.full(n, precision), seen, silent, size, np.zeros(n), _guessed(noisy, n))

    def given(self, histogram: Floats) -> DirectViews:
        """The same, as its errors do not depend on the histogram."""
        return self


# The most plausible histogram that scatters about a smooth intensity.
#
# Its evidence is computed too.
#
# The model (docs/theory/tables-whole.md, section 3): log-intensities ``θ`` with small differences, a histogram
# ``η`` that scatters about ``exp(θ)`` with ``dispersion`` times the variance of a Poisson count, and the two
# noisy views of its cumulative sums. The joint mode is found by Newton steps on ``(θ, u, F)`` interleaved, where
# ``u`` stands for ``covariance⁻¹·(F - indirect)``: a quasi-definite matrix of seven diagonals, so a step is O(n).

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
    return Penalty(band, factor(np.ascontiguousarray(band[:, 1:])).log_determinant)


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
    bent = multiply(penalty.band, logs)
    ratio = np.log(histogram) - logs
    scatter = float(np.sum((histogram * ratio - histogram + intensity) / dispersion))
    slope = np.zeros(3 * len(logs) - 2)
    slope[0::3] = (intensity - histogram) / dispersion + bent
    tilt = ratio / dispersion
    slope[2::3] = pull - (tilt[1:] - tilt[:-1])
    return _SmoothPoint(logs, intensity, histogram, misfit + scatter + 0.5 * float(logs @ bent), slope)


def _system(
    views: Views | GaussianViews, penalty: Penalty, dispersion: NDArray[np.float64], state: _SmoothPoint
) -> Factor | DenseSystem:
    """The factored second derivatives, in bands where the views allow it."""
    if isinstance(views, GaussianViews):
        hold = 1 / (dispersion * np.minimum(state.histogram, state.intensity))
        return DenseSystem(views, penalty.band, dispersion, state.intensity, hold)
    return factor(_curvature(views, penalty, dispersion, state))


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


# The smooth model with the largest evidence, on a grid of shapes and dispersions.

Shapes = tuple[tuple[int, float, bool], ...]
"""Order of differences, their scale, and whether it falls as counts grow."""

DISPERSIONS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e5, 1e6)
_SPIKE = 1e4  # the least dispersion of a spike: next to nothing ties it to the ground


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A shape and a dispersion by their places in the grid, the fit, and how well it explains the views."""

    shape: int
    dispersion: int
    fit: Fit
    evidence: float


class ModelSearch:
    """Search for the smooth model with the largest evidence.

    Coordinate ascent over a grid of shapes and dispersions.
    """

    def __init__(
        self,
        views: Views | GaussianViews,
        shapes: Shapes,
        spikes: NDArray[np.bool_] | None = None,
    ) -> None:
        n = len(views.believed)
        self.views = views
        self.spikes = np.zeros(n, np.bool_) if spikes is None else spikes
        self.penalties: list[Penalty] = [roughness(n, *shape) for shape in shapes]
        self.seen: dict[tuple[int, int], FittedModel] = {}

    def at(self, shape: int, dispersion: int, start: Fit) -> FittedModel:
        """One model, fitted from ``start`` unless it has been before."""
        if (shape, dispersion) not in self.seen:
            over = DISPERSIONS[dispersion]
            free = np.where(self.spikes, max(over, _SPIKE), over)
            model = fit(self.views, self.penalties[shape], free, start)
            # all shapes are as likely; a dispersion tenfold as large is believed a tenth as readily
            doubt = log(len(self.penalties)) + log(over) + _surprise(self.spikes)
            candidate = FittedModel(shape, dispersion, model, model.evidence - doubt)
            self.seen[shape, dispersion] = candidate
        return self.seen[shape, dispersion]

    def best(self, start: Fit) -> FittedModel:
        """Search from scratch.

        Every shape, each from the one before. Then climb, and try every shape once more.
        """
        top = self._climb(self._along_shapes(0, start))
        if top.dispersion > 0:
            top = self._climb(max(top, self._along_shapes(top.dispersion, top.fit), key=_evidence))
        return top

    def from_previous(self, previous: FittedModel) -> FittedModel:
        """From the model that was best under a first idea of the errors."""
        return self._climb(self.at(previous.shape, previous.dispersion, previous.fit))

    def blended(self, top: FittedModel) -> FittedModel:
        """The best model, with the mean of the histograms of all that were tried, each as likely as its evidence says.

        Every shape is tried once more. Large tables leave one model; small ones leave several, and none of them is certain.
        """
        top = max(top, self._along_shapes(top.dispersion, top.fit), key=_evidence)
        tried = list(self.seen.values())
        weights = np.exp(np.nan_to_num([each.evidence - top.evidence for each in tried], nan=-np.inf))
        histogram = weights @ np.array([each.fit.histogram for each in tried]) / np.sum(weights)
        return replace(top, fit=replace(top.fit, histogram=histogram))

    def _along_shapes(self, dispersion: int, start: Fit) -> FittedModel:
        result: list[FittedModel] = []
        for shape in range(len(self.penalties)):
            result.append(self.at(shape, dispersion, start))
            start = result[-1].fit
        return max(result, key=_evidence)

    def _climb(self, top: FittedModel) -> FittedModel:
        while True:
            around = [(top.shape, top.dispersion + d) for d in (-1, 1, 2)]
            around += [(top.shape + s, top.dispersion) for s in (-1, 1)]
            inside = [(s, d) for s, d in around if 0 <= s < len(self.penalties) and 0 <= d < len(DISPERSIONS)]
            rival = max((self.at(s, d, top.fit) for s, d in inside), key=_evidence)
            if rival.evidence <= top.evidence:
                return top
            top = rival


def _evidence(candidate: FittedModel) -> float:
    return candidate.evidence


def _surprise(spikes: NDArray[np.bool_]) -> float:
    """Minus the log-probability of exactly these spikes.

    Their number is uniform, and then their places.
    """
    n, some = len(spikes), int(np.sum(spikes))
    if some == 0:
        return 0.0
    return log(n) + lgamma(n + 1) - lgamma(some + 1) - lgamma(n - some + 1)
