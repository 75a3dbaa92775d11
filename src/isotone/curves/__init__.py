"""Release 3: monotone curves. Private isotonic regression on chains and posets, with shape constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.curves.chain.regression import PrivateIsotonicRegression
    from isotone.curves.estimator import PrivacyWarning
    from isotone.curves.planning import CurvePlan, plan
    from isotone.curves.poset.poset_regression import PrivatePosetRegression
    from isotone.curves.poset.product import ProductOrder

__all__ = [
    "CurvePlan",
    "PrivacyWarning",
    "PrivateIsotonicRegression",
    "PrivatePosetRegression",
    "ProductOrder",
    "plan",
]

# Estimators bring scikit-learn with them where it is installed: load them when they are first asked for.
_HOMES = {
    "CurvePlan": "isotone.curves.planning",
    "PrivacyWarning": "isotone.curves.estimator",
    "PrivateIsotonicRegression": "isotone.curves.chain.regression",
    "PrivatePosetRegression": "isotone.curves.poset.poset_regression",
    "ProductOrder": "isotone.curves.poset.product",
    "plan": "isotone.curves.planning",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
