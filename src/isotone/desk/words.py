"""What the desk says when something is refused."""

from __future__ import annotations

from isotone.errors import BudgetError, InputError, IsotoneError, LedgerError, OrderError
from isotone.ledger import LostError, SealedError

__all__ = ["FormError", "lines", "number", "release_lines"]

UNREADABLE = (
    "This was not completed; the ledger says what was charged. Perhaps a column that the spec names is not in the first line "
    "of the data, the data cannot be read, the ledger belongs to something else, or the output folder is in use. Names are not shown here: the "
    "same command in a terminal tells more."
)


class FormError(InputError):
    """What was typed cannot be used."""


def lines(error: IsotoneError) -> list[str]:
    """An error of planning, which knows what was typed and public files only. One of a ledger may name files."""
    if isinstance(error, LedgerError):
        return release_lines(error)
    return str(error).splitlines() or ["This cannot be used."]


def number(text: str, what: str) -> float:
    """A number above 0 that was typed."""
    try:
        value = float(text.strip())
    except ValueError:
        value = -1.0
    if not 0 < value < 1e15:
        raise FormError(f"{what} is a number above 0.")
    return value


def release_lines(error: BaseException) -> list[str]:
    """An error of a release, without any name of a file or column, and what became of the charge."""
    public = isinstance(error, (BudgetError, SealedError, LostError, OrderError, FormError))
    said = str(error) if public else UNREADABLE
    notes = getattr(error, "__notes__", ()) if isinstance(error, IsotoneError) else ()
    return [*said.splitlines(), *notes]
