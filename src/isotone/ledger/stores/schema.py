"""The tables of a ledger.

The first four are those of format 1 and keep their form, so that a ledger of that format is read as it is; what format 2
adds stands in tables of its own. Two outcomes of a charge, ``drawn`` and ``failed``, are rivals for one primary key: the
database itself lets only one of them happen, and only once.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["APPEND_ONLY", "NEWEST_TABLE", "TABLES", "postgres_schema", "sqlite_schema"]

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
