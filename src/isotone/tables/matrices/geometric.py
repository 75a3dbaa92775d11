"""The truncated geometric mechanism, the losses of an error in a count, and what each step of a published count costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import kernel

# The truncated geometric mechanism G as a matrix that is never written down.
#
# ``G[i, k] = w[k]·a^|i-k|`` with ``a = exp(-ε)`` is a count plus two-sided geometric noise, clamped to
# ``0..n-1``: ``w`` is ``(1-a)/(1+a)`` inside and ``1/(1+a)`` at both ends (docs/theory/tables.md, section 3).
# Every function takes one ε for all steps, or an ε for each of the ``n - 1`` steps.
# Sums over a row or a column of it are first-order recursions of positive terms: O(n), and nothing cancels.

Rates = float | NDArray[np.float64]


def step_rates(n: int, epsilon: Rates) -> NDArray[np.float64]:
    """The ε of each of the ``n - 1`` steps."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(epsilon, np.float64), (n - 1,)))


def end_weights(n: int, epsilon: Rates) -> NDArray[np.float64]:
    """The factor ``w[k]`` of each column of G."""
    rates = step_rates(n, epsilon)
    left, right = np.concatenate([[np.inf], rates]), np.concatenate([rates, [np.inf]])
    return -np.expm1(-left - right) / ((1 + np.exp(-left)) * (1 + np.exp(-right)))


def geometric_matrix(n: int, epsilon: Rates) -> NDArray[np.float64]:
    """G, dense."""
    place = np.concatenate([[0.0], np.cumsum(step_rates(n, epsilon))])
    return end_weights(n, epsilon) * np.exp(-np.abs(place[:, None] - place[None, :]))


def push_through(z: NDArray[np.float64], epsilon: Rates) -> NDArray[np.float64]:
    """The distribution ``z·G`` of a noisy count.

    The true count is drawn from ``z``.

    >>> push_through(np.array([1.0, 0.0]), np.log(3.0)).round(3)
    array([0.75, 0.25])
    """
    return spread(z, epsilon) * end_weights(len(z), epsilon)


def reach(n: int, epsilon: float) -> int:
    """A distance beyond which ``a^d`` is lost in the rounding of any sum it enters with weight up to n²."""
    return int(min(n, np.ceil((46 + 2 * np.log(n)) / epsilon)))


def spread(z: NDArray[np.float64], epsilon: Rates) -> NDArray[np.float64]:
    """``Σ_i z[i]·a^|i-k|`` for every k. ``z`` may be any vector."""
    return _decayed_sums(np.ascontiguousarray(z), np.exp(-step_rates(len(z), epsilon)))


