from isotone.curves.calibration.calibrator import PrivateCalibrator as PrivateCalibrator
from isotone.curves.calibration.reliability import CalibrationError as CalibrationError
from isotone.curves.calibration.reliability import Reliability as Reliability
from isotone.curves.chain.regression import PrivateIsotonicRegression as PrivateIsotonicRegression
from isotone.curves.curve_plan import CurvePlan as CurvePlan
from isotone.curves.curve_plan import CurveRow as CurveRow
from isotone.curves.estimator import PrivacyWarning as PrivacyWarning
from isotone.curves.poset.product import ProductOrder as ProductOrder
from isotone.curves.poset.regression import PrivatePosetRegression as PrivatePosetRegression

__all__: list[str]
