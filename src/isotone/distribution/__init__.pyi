from isotone.distribution.figures import LineFigures as LineFigures
from isotone.distribution.mechanism import DistributionMechanism as DistributionMechanism
from isotone.distribution.mechanism import MeasuredLine as MeasuredLine
from isotone.distribution.plan import DistributionPlan as DistributionPlan
from isotone.distribution.plan import plan as plan
from isotone.distribution.survival import SurvivalFigures as SurvivalFigures

__all__: list[str]
