"""Counts of yes/no answers over a partial order.

Mechanisms, their errors, and the plan that picks one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.lazy import lazy_names

if TYPE_CHECKING:
    from isotone.counts.bounding import cut, cut_all
    from isotone.counts.breakdowns.margins import MarginsMechanism
    from isotone.counts.breakdowns.margins_plan import MarginsPlan, plan_breakdown
    from isotone.counts.caring import relative_to
    from isotone.counts.consistency import consistent
    from isotone.counts.count_plan import CountPlan, plan
    from isotone.counts.hierarchies.fixed_root import FixedRootMechanism
    from isotone.counts.hierarchies.measured_tree import TreeGaussianMechanism, TreeLaplaceMechanism
    from isotone.counts.hierarchies.tree_field import TreeFieldMechanism
    from isotone.counts.mechanisms.bounded_poset import BoundedPosetMechanism
    from isotone.counts.mechanisms.chain_hierarchy import HierarchicalMechanism
    from isotone.counts.mechanisms.difference_body import DifferenceBodyMechanism
    from isotone.counts.mechanisms.grouped_difference import GroupedDifferenceMechanism
    from isotone.counts.mechanisms.independent.discrete_gaussian import DiscreteGaussianMechanism
    from isotone.counts.mechanisms.independent.discrete_laplace import DiscreteLaplaceMechanism
    from isotone.counts.mechanisms.independent.gaussian import GaussianMechanism
    from isotone.counts.mechanisms.independent.laplace import LaplaceMechanism
    from isotone.counts.mechanisms.l_infinity import LInfinityMechanism
    from isotone.counts.mechanisms.order_gaussian import OrderGaussianMechanism
    from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
    from isotone.counts.sampling.choosing import sample_extended_bipartition
    from isotone.counts.sampling.method import Method
    from isotone.counts.sampling.relaxation import Relaxation, relax
    from isotone.planning.plan import Plan
    from isotone.published.counts.lp_ball import L2Mechanism, LpMechanism

__all__ = [
    "BoundedPosetMechanism",
    "CountPlan",
    "DifferenceBodyMechanism",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "FixedRootMechanism",
    "GaussianMechanism",
    "GroupedDifferenceMechanism",
    "HierarchicalMechanism",
    "L2Mechanism",
    "LInfinityMechanism",
    "LaplaceMechanism",
    "LpMechanism",
    "MarginsMechanism",
    "MarginsPlan",
    "Method",
    "OrderGaussianMechanism",
    "Plan",
    "PosetMechanism",
    "Relaxation",
    "TreeFieldMechanism",
    "TreeGaussianMechanism",
    "TreeLaplaceMechanism",
    "consistent",
    "cut",
    "cut_all",
    "plan",
    "plan_breakdown",
    "relative_to",
    "relax",
    "sample_extended_bipartition",
]

_HOMES = {
    "CountPlan": "isotone.counts.count_plan",
    "BoundedPosetMechanism": "isotone.counts.mechanisms.bounded_poset",
    "DifferenceBodyMechanism": "isotone.counts.mechanisms.difference_body",
    "DiscreteGaussianMechanism": "isotone.counts.mechanisms.independent.discrete_gaussian",
    "DiscreteLaplaceMechanism": "isotone.counts.mechanisms.independent.discrete_laplace",
    "FixedRootMechanism": "isotone.counts.hierarchies.fixed_root",
    "GaussianMechanism": "isotone.counts.mechanisms.independent.gaussian",
    "GroupedDifferenceMechanism": "isotone.counts.mechanisms.grouped_difference",
    "HierarchicalMechanism": "isotone.counts.mechanisms.chain_hierarchy",
    "L2Mechanism": "isotone.published.counts.lp_ball",
    "LInfinityMechanism": "isotone.counts.mechanisms.l_infinity",
    "LaplaceMechanism": "isotone.counts.mechanisms.independent.laplace",
    "LpMechanism": "isotone.published.counts.lp_ball",
    "MarginsMechanism": "isotone.counts.breakdowns.margins",
    "MarginsPlan": "isotone.counts.breakdowns.margins_plan",
    "Method": "isotone.counts.sampling.method",
    "OrderGaussianMechanism": "isotone.counts.mechanisms.order_gaussian",
    "Plan": "isotone.planning.plan",
    "PosetMechanism": "isotone.counts.mechanisms.poset_mechanism",
    "Relaxation": "isotone.counts.sampling.relaxation",
    "TreeFieldMechanism": "isotone.counts.hierarchies.tree_field",
    "TreeGaussianMechanism": "isotone.counts.hierarchies.measured_tree",
    "TreeLaplaceMechanism": "isotone.counts.hierarchies.measured_tree",
    "consistent": "isotone.counts.consistency",
    "cut": "isotone.counts.bounding",
    "cut_all": "isotone.counts.bounding",
    "plan": "isotone.counts.count_plan",
    "plan_breakdown": "isotone.counts.breakdowns.margins_plan",
    "relative_to": "isotone.counts.caring",
    "relax": "isotone.counts.sampling.relaxation",
    "sample_extended_bipartition": "isotone.counts.sampling.choosing",
}

__getattr__ = lazy_names(__name__, _HOMES)
