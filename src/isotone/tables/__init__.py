"""Tables of counts that keep their distribution: privatisers, count mechanisms, plans."""

from isotone.tables import polytope, scales
from isotone.tables.certificate import Certificate, certificate
from isotone.tables.discrete_gaussian import discrete_gaussian
from isotone.tables.distribution import Distribution
from isotone.tables.fixed_point import fixed_point, truncated_geometric
from isotone.tables.mechanism import CountMechanism
from isotone.tables.plan import Planned, TablePlan, plan
from isotone.tables.privatize import privatize_distribution, simulate_distribution
from isotone.tables.published import PublishedTable
from isotone.tables.staircase import staircase
from isotone.tables.two_stage import TwoStageMechanism
from isotone.tables.unfixed import unfixed_optimum

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
