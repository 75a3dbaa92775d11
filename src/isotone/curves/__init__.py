"""Monotone curves. Private isotonic regression on chains and posets, with shape constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.lazy import lazy_names

if TYPE_CHECKING:
    from isotone.curves.calibration.calibrator import PrivateCalibrator
    from isotone.curves.calibration.reliability import CalibrationError, Reliability
    from isotone.curves.chain.regression import PrivateIsotonicRegression
    from isotone.curves.curve_plan import CurvePlan, CurveRow, plan
    from isotone.curves.estimator import PrivacyWarning
    from isotone.curves.poset.product import ProductOrder
    from isotone.curves.poset.regression import PrivatePosetRegression

__all__ = [
    "CalibrationError",
    "CurvePlan",
    "CurveRow",
    "PrivacyWarning",
    "PrivateCalibrator",
    "PrivateIsotonicRegression",
    "PrivatePosetRegression",
    "ProductOrder",
    "Reliability",
    "plan",
]

# Estimators bring scikit-learn with them where it is installed: load them when they are first asked for.
_HOMES = {
    "CalibrationError": "isotone.curves.calibration.reliability",
    "PrivateCalibrator": "isotone.curves.calibration.calibrator",
    "Reliability": "isotone.curves.calibration.reliability",
    "CurvePlan": "isotone.curves.curve_plan",
    "CurveRow": "isotone.curves.curve_plan",
    "PrivacyWarning": "isotone.curves.estimator",
    "PrivateIsotonicRegression": "isotone.curves.chain.regression",
    "PrivatePosetRegression": "isotone.curves.poset.regression",
    "ProductOrder": "isotone.curves.poset.product",
    "plan": "isotone.curves.curve_plan",
}

__getattr__ = lazy_names(__name__, _HOMES)
