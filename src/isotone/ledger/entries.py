"""The rows of one data set, read and added inside one transaction."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from isotone.errors import BudgetError, InputError, LedgerError
from isotone.ledger.composition import ADDITION, Composition, Cost
from isotone.ledger.stores.store import NEWEST_TABLE, Execute
from isotone.privacy.guarantee import Guarantee, Neighbours

if TYPE_CHECKING:
    from isotone.ledger.ledger import Ledger

__all__ = [
    "Ask",
    "Charge",
    "Entries",
    "LostError",
    "SealedError",
    "State",
    "plain_text",
    "require_guarantee",
    "store_path",
]


def plain_text(value: Any, name: str, *, empty: bool = True) -> str:
    """``value`` as a plain str that both databases can store."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, not a {type(value).__name__}.")
    text = str(value)
    if not empty and not text:
        raise InputError(f"{name} must not be empty.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} is not valid Unicode text: {text!r}.") from None
    if "\0" in text:
        raise InputError(f"{name} must not have a NUL character: {text!r}.")
    return text


def require_guarantee(value: Any) -> None:
    """Refuse what is not a guarantee."""
    if not isinstance(value, Guarantee):
        raise InputError(
            f"A charge needs a Guarantee, not a {type(value).__name__}: for example Guarantee.pure('0.5')."
        )
    plain_text(value.unit, "unit", empty=False)


def store_path(where: Any) -> str:
    """A path or URL as text."""
    try:
        return plain_text(os.fspath(where), "The ledger's path", empty=False)
    except TypeError:
        raise InputError(
            f"A ledger is at a path or a postgresql:// URL, not a {type(where).__name__}."
        ) from None


State = Literal["charged", "drawn", "sealed", "failed"]
"""charged → drawn → sealed, or charged → failed. Each is durable, and none is ever left backwards."""


@dataclass(frozen=True)
class Charge:
    """One charge against the budget.

    It is durable from the moment this value exists, and spent whatever its state.
    """

    ledger: Ledger = field(repr=False, compare=False)
    number: int
    time: str
    guarantee: Guarantee
    mechanism: str
    description: str
    spec: str = ""
    request: str | None = None
    state: State = "charged"
    release: str | None = None

    @property
    def cost(self) -> Cost:
        """What the charge took from the budget, in the charge's own numbers."""
        return Cost.of(self.guarantee)

    @property
    def finished(self) -> bool:
        """Whether a release was completed under this charge."""
        return self.state == "sealed"

    @property
    def meaning(self) -> str:
        """The state in words."""
        if self.state == "charged":
            return "charged, same request resumes it" if self.request is not None else "charged"
        return {
            "drawn": "drawn, not sealed: lost",
            "sealed": "sealed",
            "failed": "failed before the draw: spent",
        }[self.state]

    def finish(self, release: str = "") -> None:
        """Record that the release under this charge is complete.

        ``release`` is its public content hash.

        For releases that were drawn elsewhere. A release of ours goes through :meth:`Ledger.attempt`.
        """
        self.ledger._finish(self.number, release)  # pyright: ignore[reportPrivateUsage]  # same package

    def export(self) -> dict[str, Any]:
        """The charge as plain values with exact numbers."""
        return {
            "number": self.number,
            "time": self.time,
            "kind": self.guarantee.kind,
            "guarantee": self.cost.export(),
            "mechanism": self.mechanism,
            "description": self.description,
            "spec": self.spec,
            "request": self.request,
            "state": self.state,
            "release": self.release,
        }


class SealedError(LedgerError):
    """The request was released before.

    ``charge`` is the sealed charge, and ``charge.release`` its content hash.
    """

    def __init__(self, charge: Charge) -> None:
        super().__init__(
            f"This request was released before, under charge {charge.number}. Nothing was charged. A second draw costs "
            "again and must be asked for: again=True, or --again."
        )
        self.charge = charge


class LostError(LedgerError):
    """The request was drawn before and never sealed.

    ``charge`` stays spent, and what was drawn is lost.
    """

    def __init__(self, charge: Charge) -> None:
        super().__init__(
            f"Charge {charge.number} of this request was drawn and never sealed: its noise is lost, and it stays spent, "
            "because somebody may have seen it. Nothing was charged now. A second draw costs again and must be asked "
            "for: again=True, or --again."
        )
        self.charge = charge


@dataclass(frozen=True)
class Ask:
    """What a charge is asked for."""

    guarantee: Guarantee
    description: str = ""
    mechanism: str = ""
    spec: str = ""
    request: str | None = None

    @classmethod
    def of(
        cls, guarantee: Guarantee, description: str, mechanism: str, spec: str, request: str | None
    ) -> Ask:
        """The same, with its arguments checked."""
        require_guarantee(guarantee)
        texts = {"description": description, "mechanism": mechanism, "spec": spec}
        named = None if request is None else plain_text(request, "request", empty=False)
        return cls(guarantee, request=named, **{name: plain_text(text, name) for name, text in texts.items()})


