"""Which mechanisms apply to an order and a guarantee, the choice of the one that releases, and the plan that compares them.

The mechanisms that apply to an order and a guarantee, for a plan to compare.

A new mechanism that can release enters the comparison here, in one line. ℓ2 and other ℓp balls are not listed:
they cannot release, and are never the best (docs/theory/baselines.md, section 3).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

import isotone.counts as counts
from isotone.counts.difference import DifferenceBodyMechanism, GroupedDifferenceMechanism, can_stack
from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.hierarchy import TreeGaussianMechanism, TreeLaplaceMechanism
from isotone.counts.independent import (
    BoundedPosetMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    HierarchicalMechanism,
    LaplaceMechanism,
    TooFewDrawsError,
    chains_of,
)
from isotone.counts.knorm import LInfinityMechanism, PosetMechanism
from isotone.counts.matrix import MatrixMechanism, has_few_records
from isotone.counts.mechanism import (
    AdditiveMechanism,
    Care,
    care_of,
    cared_error,
    gaussian_total,
    gaussian_variance,
    k_norm_total,
    log_differences,
    log_hull,
)
from isotone.counts.order_gaussian import OrderGaussianMechanism, shape_of
from isotone.counts.relaxation import Relaxation
from isotone.counts.tree_field import TreeFieldMechanism
from isotone.errors import InputError
from isotone.mechanism import Error, HasGroups, HasLogDensity, HasMethod, Progress, no_progress
from isotone.order import Poset
from isotone.order.building import is_hierarchy, lookalikes
from isotone.planning import Column, Plan, Row
from isotone.privacy.calibration import largest_pure, sigma_squared
from isotone.privacy.checks import (
    confidence_level,
    decimal,
    did_you_mean,
    exact,
    plain_text,
    whole_number,
)
from isotone.privacy.guarantee import ADDING, REPLACING, Guarantee, Unit, budget_of

_LARGE_RATE = 1000
"""Beyond this rate noise on integers is far below that of real numbers, and bounds for the latter say nothing."""

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

    def least_of_sums(self, guarantee: Guarantee) -> float:
        """The least total squared error of Laplace noise on sums, whose ℓ1 sensitivity is no less than that in ℓ2."""
        rate = self.unit(guarantee).per_step(largest_pure(guarantee))
        return (
            0.0 if rate > _LARGE_RATE else gaussian_total(len(self.P), float(2 / rate**2), log_hull(self.P))
        )

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
        shape_of(
            P.canonical.order, setting.max_size, g.neighbours, progress
        )  # kept, and found by the mechanism
        return OrderGaussianMechanism(P, **budget_of(g), **setting.common(g))

    bounded: list[Candidate] = []
    if setting.max_size is not None and setting.max_size < len(P) <= BOUNDED_REACH:
        bounded = [ordered(BoundedPosetMechanism, setting.least_of_bounded, setting.max_size)]
    if is_hierarchy(P):  # a bound on sizes takes leaves away and changes nothing about the others
        result = _for_hierarchies(replace(setting, max_size=None), guarantee)
        if len(P) <= SMALL_HIERARCHY and guarantee.adjacency.exchanges:
            result.append(ordered(DifferenceBodyMechanism, lambda _: 0.0))
        return result
    if any(choice.kind == "partition" for choice in P.choices):  # only noise that adds up
        kinds = [PosetMechanism, *[DifferenceBodyMechanism] * guarantee.adjacency.exchanges]
        return [ordered(kind, lambda _: 0.0) for kind in kinds] + bounded
    # where a bound on sizes changes nothing, records need not be cut
    result = [ordered(PosetMechanism, setting.least_of_hull), pure(LInfinityMechanism, max_size=None)]
    if guarantee.adjacency.exchanges:
        result.append(ordered(DifferenceBodyMechanism, setting.least_of_differences))
    result += [*bounded, pure(LaplaceMechanism), pure(DiscreteLaplaceMechanism)]
    if P.height > 1 and chains_of(P) is not None and not P.choices:
        result.append(pure(HierarchicalMechanism, max_size=None))
    if has_few_records(P):
        sums = pure(MatrixMechanism, max_size=None)
        result.append(replace(sums, least=setting.least_of_sums))
    if guarantee.kind != "pure":
        result.append(Candidate(order_gaussian, setting.least_of_gaussians))
        result += [gaussian(GaussianMechanism), gaussian(DiscreteGaussianMechanism)]
    return result


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

    result = [adding(one) for one in candidates(replace(setting, groups=None), guarantee.of_one_unit())]
    if len(setting.P) * groups <= LARGEST_STACK and can_stack(setting.P):
        result.append(Candidate(together, lambda _: 0.0))
    return result


def _for_fixed_root(setting: Setting, fixed: Mapping[str, Any], guarantee: Guarantee) -> list[Candidate]:
    """A hierarchy whose root is public, with shares for what is cared for, leaves only, and Gaussian noise."""
    P = setting.P

    def made(g: Guarantee, budget: dict[str, Fraction], shares: dict[Any, int] | None) -> AdditiveMechanism:
        more = setting.common(g) | {"care": setting.cared, "shares": shares}
        return FixedRootMechanism(P, **budget, **more, **fixed)

    leaves = {x: 1 for x in P.minimal if str(x) != str(fixed["catch_all"])}
    result = [
        Candidate(lambda g, _, shares=shares: made(g, {"epsilon": largest_pure(g)}, shares))
        for shares in (None, leaves)
    ]
    if guarantee.kind != "pure":
        result.append(Candidate(lambda g, _: made(g, budget_of(g), None)))
    return result


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


# Choosing the mechanism of a release of counts. It is given, named, or the best of all. No data is needed.

MARGIN = 0.9
"""Bounds are trusted to this factor: simulated errors and volumes are not exact."""


def choose_mechanism(
    setting: Setting, guarantee: Guarantee, mechanism: str | AdditiveMechanism | None
) -> AdditiveMechanism:
    """The mechanism for the guarantee ``guarantee``, chosen without data.

    Groups are released in parallel, and adding or removing a unit changes one of them; for replacing, see
    :func:`isotone.counts.count_plan.candidates`.
    """
    if isinstance(mechanism, AdditiveMechanism):
        _require_fitting(mechanism, setting, guarantee)
        return mechanism
    if mechanism is None or mechanism == "best":
        return best_mechanism(setting, guarantee)
    return _named(mechanism, setting, guarantee)


def _require_fitting(mechanism: AdditiveMechanism, setting: Setting, guarantee: Guarantee) -> None:
    """Refuse a mechanism that is for another order, other records or a weaker guarantee."""
    P, groups = setting.P, setting.groups
    if hasattr(mechanism, "breakdown"):
        raise InputError("A mechanism of a breakdown is made from one for counts: pass that one.")
    if mechanism.P != P or mechanism.P.elements != P.elements:
        raise InputError("The mechanism given is for another order.")
    together = mechanism.groups if isinstance(mechanism, HasGroups) else None
    if together is not None and together != groups:
        raise InputError(f"The mechanism given is for {together} groups.")
    if together is None and groups is not None and guarantee.adjacency.units > 1:
        raise InputError(
            f"For groups and {guarantee.neighbours} neighbours name the mechanism instead of passing one."
        )
    if (mechanism.contributions, mechanism.max_size) != (setting.contributions, setting.max_size):
        raise InputError("The mechanism given is for other contributions or another max_size.")
    if not replace(mechanism.guarantee, unit=guarantee.unit).within(guarantee):
        raise InputError(
            f"The mechanism given guarantees {mechanism.guarantee}, which is less than asked for."
        )
    if setting.fixed is not None:
        raise InputError("Give records and catch_all to the mechanism, or name it instead of passing one.")


def best_mechanism(setting: Setting, guarantee: Guarantee) -> AdditiveMechanism:
    """The mechanism that :func:`isotone.counts.plan` puts first, without the errors and widths of all others.

    Those with a closed form are compared first. One that must be built or simulated is looked at only if a lower
    bound of its error does not say that it loses.
    """
    size, order = len(setting.P), cared_error(setting.P, setting.cared)
    total_counts = setting.cared in ("nodes", "worst")  # the bounds are about the total
    listed = candidates(setting, guarantee)
    bounds = [-math.inf if c.least is None else c.least(guarantee) for c in listed]  # closed forms come first
    best: tuple[float, int, AdditiveMechanism] | None = None
    for place in sorted(range(len(listed)), key=lambda place: bounds[place]):
        if total_counts and best and _cannot_beat(bounds[place], best[0], size):
            continue
        result = listed[place].build_or_none(guarantee, no_progress)
        if result is None:
            continue
        shaped = result.least_total() if total_counts and isinstance(result, PosetMechanism) else 0.0
        if best and _cannot_beat(shaped, best[0], size):
            continue
        error = order(result.error())
        if best is None or (error, place) < best[:2]:
            best = error, place, result
    assert best is not None  # closed forms always apply
    return best[2]


def _cannot_beat(least_total: float, error: float, size: int) -> bool:
    """Whether a mechanism with this bound is not the best. The root mean squared error is at most the worst one."""
    return math.sqrt(MARGIN * max(least_total, 0.0) / size) > error


def _named(name: str, setting: Setting, guarantee: Guarantee) -> AdditiveMechanism:
    """The mechanism of this name, or an error that says why it is none for this setting."""
    kind = count_mechanism(name)
    takes, fixed, groups = inspect.signature(kind).parameters, setting.fixed, setting.groups
    if ("catch_all" in takes) != (fixed is not None):
        raise InputError(
            "records and catch_all go with FixedRootMechanism and no other. Leave the choice to the plan."
        )
    if "groups" in takes and groups is None:
        raise InputError(f"{name} is for counts of several groups: say by= and groups=.")
    if not kind.can_release:
        raise InputError(
            f"{name} exists for comparison and has no exact sampler. Leave the choice to the plan."
        )
    if setting.care is not None and "care" not in takes:
        raise InputError(f"{name} has no use for care. Leave it out, or leave the choice to the plan.")
    # noise of its own for each group must be for adding or removing: a unit that is replaced may change groups
    apart = groups is not None and "groups" not in takes
    own = guarantee.of_one_unit() if apart else guarantee
    more = {"care": setting.care, "relaxation": setting.relaxation, **(fixed or {})}
    more |= {"groups": groups} if "groups" in takes else {}
    arguments = {key: value for key, value in more.items() if value is not None}
    try:
        return kind(setting.P, **budget_of(own), **setting.common(own), **arguments)
    except TypeError:
        without = "" if setting.relaxation is None else " or needs no relaxation"
        raise InputError(
            f"{name} cannot guarantee {guarantee}{without}. Leave the choice to the plan."
        ) from None


def count_mechanism(name: str) -> type[Any]:
    """The class of a mechanism for counts, by its name."""
    known = count_mechanisms()
    name = plain_text(name, "mechanism")
    if name not in known:
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise InputError(f"There is no mechanism {name!r} for counts{near}")
    return getattr(counts, name)


def count_mechanisms() -> tuple[str, ...]:
    """The names of the mechanisms for counts, none of which is loaded for it."""
    # a mechanism for breakdowns is made from one for counts, and has no order of its own
    return tuple(name for name in counts.__all__ if name.endswith("Mechanism") and name != "MarginsMechanism")


# Compare both kinds of neighbours for a steward whose number of records is public.
#
# A release that is ε-DP when a unit is added or removed is 2ε-DP when one is replaced. So a guarantee of ε about
# replacing asks no more about a unit's answers than ε/2 about adding or removing, and needs less noise; but it
# hides the presence of a unit less well (docs/theory/difference.md, section 2). Likewise for 4ρ and ρ, and for (ε, δ).

_LARGEST = 60
"""For larger orders a second search could take long."""


def advice(guarantee: Guarantee, mechanisms: Sequence[AdditiveMechanism]) -> str:
    """What a plan of ``mechanisms``, best first, says about the other kind of neighbours, empty where it compares none."""
    if guarantee.neighbours not in (ADDING, REPLACING):
        return ""
    if guarantee.kind != "pure":
        return _of_best(guarantee, mechanisms)
    best, ordered = mechanisms[0], next((m for m in mechanisms if type(m) is PosetMechanism), None)
    if isinstance(best, TreeFieldMechanism) and not guarantee.adjacency.exchanges:
        return _for_hierarchy(best)
    if ordered is None:
        return ""
    if guarantee.adjacency.exchanges:
        return _under_replace(guarantee, best, ordered)
    return _under_add_remove(guarantee, best, ordered)


def _of_best(stated: Guarantee, mechanisms: Sequence[AdditiveMechanism]) -> str:
    """Under zCDP and (ε, δ) the best mechanism for the other guarantee is looked for, where that is quick."""
    mechanism = mechanisms[0]
    grouped = any(m.neighbours != stated.neighbours for m in mechanisms)
    relaxed = any(isinstance(m, PosetMechanism) and m.sampler.relaxation is not None for m in mechanisms)
    if grouped or relaxed or len(mechanism.P) > _LARGEST:
        return ""
    try:
        other_neighbours = stated.of_one_unit() if stated.adjacency.exchanges else stated.replacing()
    except InputError:  # δ would be above 1
        return ""
    size = next((m.max_size for m in mechanisms if m.max_size), None)
    setting = Setting(mechanism.P, mechanism.contributions, size, care=getattr(mechanism, "care", None))
    other = best_mechanism(setting, other_neighbours).error().rmse
    if stated.adjacency.exchanges:
        return _as_public(_budget(other_neighbours), other)
    if other >= 0.999 * mechanism.error().rmse:
        return ""
    return _if_public(_budget(other_neighbours), other)


def _as_public(budget: str, rmse: float) -> str:
    return (
        f'You state that the number of records is public. neighbours = "add-remove" with {budget} protects answers just '
        f"as well, with rms error {rmse:.4g}, and hides who took part at {budget}."
    )


def _if_public(budget: str, rmse: float, presence: str = "") -> str:
    return (
        f'If the number of records is public anyway: neighbours = "replace" with {budget} protects answers just as well, with '
        f"rms error {rmse:.4g}, but who took part is hidden at {presence or budget} only."
    )


def _budget(guarantee: Guarantee) -> str:
    if guarantee.kind == "zcdp":
        return f"ρ = {guarantee.rho}"
    return f"ε = {guarantee.epsilon}, δ = {float(guarantee.delta):.3g}"


def _under_replace(guarantee: Guarantee, best: AdditiveMechanism, ordered: PosetMechanism) -> str:
    epsilon = guarantee.epsilon
    says = _as_public(f"ε = {decimal(epsilon / 2)}", ordered.error().rmse)
    if isinstance(best, DifferenceBodyMechanism):
        return f"{says} {type(best).__name__} hides it with ε = {decimal(epsilon)} only."
    return f"{says} A guarantee about replacing need not hide it at all."


def _under_add_remove(guarantee: Guarantee, best: AdditiveMechanism, ordered: PosetMechanism) -> str:
    epsilon = 2 * guarantee.epsilon
    if ordered.sampler.drawn.name != "exact":  # a search for another relaxation could take minutes
        return ""
    other = DifferenceBodyMechanism(ordered.P, epsilon, contributions=ordered.contributions)
    if other.error().rmse >= best.error().rmse:
        return ""
    return _if_public(f"ε = {decimal(epsilon)}", other.error().rmse)


def _for_hierarchy(best: TreeFieldMechanism) -> str:
    """The same shares at twice epsilon. Within the tree a replaced record moves all but the root twice."""
    epsilon, k = 2 * best.epsilon, best.contributions
    other = TreeFieldMechanism(best.P, epsilon, REPLACING, k, care=best.care, shares=best.shares)
    if other.error().rmse >= 0.999 * best.error().rmse:
        return ""
    presence = float(other.rate * best.contributions)
    return _if_public(f"ε = {decimal(epsilon)}", other.error().rmse, f"ε = {presence:.4g}")


# The plan of counts, with every applicable mechanism and its error. Nothing is read and nothing is spent.

_MOST_STEPS = 100


def spelling(P: Poset) -> str:
    """What a plan says about names that may be misspelt: a parent that is named nowhere else is an element, too."""
    pairs = [f"{one!r} and {other!r}" for one, other in lookalikes(P)[:3]]
    if not pairs:
        return ""
    return f"Nearly the same name, but two elements: {'; '.join(pairs)}. If one is misspelt, mend it."


_HALF = 0.5 - 1e-9
"""Noise below a half is rounded to 0, and exactly a half is not."""


def plan(setting: Setting, guarantee: Guarantee, progress: Progress = no_progress) -> CountPlan:
    """Compare every mechanism that keeps a guarantee for counts. Under zCDP pure mechanisms count as ε²/2.

    An order beyond exact reach is relaxed for ``PosetMechanism``, which can take minutes; its row says so and
    what it costs, and the mechanism keeps the relaxed order.

    >>> from isotone.order import Poset
    >>> type(plan(Setting(Poset.chain(range(200))), Guarantee.pure(1)).best).__name__
    'MatrixMechanism'
    """
    rows = [CountRow.of(mechanism, build) for build, mechanism in _built(setting, guarantee, progress)]
    progress(1.0, "done")
    order, least = cared_error(setting.P, setting.cared), min(row.rmse for row in rows)
    rows = [replace(row, ratio=(row.rmse / least) ** 2 if least else 0.0) for row in rows]
    best_first = tuple(sorted(rows, key=lambda row: order(row.mechanism.error())))
    return CountPlan(best_first, setting.P, guarantee, order)


def _built(
    setting: Setting, guarantee: Guarantee, progress: Progress
) -> Iterator[tuple[Build, AdditiveMechanism]]:
    """Every mechanism that applies, one after the other."""
    listed = candidates(setting, guarantee)
    parts = len(listed) + 1
    for done, candidate in enumerate(listed):
        mechanism = candidate.build_or_none(
            guarantee, lambda fraction, what, done=done: progress((done + fraction) / parts, what)
        )
        if mechanism is not None:
            progress((done + 1) / parts, type(mechanism).__name__)
            yield candidate.build, mechanism


@dataclass(frozen=True)
class CountRow(Row):
    """One mechanism for counts: its root mean squared error, that of its worst element, the half-width that all its counts
    stay within at once with 95 % probability, and how many times the least squared error its own is.
    """

    columns: ClassVar[tuple[Column, ...]] = (
        Column("rmse", "rms error", marker="o"),
        Column("worst", "worst element", marker="|"),
        Column("half_width", "95 % of the time", "all within ± {:,.0f}".format, marker="D"),
        Column("ratio", "squared error", lambda ratio: f"× {ratio:.3g}" if ratio else ""),
    )

    mechanism: AdditiveMechanism
    rmse: float
    worst: float
    half_width: float
    build: Build = field(repr=False, compare=False)
    ratio: float = 0.0

    @classmethod
    def of(cls, mechanism: AdditiveMechanism, build: Build) -> CountRow:
        """The row of a mechanism."""
        error, width = mechanism.error(), mechanism.simultaneous_half_width(0.95)
        return cls(type(mechanism).__name__, mechanism, error.rmse, error.worst, width, build)

    @property
    def note(self) -> str:
        """How an order beyond exact reach is handled, and whether records must be cut."""
        method = str(self.mechanism.method) if isinstance(self.mechanism, HasMethod) else ""
        cut = f"records cut to {self.mechanism.max_size}" if self.mechanism.max_size is not None else ""
        return ", ".join(part for part in (method, cut) if part)


@dataclass(frozen=True)
class CountPlan(Plan[CountRow]):
    """Mechanisms for one order and one guarantee, best first."""

    P: Poset
    guarantee: Guarantee
    rank: Callable[[Error], float] = field(default=lambda error: error.rmse, repr=False, compare=False)
    """What the rows are sorted by."""

    @property
    def title(self) -> str:
        """The number of counts and the guarantee."""
        return f"{len(self.P)} counts, {self.guarantee}"

    @property
    def remark(self) -> str:
        """Names that may be misspelt, and the advice."""
        return "\n".join(filter(None, [spelling(self.P), self.advice]))

    @property
    def advice(self) -> str:
        """Compare add-remove with replace at twice ε, for a steward whose number of records is public."""
        return advice(self.guarantee, [row.mechanism for row in self.rows])

    @property
    def best(self) -> AdditiveMechanism:
        """The mechanism with the least error, by the plan's criterion."""
        return self.rows[0].mechanism

    @property
    def relaxation(self) -> Relaxation | None:
        """What was found for an order out of reach, for a spec or a release that shall not search again.

        That of the first mechanism that has any, and with the draws of its law where these are slow.
        """
        for row in self.rows:
            if isinstance(row.mechanism, PosetMechanism) and row.mechanism.sampler.relaxation is not None:
                return row.mechanism.sampler.described(row.mechanism.law_draws)
        return None

    def epsilon_for(
        self,
        error: float,
        confidence: float = 0.95,
        simultaneous: bool = True,
        element: Hashable | None = None,
    ) -> float:
        """The smallest epsilon at which the best mechanism of a plan keeps within ``error`` with the given confidence.

        ``simultaneous``: all counts at once; otherwise each count by itself, or the count of ``element`` alone. Delta and
        the other settings stay as they are. Rounded up to four digits, and looked at as a plan does: ``plan(P, epsilon=...)`` agrees.
        """
        if self.guarantee.kind == "zcdp":
            raise InputError("This plan spends rho: ask rho_for().")
        return self._budget_for(error, confidence, simultaneous, element)

    def rho_for(
        self,
        error: float,
        confidence: float = 0.95,
        simultaneous: bool = True,
        element: Hashable | None = None,
    ) -> float:
        """The smallest rho at which the best mechanism of a plan keeps within ``error``, like :meth:`epsilon_for`."""
        if self.guarantee.kind != "zcdp":
            raise InputError("This plan spends epsilon: ask epsilon_for().")
        return self._budget_for(error, confidence, simultaneous, element)

    def _budget_for(
        self, error: float, confidence: float, simultaneous: bool, element: Hashable | None
    ) -> float:
        if not 0 < error < math.inf:
            raise InputError(
                f"error must be a number above 0, the half-width that you can accept, not {error!r}."
            )
        confidence_level(confidence)
        which = slice(None) if element is None else self.P.index(element)
        width = _Width(confidence, simultaneous and element is None, which)
        near, budget = self, self._budget_of(self.rows[0], float(error), width)
        while (
            budget < 0.9 * near._amount
        ):  # noise that is rounded away says little of larger noise, nor which mechanism is best there
            near = near._at(budget)
            budget = near._budget_of(near.rows[0], float(error), width)
        for _ in range(
            _MOST_STEPS
        ):  # rounding to integers, and another mechanism that is best there, can ask for a little more
            if width.released(self._best_at(budget)) <= error:
                break
            budget = _round_up(1.004 * budget)
        return budget

    @property
    def _amount(self) -> float:
        return float(self.guarantee.rho if self.guarantee.kind == "zcdp" else self.guarantee.epsilon)

    def _at(self, budget: float) -> CountPlan:
        """The same mechanisms with another budget, best first. Their figures are those of before."""
        stated = self._with(budget)
        rows = [replace(row, mechanism=row.build(stated, no_progress)) for row in self.rows]
        rows.sort(key=lambda row: self.rank(row.mechanism.error()))
        return replace(self, guarantee=stated, rows=tuple(rows))

    def _best_at(self, budget: float) -> AdditiveMechanism:
        """The mechanism that a plan with this budget would release."""
        return self._at(budget).rows[0].mechanism

    def _budget_of(self, row: CountRow, error: float, width: _Width) -> float:
        """The budget at which one mechanism keeps within ``error``.

        A noise with a density only changes its scale with the budget. One that lives on integers does so
        nearly: for it the answer is the start of a search.
        """
        mechanism = row.mechanism
        noise = max(width.unrounded(mechanism), 0.5)
        shrink = (math.floor(error) + _HALF) / noise  # noise up to there is rounded to ``error`` at most
        budget = self._scaled_budget(mechanism.guarantee, shrink)
        if isinstance(mechanism, HasLogDensity) and self._scales(mechanism):
            return _round_up(budget)

        def is_enough(budget: float) -> bool:
            return width.released(row.build(self._with(budget), no_progress)) <= error

        low = high = budget
        while is_enough(low):
            low /= 1.1
        while not is_enough(high):
            high *= 1.1
        while high > low * 1.0002:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return _round_up(high)

    def _scales(self, mechanism: AdditiveMechanism) -> bool:
        """Whether the noise is scaled by the budget of the plan, and not by one that follows from it for groups."""
        same = mechanism.neighbours == self.guarantee.neighbours
        return same or self.guarantee.kind != "approximate"

    def _scaled_budget(self, guarantee: Guarantee, shrink: float) -> float:
        """The budget that multiplies the noise of a mechanism with this guarantee by ``shrink``."""
        from scipy.optimize import root_scalar

        if self.guarantee.kind == "zcdp":  # noise goes with 1/√ρ, for pure mechanisms too
            return float(self.guarantee.rho) / shrink**2
        if guarantee.kind == "pure":
            return float(self.guarantee.epsilon) / shrink
        delta = self.guarantee.delta
        target = 0.5 * math.log(sigma_squared(guarantee.epsilon, delta)) + math.log(shrink)

        def excess(log_epsilon: float) -> float:
            return 0.5 * math.log(sigma_squared(math.exp(log_epsilon), delta)) - target

        middle = math.log(float(guarantee.epsilon) / shrink)  # nearly right: σ falls a little slower than 1/ε
        low, high = middle, middle
        while excess(low) < 0:
            low -= 0.5
        while excess(high) > 0:
            high += 0.5
        return math.exp(float(root_scalar(excess, bracket=(low, high + 1e-9), xtol=1e-7).root))

    def _with(self, budget: float) -> Guarantee:
        name = "rho" if self.guarantee.kind == "zcdp" else "epsilon"
        return replace(self.guarantee, **{name: exact(budget)})


@dataclass(frozen=True)
class _Width:
    """Which half-width is meant, that of all counts at once, or the largest of ``which`` by themselves."""

    confidence: float
    simultaneous: bool
    which: slice | int

    def released(self, mechanism: AdditiveMechanism) -> float:
        if self.simultaneous:
            return mechanism.simultaneous_half_width(self.confidence)
        return float(np.max(mechanism.half_widths(self.confidence)[self.which]))

    def unrounded(self, mechanism: AdditiveMechanism) -> float:
        if self.simultaneous:
            return mechanism.unrounded_simultaneous_half_width(self.confidence)
        return float(np.max(mechanism.unrounded_half_widths(self.confidence)[self.which]))


def _round_up(budget: float) -> float:
    """``budget`` rounded up to four significant digits, so that the float means what it prints."""
    unit = Fraction(10) ** (math.floor(math.log10(budget)) - 3)
    return float(math.ceil(Fraction(budget) / unit) * unit)
