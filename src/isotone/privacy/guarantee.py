"""Which data sets are neighbours, and what that means for every mechanism.

A guarantee compares neighbouring data sets. All that the code knows about a kind of neighbours stands in this
file: a new kind is a new name and a new row of the table. Sensitivities follow from its two numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from isotone.errors import InputError
from isotone.privacy.checks import (
    Kind,
    Number,
    decimal,
    epsilon_or_rho,
    exact,
    one_of,
    plain_text,
    positive,
    shown,
    whole_number,
)

__all__ = [
    "ADDING",
    "NEIGHBOURS",
    "REPLACING",
    "Adjacency",
    "Guarantee",
    "Kind",
    "Neighbours",
    "Number",
    "Unit",
    "adjacency",
    "budget_of",
    "checked_neighbours",
    "exact",
    "positive",
]


Neighbours = Literal["add-remove", "replace"]
ADDING: Neighbours = "add-remove"
REPLACING: Neighbours = "replace"


@dataclass(frozen=True)
class Adjacency:
    """One kind of neighbours.

    ``units`` is how many units are added or removed between neighbours. ``exchanges`` says whether a unit
    takes the place of another: then the number of units is not protected, and a statistic moves by the
    difference of two contributions. ``words`` follow "if", and ``otherwise`` follows "had"; ``choice`` is
    what a form offers.
    """

    name: Neighbours
    units: int
    exchanges: bool
    words: str
    otherwise: str
    choice: str

    def __post_init__(self) -> None:
        whole_number(self.units, "units")
        if self.exchanges and self.units % 2:
            raise ValueError(
                f"An exchange removes a unit and adds one, so {self.units} units cannot be exchanged."
            )

    @property
    def changes(self) -> int:
        """How many units change between neighbours, where one that takes the place of another is one change."""
        return self.units // self.sides

    @property
    def sides(self) -> int:
        """How many contributions one change takes away or brings, a unit's own or those of two units."""
        return 2 if self.exchanges else 1


NEIGHBOURS: dict[Neighbours, Adjacency] = {
    ADDING: Adjacency(
        ADDING,
        units=1,
        exchanges=False,
        words="one {unit} were added or left out",
        otherwise="one {unit} not been in the data at all",
        choice="Whether somebody is in the data, and what they answered (usual)",
    ),
    REPLACING: Adjacency(
        REPLACING,
        units=2,
        exchanges=True,
        words="one {unit} were replaced by another",
        otherwise="one {unit} given completely different answers",
        choice="What somebody answered. How many people there are is public",
    ),
}
"""Every kind of neighbours by its public name."""


def checked_neighbours(value: Any) -> Neighbours:
    """``value`` as one of the public names."""
    if type(value) is str and value in NEIGHBOURS:
        return value
    return one_of(value, "neighbours", NEIGHBOURS)


def adjacency(neighbours: Neighbours) -> Adjacency:
    """What is known about a kind of neighbours."""
    return NEIGHBOURS[checked_neighbours(neighbours)]


# What is promised, about whom: guarantees, their arithmetic, and the unit that they protect.

# Privacy guarantees and arithmetic on them.
#
# A :class:`Guarantee` is a value: a measure of privacy loss (pure ε, approximate (ε, δ), ρ-zCDP or ε-bounded range), the
# neighbouring relation it holds for, and the privacy unit in words. All numbers are exact rationals.

_KINDS: tuple[Kind, ...] = ("pure", "approximate", "zcdp", "bounded-range")
_FOREIGN: dict[Kind, tuple[str, ...]] = {
    "pure": ("delta", "rho"),
    "approximate": ("rho",),
    "zcdp": ("epsilon",),
    "bounded-range": ("delta", "rho"),
}
"""Numbers that a kind does not have: a ledger would pass over them."""


def _exp_above(x: Fraction) -> Fraction:
    """A rational above ``exp(x)``, by less than one part in 2^39."""
    if x > 700:
        raise InputError(
            "An (ε, δ) guarantee with so large an ε implies nothing about several units; use pure ε."
        )
    return Fraction(math.exp(float(x))) * (1 + Fraction(1, 2**40))  # float errors: below 700 parts in 2^52


