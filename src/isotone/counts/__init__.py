"""Counts of yes/no answers over a partial order: mechanisms, their errors, and the plan that picks one."""

from isotone.counts.bipartition_sampler import sample_extended_bipartition
from isotone.counts.poset_mechanism import PosetMechanism

__all__ = ["PosetMechanism", "sample_extended_bipartition"]
