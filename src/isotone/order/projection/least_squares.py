"""Least squares onto the monotone functions on a partial order.

Definition: ``project(P, y)`` is the ``f`` with ``f(a) ≤ f(b)`` whenever ``a ≤ b`` that minimises
``Σ w (f − y)²``; it exists and is unique. Exact methods, chosen by the shape of the order: pooling on chains,
merging on forests, minimum cuts elsewhere. Reference: Robertson, Wright and Dykstra 1988, chapter 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError
from isotone.order.projection.cut import project_convex_sets

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["project"]

LARGEST_WEIGHT_RATIO = 1e9


def project(
    P: Poset,
    values: ArrayLike,
    weights: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> NDArray[np.float64]:
    """The monotone function on ``P`` closest to ``values`` in weighted least squares.

    ``values`` and ``weights`` have one entry per element, in the order of ``P.elements``. Weights must be
    positive, with a ratio of at most 1e9 between largest and smallest. ``lower`` and ``upper`` bound every
    value of the result: clipping the unbounded solution gives exactly the bounded one. The result is exactly
    monotone, and within about 1e-12 of the range of the values (times the ratio of the weights, in the worst
    case) of the exact solution. An array subclass survives: a simulated array stays simulated.

    Complexity: O(n) on chains, O(n log n) on forests, a few maximum flows elsewhere.

    >>> from isotone.order import Poset, project
    >>> survey = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    >>> project(survey, [10, 16, 3])
    array([13., 13.,  3.])
    """
    y = one_per_element(values, len(P), "values")
    w = np.ones(len(P)) if weights is None else one_per_element(weights, len(P), "weights")
    _check_weights(w)
    bounds = check_bounds(lower, upper)
    order = P.canonical.positions  # a linear extension
    covers = P.canonical.order.cover_pairs
    fitted = np.empty(len(P))
    fitted[order] = project_bottom_up(covers, y[order], w[order])
    return like(values, np.clip(fitted, *bounds))


def project_bottom_up(
    covers: NDArray[np.int64], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The projection for elements numbered along a linear extension.

    The input is not checked.
    """
    if np.all(values[covers[:, 0]] <= values[covers[:, 1]]):
        return values.copy()
    offset = float(np.median(values))
    fitted = project_convex_sets(covers, values - offset, weights / weights.max()) + offset
    return _exactly_monotone(covers, fitted)


def _exactly_monotone(covers: NDArray[np.int64], fitted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Remove violations of the size of a rounding error.

    Each value is raised to those below it.
    """
    if np.all(fitted[covers[:, 0]] <= fitted[covers[:, 1]]):
        return fitted
    for below, above in covers[np.argsort(covers[:, 1], kind="stable")]:
        fitted[above] = max(fitted[above], fitted[below])
    return fitted


def one_per_element(values: ArrayLike, size: int, name: str) -> NDArray[np.float64]:
    """``values`` as floats, refused unless there is one finite number per element."""
    try:
        array = np.array(values, dtype=np.float64, subok=False)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, one for each of the {size} elements.") from None
    if array.shape != (size,):
        raise InputError(
            f"{name} must hold one number for each of the {size} elements, in the order of P.elements; "
            f"its shape is {array.shape}."
        )
    if not np.all(np.isfinite(array)):
        raise InputError(
            f"{name} must be finite numbers: infinities and NaN have no least-squares projection."
        )
    return array


def check_bounds(lower: float | None, upper: float | None) -> tuple[float, float]:
    """The bounds as numbers (infinite where not given), refused unless lower ≤ upper."""
    low = -np.inf if lower is None else float(lower)
    high = np.inf if upper is None else float(upper)
    if not low <= high:
        raise InputError(f"lower must not exceed upper, and neither may be NaN; got {lower!r} and {upper!r}.")
    return low, high


def like(values: ArrayLike, result: NDArray[np.float64]) -> NDArray[np.float64]:
    """``result`` in the array type of ``values``.

    A simulated array stays marked as simulated.
    """
    if isinstance(values, np.ndarray) and type(values) is not np.ndarray:
        return result.view(type(values))
    return result


def _check_weights(weights: NDArray[np.float64]) -> None:
    if weights.size and not weights.min() > 0:
        raise InputError(
            "weights must all be above 0: an element without weight has no unique projection. Leave it out "
            "with P.induced(...), or give it a small weight."
        )
    if weights.size and weights.max() / weights.min() > LARGEST_WEIGHT_RATIO:
        raise InputError(
            f"The largest weight is {weights.max() / weights.min():.3g} times the smallest; beyond "
            f"{LARGEST_WEIGHT_RATIO:g} floating point cannot tell the light elements apart from rounding. "
            "Bring the weights closer together."
        )
