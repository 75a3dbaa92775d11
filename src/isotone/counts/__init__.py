"""Counts of yes/no answers over a partial order: mechanisms, their errors, and the plan that picks one."""

from isotone.counts.bounding import cut, cut_all
from isotone.counts.consistency import consistent
from isotone.counts.mechanisms.bounded_poset import BoundedPosetMechanism
from isotone.counts.mechanisms.discrete_gaussian import DiscreteGaussianMechanism
from isotone.counts.mechanisms.discrete_laplace import DiscreteLaplaceMechanism
from isotone.counts.mechanisms.gaussian import GaussianMechanism
from isotone.counts.mechanisms.hierarchical import HierarchicalMechanism
from isotone.counts.mechanisms.l_infinity import LInfinityMechanism
from isotone.counts.mechanisms.laplace import LaplaceMechanism
from isotone.counts.mechanisms.order_gaussian import OrderGaussianMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.counts.plan import Plan, plan
from isotone.counts.sampling.bipartition_sampler import sample_extended_bipartition
from isotone.counts.sampling.method import Method
from isotone.counts.sampling.relaxation import Relaxation, relax
from isotone.published.counts.lp_ball import L2Mechanism, LpMechanism

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
