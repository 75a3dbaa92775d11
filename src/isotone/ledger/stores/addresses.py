"""Which store keeps the rows of a ledger."""

from __future__ import annotations

from pathlib import Path

from isotone.errors import LedgerError
from isotone.ledger.stores.postgres_store import PostgresStore
from isotone.ledger.stores.sqlite_store import SqliteStore
from isotone.ledger.stores.store import Store

__all__ = ["store_at"]


def store_at(where: str) -> Store:
    """The store at a path or a PostgreSQL URL."""
    if where.startswith(("postgresql://", "postgres://")):
        return PostgresStore(where)
    if "://" in where:
        scheme = where.partition("://")[0]
        raise LedgerError(f"A ledger is at a path or a postgresql:// URL, not at {scheme}://…")
    return SqliteStore(Path(where))
