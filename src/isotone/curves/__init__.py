"""Release 3: monotone curves. Private isotonic regression on chains and posets, with shape constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.curves.estimator import PrivacyWarning
    from isotone.curves.poset_product import ProductOrder
    from isotone.curves.poset_regression import PrivatePosetRegression
    from isotone.curves.regression import PrivateIsotonicRegression

__all__ = ["PrivacyWarning", "PrivateIsotonicRegression", "PrivatePosetRegression", "ProductOrder"]

# Estimators bring scikit-learn with them where it is installed: load them when they are first asked for.
_HOMES = {
    "PrivacyWarning": "isotone.curves.estimator",
    "PrivateIsotonicRegression": "isotone.curves.regression",
    "PrivatePosetRegression": "isotone.curves.poset_regression",
    "ProductOrder": "isotone.curves.poset_product",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
