"""What a ledger asks of the place that keeps its rows, and the tables that it keeps there.

Two outcomes of a charge, ``drawn`` and ``failed``, are rivals for one primary key: the database itself lets only one of them
happen, and only once. Each time that the data of a charge is read is a *turn*. A turn ends with an outcome, with a row of its
own ("interrupted" by our handler of a signal, "died" where the next process found its lock free), or not yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from isotone.errors import LedgerError

__all__ = [
    "APPEND_ONLY",
    "TABLES",
    "BusyError",
    "ConflictError",
    "Execute",
    "MissingError",
    "Rows",
    "Store",
    "postgres_schema",
    "sqlite_schema",
]

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Execute = Callable[..., Rows]
"""``execute(sql, *parameters)`` with ``?`` for each parameter; the rows it returns, if any."""


class ConflictError(LedgerError):
    """The database refused a row.

    Its key is taken, or the row would change or remove another.
    """


class BusyError(LedgerError):
    """Another live process or thread works on the same request."""


class MissingError(LedgerError):
    """There is no ledger at this place."""


class Store(Protocol):
    """A place for a ledger's rows. No connection outlives a call, so nothing is shared across a fork."""

    @property
    def address(self) -> str:
        """Where it is, for messages (never with a password)."""
        ...

    @property
    def default_dataset(self) -> str | None:
        """The data set's name when the steward gives none."""
        ...

    @property
    def one_dataset(self) -> bool:
        """Whether the place belongs to one data set only."""
        ...

    @property
    def ready(self) -> bool:
        """Whether a lock would leave nothing behind that was not there."""
        ...

    def has_tables(self, execute: Execute) -> bool:
        """Whether the tables of a ledger are there."""
        ...

    def require_place(self) -> None:
        """Refuse a place where no ledger can ever be made."""
        ...

    def create(self, work: Callable[[Execute], T]) -> T:
        """Make the tables if they are missing and run ``work``, all of it or nothing. Creators wait for each other."""
        ...

    def transact(self, work: Callable[[Execute], T]) -> T:
        """Run ``work(execute)`` in one serialisable transaction, durable when this returns.

        Raises :class:`MissingError` where there is no file.
        """
        ...

    def remove(self, work: Callable[[Execute], None]) -> None:
        """Run ``work``, which removes the last row of a data set, and leave nothing behind where the place was its own."""
        ...

    def lock(self, key: str, *, wait: bool) -> AbstractContextManager[None]:
        """Hold ``key`` against every other process until the block or this process ends, however it ends.

        Who finds it held waits for the other's end, or with ``wait=False`` gets a :class:`BusyError`. No time-out
        is involved: a lock that can be taken has no living holder.
        """
        ...


APPEND_ONLY = "rows of a ledger are never changed or removed"

