"""Tables of counts that keep their distribution.

Privatisers, count mechanisms and plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.lazy import lazy_names

if TYPE_CHECKING:
    from isotone.published.tables import polytope, scales
    from isotone.tables.distribution.distribution import Distribution
    from isotone.tables.distribution.privatize import privatize_distribution, simulate_distribution
    from isotone.tables.gaussian_table import GaussianTableMechanism
    from isotone.tables.matrices.certificate import Certificate, certificate
    from isotone.tables.matrices.clamped_gaussian import discrete_gaussian
    from isotone.tables.matrices.count_mechanism import CountMechanism
    from isotone.tables.matrices.fixed_point import fixed_point, truncated_geometric
    from isotone.tables.matrices.staircase import staircase
    from isotone.tables.matrices.unfixed import unfixed_optimum
    from isotone.tables.population_classes import population_bands
    from isotone.tables.published_table import PublishedTable
    from isotone.tables.table_plan import Planned, TablePlan, TableRow, plan
    from isotone.tables.two_stage import TwoStageMechanism

__all__ = [
    "Certificate",
    "CountMechanism",
    "Distribution",
    "GaussianTableMechanism",
    "Planned",
    "PublishedTable",
    "TablePlan",
    "TableRow",
    "TwoStageMechanism",
    "certificate",
    "discrete_gaussian",
    "fixed_point",
    "plan",
    "polytope",
    "population_bands",
    "privatize_distribution",
    "scales",
    "simulate_distribution",
    "staircase",
    "truncated_geometric",
    "unfixed_optimum",
]

_HOMES = {
    "Certificate": "isotone.tables.matrices.certificate",
    "CountMechanism": "isotone.tables.matrices.count_mechanism",
    "Distribution": "isotone.tables.distribution.distribution",
    "GaussianTableMechanism": "isotone.tables.gaussian_table",
    "Planned": "isotone.tables.table_plan",
    "PublishedTable": "isotone.tables.published_table",
    "TablePlan": "isotone.tables.table_plan",
    "TableRow": "isotone.tables.table_plan",
    "TwoStageMechanism": "isotone.tables.two_stage",
    "certificate": "isotone.tables.matrices.certificate",
    "discrete_gaussian": "isotone.tables.matrices.clamped_gaussian",
    "fixed_point": "isotone.tables.matrices.fixed_point",
    "plan": "isotone.tables.table_plan",
    "polytope": "isotone.published.tables",
    "population_bands": "isotone.tables.population_classes",
    "privatize_distribution": "isotone.tables.distribution.privatize",
    "scales": "isotone.published.tables",
    "simulate_distribution": "isotone.tables.distribution.privatize",
    "staircase": "isotone.tables.matrices.staircase",
    "truncated_geometric": "isotone.tables.matrices.fixed_point",
    "unfixed_optimum": "isotone.tables.matrices.unfixed",
}

__getattr__ = lazy_names(__name__, _HOMES)
