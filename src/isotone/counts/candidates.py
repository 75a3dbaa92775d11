"""The mechanisms that apply to an order and a guarantee, for a plan to compare.

A new mechanism that can release enters the comparison here, in one line. ℓ2 and other ℓp balls are not listed:
they cannot release, and are never the best (docs/theory/baselines.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from isotone.counts.caring import Care, care_of
from isotone.counts.hierarchies.fixed_root import FixedRootMechanism
from isotone.counts.hierarchies.measured_tree import TreeGaussianMechanism, TreeLaplaceMechanism
from isotone.counts.hierarchies.tree_field import TreeFieldMechanism
from isotone.counts.least_error import gaussian_total, k_norm_total, log_differences, log_hull
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.bounded_poset import BoundedPosetMechanism, TooFewDrawsError
from isotone.counts.mechanisms.chain_hierarchy import HierarchicalMechanism, chains_of
from isotone.counts.mechanisms.concentrated import gaussian_variance
from isotone.counts.mechanisms.difference_body import DifferenceBodyMechanism
from isotone.counts.mechanisms.grouped_difference import GroupedDifferenceMechanism, can_stack
from isotone.counts.mechanisms.independent.independent import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
)
from isotone.counts.mechanisms.l_infinity import LInfinityMechanism
from isotone.counts.mechanisms.order_gaussian import OrderGaussianMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.counts.sampling.relaxation import Relaxation
from isotone.errors import InputError
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.order.building import is_hierarchy
from isotone.privacy.calibration import largest_pure
from isotone.privacy.checks import whole_number
from isotone.privacy.guarantee import Guarantee, Unit, budget_of

__all__ = ["Build", "Candidate", "Setting", "candidates"]

BOUNDED_REACH = 200
"""Larger orders are not looked at with bounded records: rejection would keep too few draws."""

SMALL_HIERARCHY = 200
"""Hierarchies up to this size are looked at with noise for differences of records."""

LARGEST_STACK = 400
"""The most counts of all groups together that are looked at with one draw: with many groups it gains little."""

Build = Callable[[Guarantee, Progress], AdditiveMechanism]
"""Makes a mechanism that keeps a given guarantee, telling how far it is."""

Least = Callable[[Guarantee], float]
"""A lower bound of the total squared error under a guarantee, which needs neither the mechanism nor a simulation."""


@dataclass(frozen=True)
class Candidate:
    """A mechanism that may be the best.

    ``least`` is None where building it and its error are a closed form.
    """

    build: Build
    least: Least | None = None

    def build_or_none(self, guarantee: Guarantee, progress: Progress) -> AdditiveMechanism | None:
        """The mechanism, or None where it would reject nearly all of its draws."""
        try:
            return self.build(guarantee, progress)
        except TooFewDrawsError:  # a fact about the order and the guarantee, which are public
            return None


@dataclass(frozen=True)
class Setting:
    """What the mechanisms must cover, but for the guarantee. All of it is public, and checked here."""

    P: Poset
    contributions: int = 1
    max_size: int | None = None
    relaxation: Relaxation | None = None
    """What an earlier search found for this order."""
    care: Care | None = None
    groups: int | None = None
    """The number of public groups, or None."""
    fixed: Mapping[str, Any] | None = None
    """The public number of records of a fixed root, and the leaf that takes the rest."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "contributions", whole_number(self.contributions, "contributions"))
        for name in ("max_size", "groups"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole_number(getattr(self, name), name))
        if self.care is not None:
            object.__setattr__(self, "care", care_of(self.P, self.care))
        if self.fixed is not None and self.groups is not None:
            raise InputError(
                "A root is fixed for one table: a unit that is replaced may change groups. Leave out groups."
            )

    @property
    def cared(self) -> Care:
        """What is to be small, in the words of ``care``."""
        return "nodes" if self.care is None else self.care

    def common(self, guarantee: Guarantee) -> dict[str, Any]:
        """The arguments that every mechanism takes."""
        return {
            "neighbours": guarantee.neighbours,
            "contributions": self.contributions,
            "max_size": self.max_size,
        }

    def unit(self, guarantee: Guarantee) -> Unit:
        """What the guarantee protects."""
        return Unit(self.contributions, guarantee.neighbours)

    def least_of_hull(self, guarantee: Guarantee) -> float:
        """The least total squared error of noise shaped by the hull of all records."""
        if self.P.choices:  # not every filter is a record
            return 0.0
        rate = self.unit(guarantee).per_step(largest_pure(guarantee))
        return k_norm_total(len(self.P), float(rate), log_hull(self.P))

    def least_of_differences(self, guarantee: Guarantee) -> float:
        """The least total squared error of noise shaped by differences of two records."""
        if self.P.choices:
            return 0.0
        rate = largest_pure(guarantee) / self.unit(guarantee).changes
        return k_norm_total(len(self.P), float(rate), log_differences(self.P))

    def least_of_bounded(self, guarantee: Guarantee) -> float:
        """The least total squared error with bounded records, whose body contains the hull on a smaller scale."""
        return self.least_of_hull(guarantee) * ((self.max_size or 0) / len(self.P)) ** 2

    def least_of_gaussians(self, guarantee: Guarantee) -> float:
        """The least total squared error of any Gaussian noise."""
        if self.max_size is not None or self.P.choices:  # such records need not span the hull
            return 0.0
        variance = gaussian_variance(guarantee) * self.unit(guarantee).changes ** 2
        return gaussian_total(len(self.P), float(variance), log_hull(self.P))


