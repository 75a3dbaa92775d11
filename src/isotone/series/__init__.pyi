from isotone.series.causal import CausalGaussianMechanism as CausalGaussianMechanism
from isotone.series.series_mechanism import SeriesMechanism as SeriesMechanism
from isotone.series.series_plan import SeriesPlan as SeriesPlan
from isotone.series.series_plan import plan_series as plan_series
from isotone.series.two_scale import TwoScaleMechanism as TwoScaleMechanism

__all__: list[str]
