"""The ledger: one data set's privacy budget, and every charge against it.

The order of things is what makes it safe: a charge is durable *before* the data is read, so a crash, a kill
or a full disk at any point can lose a release, but never release more than was charged. A charge that never
finished stays spent. Rows are only ever added; the database itself refuses to change or remove one.

Nothing that is stored comes from the data: the name, the unit and the specification's hash are the steward's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from isotone.errors import BudgetError, InputError, LedgerError
from isotone.ledger.stores import Execute, SqliteStore, Store, open_store
from isotone.privacy.guarantee import Guarantee, Kind, Neighbours, Number

__all__ = ["Charge", "Cost", "Ledger", "require_ledger"]

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS isotone_ledger (
        dataset TEXT PRIMARY KEY, kind TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        rho TEXT NOT NULL, neighbours TEXT NOT NULL, unit TEXT, created TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS isotone_unit (
        dataset TEXT PRIMARY KEY REFERENCES isotone_ledger, unit TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS isotone_charge (
        dataset TEXT NOT NULL REFERENCES isotone_ledger, number INTEGER NOT NULL, time TEXT NOT NULL,
        kind TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, rho TEXT NOT NULL,
        mechanism TEXT NOT NULL, description TEXT NOT NULL, spec TEXT NOT NULL,
        PRIMARY KEY (dataset, number))""",
    """CREATE TABLE IF NOT EXISTS isotone_finish (
        dataset TEXT NOT NULL, number INTEGER NOT NULL, time TEXT NOT NULL, release TEXT NOT NULL,
        PRIMARY KEY (dataset, number), FOREIGN KEY (dataset, number) REFERENCES isotone_charge)""",
)
_TABLES = ("isotone_ledger", "isotone_unit", "isotone_charge", "isotone_finish")


def _append_only(store: Store) -> list[str]:
    """Statements that make the database refuse to change or remove a row."""
    if isinstance(store, SqliteStore):
        return [
            f"CREATE TRIGGER IF NOT EXISTS {table}_{verb} BEFORE {verb} ON {table} "
            "BEGIN SELECT RAISE(ABORT, 'rows of a ledger are never changed or removed'); END"
            for table in _TABLES
            for verb in ("UPDATE", "DELETE")
        ]
    function = (
        "CREATE OR REPLACE FUNCTION isotone_append_only() RETURNS trigger AS $$ BEGIN "
        "RAISE EXCEPTION 'rows of a ledger are never changed or removed'; END $$ LANGUAGE plpgsql"
    )
    return [
        function,
        *(
            f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION isotone_append_only()"
            for table in _TABLES
        ),
    ]


_KINDS: dict[Kind, str] = {"pure": "pure ε", "approximate": "(ε, δ)", "zcdp": "ρ-zCDP"}


@dataclass(frozen=True)
class Cost:
    """An amount of budget: what is spent or left. Adds and subtracts exactly; may be zero."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    @classmethod
    def of(cls, guarantee: Guarantee, kind: Kind | None = None) -> Cost:
        """What ``guarantee`` takes from a budget of ``kind`` (its own kind unless given).

        Pure ε counts as (ε, 0), and as ρ = ε²/2 (Bun and Steinke 2016, Proposition 1.4). Other mixtures
        would need a choice of δ that only the steward can make, and are refused.
        """
        kind = kind or guarantee.kind
        if kind == "zcdp" and guarantee.kind == "pure":
            return cls(rho=guarantee.epsilon**2 / 2)
        if guarantee.kind != kind and (kind, guarantee.kind) != ("approximate", "pure"):
            advice = (
                "Convert the promise with to_approximate(delta) first."
                if (kind, guarantee.kind) == ("approximate", "zcdp")
                else f"Keep a ledger of {_KINDS[guarantee.kind]} for it."
            )
            raise LedgerError(
                f"A budget of {_KINDS[kind]} cannot pay for a promise of {_KINDS[guarantee.kind]}. {advice}"
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


@dataclass(frozen=True)
class Charge:
    """One charge: durable from the moment this value exists."""

    ledger: Ledger
    number: int
    time: str
    guarantee: Guarantee
    mechanism: str
    description: str
    spec: str
    release: str | None = None

    @property
    def cost(self) -> Cost:
        """What the charge took from the budget, in the charge's own numbers."""
        return Cost.of(self.guarantee)

    @property
    def finished(self) -> bool:
        """Whether a release was completed under this charge."""
        return self.release is not None

    def finish(self, release: str = "") -> None:
        """Note that the release under this charge is complete; ``release`` is its public content hash."""
        self.ledger._finish(self.number, release)  # pyright: ignore[reportPrivateUsage]  # same module


