"""What a ledger asks of the place that keeps its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from isotone.errors import LedgerError

__all__ = [
    "APPEND_ONLY",
    "NEWEST_TABLE",
    "TABLES",
    "BusyError",
    "ConflictError",
    "Execute",
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

    def exists(self) -> bool:
        """Whether a ledger was made here before."""
        ...

    def create(self, work: Callable[[Execute], None]) -> None:
        """Make the tables that are missing and run ``work``, all of it or nothing."""
        ...

    def has_table(self, execute: Execute, name: str) -> bool:
        """Whether there is a table of this name."""
        ...

    def transact(self, work: Callable[[Execute], T]) -> T:
        """Run ``work(execute)`` in one serialisable transaction, durable when this returns."""
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
        rho TEXT NOT NULL, neighbours TEXT NOT NULL, unit TEXT, created TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS isotone_unit (
        dataset TEXT PRIMARY KEY REFERENCES isotone_ledger, unit TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS isotone_charge (
        dataset TEXT NOT NULL REFERENCES isotone_ledger, number INTEGER NOT NULL, time TEXT NOT NULL,
        kind TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, rho TEXT NOT NULL,
        mechanism TEXT NOT NULL, description TEXT NOT NULL, spec TEXT NOT NULL,
        PRIMARY KEY (dataset, number))""",
    f"CREATE TABLE IF NOT EXISTS isotone_finish ({_CHARGE}, time TEXT NOT NULL, release TEXT NOT NULL, {_OF_CHARGE})",
    """CREATE TABLE IF NOT EXISTS isotone_composition (
        dataset TEXT PRIMARY KEY REFERENCES isotone_ledger, rule TEXT NOT NULL)""",
    f"CREATE TABLE IF NOT EXISTS isotone_request ({_CHARGE}, request TEXT NOT NULL, {_OF_CHARGE})",
    f"""CREATE TABLE IF NOT EXISTS isotone_outcome (
        {_CHARGE}, state TEXT NOT NULL CHECK (state IN ('drawn', 'failed')), {_OF_CHARGE})""",
    f"""CREATE TABLE IF NOT EXISTS isotone_sealed ({_CHARGE}, release TEXT NOT NULL,
        PRIMARY KEY (dataset, number), FOREIGN KEY (dataset, number) REFERENCES isotone_outcome)""",
)
_KEYS = {
    "isotone_ledger": ("dataset",),
    "isotone_unit": ("dataset",),
    "isotone_charge": ("dataset", "number"),
    "isotone_finish": ("dataset", "number"),
    "isotone_composition": ("dataset",),
    "isotone_request": ("dataset", "number"),
    "isotone_outcome": ("dataset", "number"),
    "isotone_sealed": ("dataset", "number"),
}
TABLES = tuple(_KEYS)
NEWEST_TABLE = "isotone_sealed"
"""A ledger without this table is of format 1."""


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
        triggers += [
            f"CREATE TRIGGER IF NOT EXISTS {table}_{verb} BEFORE {verb} ON {table} {when}{refuse}"
            for verb, when in (("UPDATE", ""), ("DELETE", ""), ("INSERT", f"WHEN {exists} "))
        ]
    return [*_TABLES, *triggers]


def postgres_schema() -> Sequence[str]:
    """Tables, and triggers that refuse to change or remove a row."""
    function = (
        "CREATE OR REPLACE FUNCTION isotone_append_only() RETURNS trigger AS $$ BEGIN "
        f"RAISE EXCEPTION '{APPEND_ONLY}'; END $$ LANGUAGE plpgsql"
    )
    triggers = (
        f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION isotone_append_only()"
        for table in TABLES
    )
    return [*_TABLES, function, *triggers]
