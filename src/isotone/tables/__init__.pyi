from isotone.published.tables import scales as scales
from isotone.tables.distribution import Distribution as Distribution
from isotone.tables.distribution import privatize_distribution as privatize_distribution
from isotone.tables.distribution import simulate_distribution as simulate_distribution
from isotone.tables.matrices.count_mechanism import CountMechanism as CountMechanism
from isotone.tables.matrices.count_mechanism import discrete_gaussian as discrete_gaussian
from isotone.tables.matrices.count_mechanism import staircase as staircase
from isotone.tables.matrices.fixed_point import Certificate as Certificate
from isotone.tables.matrices.fixed_point import certificate as certificate
from isotone.tables.matrices.fixed_point import fixed_point as fixed_point
from isotone.tables.matrices.fixed_point import truncated_geometric as truncated_geometric
from isotone.tables.matrices.fixed_point import unfixed_optimum as unfixed_optimum
from isotone.tables.plan import TablePlan as TablePlan
from isotone.tables.plan import TableRow as TableRow
from isotone.tables.published_table import PublishedTable as PublishedTable
from isotone.tables.two_stage import GaussianTableMechanism as GaussianTableMechanism
from isotone.tables.two_stage import TwoStageMechanism as TwoStageMechanism
from isotone.tables.two_stage import population_bands as population_bands

__all__: list[str]
