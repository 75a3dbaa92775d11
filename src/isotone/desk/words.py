"""What the desk says when something is refused: the sentences of the command line."""

from __future__ import annotations

from isotone.errors import InputError, IsotoneError

UNCHARGED = "Nothing was charged."
_ODD = (
    "Something unexpected went wrong. Nothing more is shown here, because it might quote data. The same command in a terminal may "
    "tell more, and the ledger says what was charged."
)


class FormError(InputError):
    """What was typed cannot be used."""


def lines(error: BaseException) -> list[str]:
    """What went wrong, as the command line says it, with what became of the charge. Errors of isotone quote no contents."""
    if not isinstance(error, IsotoneError):
        return [_ODD]
    sentences = [line.strip() for line in str(error).splitlines()] or ["This cannot be used."]
    return [*filter(None, sentences), *getattr(error, "__notes__", ())]


def release_lines(error: BaseException, *, charged: bool) -> list[str]:
    """The same for a release, and that nothing was charged if that is so."""
    sentences = lines(error)
    if charged or any(UNCHARGED.casefold().rstrip(".") in line.casefold() for line in sentences):
        return sentences
    return [*sentences, UNCHARGED]


def number(text: str, what: str) -> float:
    """A number above 0 that was typed."""
    try:
        value = float(text.strip())
    except ValueError:
        value = -1.0
    if not 0 < value < 1e15:
        raise FormError(f"{what} is a number above 0, with a point and not a comma.")
    return value