def require_ledger(ledger: Any) -> None:
    """Refuse what is not a ledger before anything else happens."""
    if not isinstance(ledger, Ledger):
        raise InputError(
            f"ledger must be a Ledger, not a {type(ledger).__name__}. Open or create one first: "
            "Ledger('survey.ledger', epsilon=2)."
        )


class Ledger:
    """A privacy budget in a file (or a PostgreSQL URL) that survives crashes and is safe between processes.

    Parameters
    ----------
    where
        A path, or ``postgresql://…`` for a ledger that several machines share.
    epsilon, delta, rho
        The total budget: ``epsilon`` (pure), ``epsilon`` and ``delta`` (approximate), or ``rho`` (zCDP).
        Needed to create a ledger; an existing one is opened without, and refuses other numbers than its own.
    dataset
        The steward's name for the data; the file's stem unless given, and what the file says when it is only opened.
        Must not be derived from the contents.
    unit
        What is protected, in words ("person"); fixed at creation, or by the first charge when not given.
    neighbours
        "add-remove" (default) or "replace".

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger(folder.name + "/survey.ledger", epsilon=2) as ledger:
    ...     charge = ledger.charge(Guarantee.pure("0.5"), "counts")
    ...     charge.finish()
    ...     print(ledger.remaining())
    ε = 1.5
    >>> folder.cleanup()
    """

    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        dataset: str | None = None,
        unit: str | None = None,
        neighbours: Neighbours | None = None,
    ) -> None:
        self._store = open_store(where)
        wanted = _budget(epsilon, delta, rho)
        name = dataset if dataset is not None else self._default_dataset(wanted)
        if not name:
            raise InputError(
                "A ledger on a server needs dataset='…': a name for the data that the steward gives."
            )
        self.dataset: str = name
        if wanted is not None and not self._store.exists():
            self._store.create([*_SCHEMA, *_append_only(self._store)])
        elif not self._store.exists():
            raise LedgerError(
                f"There is no ledger at {self._store.address}. Give its total budget to create one, for "
                "example Ledger(path, epsilon=1) or 'isotone ledger create PATH --epsilon 1'."
            )
        self._store.transact(lambda execute: self._open(execute, wanted, unit, neighbours))

    def _default_dataset(self, wanted: Guarantee | None) -> str | None:
        """The name when none is given: that in the file when it is only opened, the file's stem for a new ledger."""
        if wanted is None and isinstance(self._store, SqliteStore) and self._store.exists():
            names = self._store.transact(lambda execute: execute("SELECT dataset FROM isotone_ledger"))
            if len(names) == 1:
                return names[0][0]
        return self._store.default_dataset

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        return None  # nothing is held open: every charge is complete by itself

    def __repr__(self) -> str:
        return f"Ledger({self._store.address!r}, dataset={self.dataset!r}, left: {self.remaining()})"

    @property
    def address(self) -> str:
        """Where the ledger is (never with a password)."""
        return self._store.address

    @property
    def budget(self) -> Guarantee:
        """The total."""
        return self._store.transact(self._budget)

    @property
    def total(self) -> Cost:
        """The total as an amount."""
        return Cost.of(self.budget)

    def spent(self) -> Cost:
        """All charges together, finished or not."""
        return self._store.transact(self._spent)

    def remaining(self) -> Cost:
        """What is left."""
        return self._store.transact(lambda execute: Cost.of(self._budget(execute)) - self._spent(execute))

    def charges(self) -> list[Charge]:
        """Every charge, in order."""
        return self._store.transact(self._charges)

    def check(self, guarantee: Guarantee) -> None:
        """Raise as :meth:`charge` would, and charge nothing."""
        self._store.transact(lambda execute: self._require(execute, guarantee))

    def charge(
        self, guarantee: Guarantee, description: str = "", *, mechanism: str = "", spec: str = ""
    ) -> Charge:
        """Spend ``guarantee``; durable when this returns. If too little is left, nothing is spent."""
        now = _now()

        def work(execute: Execute) -> int:
            self._require(execute, guarantee)
            if self._unit(execute) is None:
                execute("INSERT INTO isotone_unit VALUES (?, ?)", self.dataset, guarantee.unit)
            ((last,),) = execute(
                "SELECT coalesce(max(number), 0) FROM isotone_charge WHERE dataset = ?", self.dataset
            )
            row = (
                self.dataset,
                last + 1,
                now,
                guarantee.kind,
                *_numbers(guarantee),
                mechanism,
                description,
                spec,
            )
            execute("INSERT INTO isotone_charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)
            return last + 1

        number = self._store.transact(work)
        return Charge(self, number, now, guarantee, mechanism, description, spec)

    def finished(self, spec: str) -> list[Charge]:
        """The finished charges for a specification's hash."""
        return [charge for charge in self.charges() if charge.spec == spec and charge.finished]

    def export(self) -> dict[str, Any]:
        """The whole ledger as plain values, for an archive or a report."""

        budget = self.budget
        return {
            "dataset": self.dataset,
            "kind": budget.kind,
            "neighbours": budget.neighbours,
            "unit": budget.unit,
            "budget": Cost.of(budget).export(),
            "spent": self.spent().export(),
            "charges": [
                {
                    "number": charge.number,
                    "time": charge.time,
                    "kind": charge.guarantee.kind,
                    "guarantee": Cost.of(charge.guarantee).export(),
                    "mechanism": charge.mechanism,
                    "description": charge.description,
                    "spec": charge.spec,
                    "release": charge.release,
                }
                for charge in self.charges()
            ],
        }

    # ------------------------------------------------------------------ inside a transaction

    def _open(
        self, execute: Execute, wanted: Guarantee | None, unit: str | None, neighbours: Neighbours | None
    ) -> None:
        rows = execute(
            "SELECT kind, epsilon, delta, rho, neighbours FROM isotone_ledger WHERE dataset = ?", self.dataset
        )
        if not rows:
            others = [name for (name,) in execute("SELECT dataset FROM isotone_ledger ORDER BY dataset")]
            if others and isinstance(self._store, SqliteStore):
                raise LedgerError(
                    f"The ledger {self.address} belongs to the data set {others[0]!r}, not to "
                    f"{self.dataset!r}. Use that name, or another file."
                )
            if wanted is None:
                raise LedgerError(
                    f"The ledger {self.address} has no data set {self.dataset!r}. Give its total budget."
                )
            row = (self.dataset, wanted.kind, *_numbers(wanted), neighbours or "add-remove", unit, _now())
            execute("INSERT INTO isotone_ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *row)
            return
        kind, *numbers, fixed_neighbours = rows[0]
        if wanted is not None and (wanted.kind, *_numbers(wanted)) != (kind, *numbers):
            raise LedgerError(
                f"The ledger {self.address} was created with a total of {Cost.of(self._budget(execute))}, "
                "which cannot be changed. Open it without a total."
            )
        if neighbours is not None and neighbours != fixed_neighbours:
            raise LedgerError(
                f"The ledger {self.address} is for {fixed_neighbours} neighbours, not {neighbours}."
            )
        fixed_unit = self._unit(execute)
        if unit is not None and fixed_unit is not None and unit != fixed_unit:
            raise LedgerError(f"The ledger {self.address} protects one {fixed_unit}, not one {unit}.")

    def _unit(self, execute: Execute) -> str | None:
        rows = execute("SELECT unit FROM isotone_ledger WHERE dataset = ? AND unit IS NOT NULL", self.dataset)
        rows = rows or execute("SELECT unit FROM isotone_unit WHERE dataset = ?", self.dataset)
        return rows[0][0] if rows else None

    def _budget(self, execute: Execute) -> Guarantee:
        ((kind, epsilon, delta, rho, neighbours),) = execute(
            "SELECT kind, epsilon, delta, rho, neighbours FROM isotone_ledger WHERE dataset = ?", self.dataset
        )
        unit = self._unit(execute) or "record"
        return Guarantee(kind, Fraction(epsilon), Fraction(delta), Fraction(rho), neighbours, unit)

    def _charges(self, execute: Execute) -> list[Charge]:
        budget = self._budget(execute)
        rows = execute(
            """SELECT c.number, c.time, c.kind, c.epsilon, c.delta, c.rho,
                c.mechanism, c.description, c.spec, f.release
            FROM isotone_charge c LEFT JOIN isotone_finish f ON f.dataset = c.dataset AND f.number = c.number
            WHERE c.dataset = ? ORDER BY c.number""",
            self.dataset,
        )
        return [
            Charge(
                self,
                number,
                time,
                Guarantee(
                    kind, Fraction(epsilon), Fraction(delta), Fraction(rho), budget.neighbours, budget.unit
                ),
                mechanism,
                description,
                spec,
                release,
            )
            for number, time, kind, epsilon, delta, rho, mechanism, description, spec, release in rows
        ]

    def _spent(self, execute: Execute) -> Cost:
        kind = self._budget(execute).kind
        return sum((Cost.of(charge.guarantee, kind) for charge in self._charges(execute)), Cost())

    def _require(self, execute: Execute, guarantee: Guarantee) -> None:
        budget, unit = self._budget(execute), self._unit(execute)
        if guarantee.neighbours != budget.neighbours:
            raise LedgerError(
                f"The ledger {self.address} is for {budget.neighbours} neighbours; this release promises "
                f"{guarantee.neighbours}. Release with neighbours={budget.neighbours!r}."
            )
        if unit is not None and guarantee.unit != unit:
            raise LedgerError(
                f"The ledger {self.address} protects one {unit}; this release protects one {guarantee.unit}. "
                f"Release with unit={unit!r}, or keep another ledger."
            )
        total, spent, cost = Cost.of(budget), self._spent(execute), Cost.of(guarantee, budget.kind)
        if not (spent + cost).within(total):
            raise BudgetError(
                f"The budget of {self.dataset!r} is too short: this release needs {cost}, and "
                f"{total - spent} of {total} is left. Ask for less; a budget is never refilled."
            )

    def _finish(self, number: int, release: str) -> None:
        self._store.transact(
            lambda execute: execute(
                "INSERT INTO isotone_finish VALUES (?, ?, ?, ?)", self.dataset, number, _now(), release
            )
        )


def _numbers(guarantee: Guarantee) -> tuple[str, str, str]:
    return str(guarantee.epsilon), str(guarantee.delta), str(guarantee.rho)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _budget(epsilon: Number | None, delta: Number | None, rho: Number | None) -> Guarantee | None:
    """The total that these arguments mean; None when none is given."""
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InputError(
                "Give a budget as rho, or as epsilon (with delta if it is to be above 0): not both."
            )
        return Guarantee.zcdp(rho)
    if epsilon is not None:
        return Guarantee.approximate(epsilon, 0 if delta is None else delta)
    if delta is not None:
        raise InputError("A budget with delta needs epsilon as well.")
    return None