_CHARGE = "dataset TEXT NOT NULL, number INTEGER NOT NULL"
_OF_CHARGE = "PRIMARY KEY (dataset, number), FOREIGN KEY (dataset, number) REFERENCES isotone_charge"
_TABLES = (
    """CREATE TABLE IF NOT EXISTS isotone_ledger (
        dataset TEXT PRIMARY KEY, kind TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        rho TEXT NOT NULL, rule TEXT NOT NULL, neighbours TEXT NOT NULL, unit TEXT, created TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS isotone_unit (
        dataset TEXT PRIMARY KEY REFERENCES isotone_ledger, unit TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS isotone_charge (
        dataset TEXT NOT NULL REFERENCES isotone_ledger, number INTEGER NOT NULL, time TEXT NOT NULL,
        kind TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, rho TEXT NOT NULL,
        mechanism TEXT NOT NULL, description TEXT NOT NULL, spec TEXT NOT NULL, request TEXT,
        PRIMARY KEY (dataset, number))""",
    f"""CREATE TABLE IF NOT EXISTS isotone_reading ({_CHARGE}, turn INTEGER NOT NULL,
        PRIMARY KEY (dataset, number, turn), FOREIGN KEY (dataset, number) REFERENCES isotone_charge)""",
    f"""CREATE TABLE IF NOT EXISTS isotone_ending ({_CHARGE}, turn INTEGER NOT NULL,
        manner TEXT NOT NULL CHECK (manner IN ('interrupted', 'died')),
        PRIMARY KEY (dataset, number, turn), FOREIGN KEY (dataset, number, turn) REFERENCES isotone_reading)""",
    f"""CREATE TABLE IF NOT EXISTS isotone_outcome (
        {_CHARGE}, state TEXT NOT NULL CHECK (state IN ('drawn', 'failed')), {_OF_CHARGE})""",
    f"""CREATE TABLE IF NOT EXISTS isotone_sealed ({_CHARGE}, release TEXT NOT NULL,
        PRIMARY KEY (dataset, number), FOREIGN KEY (dataset, number) REFERENCES isotone_outcome)""",
    f"""CREATE TABLE IF NOT EXISTS isotone_period ({_CHARGE}, period INTEGER NOT NULL, shown TEXT NOT NULL,
        PRIMARY KEY (dataset, number, period), FOREIGN KEY (dataset, number) REFERENCES isotone_sealed)""",
)
_KEYS = {
    "isotone_ledger": ("dataset",),
    "isotone_unit": ("dataset",),
    "isotone_charge": ("dataset", "number"),
    "isotone_reading": ("dataset", "number", "turn"),
    "isotone_ending": ("dataset", "number", "turn"),
    "isotone_outcome": ("dataset", "number"),
    "isotone_sealed": ("dataset", "number"),
    "isotone_period": ("dataset", "number", "period"),
}
TABLES = tuple(_KEYS)
_WITHOUT_CHARGE = "isotone_ledger"
"""Its row may be removed while the data set has no charge; nothing else ever is."""
_CHARGED = "EXISTS (SELECT 1 FROM isotone_charge WHERE dataset = OLD.dataset)"


def sqlite_schema() -> Sequence[str]:
    """Tables, and triggers that refuse to change, remove or replace a row.

    ``INSERT OR REPLACE`` removes the old row without a word to the DELETE trigger, so that inserts are watched too: for
    a key that exists, and for a row number that exists.
    """
    refuse = f"BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END"
    triggers: list[str] = []
    for table, key in _KEYS.items():
        same = " AND ".join(f"{column} = NEW.{column}" for column in key)
        exists = f"EXISTS (SELECT 1 FROM {table} WHERE ({same}) OR rowid = NEW.rowid)"
        removal = f"WHEN {_CHARGED} " if table == _WITHOUT_CHARGE else ""
        triggers += [
            f"CREATE TRIGGER IF NOT EXISTS {table}_{verb} BEFORE {verb} ON {table} {when}{refuse}"
            for verb, when in (("UPDATE", ""), ("DELETE", removal), ("INSERT", f"WHEN {exists} "))
        ]
    return [*_TABLES, *triggers]


def postgres_schema() -> Sequence[str]:
    """Tables, and triggers that refuse to change or remove a row."""
    refusal = f"RAISE EXCEPTION '{APPEND_ONLY}';"
    functions = (
        f"CREATE OR REPLACE FUNCTION isotone_append_only() RETURNS trigger AS $$ BEGIN {refusal} END $$ LANGUAGE plpgsql",
        f"CREATE OR REPLACE FUNCTION isotone_without_charge() RETURNS trigger AS $$ BEGIN "
        f"IF {_CHARGED} THEN {refusal} END IF; RETURN OLD; END $$ LANGUAGE plpgsql",
    )
    triggers = [
        f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE "
        f"{'' if table == _WITHOUT_CHARGE else 'OR DELETE '}OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION isotone_append_only()"
        for table in TABLES
    ]
    removal = (
        f"CREATE OR REPLACE TRIGGER {_WITHOUT_CHARGE}_removal BEFORE DELETE ON {_WITHOUT_CHARGE} "
        "FOR EACH ROW EXECUTE FUNCTION isotone_without_charge()"
    )
    return [*_TABLES, *functions, *triggers, removal]