def candidates(setting: Setting, guarantee: Guarantee) -> list[Candidate]:
    """The mechanisms that apply, unsorted, each built from a guarantee of the same kind as ``guarantee``."""
    if setting.groups is not None and guarantee.adjacency.units > 1:
        return _for_groups(setting, setting.groups, guarantee)
    if setting.fixed is not None:
        return _for_fixed_root(setting, setting.fixed, guarantee)
    P = setting.P

    def pure(kind: Callable[..., AdditiveMechanism], **other: Any) -> Candidate:
        return Candidate(lambda g, _: kind(P, largest_pure(g), **(setting.common(g) | other)))

    def gaussian(kind: Callable[..., AdditiveMechanism]) -> Candidate:
        return Candidate(lambda g, _: kind(P, **budget_of(g), **setting.common(g)))

    def ordered(kind: type[PosetMechanism], least: Least, max_size: int | None = None) -> Candidate:
        def build(g: Guarantee, progress: Progress) -> AdditiveMechanism:
            unit = (g.neighbours, setting.contributions, max_size)
            return kind(P, largest_pure(g), *unit, relaxation=setting.relaxation, progress=progress)

        return Candidate(build, least)

    def order_gaussian(g: Guarantee, progress: Progress) -> AdditiveMechanism:
        return OrderGaussianMechanism(P, **budget_of(g), **setting.common(g), progress=progress)

    bounded: list[Candidate] = []
    if setting.max_size is not None and setting.max_size < len(P) <= BOUNDED_REACH:
        bounded = [ordered(BoundedPosetMechanism, setting.least_of_bounded, setting.max_size)]
    if is_hierarchy(P):  # a bound on sizes takes leaves away and changes nothing about the others
        found = _for_hierarchies(replace(setting, max_size=None), guarantee)
        if len(P) <= SMALL_HIERARCHY and guarantee.adjacency.exchanges:
            found.append(ordered(DifferenceBodyMechanism, lambda _: 0.0))
        return found
    if any(choice.kind == "partition" for choice in P.choices):  # only noise that adds up
        kinds = [PosetMechanism, *[DifferenceBodyMechanism] * guarantee.adjacency.exchanges]
        return [ordered(kind, lambda _: 0.0) for kind in kinds] + bounded
    # where a bound on sizes changes nothing, records need not be cut
    found = [ordered(PosetMechanism, setting.least_of_hull), pure(LInfinityMechanism, max_size=None)]
    if guarantee.adjacency.exchanges:
        found.append(ordered(DifferenceBodyMechanism, setting.least_of_differences))
    found += [*bounded, pure(LaplaceMechanism), pure(DiscreteLaplaceMechanism)]
    if P.height > 1 and chains_of(P) is not None and not P.choices:
        found.append(pure(HierarchicalMechanism, max_size=None))
    if guarantee.kind != "pure":
        found.append(Candidate(order_gaussian, setting.least_of_gaussians))
        found += [gaussian(GaussianMechanism), gaussian(DiscreteGaussianMechanism)]
    return found