class Entries:
    """One data set's rows as they are in one transaction."""

    def __init__(self, ledger: Ledger, execute: Execute) -> None:
        self._ledger = ledger
        self._execute = execute

    # ------------------------------------------------------------------ opening

    def found(self) -> bool:
        """Whether the data set has a budget here."""
        return bool(self._all("SELECT 1 FROM isotone_ledger WHERE dataset = ?"))

    def add_dataset(
        self, total: Guarantee, composition: Composition, unit: str | None, neighbours: Neighbours
    ) -> None:
        """Start the budget of a data set, unless another process just did."""
        if self.found():
            return
        self._refuse_another()
        row = (self._ledger.dataset, total.kind, *_numbers(total), neighbours, unit, _now())
        self._execute("INSERT INTO isotone_ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *row)
        rule = (self._ledger.dataset, composition.stored)
        self._execute("INSERT INTO isotone_composition VALUES (?, ?)", *rule)

    def check_opened(
        self,
        total: Guarantee | None,
        composition: Composition | None,
        unit: str | None,
        neighbours: Neighbours | None,
    ) -> None:
        """Refuse to open with another total, rule, unit or neighbours than the ledger was made with."""
        where = self._ledger.address
        if not self.found():
            self._refuse_another()
            raise LedgerError(
                f"The ledger {where} has no data set {self._ledger.dataset!r}. If the name is "
                "right, start its budget with 'isotone ledger create' and a total."
            )
        budget, rule = self.budget(), self.composition()
        if composition is not None and composition != rule:
            raise LedgerError(
                f"The ledger {where} composes its charges by {rule.stored!r}, not by {composition.stored!r}: the rule is "
                "fixed when a ledger is made. Open it without a total."
            )
        if total is not None and (total.kind, *_numbers(total)) != (budget.kind, *_numbers(budget)):
            raise LedgerError(
                f"The ledger {where} was created with a total of {Cost.of(budget)}, "
                "which cannot be changed. Open it without a total."
            )
        if neighbours is not None and neighbours != budget.neighbours:
            raise LedgerError(f"The ledger {where} is for {budget.neighbours} neighbours, not {neighbours}.")
        fixed = self.unit()
        if unit is not None and fixed is not None and unit != fixed:
            raise LedgerError(f"The ledger {where} protects one {fixed}, not one {unit}. {_same_unit(fixed)}")

    def _refuse_another(self) -> None:
        """A file is for one data set."""
        others = [name for (name,) in self._execute("SELECT dataset FROM isotone_ledger ORDER BY dataset")]
        if others and self._ledger.store.one_dataset:
            raise LedgerError(
                f"The ledger {self._ledger.address} belongs to the data set {others[0]!r}, not to "
                f"{self._ledger.dataset!r}. Use that name, or another file."
            )

    def modern(self) -> bool:
        """Whether the tables of format 2 are there."""
        return self._ledger.store.has_table(self._execute, NEWEST_TABLE)

    # ------------------------------------------------------------------ reading

    def unit(self) -> str | None:
        """The privacy unit, once it is fixed."""
        rows = self._all("SELECT unit FROM isotone_ledger WHERE dataset = ? AND unit IS NOT NULL")
        rows = rows or self._all("SELECT unit FROM isotone_unit WHERE dataset = ?")
        return rows[0][0] if rows else None

    def budget(self) -> Guarantee:
        """The total."""
        ((kind, epsilon, delta, rho, neighbours),) = self._all(
            "SELECT kind, epsilon, delta, rho, neighbours FROM isotone_ledger WHERE dataset = ?"
        )
        unit = self.unit() or "record"
        return Guarantee(kind, Fraction(epsilon), Fraction(delta), Fraction(rho), neighbours, unit)

    def composition(self) -> Composition:
        """The rule by which charges add up. A ledger without a row for it was made for addition."""
        rows = (
            self._all("SELECT rule FROM isotone_composition WHERE dataset = ?")
            if self._ledger.store.has_table(self._execute, "isotone_composition")
            else []
        )
        for (text,) in rows:
            found = Composition.from_stored(text)
            if found is None:
                raise LedgerError(
                    f"The ledger {self._ledger.address} composes its charges by {text!r}, which this version does not know. "
                    "Use a newer version of isotone."
                )
            return found
        return ADDITION

    def charges(self) -> list[Charge]:
        """Every charge in order, with its state."""
        budget = self.budget()
        sealed: dict[int, str] = dict(
            self._all("SELECT number, release FROM isotone_finish WHERE dataset = ?")  # format 1
        )
        outcomes: dict[int, State] = {}
        requests: dict[int, str] = {}
        if self.modern():
            sealed |= dict(self._all("SELECT number, release FROM isotone_sealed WHERE dataset = ?"))
            outcomes = dict(self._all("SELECT number, state FROM isotone_outcome WHERE dataset = ?"))
            requests = dict(self._all("SELECT number, request FROM isotone_request WHERE dataset = ?"))
        rows = self._all(
            "SELECT number, time, kind, epsilon, delta, rho, mechanism, description, spec "
            "FROM isotone_charge WHERE dataset = ? ORDER BY number"
        )
        return [
            Charge(
                self._ledger,
                number,
                time,
                Guarantee(kind, Fraction(e), Fraction(d), Fraction(r), budget.neighbours, budget.unit),
                mechanism,
                description,
                spec,
                requests.get(number),
                "sealed" if number in sealed else outcomes.get(number, "charged"),
                sealed.get(number),
            )
            for number, time, kind, e, d, r, mechanism, description, spec in rows
        ]

    def spent(self) -> Cost:
        """All charges together by the ledger's rule, whatever their state."""
        rule, kind = self.composition(), self.budget().kind
        return sum((rule.cost(charge.guarantee, kind) for charge in self.charges()), Cost())

    def spent_otherwise(self) -> Cost:
        """All charges together by the other rule, for information."""
        rule = self.composition()
        return sum((rule.other_cost(charge.guarantee) for charge in self.charges()), Cost())

    # ------------------------------------------------------------------ charging

    def require(self, guarantee: Guarantee) -> None:
        """Refuse a charge that is not for this ledger, or that is more than what is left."""
        self._require_setting(guarantee)
        budget = self.budget()
        total, spent, cost = Cost.of(budget), self.spent(), self.composition().cost(guarantee, budget.kind)
        if not (spent + cost).within(total):
            raise BudgetError(
                f"The budget of {self._ledger.dataset!r} is too short: this release needs {cost}, and "
                f"{total - spent} of {total} is left. Ask for less; a budget is never refilled."
            )

    def _require_setting(self, guarantee: Guarantee) -> None:
        budget, unit, where = self.budget(), self.unit(), self._ledger.address
        if guarantee.neighbours != budget.neighbours:
            raise LedgerError(
                f"The ledger {where} is for {budget.neighbours} neighbours; this release guarantees "
                f"{guarantee.neighbours}. Release with neighbours={budget.neighbours!r}."
            )
        if unit is not None and guarantee.unit != unit:
            raise LedgerError(
                f"The ledger {where} protects one {unit}; this release protects one {guarantee.unit}. {_same_unit(unit)}"
            )

    def add(self, ask: Ask) -> Charge:
        """A new charge."""
        guarantee = ask.guarantee
        self.require(guarantee)
        dataset = self._ledger.dataset
        if self.unit() is None:
            self._execute("INSERT INTO isotone_unit VALUES (?, ?)", dataset, guarantee.unit)
        ((last,),) = self._all("SELECT coalesce(max(number), 0) FROM isotone_charge WHERE dataset = ?")
        number, now = last + 1, _now()
        texts = (ask.mechanism, ask.description, ask.spec)
        row = (dataset, number, now, guarantee.kind, *_numbers(guarantee), *texts)
        self._execute("INSERT INTO isotone_charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)
        if ask.request is not None:
            self._execute("INSERT INTO isotone_request VALUES (?, ?, ?)", dataset, number, ask.request)
        return Charge(self._ledger, number, now, guarantee, *texts, ask.request)

    def begin(self, ask: Ask, *, again: bool) -> tuple[Charge, bool]:
        """The charge for an attempt, and whether it is an earlier one that is taken over.

        The caller holds the lock of the request: a charge of it that has no outcome has no living owner. Charges
        without a request, and all of format 1, are never taken over: they may have been drawn.
        """
        earlier = [c for c in self.charges() if ask.request is not None and c.request == ask.request]
        if not again:
            for charge in earlier:
                if charge.state == "sealed":
                    raise SealedError(charge)
            for charge in earlier:
                if charge.state == "drawn":
                    raise LostError(charge)
        for charge in earlier:
            if charge.state == "charged":
                self._require_setting(ask.guarantee)
                if (charge.guarantee.kind, charge.cost) != (ask.guarantee.kind, Cost.of(ask.guarantee)):
                    raise LedgerError(
                        f"This request was charged {charge.cost} ({charge.guarantee.kind}, charge {charge.number}) and now "
                        f"asks for {Cost.of(ask.guarantee)} ({ask.guarantee.kind}). A request is one set of parameters: give the new one another name."
                    )
                return charge, True
        return self.add(ask), False

    def _all(self, sql: str) -> list[tuple]:
        return self._execute(sql, self._ledger.dataset)


def _same_unit(unit: str) -> str:
    return (
        f'If both are the same thing under two names, name it: unit_name={unit!r}, or unit = "{unit}" under [privacy] in '
        "a spec; the column of the unit may be called anything. Otherwise keep another ledger."
    )


def _numbers(guarantee: Guarantee) -> tuple[str, str, str]:
    return str(guarantee.epsilon), str(guarantee.delta), str(guarantee.rho)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
