"""The mechanisms that apply to an order and a promise, for a plan to compare.

A new mechanism that can release enters the comparison here, in one line. ℓ2 and other ℓp balls are not listed:
they cannot release, and are never the best (docs/theory/baselines.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.bounded_poset import BoundedPosetMechanism
from isotone.counts.mechanisms.difference_body import DifferenceBodyMechanism
from isotone.counts.mechanisms.discrete_gaussian import DiscreteGaussianMechanism
from isotone.counts.mechanisms.discrete_laplace import DiscreteLaplaceMechanism
from isotone.counts.mechanisms.gaussian import GaussianMechanism
from isotone.counts.mechanisms.hierarchical import HierarchicalMechanism, chains_of
from isotone.counts.mechanisms.l_infinity import LInfinityMechanism
from isotone.counts.mechanisms.laplace import LaplaceMechanism
from isotone.counts.mechanisms.order_gaussian import OrderGaussianMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.counts.sampling.relaxation import Relaxation
from isotone.mechanism import Progress
from isotone.privacy.adjacency import adjacency
from isotone.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["Build", "Setting", "candidates", "largest_pure"]

BOUNDED_REACH = 200
"""Larger orders are not looked at with bounded records: rejection would keep too few draws."""

Build = Callable[[Guarantee, Progress], AdditiveMechanism]
"""Makes a mechanism that keeps a given promise, telling how far it is."""


@dataclass(frozen=True)
class Setting:
    """What the mechanisms must cover, but for the size of the promise."""

    P: Poset
    contributions: int
    max_size: int | None
    relaxation: Relaxation | None

    def common(self, promise: Guarantee) -> dict[str, Any]:
        """The arguments that every mechanism takes."""
        return {
            "neighbours": promise.neighbours,
            "contributions": self.contributions,
            "max_size": self.max_size,
        }


def candidates(setting: Setting, promise: Guarantee) -> list[Build]:
    """The mechanisms that apply, unsorted, each built from a promise of the same kind as ``promise``."""
    P = setting.P

    def pure(kind: Callable[..., AdditiveMechanism], **other: Any) -> Build:
        return lambda g, _: kind(P, largest_pure(g), **(setting.common(g) | other))

    def gaussian(kind: Callable[..., AdditiveMechanism]) -> Build:
        return lambda g, _: kind(P, **_parameters(g), **setting.common(g))

    def ordered(kind: type[PosetMechanism], max_size: int | None = None) -> Build:
        return lambda g, progress: kind(
            P,
            largest_pure(g),
            g.neighbours,
            setting.contributions,
            max_size,
            relaxation=setting.relaxation,
            progress=progress,
        )

    def order_gaussian(g: Guarantee, progress: Progress) -> AdditiveMechanism:
        return OrderGaussianMechanism(P, **_parameters(g), **setting.common(g), progress=progress)

    if any(choice.kind == "partition" for choice in P.choices):  # noise that adds up
        builds = [ordered(PosetMechanism)]
        return (
            [*builds, ordered(DifferenceBodyMechanism)] if adjacency(promise.neighbours).exchanges else builds
        )
    # where a bound on sizes changes nothing, records need not be cut
    builds = [ordered(PosetMechanism), pure(LInfinityMechanism, max_size=None)]
    if adjacency(promise.neighbours).exchanges:
        builds.append(ordered(DifferenceBodyMechanism))
    if setting.max_size is not None and setting.max_size < len(P) <= BOUNDED_REACH:
        builds.append(ordered(BoundedPosetMechanism, setting.max_size))
    builds += [pure(LaplaceMechanism), pure(DiscreteLaplaceMechanism)]
    if P.height > 1 and chains_of(P) is not None and not P.choices:
        builds.append(pure(HierarchicalMechanism, max_size=None))
    if promise.kind != "pure":
        builds += [order_gaussian, gaussian(GaussianMechanism), gaussian(DiscreteGaussianMechanism)]
    return builds


def largest_pure(promise: Guarantee) -> Fraction:
    """The largest epsilon (to about 15 digits, rounded down) whose pure promise implies ``promise``.

    >>> largest_pure(Guarantee.zcdp("1/2"))
    Fraction(1, 1)
    """
    if promise.kind != "zcdp":
        return promise.epsilon
    scale = 10**30
    return Fraction(math.isqrt(math.floor(2 * promise.rho * scale)), 10**15)  # isqrt rounds down


def _parameters(promise: Guarantee) -> dict[str, Fraction]:
    if promise.kind == "zcdp":
        return {"rho": promise.rho}
    return {"epsilon": promise.epsilon, "delta": promise.delta}
