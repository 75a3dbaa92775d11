"""The least budget for an error, where no formula gives it."""

from __future__ import annotations

import math
from collections.abc import Callable

from isotone.desk.words import FormError
from isotone.release.spec import Spec

__all__ = ["least_budget"]

_LEAST, _MOST = 1e-3, 20.0


def least_budget(spec: Spec, is_enough: Callable[[Spec], bool]) -> str:
    """The least ε or ρ between 0.001 and 20 that is enough, to three digits and within 2 %, as text for the spec."""
    low, high = _LEAST, _MOST
    # another kind of noise, with wider intervals, may be the best at a larger budget: then a smaller one is tried
    while not is_enough(_with(spec, high)):
        high /= 2
        if high < low:
            raise FormError(f"Not even a budget of {_MOST:g} keeps within this error.")
    while high > low * 1.02:
        middle = float(f"{math.sqrt(low * high):.2e}")
        low, high = (low, middle) if is_enough(_with(spec, middle)) else (middle, high)
    return f"{high:g}"


def _with(spec: Spec, budget: float) -> Spec:
    name = "epsilon" if spec.privacy.rho is None else "rho"
    return spec.model_copy(update={"privacy": spec.privacy.model_copy(update={name: f"{budget:g}"})})
