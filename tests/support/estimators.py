"""Parameters of the estimators of curves from one flat list, which tests vary and pass on."""

from __future__ import annotations

from typing import Any

from isotone.curves import FitMethod
from isotone.privacy.guarantee import Unit

__all__ = ["grouped"]


def grouped(**given: Any) -> dict[str, Any]:
    """``rho``, ``neighbours`` and ``unit`` as a part of the guarantee, ``levels`` and ``value_levels`` as one of the method."""
    promise = {name: given.pop(name) for name in ("epsilon", "rho") if name in given}
    names = {"neighbours": "neighbours", "unit": "name"}
    unit = {names[name]: given.pop(name) for name in names if name in given}
    if unit or "rho" in promise:
        promise = {"epsilon": 1, **promise} if "rho" not in promise else promise
        given["epsilon"] = Unit(**unit).guarantee(**promise)
    elif promise:
        given |= promise
    steps = {name: given.pop(name) for name in ("levels", "value_levels") if name in given}
    return given | {"method": FitMethod(given.get("method", "auto"), **steps)} if steps else given
