"""The charges of one data set: how they add up, what each may become, and rows read and added in one transaction.

How the charges of a ledger add up, by a rule that is fixed when the ledger is made.

*Addition* adds the numbers of the budget's own kind. The *zCDP filter* takes every charge as δ-approximate ρ-zCDP, and stops
when the sum of ρ or the sum of δ would pass its total. Both are sound for releases that are chosen after seeing earlier
ones (docs/theory/composition.md). Only the rule of the ledger admits a charge.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from isotone.errors import BudgetError, InputError, LedgerError
from isotone.ledger.stores.sqlite import Execute, MissingError
from isotone.privacy.calibration import smallest_epsilon
from isotone.privacy.checks import one_of
from isotone.privacy.guarantee import Guarantee, Kind, Neighbours, Number, exact, positive

if TYPE_CHECKING:
    from isotone.ledger.ledger import Ledger

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
        result = _STORED.fullmatch(text)
        if result is None or not 0 < Fraction(result[1]) < 1:
            return None
        return cls("zcdp filter", Fraction(result[1]))

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


# The rows of one data set, read and added inside one transaction.


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


State = Literal["charged", "reading", "drawn", "sealed", "failed"]
"""reading → drawn → sealed, or reading → failed. Each is durable, and none is ever left backwards.

A charge for a release that is drawn elsewhere is ``charged``, and then sealed.
"""


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
        return {
            "charged": "charged",
            "reading": "reading, or ended there: spent"
            + (", same request resumes it" if self.request else ""),
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
class LedgerTerms:
    """What a ledger is made with, or must have been made with where it exists. None asks for nothing."""

    total: Guarantee | None = None
    composition: Composition | None = None
    unit: str | None = None
    neighbours: Neighbours | None = None


@dataclass(frozen=True)
class Turn:
    """A charge whose data is about to be read, and for which time."""

    charge: Charge
    number: int


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

    def __init__(self, ledger: Ledger, execute: Execute, *, kept: bool = True) -> None:
        self._ledger = ledger
        self._execute = execute
        self.kept = kept
        """Whether the rows are in the ledger's place, and not in memory before it is made."""
        self._row: tuple[Any, ...] | None = None

    # ------------------------------------------------------------------ opening

    def exist(self) -> bool:
        """Whether the data set has a budget here."""
        if self._row is None and self._have_tables():
            rows = self._all(
                "SELECT l.kind, l.epsilon, l.delta, l.rho, l.rule, l.neighbours, coalesce(l.unit, u.unit) "
                "FROM isotone_ledger l LEFT JOIN isotone_unit u ON u.dataset = l.dataset WHERE l.dataset = ?"
            )
            self._row = rows[0] if rows else None
        return self._row is not None

    def _have_tables(self) -> bool:
        return not self.kept or self._ledger.store.has_tables(self._execute)

    def required(self) -> Entries:
        """These rows, or an error where the data set has no budget."""
        if not self.exist():
            raise self._no_dataset()
        return self

    def start(self, terms: LedgerTerms) -> None:
        """Start the budget of a data set, unless another process just did."""
        if self.exist():
            return
        if terms.total is None:
            raise self._no_dataset()
        self._refuse_another()
        rule, neighbours = (terms.composition or ADDITION).stored, terms.neighbours or "add-remove"
        row = (*_numbers(terms.total), rule, neighbours, terms.unit, _now())
        self._execute(
            "INSERT INTO isotone_ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            self._ledger.dataset,
            terms.total.kind,
            *row,
        )

    def discard(self) -> None:
        """Remove a budget that has no charge."""
        self.required()
        if self._all("SELECT 1 FROM isotone_charge WHERE dataset = ? LIMIT 1"):
            raise LedgerError(
                f"The ledger {self._ledger.address} has charges: it can be neither changed nor removed. What was spent stays "
                "spent."
            )
        self._all("DELETE FROM isotone_ledger WHERE dataset = ?")
        self._row = None

    def require_terms(self, terms: LedgerTerms) -> None:
        """Refuse another total, rule, unit or neighbours than the ledger was made with."""
        where = self._ledger.address
        self.required()
        budget, rule = self.budget(), self.composition()
        repair = (
            f"Leave the total out (budget in [privacy] of a spec); or, while it has no charge, 'isotone ledger change {where}' "
            "changes it."
        )
        if terms.composition is not None and terms.composition != rule:
            raise LedgerError(
                f"The ledger {where} composes its charges by {rule.stored!r}, not by {terms.composition.stored!r}: the rule is "
                f"fixed when a ledger is made. {repair}"
            )
        total = terms.total
        if total is not None and (total.kind, *_numbers(total)) != (budget.kind, *_numbers(budget)):
            raise LedgerError(
                f"The ledger {where} was created with a total of {Cost.of(budget)}, "
                f"which cannot be changed once it is charged. {repair}"
            )
        if terms.neighbours is not None and terms.neighbours != budget.neighbours:
            raise LedgerError(
                f"The ledger {where} is for {budget.neighbours} neighbours, not {terms.neighbours}."
            )
        unit = self.unit()
        if terms.unit is not None and unit is not None and terms.unit != unit:
            raise LedgerError(
                f"The ledger {where} protects one {unit}, not one {terms.unit}. {_same_unit(unit)}"
            )

    def _no_dataset(self) -> LedgerError:
        self._refuse_another()
        return MissingError(
            f"The ledger {self._ledger.address} has no data set {self._ledger.dataset!r}. If the name is "
            "right, start its budget with 'isotone ledger create' and a total."
        )

    def _refuse_another(self) -> None:
        """A file is for one data set."""
        if not self._have_tables():
            return
        others = [name for (name,) in self._execute("SELECT dataset FROM isotone_ledger ORDER BY dataset")]
        if others and self._ledger.store.one_dataset:
            raise LedgerError(
                f"The ledger {self._ledger.address} belongs to the data set {others[0]!r}, not to "
                f"{self._ledger.dataset!r}. Use that name, or another file."
            )

    # ------------------------------------------------------------------ reading

    def unit(self) -> str | None:
        """The privacy unit, once it is fixed."""
        return self._stored()[6]

    def budget(self) -> Guarantee:
        """The total."""
        kind, epsilon, delta, rho, _, neighbours, unit = self._stored()
        return Guarantee(
            kind, Fraction(epsilon), Fraction(delta), Fraction(rho), neighbours, unit or "record"
        )

    def composition(self) -> Composition:
        """The rule by which charges add up."""
        text = self._stored()[4]
        rule = Composition.from_stored(text)
        if rule is None:
            raise LedgerError(
                f"The ledger {self._ledger.address} composes its charges by {text!r}, which this version does not know. "
                "Use a newer version of isotone."
            )
        return rule

    def _stored(self) -> tuple[Any, ...]:
        row = self.required()._row
        assert row is not None
        return row

    def charges(self, request: str | None = None) -> list[Charge]:
        """Every charge in order, with its state, or every one of a request."""
        budget = self.budget()
        rows = self._execute(
            "SELECT c.number, time, kind, epsilon, delta, rho, mechanism, description, spec, request, r.number, o.state, "
            "s.release FROM isotone_charge c "
            "LEFT JOIN isotone_reading r ON r.dataset = c.dataset AND r.number = c.number AND r.turn = 1 "
            "LEFT JOIN isotone_outcome o ON o.dataset = c.dataset AND o.number = c.number "
            "LEFT JOIN isotone_sealed s ON s.dataset = c.dataset AND s.number = c.number "
            f"WHERE c.dataset = ?{'' if request is None else ' AND request = ?'} ORDER BY c.number",
            self._ledger.dataset,
            *([] if request is None else [request]),
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
                named,
                "sealed" if seal is not None else state or ("charged" if turn is None else "reading"),
                seal,
            )
            for number, time, kind, e, d, r, mechanism, description, spec, named, turn, state, seal in rows
        ]

    def spent(self) -> Cost:
        """All charges together by the ledger's rule, whatever their state."""
        rule, kind = self.composition(), self.budget().kind
        return self._sum(lambda guarantee: rule.cost(guarantee, kind))

    def spent_otherwise(self) -> Cost:
        """All charges together by the other rule, for information."""
        return self._sum(self.composition().other_cost)

    def _sum(self, cost: Callable[[Guarantee], Cost]) -> Cost:
        """The costs of all charges. Charges of one guarantee are counted together, as there may be very many."""
        rows = self._all(
            "SELECT kind, epsilon, delta, rho, count(*) FROM isotone_charge WHERE dataset = ? "
            "GROUP BY kind, epsilon, delta, rho"
        )
        return sum(
            (cost(Guarantee(kind, Fraction(e), Fraction(d), Fraction(r))) * n for kind, e, d, r, n in rows),
            Cost(),
        )

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
            self._row = None
        ((last,),) = self._all("SELECT coalesce(max(number), 0) FROM isotone_charge WHERE dataset = ?")
        number, now = last + 1, _now()
        texts = (ask.mechanism, ask.description, ask.spec, ask.request)
        row = (dataset, number, now, guarantee.kind, *_numbers(guarantee), *texts)
        self._execute("INSERT INTO isotone_charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)
        return Charge(self._ledger, number, now, guarantee, *texts)

    def begin(self, ask: Ask, *, again: bool) -> Turn:
        """The charge for an attempt, which reads from here on, or one that may be read no more.

        The caller holds the lock of the request: a charge of it that has no outcome has no living owner. Charges
        without a request, and those without a turn, are never taken over: they may have been drawn.

        A process can die of what it reads. So of all turns of a request one may have died and is made up for at no cost; a
        charge whose turn is the second to die has failed.
        """
        earlier = [] if ask.request is None else self.charges(ask.request)
        if not again:
            for charge in earlier:
                if charge.state == "sealed":
                    raise SealedError(charge)
            for charge in earlier:
                if charge.state == "drawn":
                    raise LostError(charge)
        for charge in earlier:
            if charge.state == "reading":
                self._require_setting(ask.guarantee)
                if (charge.guarantee.kind, charge.cost) != (ask.guarantee.kind, Cost.of(ask.guarantee)):
                    raise LedgerError(
                        f"This request was charged {charge.cost} ({charge.guarantee.kind}, charge {charge.number}) and now "
                        f"asks for {Cost.of(ask.guarantee)} ({ask.guarantee.kind}). A request is one set of parameters: give the new one another name."
                    )
                return self._take_over(charge)
        return self._read(self.add(ask), 1)

    def _take_over(self, charge: Charge) -> Turn:
        """The next turn of a charge whose process has ended, unless it is the second of its request to die."""
        of_charge = (self._ledger.dataset, charge.number)
        ((turn,),) = self._execute(
            "SELECT max(turn) FROM isotone_reading WHERE dataset = ? AND number = ?", *of_charge
        )
        ended = self._execute(
            "SELECT 1 FROM isotone_ending WHERE dataset = ? AND number = ? AND turn = ?", *of_charge, turn
        )
        if not ended:
            self._execute("INSERT INTO isotone_ending VALUES (?, ?, ?, 'died')", *of_charge, turn)
            ((deaths,),) = self._execute(
                "SELECT count(*) FROM isotone_ending e JOIN isotone_charge c ON c.dataset = e.dataset AND c.number = e.number "
                "WHERE c.dataset = ? AND c.request = ? AND e.manner = 'died'",
                self._ledger.dataset,
                charge.request,
            )
            if deaths > 1:
                self._execute("INSERT INTO isotone_outcome VALUES (?, ?, 'failed')", *of_charge)
                return Turn(replace(charge, state="failed"), turn)
        return self._read(charge, turn + 1)

    def _read(self, charge: Charge, turn: int) -> Turn:
        row = (self._ledger.dataset, charge.number, turn)
        self._execute("INSERT INTO isotone_reading VALUES (?, ?, ?)", *row)
        return Turn(replace(charge, state="reading"), turn)

    def _all(self, sql: str) -> list[tuple]:
        return self._execute(sql, self._ledger.dataset)


def _same_unit(unit: str) -> str:
    return (
        f'If both are the same thing under two names, name it: iso.Unit(…, name={unit!r}), or unit = "{unit}" under [privacy] in '
        "a spec; the column of the unit may be called anything. Otherwise keep another ledger."
    )


def _numbers(guarantee: Guarantee) -> tuple[str, str, str]:
    return str(guarantee.epsilon), str(guarantee.delta), str(guarantee.rho)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
