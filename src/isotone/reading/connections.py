"""A table in a database that a spec names by a connection.

What identifies the data is a list of parts of the connection: its scheme, host, port and database, and the table. User names, passwords and options are none of
them, and no message quotes a connection: a driver's own words may.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from isotone.errors import InputError
from isotone.lazy import from_extra
from isotone.reading.sources import ColumnType, SourceError

SCHEMES = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
    "bigquery": "bigquery",
    "snowflake": "snowflake",
    "trino": "trino",
    "databricks": "databricks",
    "clickhouse": "clickhouse",
}
"""The schemes of a connection, and what ibis calls the engine."""
_PORTS = {"postgres": 5432}
_ENVIRONMENT = "env:"


@dataclass(frozen=True)
class DataTable:
    """A table in a database. It can be used like any other source.

    Parameters
    ----------
    connection
        A URL such as ``postgresql://reader@db.example.org/health`` without a password, which the driver finds where it always does; or ``env:NAME``
        for a URL in the environment, which may hold all that ibis takes. ``sqlite://`` and ``duckdb://`` name a file.
    table
        The table's name, with the schema and a point before it where there is one.
    types
        What columns are read as, where that is not what they are.
    folder
        Where the path of a file starts.
    """

    connection: str
    table: str
    types: Mapping[str, ColumnType] = field(default_factory=dict[str, ColumnType])
    folder: Path = Path()

    def __post_init__(self) -> None:
        if not self.connection.startswith(_ENVIRONMENT):
            url = _parts(self.connection)
            if url.password is not None or url.query or url.fragment:
                raise InputError(
                    "A connection that is written down has no password and no options behind a question mark. Put the whole URL "
                    'into the environment and name it: connection = "env:NAME".'
                )
        if not all(self._path) or len(self._path) > 3:
            raise InputError(
                "table is the name of a table, with its schema before it if it has one: health.survey."
            )

    @property
    def _path(self) -> list[str]:
        return self.table.split(".")

    def identity(self) -> dict[str, Any]:
        """What identifies the data in a request."""
        url = _parts(self._url())
        engine = SCHEMES[url.scheme]
        if engine in ("sqlite", "duckdb"):
            where: dict[str, Any] = {"database": str(self._file(url))}
        else:
            port = url.port or _PORTS.get(engine)
            where = {"host": url.hostname, "port": port, "database": unquote(url.path).strip("/")}
        *schema, table = self._path
        return {
            "scheme": engine,
            **where,
            "schema": ".".join(schema),
            "table": table,
            "types": dict(self.types),
        }

    def open(self) -> Any:
        """The table through ibis. Only the catalogue is asked."""
        url = self._url()
        parts = _parts(url)
        engine = SCHEMES[parts.scheme]
        file = self._file(parts) if engine in ("sqlite", "duckdb") else None
        if file is not None and not file.is_file():
            raise SourceError(f"There is no file {str(file)!r}.")
        ibis: Any = from_extra("ibis", "warehouse")
        *schema, table = self._path
        try:
            if engine == "sqlite":
                reader = sqlite3.connect(
                    f"file:{quote(str(file))}?mode=ro", uri=True, check_same_thread=False
                )
                backend: Any = getattr(ibis, engine).from_connection(reader)
            elif engine == "duckdb":
                backend = getattr(ibis, engine).connect(str(file), read_only=True)
            else:
                backend = ibis.connect(url)
        except ImportError:
            raise InputError(
                f"The driver for this connection is not installed: pip install 'ibis-framework[{engine}]'."
            ) from None
        except Exception:
            backend = None  # what a driver says may quote the connection
        if backend is None:
            raise SourceError(
                "The database could not be opened. Check the connection, and that the driver finds the password. Nothing was charged."
            )
        try:
            return backend.table(table, database=".".join(schema) or None)
        except Exception:
            pass
        raise SourceError(
            f"The database has no table {self.table!r} that this user may read. Nothing was charged."
        )

    def _url(self) -> str:
        """The URL itself, which is never shown."""
        if not self.connection.startswith(_ENVIRONMENT):
            return self.connection
        name = self.connection.removeprefix(_ENVIRONMENT)
        if not os.environ.get(name):
            raise InputError(
                f"The environment has no {name}, which the connection names. Nothing was charged."
            )
        return os.environ[name]

    def _file(self, url: SplitResult) -> Path:
        return (self.folder / unquote(url.netloc + url.path)).absolute()


def _parts(url: str) -> SplitResult:
    """The parts of a URL of a listed scheme."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in SCHEMES and "://" in url and parts.port is not False
    except ValueError:  # a port that is no number, say
        known, parts = False, None
    if not known or parts is None:
        raise InputError(
            f'connection is "env:NAME" for a URL in the environment, or a URL that starts with one of {", ".join(f"{s}://" for s in SCHEMES)}.'
        )
    return parts
