"""The heuristic constructor, made numerically sound.

Algorithm 1 of Kohli and Laskowski 2026.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.unit import Unit
from isotone.published.tables.peeling import Peeled, peel
from isotone.published.tables.scale_mechanism import ScaleMechanism, require_scales, scale_mechanism
from isotone.published.tables.terms import PeeledTerms
from isotone.tables.matrices.losses import Loss, loss_rows

__all__ = ["Selector", "fill_order", "heuristic"]

Selector = Literal["best", "max", "min", "sandwich"]
_ORDERS: tuple[Selector, ...] = ("max", "min", "sandwich")
_NEGLIGIBLE = 1e-40


def fill_order(target: NDArray[np.float64], selector: Selector) -> NDArray[np.int64]:
    """The order in which columns are filled.

    Columns with negligible probability are left out.

    >>> fill_order(np.array([0.2, 0.5, 0.1, 0.2]), "sandwich")
    array([0, 3, 1, 2])
    """
    n = len(target)
    if selector == "max":
        order = np.argsort(-target, kind="stable")
    elif selector == "min":
        order = np.argsort(target, kind="stable")
    else:
        order = np.empty(n, np.int64)
        order[0::2] = np.arange((n + 1) // 2)
        order[1::2] = np.arange(n - 1, (n - 1) // 2, -1)
    return order[target[order] > _NEGLIGIBLE]


def heuristic(
    z: NDArray[np.float64],
    target: NDArray[np.float64],
    epsilon: Fraction,
    unit: Unit,
    selector: Selector = "best",
    loss: Loss = "absolute",
    simulated: bool = False,
) -> ScaleMechanism:
    """Fill the columns one by one with the scale nearest to a single peak, as far as later columns allow.

    Guarantee: ε-DP (docs/theory/tables.md, section 7). Cost: O(n²) time, O(n) memory, at most 2n - 1 terms.
    ``selector="best"`` tries all orders and keeps the one with the least count error under ``z``: ``z`` is
    private or public already, so that choice costs nothing.
    """
    if selector not in get_args(Selector):
        raise InputError(f"selector must be one of {', '.join(get_args(Selector))}, not {selector!r}.")
    step = float(unit.per_step(epsilon))
    require_scales(step)

    costs = loss_rows(loss, len(z))

    def peeled(chosen: Selector) -> tuple[Peeled, float]:
        return peel(z, target, fill_order(target, chosen), step, costs)

    if selector == "best":
        with ThreadPoolExecutor() as pool:  # compiled, without the interpreter's lock
            terms, _ = min(pool.map(peeled, _ORDERS), key=lambda found: found[1])
    else:
        terms, _ = peeled(selector)
    return scale_mechanism(PeeledTerms(len(z), *terms), target, epsilon, unit, simulated)
