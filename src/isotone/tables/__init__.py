"""Tables of counts that keep their distribution: privatisers, count mechanisms, plans."""

from isotone.tables.distribution import Distribution
from isotone.tables.fixed_point import fixed_point, truncated_geometric
from isotone.tables.privatize import privatize_distribution, simulate_distribution

__all__ = [
    "Distribution",
    "fixed_point",
    "privatize_distribution",
    "simulate_distribution",
    "truncated_geometric",
]