@kernel(steps=lambda z, ratio: 2 * z.size)
def _decayed_sums(z: NDArray[np.float64], ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    n = z.shape[0]
    out = z.copy()
    for k in range(1, n):
        out[k] += ratio[k - 1] * out[k - 1]
    above = 0.0
    for k in range(n - 2, -1, -1):
        above = ratio[k] * (z[k + 1] + above)
        out[k] += above
    return out


# The losses of an error in a count.
#
# Named losses, and matrices of any shape.
#
# ``loss[i, j]`` is the cost of publishing ``j`` for a true count ``i``. A loss has the *Monge* property if
# ``loss[i, j] + loss[i+1, j+1] <= loss[i, j+1] + loss[i+1, j]`` for all i, j, as every convex function of
# ``i - j`` has; the closed-form optimum holds for these (docs/theory/tables.md, section 3).

LossName = Literal["absolute", "squared", "zero-one"]
Loss = LossName | NDArray[np.float64] | Sequence[Sequence[float]]

_DENSE = 20_000


def loss_of_difference(loss: Loss, n: int) -> NDArray[np.float64] | None:
    """The value of a named loss at ``i - j = -(n-1) .. n-1``. None for a matrix."""
    if not isinstance(loss, str):
        return None
    difference = np.abs(np.arange(-(n - 1), n, dtype=np.float64))
    if loss == "absolute":
        return difference
    if loss == "squared":
        return difference**2
    if loss == "zero-one":
        return np.asarray(difference > 0, dtype=np.float64)
    raise InputError(
        f"loss must be one of {', '.join(map(repr, get_args(LossName)))} or an n by n matrix, not {loss!r}."
    )


def loss_rows(loss: Loss, n: int) -> NDArray[np.float64]:
    """``loss`` as n rows to be read one at a time.

    For a named loss it is a view that takes no memory.
    """
    values = loss_of_difference(loss, n)
    return loss_matrix(loss, n) if values is None else sliding_window_view(values, n)[:, ::-1]


def loss_matrix(loss: Loss, n: int) -> NDArray[np.float64]:
    """``loss`` as an n by n matrix.

    >>> loss_matrix("absolute", 3)
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    if n > _DENSE:
        raise InputError(
            f"A loss matrix for {n} counts does not fit in memory: at most {_DENSE} are handled."
        )
    values = loss_of_difference(loss, n)
    if values is not None:
        i = np.arange(n)
        return values[i[:, None] - i[None, :] + n - 1]
    matrix = np.asarray(loss, dtype=np.float64)
    if matrix.shape != (n, n) or not bool(np.all(np.isfinite(matrix))):
        raise InputError(f"loss must be an n by n matrix of finite numbers, here {n} by {n}.")
    return matrix


def is_monge(matrix: NDArray[np.float64]) -> bool:
    """Whether ``matrix`` has the Monge property, up to rounding."""
    mixed = matrix[:-1, :-1] + matrix[1:, 1:] - matrix[:-1, 1:] - matrix[1:, :-1]
    return bool(np.all(mixed <= _slack(matrix)))


def is_convex(matrix: NDArray[np.float64]) -> bool:
    """Whether each row is a convex function of the published count, up to rounding."""
    return bool(np.all(np.diff(matrix, n=2, axis=1) >= -_slack(matrix)))


def is_concentrating(matrix: NDArray[np.float64]) -> bool:
    """Whether each row is a function of the distance ``|i - j|`` that never falls as the distance grows."""
    slack = _slack(matrix)
    for i, row in enumerate(matrix):
        right, left = row[i:], row[i::-1]
        shared = min(len(right), len(left))
        longer = right if len(right) >= len(left) else left
        if np.any(np.abs(right[:shared] - left[:shared]) > slack) or np.any(np.diff(longer) < -slack):
            return False
    return True


def _slack(matrix: NDArray[np.float64]) -> float:
    return 8 * float(np.finfo(np.float64).eps) * float(np.max(np.abs(matrix), initial=0.0))


# The posterior of a true count given a noisy one.
#
# The noisy count ``k`` is the true count ``i`` plus clamped noise.
#
# For a prior ``z`` the posterior is proportional to ``z[i]·a^|i-k|``. Its cumulative probabilities and means
# follow in O(1) each from two recursions kept in logarithms, so that gaps and tails far below the smallest
# float are handled like any other (docs/theory/tables.md, section 5).


class Posterior(NamedTuple):
    """Sums of ``z`` seen from each noisy count.

    ``below[k]`` is the logarithm of ``Σ_{i<=k} z[i]·a^(k-i)`` and ``above[k]`` that of
    ``Σ_{i>=k} z[i]·a^(i-k)``; ``behind[k]`` and ``ahead[k]`` are the mean distances ``k-i`` and ``i-k`` under
    these weights.
    """

    epsilon: float
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    behind: NDArray[np.float64]
    ahead: NDArray[np.float64]


def posterior_of(z: NDArray[np.float64], epsilon: float) -> Posterior:
    """The posteriors of all noisy counts for the prior ``z``, in O(n)."""
    with np.errstate(divide="ignore"):
        logs = np.log(z)
    below, behind = _sweep(logs, epsilon)
    above, ahead = _sweep(logs[::-1].copy(), epsilon)
    return Posterior(epsilon, below, above[::-1].copy(), behind, ahead[::-1].copy())


@kernel
def at_most(p: Posterior, k: int, j: int) -> float:
    """P(true count <= j) given the noisy count k."""
    n = p.below.shape[0]
    total = _log_total(p, k)
    if j < 0:
        return 0.0
    if j >= n - 1:
        return 1.0
    if j < k:
        return np.exp(p.below[j] - p.epsilon * (k - j) - total)
    return -np.expm1(min(p.above[j + 1] - p.epsilon * (j + 1 - k) - total, 0.0))


@kernel
def mean_shift(p: Posterior, k: int) -> float:
    """The mean of (true count - k) given the noisy count k."""
    n = p.below.shape[0]
    total = _log_total(p, k)
    shift = 0.0
    if p.below[k] > -np.inf:
        shift -= np.exp(p.below[k] - total) * p.behind[k]
    if k < n - 1 and p.above[k + 1] > -np.inf:
        shift += np.exp(p.above[k + 1] - p.epsilon - total) * (1.0 + p.ahead[k + 1])
    return shift


@kernel
def _log_total(p: Posterior, k: int) -> float:
    if k == p.below.shape[0] - 1:
        return p.below[k]
    return np.logaddexp(p.below[k], p.above[k + 1] - p.epsilon)


@kernel(steps=lambda logs, epsilon: 8 * logs.size)
def _sweep(logs: NDArray[np.float64], epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log of the decayed sum and the mean distance to its terms, from the low end up."""
    n = logs.shape[0]
    sums, distance = np.full(n, -np.inf), np.zeros(n)
    sums[0] = logs[0]
    for k in range(1, n):
        if sums[k - 1] == -np.inf:
            sums[k] = logs[k]
            continue
        decayed = sums[k - 1] - epsilon
        sums[k] = np.logaddexp(logs[k], decayed)
        distance[k] = np.exp(decayed - sums[k]) * (distance[k - 1] + 1.0)
    return sums, distance


# The cost of one step of the published count, for each noisy count.
#
# Where that cost crosses a price is found here too.
#
# ``slope(k, j) = E[loss(i, j) - loss(i, j+1)]``, the expectation over the posterior of the true count ``i``
# given the noisy count ``k``: what is gained by publishing ``j+1`` in place of ``j``. For a Monge loss it
# never falls with ``k``; for a loss that is convex in ``j`` it never rises with ``j``. So the number of noisy
# counts whose slope is below a price rises with ``j``, and one walk finds it for all ``j``.


def crossings(
    z: NDArray[np.float64], epsilon: float, loss: Loss, prices: tuple[float, ...]
) -> list[NDArray[np.int64]]:
    """For each price, how many noisy counts ``k`` have ``slope(k, j) < price``, for ``j = 0..n-2``.

    O(n) for the absolute and the squared loss, O(n²) for a matrix.
    """
    n = len(z)
    if isinstance(loss, str) and loss in ("absolute", "squared"):
        posterior = posterior_of(z, epsilon)
        walk = _walk_absolute if loss == "absolute" else _walk_squared
        return [walk(posterior, price) for price in prices]
    matrix = loss_matrix(loss, n)
    if not (is_monge(matrix) and is_convex(matrix)):
        raise InputError(
            "This needs a loss that is convex in the published count and has the Monge property, such as "
            "'absolute', 'squared' or any convex function of the difference."
        )
    mass = spread(z, epsilon)
    result = [np.zeros(n - 1, np.int64) for _ in prices]
    for j in range(n - 1):
        gained = spread(z * (matrix[:, j] - matrix[:, j + 1]), epsilon)
        for price, out in zip(prices, result, strict=True):
            out[j] = _first(gained, mass, price, int(out[j - 1]) if j else 0)
    return result


@kernel(steps=lambda gained, *_: gained.size)
def _first(gained: NDArray[np.float64], mass: NDArray[np.float64], price: float, start: int) -> int:
    """The first k from ``start`` with mass whose slope is not below the price."""
    k = start
    while k < mass.shape[0] and (mass[k] <= 0.0 or gained[k] < price * mass[k]):
        k += 1
    return k


@kernel(steps=lambda p, price: 16 * p.below.size)
def _walk_absolute(p: Posterior, price: float) -> NDArray[np.int64]:
    n = p.below.shape[0]
    out = np.empty(n - 1, np.int64)
    k = 0
    for j in range(n - 1):
        while k < n and 1.0 - 2.0 * at_most(p, k, j) < price:
            k += 1
        out[j] = k
    return out


@kernel(steps=lambda p, price: 16 * p.below.size)
def _walk_squared(p: Posterior, price: float) -> NDArray[np.int64]:
    n = p.below.shape[0]
    out = np.empty(n - 1, np.int64)
    k = 0
    for j in range(n - 1):
        while k < n and 2.0 * (k - j + mean_shift(p, k)) - 1.0 < price:
            k += 1
        out[j] = k
    return out
