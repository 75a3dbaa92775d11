"""Counts of yes/no answers over a partial order: mechanisms, their errors, and the plan that picks one."""

from isotone.counts.bipartition_sampler import sample_extended_bipartition
from isotone.counts.bounded_poset import BoundedPosetMechanism
from isotone.counts.bounding import cut, cut_all
from isotone.counts.consistency import consistent
from isotone.counts.discrete_gaussian import DiscreteGaussianMechanism
from isotone.counts.discrete_laplace import DiscreteLaplaceMechanism
from isotone.counts.gaussian import GaussianMechanism
from isotone.counts.hierarchical import HierarchicalMechanism
from isotone.counts.l_infinity import LInfinityMechanism
from isotone.counts.laplace import LaplaceMechanism
from isotone.counts.lp_ball import L2Mechanism, LpMechanism
from isotone.counts.method import Method
from isotone.counts.order_gaussian import OrderGaussianMechanism
from isotone.counts.plan import Plan, plan
from isotone.counts.poset_mechanism import PosetMechanism
from isotone.counts.relaxation import Relaxation, relax

__all__ = [
    "BoundedPosetMechanism",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "HierarchicalMechanism",
    "L2Mechanism",
    "LInfinityMechanism",
    "LaplaceMechanism",
    "LpMechanism",
    "Method",
    "OrderGaussianMechanism",
    "Plan",
    "PosetMechanism",
    "Relaxation",
    "consistent",
    "cut",
    "cut_all",
    "plan",
    "relax",
    "sample_extended_bipartition",
]