def _for_groups(setting: Setting, groups: int, guarantee: Guarantee) -> list[Candidate]:
    """Noise for groups where neighbours differ by several units, as when one is replaced.

    Replacing one may take it out of a group and put another into a second group, which no replace-calibrated noise on
    one group covers. So each group is guaranteed so much about adding or removing that what is asked for about replacing
    follows; or all groups have one draw.
    """

    def adding(one: Candidate) -> Candidate:
        least = one.least
        return Candidate(
            lambda g, progress: one.build(g.of_one_unit(), progress),
            None if least is None else lambda g: least(g.of_one_unit()),
        )

    def together(g: Guarantee, progress: Progress) -> AdditiveMechanism:
        unit = (g.neighbours, setting.contributions)
        return GroupedDifferenceMechanism(setting.P, largest_pure(g), *unit, groups=groups, progress=progress)

    found = [adding(one) for one in candidates(replace(setting, groups=None), guarantee.of_one_unit())]
    if len(setting.P) * groups <= LARGEST_STACK and can_stack(setting.P):
        found.append(Candidate(together, lambda _: 0.0))
    return found


def _for_fixed_root(setting: Setting, fixed: Mapping[str, Any], guarantee: Guarantee) -> list[Candidate]:
    """A hierarchy whose root is public, with shares for what is cared for, leaves only, and Gaussian noise."""
    P = setting.P

    def made(g: Guarantee, budget: dict[str, Fraction], shares: dict[Any, int] | None) -> AdditiveMechanism:
        more = setting.common(g) | {"care": setting.cared, "shares": shares}
        return FixedRootMechanism(P, **budget, **more, **fixed)

    leaves = {x: 1 for x in P.minimal if str(x) != str(fixed["catch_all"])}
    found = [
        Candidate(lambda g, _, shares=shares: made(g, {"epsilon": largest_pure(g)}, shares))
        for shares in (None, leaves)
    ]
    if guarantee.kind != "pure":
        found.append(Candidate(lambda g, _: made(g, budget_of(g), None)))
    return found


def _for_hierarchies(setting: Setting, guarantee: Guarantee) -> list[Candidate]:
    """Mechanisms whose counts add up, with shares for what is cared for, leaves only, and levels alike."""
    P = setting.P

    def field(g: Guarantee, _: Progress) -> AdditiveMechanism:
        return TreeFieldMechanism(P, largest_pure(g), **setting.common(g), care=setting.cared)

    def leaves(g: Guarantee, _: Progress) -> AdditiveMechanism:
        only = dict.fromkeys(P.minimal, 1)
        return TreeFieldMechanism(P, largest_pure(g), **setting.common(g), care=setting.cared, shares=only)

    def levels(g: Guarantee, _: Progress) -> AdditiveMechanism:
        return TreeLaplaceMechanism(P, largest_pure(g), **setting.common(g))

    def gaussian(g: Guarantee, _: Progress) -> AdditiveMechanism:
        return TreeGaussianMechanism(P, **budget_of(g), **setting.common(g), care=setting.cared)

    builds = [field, leaves, levels, *([gaussian] if guarantee.kind != "pure" else [])]
    return [Candidate(build) for build in builds]
