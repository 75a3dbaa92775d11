"""The plan of counts, with every applicable mechanism and its error. Nothing is read and nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np

from isotone.counts.candidates import Build, Setting, candidates
from isotone.counts.caring import Care, cared_error
from isotone.counts.hierarchies.fixed_root import fixed_root
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.counts.public_number import advice
from isotone.counts.sampling.relaxation import Relaxation
from isotone.errors import InputError
from isotone.mechanism import HasLogDensity, HasMethod, Progress, no_progress
from isotone.order import Poset
from isotone.planning.plan import Column, Plan, Row
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.calibration import sigma_squared
from isotone.privacy.checks import Number, confidence_level, exact, one_of
from isotone.privacy.guarantee import Guarantee, Unit

__all__ = ["CountPlan", "CountRow", "Criterion", "plan", "plan_setting"]

Criterion = Literal["total", "worst"]

_HALF = 0.5 - 1e-9
"""Noise below a half is rounded to 0, and exactly a half is not."""


def plan(
    P: Poset,
    epsilon: Number | None = None,
    delta: Number = 0,
    max_size: int | None = None,
    rho: Number | None = None,
    neighbours: Neighbours = "add-remove",
    contributions: int = 1,
    relaxation: Relaxation | None = None,
    by: Criterion = "total",
    progress: Progress = no_progress,
    care: Care | None = None,
    groups: int | None = None,
    records: int | None = None,
    catch_all: Hashable | None = None,
) -> CountPlan:
    """Compare every mechanism that keeps a guarantee for counts over ``P``.

    The guarantee is ``epsilon`` (pure), ``epsilon`` and ``delta``, or ``rho`` (zCDP; pure mechanisms then count
    as epsilon²/2). ``max_size`` says that records are cut to at most so many yeses (:func:`cut`): where it
    is far below the number of elements it matters more than the order. ``by`` says what best means: the least
    ``total`` squared error, or the least error of the ``worst`` element. Only public things enter.

    ``care`` says it for hierarchies, whose shares follow it: all ``"nodes"`` alike, all ``"levels"`` alike, the
    ``"worst"`` node, or weights by element (``relative_to(guesses)`` for relative errors). Weights are public: never
    take them from the data, though an earlier private release may fill them in.

    ``groups`` is the number of public groups that counts are released for. It matters where units are replaced: a unit
    may then change groups.

    ``records`` fixes the root of a hierarchy to a public number, and ``catch_all`` is the leaf for everything that is in no
    other (:class:`FixedRootMechanism`); for replace neighbours only.

    An order beyond exact reach is relaxed for ``PosetMechanism``, which can take minutes; its row says so and
    what it costs, and the mechanism keeps the relaxed order. ``relaxation=relax(P, seconds=20)`` bounds the time, and ``plan(…).relaxation`` is what was found.

    >>> from isotone.order import Poset
    >>> p = plan(Poset.chain(range(200)), epsilon=1)
    >>> type(p.best).__name__
    'HierarchicalMechanism'
    """
    said = {"total": None, "worst": "worst"}[one_of(by, "by", get_args(Criterion))]
    fixed = fixed_root(records, catch_all)
    setting = Setting(P, contributions, max_size, relaxation, said if care is None else care, groups, fixed)
    return plan_setting(setting, Unit(neighbours=neighbours).guarantee(epsilon, delta, rho), progress)


def plan_setting(setting: Setting, guarantee: Guarantee, progress: Progress = no_progress) -> CountPlan:
    """The plan of a checked setting under a guarantee."""
    rows = [CountRow.of(mechanism, build) for build, mechanism in _built(setting, guarantee, progress)]
    progress(1.0, "done")
    order, least = cared_error(setting.P, setting.cared), min(row.rmse for row in rows)
    rows = [replace(row, ratio=(row.rmse / least) ** 2 if least else 0.0) for row in rows]
    return CountPlan(tuple(sorted(rows, key=lambda row: order(row.mechanism.error()))), setting.P, guarantee)


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
        Column("half_width", "95 % all within", "± {:,.0f}".format, marker="D"),
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

    @property
    def title(self) -> str:
        """The number of counts and the guarantee."""
        return f"{len(self.P)} counts, {self.guarantee}"

    @property
    def remark(self) -> str:
        """Compare add-remove with replace at twice ε, for a steward whose number of records is public."""
        return advice(self.guarantee, [row.mechanism for row in self.rows])

    advice = remark

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
        """The smallest epsilon at which some mechanism keeps within ``error`` with the given confidence.

        ``simultaneous``: all counts at once; otherwise each count by itself, or the count of ``element`` alone. Delta and
        the other settings stay as they are. Rounded up to four digits; ``plan(P, epsilon=...)`` with it says which mechanism does it.
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
        """The smallest rho at which some mechanism keeps within ``error``, like :meth:`epsilon_for`."""
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
        return min(self._budget_of(row, float(error), width) for row in self.rows)

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
