"""A ledger as a steward looks at it, and what a guarantee means for one person."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from isotone.errors import IsotoneError
from isotone.ledger import Charge, Cost, Ledger
from isotone.privacy.guarantee import Guarantee

__all__ = ["Account", "account", "odds"]

_BELIEFS = ("0.01", "0.1", "0.5")


@dataclass(frozen=True)
class Account:
    """The total of a ledger, what was spent, and what a release would leave."""

    dataset: str
    total: Cost
    spent: Cost
    left: Cost
    charges: tuple[Charge, ...]
    cost: Cost | None
    """What one more release takes; None where the ledger cannot pay for it at all."""
    refused: str = ""

    @property
    def after(self) -> Cost | None:
        """What is left after one more release, or None where that is too much."""
        return self.left - self.cost if self.cost is not None and self.cost.within(self.left) else None

    @property
    def more(self) -> int:
        """How many more releases like it the budget can pay for."""
        return 0 if self.cost is None else _times(self.left, self.cost)

    @property
    def shares(self) -> list[tuple[str, float]]:
        """Parts of the total for a picture, each charge, this release, and the rest."""
        parts = [
            (f"charge {charge.number}", _share(_as(charge, self.total), self.total))
            for charge in self.charges
        ]
        if self.after is not None and self.cost is not None:
            parts.append(("this release", _share(self.cost, self.total)))
        return parts


def account(path: Path, dataset: str | None, guarantee: Guarantee) -> Account | None:
    """The account of a ledger for a guarantee, or None if there is no ledger yet."""
    if not path.exists():
        return None
    ledger = Ledger(path, dataset=dataset)
    cost, refused = None, ""
    try:
        cost = Cost.of(guarantee, ledger.budget.kind)
        ledger.check(guarantee)
    except IsotoneError as error:
        refused = str(error)
    return Account(
        ledger.dataset,
        ledger.total,
        ledger.spent(),
        ledger.remaining(),
        tuple(ledger.charges()),
        cost,
        refused,
    )


def odds(guarantee: Guarantee) -> list[tuple[str, str]]:
    """How far a reader's belief about one person may move at most, a pair (before, after) for some beliefs.

    >>> odds(Guarantee.pure(1))
    [('1 %', '2.7 %'), ('10 %', '23 %'), ('50 %', '73 %')]
    """
    stated = guarantee.to_approximate("1e-6") if guarantee.kind == "zcdp" else guarantee
    epsilon = min(float(stated.epsilon), 700.0)
    found: list[tuple[str, str]] = []
    for belief in map(float, _BELIEFS):
        after = 1 / (1 + (1 - belief) / belief * math.exp(-epsilon))
        found.append((f"{100 * belief:g} %", f"{100 * after:.2g} %" if after < 0.995 else "more than 99 %"))
    return found


def _numbers(cost: Cost) -> tuple[Fraction, Fraction, Fraction]:
    return cost.epsilon, cost.delta, cost.rho


def _times(left: Cost, cost: Cost) -> int:
    return min(
        (int(have // need) for have, need in zip(_numbers(left), _numbers(cost), strict=True) if need),
        default=0,
    )


def _as(charge: Charge, total: Cost) -> Cost:
    return Cost.of(charge.guarantee, "zcdp") if total.rho else charge.cost


def _share(cost: Cost, total: Cost) -> float:
    """The part of the total, by the number that is used up fastest."""
    return float(
        max(part / whole for part, whole in zip(_numbers(cost), _numbers(total), strict=True) if whole)
    )
