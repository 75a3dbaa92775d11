"""Tables of counts that keep their distribution: privatisers, count mechanisms, plans."""

from isotone.published.tables import polytope, scales
from isotone.tables.distribution.distribution import Distribution
from isotone.tables.distribution.privatize import privatize_distribution, simulate_distribution
from isotone.tables.matrices.certificate import Certificate, certificate
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.matrices.discrete_gaussian import discrete_gaussian
from isotone.tables.matrices.fixed_point import fixed_point, truncated_geometric
from isotone.tables.matrices.staircase import staircase
from isotone.tables.matrices.unfixed import unfixed_optimum
from isotone.tables.plan import Planned, TablePlan, plan
from isotone.tables.published_table import PublishedTable
from isotone.tables.two_stage import TwoStageMechanism

__all__ = [
    "Certificate",
    "CountMechanism",
    "Distribution",
    "Planned",
    "PublishedTable",
    "TablePlan",
    "TwoStageMechanism",
    "certificate",
    "discrete_gaussian",
    "fixed_point",
    "plan",
    "polytope",
    "privatize_distribution",
    "scales",
    "simulate_distribution",
    "staircase",
    "truncated_geometric",
    "unfixed_optimum",
]