def _group_factor(epsilon: Fraction, units: int) -> Fraction:
    """A rational above ``Σ_{i<units} exp(i·epsilon)``, what the δ of one unit grows by for so many."""
    return 1 + sum((_exp_above(i * epsilon) for i in range(1, units)), Fraction(0))


def _sum_of_deltas(a: Guarantee, b: Guarantee) -> Fraction:
    delta = a.delta + b.delta
    if delta >= 1:
        raise InputError("The deltas add up to 1 or more, so together these releases guarantee nothing.")
    return delta


def _is_named(unit: Any, neighbours: Any) -> bool:
    """Whether a unit in words and a kind of neighbours are plain names already."""
    return type(unit) is str and unit != "" and type(neighbours) is str and neighbours in NEIGHBOURS


@dataclass(frozen=True)
class Guarantee:
    """A differential-privacy guarantee.

    Build one with :meth:`pure`, :meth:`approximate`, :meth:`zcdp` or :meth:`bounded_range`. ``a + b`` is the guarantee of
    releasing both (sequential composition). :meth:`parallel` is that of releasing from disjoint units.

    >>> Guarantee.pure("0.5") + Guarantee.pure("0.25")
    Guarantee(ε = 0.75, add-remove one record)
    """

    kind: Kind
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    neighbours: Neighbours = "add-remove"
    unit: str = "record"

    def __post_init__(self) -> None:
        self._make_plain()
        if self.epsilon < 0 or self.rho < 0 or not 0 <= self.delta < 1:
            raise InputError("A guarantee needs ε ≥ 0, ρ ≥ 0 and 0 ≤ δ < 1.")
        for name in _FOREIGN[self.kind]:
            if getattr(self, name):
                raise InputError(f"A guarantee of the kind {self.kind!r} has no {name}: leave it out.")

    def _make_plain(self) -> None:
        """Numbers as exact rationals of plain ints, and names as plain texts, unless they are so already."""
        numbers = (self.epsilon, self.delta, self.rho)
        exact_already = all(
            type(x) is Fraction and type(x.numerator) is type(x.denominator) is int for x in numbers
        )
        if (
            exact_already
            and type(self.kind) is str
            and self.kind in _KINDS
            and _is_named(self.unit, self.neighbours)
        ):
            return
        plain = {name: exact(getattr(self, name), name) for name in ("epsilon", "delta", "rho")}
        plain |= {
            "kind": one_of(self.kind, "kind", _KINDS),
            "neighbours": checked_neighbours(self.neighbours),
        }
        plain |= {"unit": plain_text(self.unit, "unit")}
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def adjacency(self) -> Adjacency:
        """What is known about its kind of neighbours."""
        return adjacency(self.neighbours)

    @classmethod
    def pure(
        cls, epsilon: Number, *, neighbours: Neighbours = "add-remove", unit: str = "record"
    ) -> Guarantee:
        """ε-differential privacy."""
        return cls("pure", epsilon=positive(epsilon, "epsilon"), neighbours=neighbours, unit=unit)

    @classmethod
    def approximate(
        cls, epsilon: Number, delta: Number, *, neighbours: Neighbours = "add-remove", unit: str = "record"
    ) -> Guarantee:
        """(ε, δ)-differential privacy, where δ = 0 is pure ε."""
        d = exact(delta, "delta")
        if not 0 <= d < 1:
            raise InputError(f"delta must be at least 0 and below 1, not {shown(delta)}.")
        kind: Kind = "pure" if d == 0 else "approximate"
        return cls(kind, epsilon=positive(epsilon, "epsilon"), delta=d, neighbours=neighbours, unit=unit)

    @classmethod
    def zcdp(
        cls, rho: Number, delta: Number = 0, *, neighbours: Neighbours = "add-remove", unit: str = "record"
    ) -> Guarantee:
        """ρ-zero-concentrated differential privacy, with ``delta`` δ-approximate (Bun and Steinke 2016)."""
        d = exact(delta, "delta")
        return cls("zcdp", delta=d, rho=positive(rho, "rho"), neighbours=neighbours, unit=unit)

    @classmethod
    def bounded_range(
        cls, epsilon: Number, *, neighbours: Neighbours = "add-remove", unit: str = "record"
    ) -> Guarantee:
        """All privacy losses between two neighbours lie in one interval of length ε, as for an exponential mechanism.

        It implies ε-DP, and ε²/8-zCDP (Durfee and Rogers 2019; docs/theory/composition.md, section 2).
        """
        return cls("bounded-range", epsilon=positive(epsilon, "epsilon"), neighbours=neighbours, unit=unit)

    def __add__(self, other: Guarantee) -> Guarantee:
        """Sequential composition. Kinds are converted only when that loses nothing."""
        self._require_same_setting(other)
        if self.kind == other.kind == "zcdp":
            return replace(self, rho=self.rho + other.rho, delta=_sum_of_deltas(self, other))
        if "zcdp" in (self.kind, other.kind):
            a, b = (self, other) if self.kind == "zcdp" else (other, self)
            if b.kind != "approximate":
                return replace(a, rho=a.rho + b.concentrated)
            raise InputError(
                "A ρ-zCDP guarantee and an (ε, δ) guarantee have no exact sum. Convert the first with "
                "to_approximate(delta), or keep the two in separate budgets."
            )
        delta = _sum_of_deltas(self, other)
        kind: Kind = "pure" if delta == 0 else "approximate"
        return replace(self, kind=kind, epsilon=self.epsilon + other.epsilon, delta=delta)

    def times(self, releases: int) -> Guarantee:
        """The guarantee of so many releases with this one each.

        >>> Guarantee.pure("1/2").times(4)
        Guarantee(ε = 2, add-remove one record)
        """
        number = whole_number(releases, "releases")
        kind: Kind = "pure" if self.kind == "bounded-range" and number > 1 else self.kind
        if self.delta * number >= 1:
            raise InputError("The deltas add up to 1 or more, so together these releases guarantee nothing.")
        many = {name: getattr(self, name) * number for name in ("epsilon", "delta", "rho")}
        return replace(self, kind=kind, **many)

    def parallel(self, other: Guarantee) -> Guarantee:
        """The guarantee of two releases from disjoint sets of units.

        One unit is in one of them, so it is the larger of the two.

        Refused where neighbours differ by more than one unit, as under replace: a unit may move from one part to the
        other, and a replace guarantee says nothing about a unit that disappears. Guarantee add-remove for the parts,
        and use :meth:`for_neighbours`.
        """
        self._require_same_setting(other)
        if self.adjacency.units > 1:
            raise InputError(
                f"Under {self.neighbours!r} a unit may move from one part to the other, which neither guarantee covers. "
                f"Use {ADDING!r} for each part; for_neighbours() says what follows."
            )
        if self.kind == other.kind == "zcdp":
            return replace(self, rho=max(self.rho, other.rho), delta=max(self.delta, other.delta))
        if "zcdp" in (self.kind, other.kind):
            raise InputError("Parallel releases need guarantees of one kind: both zCDP or neither.")
        delta = max(self.delta, other.delta)
        kind: Kind = "pure" if delta == 0 else "approximate"
        return replace(self, kind=kind, epsilon=max(self.epsilon, other.epsilon), delta=delta)

    def replacing(self) -> Guarantee:
        """The replace-one guarantee that an add-remove guarantee implies.

        Replacing a unit is a removal and an addition, which is group privacy for a group of two.

        2ε; (2ε, δ(1 + e^ε)), rounded up; 4ρ (Bun and Steinke 2016, Proposition 1.9).

        >>> Guarantee.zcdp("1/4").replacing()
        Guarantee(ρ = 1, replace one record)
        """
        if self.adjacency.units > 1:
            raise InputError("replacing() starts from a guarantee about adding or removing a unit.")
        return self.for_neighbours(REPLACING)

    def for_neighbours(self, neighbours: Neighbours) -> Guarantee:
        """The guarantee about other neighbours that an add-remove guarantee implies, by group privacy.

        kε; (kε, δ·Σ_{i<k} e^{iε}), rounded up; k²ρ, for neighbours that are k units apart.
        """
        k = adjacency(neighbours).units
        if neighbours == self.neighbours:
            return self
        if self.adjacency.units > 1:
            raise InputError("for_neighbours() starts from a guarantee about adding or removing a unit.")
        self._require_no_delta()
        delta = self.delta * _group_factor(self.epsilon, k) if self.delta else self.delta
        if delta >= 1:
            raise InputError(
                f"A guarantee for {neighbours!r} would have δ above 1: {self} is too weak for that."
            )
        return replace(
            self, neighbours=neighbours, epsilon=k * self.epsilon, delta=delta, rho=k**2 * self.rho
        )

    def of_one_unit(self) -> Guarantee:
        """The add-remove guarantee that implies this one, by :meth:`for_neighbours`.

        >>> Guarantee.zcdp(1, neighbours="replace").of_one_unit()
        Guarantee(ρ = 0.25, add-remove one record)
        """
        k = self.adjacency.units
        if k == 1:
            return self
        self._require_no_delta()
        epsilon = self.epsilon / k
        delta = self.delta / _group_factor(epsilon, k) if self.delta else self.delta
        return replace(self, neighbours=ADDING, epsilon=epsilon, delta=delta, rho=self.rho / k**2)

    def to_approximate(self, delta: Number) -> Guarantee:
        """An (ε, δ) guarantee that follows from this one.

        For ρ-zCDP: ε = ρ + 2·√(ρ·ln(1/δ)) (Bun and Steinke 2016, Proposition 1.3), rounded up.
        """
        d = exact(delta, "delta")
        if not 0 < d < 1:
            raise InputError(f"delta must be strictly between 0 and 1, not {delta!r}.")
        self._require_no_delta()
        if self.kind != "zcdp":
            if self.kind == "approximate" and d < self.delta:
                raise InputError(
                    f"This guarantee has δ = {float(self.delta):g}; it implies none with {delta!r}."
                )
            return replace(self, kind="approximate", delta=max(d, self.delta))
        # float error of the formula is far below 1e-9 relative; the factor keeps the bound on the safe side
        root = math.sqrt(float(self.rho) * (math.log(d.denominator) - math.log(d.numerator)))
        epsilon = self.rho + Fraction(2 * root) * (1 + Fraction(1, 10**9))
        return replace(self, kind="approximate", epsilon=epsilon, delta=d, rho=Fraction(0))

    def within(self, budget: Guarantee) -> bool:
        """Whether this guarantee is at least as strong as ``budget``."""
        self._require_same_setting(budget)
        if budget.kind == "zcdp":
            if self.kind == "approximate":
                return False
            return self.concentrated <= budget.rho and self.delta <= budget.delta
        if budget.kind == "bounded-range" and self.kind != "bounded-range":
            return False
        return self.kind != "zcdp" and self.epsilon <= budget.epsilon and self.delta <= budget.delta

    @property
    def concentrated(self) -> Fraction:
        """The ρ of the zCDP that follows.

        ε²/2 from ε-DP (Bun and Steinke 2016, Proposition 1.4), ε²/8 from ε-bounded range.
        """
        if self.kind == "approximate":
            raise InputError("An (ε, δ) guarantee implies no zCDP: some outputs may have any loss.")
        return {"zcdp": self.rho, "pure": self.epsilon**2 / 2, "bounded-range": self.epsilon**2 / 8}[
            self.kind
        ]

    def _require_no_delta(self) -> None:
        if self.kind == "zcdp" and self.delta:
            raise InputError("This is not defined for ρ-zCDP with a δ: it is the total of a ledger.")

    def _require_same_setting(self, other: Guarantee) -> None:
        if (self.neighbours, self.unit) != (other.neighbours, other.unit):
            raise InputError(
                f"These guarantees are for different neighbours or units: {self.neighbours} one {self.unit} and "
                f"{other.neighbours} one {other.unit}. Only guarantees for the same ones can be combined."
            )

    def _measure(self) -> str:
        if self.kind == "zcdp":
            return f"ρ = {decimal(self.rho)}" + (f", δ = {decimal(self.delta)}" if self.delta else "")
        return f"ε = {decimal(self.epsilon)}" + (f", δ = {decimal(self.delta)}" if self.delta else "")

    def __str__(self) -> str:
        names = {
            "pure": "ε-DP",
            "approximate": "(ε, δ)-DP",
            "zcdp": "ρ-zCDP" if not self.delta else "δ-approximate ρ-zCDP",
            "bounded-range": "ε-bounded range",
        }
        name = names[self.kind]
        return f"{name} with {self._measure()}, {self.neighbours} one {self.unit}"

    def __repr__(self) -> str:
        return f"Guarantee({self._measure()}, {self.neighbours} one {self.unit})"


