"""Tables in real databases, for the tests that compare engines."""

from __future__ import annotations

import functools
import itertools
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ibis

_numbers = itertools.count()


def in_sqlite(folder: Path, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Any:
    """A new table with columns of these declared types, through ibis."""
    file, name = folder / "data.sqlite", f"t{next(_numbers)}"
    with sqlite3.connect(file) as connection:
        declared = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {name} ({declared})")
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    connection.close()
    return ibis.sqlite.connect(file).table(name)


def in_postgres(columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Any:
    """A new table with columns of these types in the server of this test process, through ibis."""
    name = f"rows{next(_numbers)}"
    backend = postgres()
    with backend.begin() as cursor:
        declared = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
        cursor.execute(f"CREATE TABLE {name} ({declared})")
        cursor.executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(columns))})", rows)
    return backend.table(name)


@functools.cache
def postgres() -> Any:
    """A connection to the server of this test process."""
    from tests.support.postgres import postgres_url

    return ibis.connect(postgres_url())
