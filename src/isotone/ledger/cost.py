"""Amounts of a privacy budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from isotone.errors import LedgerError
from isotone.privacy.guarantee import Guarantee, Kind

__all__ = ["Cost"]

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

    def within(self, total: Cost) -> bool:
        """Whether no number is larger than that of ``total``."""
        return self.epsilon <= total.epsilon and self.delta <= total.delta and self.rho <= total.rho

    def export(self) -> dict[str, str]:
        """The exact numbers as text."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta), "rho": str(self.rho)}

    def __str__(self) -> str:
        parts = {"ε": self.epsilon, "δ": self.delta, "ρ": self.rho}
        return ", ".join(f"{name} = {float(x):.6g}" for name, x in parts.items() if x) or "nothing"
