from isotone.published.tables import polytope as polytope
from isotone.published.tables import scales as scales
from isotone.tables.distribution.distribution import Distribution as Distribution
from isotone.tables.distribution.privatize import privatize_distribution as privatize_distribution
from isotone.tables.distribution.privatize import simulate_distribution as simulate_distribution
from isotone.tables.gaussian_table import GaussianTableMechanism as GaussianTableMechanism
from isotone.tables.matrices.certificate import Certificate as Certificate
from isotone.tables.matrices.certificate import certificate as certificate
from isotone.tables.matrices.clamped_gaussian import discrete_gaussian as discrete_gaussian
from isotone.tables.matrices.count_mechanism import CountMechanism as CountMechanism
from isotone.tables.matrices.fixed_point import fixed_point as fixed_point
from isotone.tables.matrices.fixed_point import truncated_geometric as truncated_geometric
from isotone.tables.matrices.staircase import staircase as staircase
from isotone.tables.matrices.unfixed import unfixed_optimum as unfixed_optimum
from isotone.tables.population_classes import population_bands as population_bands
from isotone.tables.published_table import PublishedTable as PublishedTable
from isotone.tables.table_plan import Planned as Planned
from isotone.tables.table_plan import TablePlan as TablePlan
from isotone.tables.table_plan import TableRow as TableRow
from isotone.tables.table_plan import plan as plan
from isotone.tables.two_stage import TwoStageMechanism as TwoStageMechanism

__all__: list[str]
