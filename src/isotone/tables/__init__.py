"""Tables of counts that keep their distribution: privatisers, count mechanisms, plans."""

from isotone.tables.discrete_gaussian import discrete_gaussian
from isotone.tables.distribution import Distribution
from isotone.tables.fixed_point import fixed_point, truncated_geometric
from isotone.tables.mechanism import CountMechanism
from isotone.tables.privatize import privatize_distribution, simulate_distribution
from isotone.tables.staircase import staircase
from isotone.tables.unfixed import unfixed_optimum

__all__ = [
    "CountMechanism",
    "Distribution",
    "discrete_gaussian",
    "fixed_point",
    "privatize_distribution",
    "simulate_distribution",
    "staircase",
    "truncated_geometric",
    "unfixed_optimum",
]
