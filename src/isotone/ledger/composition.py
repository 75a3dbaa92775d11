"""How the charges of a ledger add up, by a rule that is fixed when the ledger is made.

*Addition* adds the numbers of the budget's own kind. The *zCDP filter* takes every charge as δ-approximate ρ-zCDP, and stops
when the sum of ρ or the sum of δ would pass its total. Both are sound for releases that are chosen after seeing earlier
ones (docs/theory/composition.md). Only the rule of the ledger admits a charge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from isotone.errors import InputError, LedgerError
from isotone.privacy.calibration import smallest_epsilon
from isotone.privacy.checks import one_of
from isotone.privacy.guarantee import Guarantee, Kind, Number, exact, positive

__all__ = ["ADDITION", "Composition", "Cost", "Rule", "wanted_budget"]

_KINDS: dict[str, str] = {
    "pure": "pure ε",
    "approximate": "(ε, δ)",
    "zcdp": "ρ-zCDP",
    "bounded-range": "ε-bounded range",
}


_INCLUDED = {("approximate", "pure"), ("approximate", "bounded-range"), ("pure", "bounded-range")}
"""Kinds of budgets, and guarantees whose numbers they can take as they are."""


@dataclass(frozen=True)
class Cost:
    """An amount of budget, spent or left.

    Costs add and subtract exactly. They may be zero.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    @classmethod
    def of(cls, guarantee: Guarantee, kind: Kind | None = None) -> Cost:
        """What ``guarantee`` takes from a budget of ``kind`` (its own kind unless given).

        Pure ε counts as (ε, 0), and as ρ = ε²/2 (Bun and Steinke 2016, Proposition 1.4); ε-bounded range as pure ε, and as
        ρ = ε²/8. Other mixtures would need a choice of δ that only the steward can make, and are refused.
        """
        kind = kind or guarantee.kind
        if kind == "zcdp" and guarantee.kind in ("pure", "bounded-range"):
            return cls(rho=guarantee.concentrated)
        if guarantee.kind != kind and (kind, guarantee.kind) not in _INCLUDED:
            advice = (
                "Convert the guarantee with to_approximate(delta) first."
                if (kind, guarantee.kind) == ("approximate", "zcdp")
                else f"Keep a ledger of {_KINDS[guarantee.kind]} for it, or one with composition='zcdp filter'."
            )
            raise LedgerError(
                f"A budget of {_KINDS.get(kind, 'an unknown kind')} cannot pay for a guarantee of {_KINDS[guarantee.kind]}. {advice}"
            )
        return cls(guarantee.epsilon, guarantee.delta, guarantee.rho)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.epsilon - other.epsilon, self.delta - other.delta, self.rho - other.rho)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.epsilon * times, self.delta * times, self.rho * times)

    def within(self, total: Cost) -> bool:
        """Whether no number is larger than that of ``total``."""
        return self.epsilon <= total.epsilon and self.delta <= total.delta and self.rho <= total.rho

    def export(self) -> dict[str, str]:
        """The exact numbers as text."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta), "rho": str(self.rho)}

    def __str__(self) -> str:
        parts = {"ε": self.epsilon, "δ": self.delta, "ρ": self.rho}
        return ", ".join(f"{name} = {float(x):.6g}" for name, x in parts.items() if x) or "nothing"


Rule = Literal["addition", "zcdp filter"]
_RULES: tuple[Rule, ...] = ("addition", "zcdp filter")
_STORED = re.compile(r"zcdp filter, final delta ([0-9]{1,400}/[1-9][0-9]{0,399})")


@dataclass(frozen=True)
class Composition:
    """A rule. ``final_delta`` is the δ at which the total of a filter is stated as (ε, δ)-DP."""

    rule: Rule = "addition"
    final_delta: Fraction = Fraction(0)

    @classmethod
    def from_stored(cls, text: str) -> Composition | None:
        """The rule of a row of the ledger, None for one that this version does not know."""
        if text == ADDITION.stored:
            return ADDITION
        found = _STORED.fullmatch(text)
        if found is None or not 0 < Fraction(found[1]) < 1:
            return None
        return cls("zcdp filter", Fraction(found[1]))

    @property
    def stored(self) -> str:
        """The rule as one text."""
        if self.rule == "addition":
            return self.rule
        return f"{self.rule}, final delta {self.final_delta.numerator}/{self.final_delta.denominator}"

    def cost(self, guarantee: Guarantee, kind: Kind) -> Cost:
        """What a charge takes from a budget of ``kind``."""
        return Cost.of(guarantee, kind) if self.rule == "addition" else _concentrated(guarantee)

    def other_cost(self, guarantee: Guarantee) -> Cost:
        """What the charge would count by the other rule. It is shown for information and admits nothing."""
        return _concentrated(guarantee) if self.rule == "addition" else Cost.of(guarantee)

    def overall(self, budget: Guarantee) -> Guarantee:
        """What all releases under a total guarantee together.

        For a filter it is (ε, δ)-DP at the ``final_delta`` and the total δ together. It holds for the total alone: what
        was spent at some moment guarantees nothing by itself, as that moment may have been chosen by what was released.
        """
        if self.rule == "addition":
            return budget
        epsilon = smallest_epsilon(budget.rho, self.final_delta)
        return replace(
            budget,
            kind="approximate",
            epsilon=epsilon,
            delta=budget.delta + self.final_delta,
            rho=Fraction(0),
        )


ADDITION = Composition()


def wanted_budget(
    epsilon: Number | None, delta: Number | None, rho: Number | None, composition: Any, final_delta: Any
) -> tuple[Guarantee | None, Composition | None]:
    """The total and the rule that these arguments describe, None for what is not given.

    A total without a rule is for addition.
    """
    rule = None if composition is None else one_of(composition, "composition", _RULES)
    if rule == "zcdp filter":
        return _filter(epsilon, delta, rho, final_delta)
    if final_delta is not None:
        raise InputError("final_delta belongs to composition='zcdp filter'; leave it out.")
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InputError(
                "Give a budget as rho, or as epsilon (with delta if it is to be above 0): not both. "
                "Both rho and delta are for composition='zcdp filter'."
            )
        return Guarantee.zcdp(rho), ADDITION
    if epsilon is not None:
        return Guarantee.approximate(epsilon, 0 if delta is None else delta), ADDITION
    if delta is not None:
        raise InputError("A budget with delta needs epsilon as well.")
    return None, None if rule is None else ADDITION


def _filter(
    epsilon: Number | None, delta: Number | None, rho: Number | None, final_delta: Any
) -> tuple[Guarantee, Composition]:
    if epsilon is not None or rho is None or final_delta is None:
        raise InputError(
            "A zCDP filter has the totals rho and delta (0 unless given) and final_delta, the δ at which it is stated as "
            "(ε, δ) in the end: for example rho='0.5', final_delta='1e-6'. It has no epsilon."
        )
    last = positive(final_delta, "final_delta")
    total = Guarantee.zcdp(rho, 0 if delta is None else delta)
    if last + total.delta >= 1:
        raise InputError("final_delta and delta must be below 1 together.")
    return total, Composition("zcdp filter", last)


def _concentrated(guarantee: Guarantee) -> Cost:
    """The charge as δ-approximate ρ-zCDP (docs/theory/composition.md, section 2).

    (ε, δ)-DP counts as ε²/2 with its δ. It implies no Rényi bound, so its δ is never traded for a larger ρ.
    """
    if guarantee.kind == "zcdp":
        return Cost(rho=guarantee.rho, delta=guarantee.delta)
    if guarantee.kind == "bounded-range":
        return Cost(rho=guarantee.epsilon**2 / 8)
    return Cost(rho=guarantee.epsilon**2 / 2, delta=exact(guarantee.delta, "delta"))
