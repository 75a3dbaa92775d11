"""Starts the ledger that a spec names, unless a misspelt path would start a second one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from isotone.errors import LedgerError
from isotone.ledger.ledger import Ledger
from isotone.ledger.stores.sqlite_store import is_ledger_file

__all__ = ["open_or_start"]


def open_or_start(where: str | os.PathLike[str], **options: Any) -> Ledger:
    """Open a ledger, or start it with the total in ``options`` if it is the first one in its folder.

    A mistyped path must not give a data set a second, fresh budget. So a total in a spec starts a ledger only in a
    folder that exists and has no other ledger; a further one, and any on a server, is made by ``isotone ledger create``.
    """
    totals = ("epsilon", "delta", "rho", "composition", "final_delta")
    if all(options.get(name) is None for name in totals):
        return Ledger(where, **options)
    text = os.fspath(where)
    if "://" in text:
        Ledger(where, **{name: value for name, value in options.items() if name not in totals})
        return Ledger(where, **options)  # it is there: now compare the total
    path = Path(text)
    if not path.exists():
        # the ledger itself, whole or half made, may be there by now: another process starts it at this moment
        own = {path.name, path.name + ".new"}
        others = [name for name in _ledgers_in(path.parent) if name not in own]
        if others:
            names = ", ".join(map(repr, others))
            raise LedgerError(
                f"There is no ledger {str(path)!r}, but its folder has {names}. Correct the path; or, if the data really "
                f"needs a second budget, make it with 'isotone ledger create {path}' and its total."
            )
    return Ledger(where, **options)


def _ledgers_in(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_file() and is_ledger_file(entry))
    except OSError:
        return []