# The privacy unit, its records and its neighbours.
#
# What follows from them for a mechanism is computed here too.
#
# A *step* adds or removes one record of one unit. A unit with up to ``contributions`` records is as many steps
# away from its absence, and replacing it is a removal and an addition, twice as many. A mechanism that loses at
# most ε₀ over one step loses at most ``steps·ε₀`` over a unit (group privacy), so it spends ``epsilon/steps``.


@dataclass(frozen=True)
class Unit:
    """A privacy unit with at most ``contributions`` records.

    >>> import numpy as np
    >>> Unit(contributions=np.uint8(200), neighbours="replace").steps
    400
    """

    contributions: int = 1
    neighbours: Neighbours = "add-remove"
    name: str = "record"
    adjacency: Adjacency = field(init=False, repr=False, compare=False)
    """What is known about the neighbours."""
    changes: int = field(init=False, repr=False, compare=False)
    """How many records change between neighbours, at most, where one that takes the place of another is one change.

    The sensitivity of a statistic is so many times that of one change: see :class:`~isotone.privacy.guarantee.Adjacency`.
    """
    steps: int = field(init=False, repr=False, compare=False)
    """How many records are added or removed between neighbours, at most."""

    def __post_init__(self) -> None:
        plain = type(self.contributions) is int and self.contributions > 0
        if not (plain and _is_named(self.name, self.neighbours)):  # else checked where they were given
            object.__setattr__(self, "contributions", whole_number(self.contributions, "contributions"))
            object.__setattr__(self, "neighbours", checked_neighbours(self.neighbours))
            object.__setattr__(self, "name", plain_text(self.name, "unit"))
        known = NEIGHBOURS[self.neighbours]
        object.__setattr__(self, "adjacency", known)
        object.__setattr__(self, "changes", self.contributions * known.changes)
        object.__setattr__(self, "steps", self.contributions * known.units)

    def per_step(self, epsilon: Fraction) -> Fraction:
        """The part of ``epsilon`` that one step may spend."""
        return epsilon / self.steps

    def pure(self, epsilon: Number) -> Guarantee:
        """ε-DP for this unit."""
        return Guarantee.pure(epsilon, neighbours=self.neighbours, unit=self.name)

    def approximate(self, epsilon: Number, delta: Number) -> Guarantee:
        """(ε, δ)-DP for this unit."""
        return Guarantee.approximate(epsilon, delta, neighbours=self.neighbours, unit=self.name)

    def zcdp(self, rho: Number) -> Guarantee:
        """ρ-zCDP for this unit."""
        return Guarantee.zcdp(rho, neighbours=self.neighbours, unit=self.name)

    def guarantee(
        self, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None
    ) -> Guarantee:
        """The guarantee with these parameters for this unit.

        Give ``rho``, or ``epsilon`` with or without ``delta``.

        >>> Unit(name="person").guarantee(epsilon="0.5")
        Guarantee(ε = 0.5, add-remove one person)
        """
        return Guarantee(*epsilon_or_rho(epsilon, delta, rho), self.neighbours, self.name)


def budget_of(guarantee: Guarantee) -> dict[str, Any]:
    """The arguments that :meth:`Unit.guarantee` and mechanisms take for the budget of a guarantee.

    >>> budget_of(Guarantee.approximate(1, "1e-6"))
    {'epsilon': Fraction(1, 1), 'delta': Fraction(1, 1000000)}
    """
    names = ("rho",) if guarantee.kind == "zcdp" else ("epsilon", "delta")
    return {name: getattr(guarantee, name) for name in names if getattr(guarantee, name)}
