from isotone.distribution.mechanism import DistributionMechanism as DistributionMechanism
from isotone.distribution.mechanism import MeasuredLine as MeasuredLine

__all__: list[str]
