from isotone.counts.bounding import cut as cut
from isotone.counts.bounding import cut_all as cut_all
from isotone.counts.breakdowns.margins import MarginsMechanism as MarginsMechanism
from isotone.counts.breakdowns.margins_plan import MarginsPlan as MarginsPlan
from isotone.counts.breakdowns.margins_plan import plan_breakdown as plan_breakdown
from isotone.counts.caring import relative_to as relative_to
from isotone.counts.consistency import consistent as consistent
from isotone.counts.count_plan import CountPlan as CountPlan
from isotone.counts.count_plan import plan as plan
from isotone.counts.hierarchies.fixed_root import FixedRootMechanism as FixedRootMechanism
from isotone.counts.hierarchies.measured_tree import TreeGaussianMechanism as TreeGaussianMechanism
from isotone.counts.hierarchies.measured_tree import TreeLaplaceMechanism as TreeLaplaceMechanism
from isotone.counts.hierarchies.tree_field import TreeFieldMechanism as TreeFieldMechanism
from isotone.counts.mechanisms.bounded_poset import BoundedPosetMechanism as BoundedPosetMechanism
from isotone.counts.mechanisms.chain_hierarchy import HierarchicalMechanism as HierarchicalMechanism
from isotone.counts.mechanisms.difference_body import DifferenceBodyMechanism as DifferenceBodyMechanism
from isotone.counts.mechanisms.grouped_difference import (
    GroupedDifferenceMechanism as GroupedDifferenceMechanism,
)
from isotone.counts.mechanisms.independent.independent import (
    DiscreteGaussianMechanism as DiscreteGaussianMechanism,
)
from isotone.counts.mechanisms.independent.independent import (
    DiscreteLaplaceMechanism as DiscreteLaplaceMechanism,
)
from isotone.counts.mechanisms.independent.independent import GaussianMechanism as GaussianMechanism
from isotone.counts.mechanisms.independent.independent import LaplaceMechanism as LaplaceMechanism
from isotone.counts.mechanisms.l_infinity import LInfinityMechanism as LInfinityMechanism
from isotone.counts.mechanisms.order_gaussian import OrderGaussianMechanism as OrderGaussianMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism as PosetMechanism
from isotone.counts.sampling.choosing import sample_extended_bipartition as sample_extended_bipartition
from isotone.counts.sampling.method import Method as Method
from isotone.counts.sampling.relaxation import Relaxation as Relaxation
from isotone.counts.sampling.relaxation import relax as relax
from isotone.planning.plan import Plan as Plan
from isotone.published.counts import L2Mechanism as L2Mechanism
from isotone.published.counts import LpMechanism as LpMechanism

__all__: list[str]
