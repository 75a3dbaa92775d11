from isotone.curves.calibration.calibrator import PrivateCalibrator as PrivateCalibrator
from isotone.curves.calibration.reliability import CalibrationError as CalibrationError
from isotone.curves.calibration.reliability import Reliability as Reliability
from isotone.curves.plan import CurvePlan as CurvePlan
from isotone.curves.plan import CurveRow as CurveRow
from isotone.curves.poset_regression import PrivatePosetRegression as PrivatePosetRegression
from isotone.curves.problem import FitMethod as FitMethod
from isotone.curves.regression import PrivacyWarning as PrivacyWarning
from isotone.curves.regression import PrivateIsotonicRegression as PrivateIsotonicRegression
from isotone.curves.surface import ProductOrder as ProductOrder

__all__: list[str]
