from isotone.counts.consistency import consistent as consistent
from isotone.counts.count_plan import CountPlan as CountPlan
from isotone.counts.difference import DifferenceBodyMechanism as DifferenceBodyMechanism
from isotone.counts.difference import (
    GroupedDifferenceMechanism as GroupedDifferenceMechanism,
)
from isotone.counts.fixed_root import FixedRootMechanism as FixedRootMechanism
from isotone.counts.hierarchy import TreeGaussianMechanism as TreeGaussianMechanism
from isotone.counts.hierarchy import TreeLaplaceMechanism as TreeLaplaceMechanism
from isotone.counts.independent import BoundedPosetMechanism as BoundedPosetMechanism
from isotone.counts.independent import (
    DiscreteGaussianMechanism as DiscreteGaussianMechanism,
)
from isotone.counts.independent import (
    DiscreteLaplaceMechanism as DiscreteLaplaceMechanism,
)
from isotone.counts.independent import GaussianMechanism as GaussianMechanism
from isotone.counts.independent import HierarchicalMechanism as HierarchicalMechanism
from isotone.counts.independent import LaplaceMechanism as LaplaceMechanism
from isotone.counts.knorm import LInfinityMechanism as LInfinityMechanism
from isotone.counts.knorm import PosetMechanism as PosetMechanism
from isotone.counts.margins import MarginsMechanism as MarginsMechanism
from isotone.counts.margins import MarginsPlan as MarginsPlan
from isotone.counts.matrix import MatrixMechanism as MatrixMechanism
from isotone.counts.mechanism import cut as cut
from isotone.counts.mechanism import cut_all as cut_all
from isotone.counts.mechanism import relative_to as relative_to
from isotone.counts.order_gaussian import OrderGaussianMechanism as OrderGaussianMechanism
from isotone.counts.relaxation import Relaxation as Relaxation
from isotone.counts.relaxation import relax as relax
from isotone.counts.sampler import Method as Method
from isotone.counts.sampler import sample_extended_bipartition as sample_extended_bipartition
from isotone.counts.tree_field import TreeFieldMechanism as TreeFieldMechanism
from isotone.planning import Plan as Plan
from isotone.published.counts import L2Mechanism as L2Mechanism
from isotone.published.counts import LpMechanism as LpMechanism

__all__: list[str]
