"""A ledger in a PostgreSQL database, for teams on several machines."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeVar

from isotone.errors import LedgerError
from isotone.lazy import install
from isotone.ledger.stores.sqlite import TABLES, ConflictError, Execute, Rows, busy, postgres_schema

T = TypeVar("T")
_CREATION = 0x49534F54
_ATTEMPTS = 50
_SECRETS = ("password", "sslpassword", "passfile")


@dataclass(frozen=True)
class PostgresStore:
    """A ledger in a PostgreSQL database, shared by several machines.

    Transactions are ``SERIALIZABLE``; one that lost a race is run again, which is safe because nothing of it
    was kept. Each asks the server for ``synchronous_commit``, so that it is on disk before it returns.
    """

    url: str = field(repr=False)

    @property
    def address(self) -> str:
        """The URL without user, password and options."""
        options = self._options()
        host, port, name = (options.get(key, "") for key in ("host", "port", "dbname"))
        return f"postgresql://{host}{':' if port else ''}{port}/{name}"

    @property
    def default_dataset(self) -> None:
        """A shared server needs a name for each data set."""
        return

    @property
    def one_dataset(self) -> bool:
        """A server keeps many data sets."""
        return False

    @property
    def ready(self) -> bool:
        """A lock on a server leaves nothing behind."""
        return True

    def has_tables(self, execute: Execute) -> bool:
        """Whether the tables of a ledger are there."""
        return execute("SELECT to_regclass(?) IS NOT NULL", TABLES[-1])[0][0]

    def require_place(self) -> None:
        """Every server will do; one that cannot be reached says so itself."""

    def create(self, work: Callable[[Execute], T]) -> T:
        """Create what is missing. A role that may only insert can add a data set where the tables are."""

        def build(execute: Execute) -> T:
            execute("SELECT pg_advisory_xact_lock(?)", _CREATION)
            if not self.has_tables(execute):
                for statement in postgres_schema():
                    execute(statement)
            return work(execute)

        return self.transact(build)

    def remove(self, work: Callable[[Execute], None]) -> None:
        """Remove a row. The tables stay, as other data sets are there too."""
        self.transact(work)

    def transact(self, work: Callable[[Execute], T]) -> T:
        """One serialisable transaction."""
        psycopg = _psycopg()
        for _ in range(_ATTEMPTS):
            try:
                with self._connect() as connection:
                    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                    connection.execute("SET LOCAL synchronous_commit = on")

                    def execute(sql: str, *values: Any, _connection: Any = connection) -> Rows:
                        cursor = _connection.execute(sql.replace("?", "%s"), values)
                        return list(cursor.fetchall()) if cursor.description else []

                    return work(execute)
            except psycopg.errors.SerializationFailure:
                continue
            except psycopg.errors.IntegrityError as error:
                raise ConflictError(
                    f"The ledger at {self.address} refused the change: {self._clean(error)}."
                ) from None
            except psycopg.Error as error:
                raise LedgerError(
                    f"The ledger at {self.address} could not be used: {self._clean(error)}. Nothing was released; if the "
                    "connection broke, the charge may stand."
                ) from None
        raise LedgerError(
            f"The ledger at {self.address} was too busy: {_ATTEMPTS} attempts lost the race. Try again."
        )

    @contextmanager
    def lock(self, key: str, *, wait: bool) -> Generator[None]:
        """An advisory lock in a session of its own.

        The server releases it when the session ends, however it ends.
        """
        psycopg = _psycopg()
        number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big", signed=True)
        connection: Any = None
        try:
            try:
                connection = self._connect(autocommit=True)
                connection.execute(  # a long read must not cost the lock; servers before 14 have no such limit
                    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"
                )
                verb = "pg_advisory_lock" if wait else "pg_try_advisory_lock"
                ((got,),) = connection.execute(f"SELECT {verb}(%s)", (number,)).fetchall()
            except psycopg.Error as error:
                raise LedgerError(
                    f"The ledger at {self.address} gave no lock: {self._clean(error)}. Nothing was charged."
                ) from None
            if got is False:
                raise busy(self.address)
            yield
        finally:
            if connection is not None:
                connection.close()

    def _connect(self, **options: Any) -> Any:
        self._options()  # what cannot be parsed is refused here, in our words
        return _psycopg().connect(self.url, connect_timeout=10, **options)

    def _options(self) -> dict[str, str]:
        """What the server's own library reads in the URL."""
        psycopg = _psycopg()
        try:
            options: dict[str, str] = psycopg.conninfo.conninfo_to_dict(self.url)
        except psycopg.Error:
            options = {"host": "@"}
        if any("@" in str(options.get(key, "")) for key in ("host", "port", "dbname")):
            raise LedgerError(  # the library's own message would quote parts of a password
                "The postgresql:// URL of the ledger cannot be read. Write postgresql://user@host:port/database, with %40 "
                "for @, %2F for / and %3F for ? inside a name; give the password in PGPASSWORD or ~/.pgpass."
            ) from None
        return {key: str(value) for key, value in options.items()}

    def _clean(self, error: Exception) -> str:
        """The server's message without anything secret."""
        text = str(error).strip() or type(error).__name__
        options = self._options()
        for secret in (*(options.get(key) for key in _SECRETS), os.environ.get("PGPASSWORD")):
            if secret:
                text = text.replace(secret, "…")
        user = options.get("user")  # no secret, and often short: only the whole word is left out
        return re.sub(rf"(?<!\w){re.escape(user)}(?!\w)", "…", text) if user else text


def _psycopg() -> ModuleType:
    try:
        import psycopg
    except ImportError:
        raise LedgerError(
            f"A ledger in PostgreSQL needs the library psycopg: {install('postgres')}"
        ) from None
    return psycopg
