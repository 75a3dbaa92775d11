"""Choose at most k rows of each privacy unit, fairly.

A unit's rows are put in the order of a hash of a salt, the unit, what the row says and its number among the unit's rows that
say the same; the first k stay. The salt is secret, fresh for each attempt and stored nowhere. So for whoever does not know it,
every k of a unit's rows are chosen with the same probability, whatever they say, and independently of all other units.
What a unit keeps is a function of the salt and of its own rows alone: one unit more or less changes no other unit's choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from isotone.errors import InputError
from isotone.noise.bits import random_salt
from isotone.privacy.checks import whole_number
from isotone.reading.columns.native import with_sha256
from isotone.reading.columns.texts import as_text

__all__ = ["UNIT", "at_most", "check_contributions"]

Frame = nw.LazyFrame[Any]

UNIT = "isotone_unit"
_SAYS, _NUMBER, _TEXT, _HASH, _POSITION = (
    f"isotone_{name}" for name in ("says", "number", "text", "hash", "position")
)


def check_contributions(contributions: Any, unit: str | None) -> int:
    """The number of contributions as a plain int, refused if it means nothing."""
    number = whole_number(contributions, "contributions")
    if number > 1 and unit is None:
        raise InputError(
            "contributions above 1 needs unit=: the column that says whose rows belong together."
        )
    return number


def at_most(frame: Frame, contributions: int, values: Sequence[nw.Expr], salt: bytes | None) -> Frame:
    """Keep at most ``contributions`` rows of each unit.

    The unit is in the column ``UNIT``.

    ``values`` are texts without nulls that together say all that the row says, however many columns it has. Rows that say the
    same are interchangeable, so it does not matter which of them is called the first. The choice is by row number, never
    by a rank: even if all hashes were equal, no unit would keep more rows than declared. A ``salt`` is given by tests alone.
    """
    salt = random_salt() if salt is None else salt
    unit = as_text(UNIT, frame.collect_schema()[UNIT]).fill_null("")
    says = nw.concat_str(*(_prefixed(value) for value in (unit, *values)))
    frame = frame.with_columns(says.alias(_SAYS))
    number = nw.col(_SAYS).cum_count().over(UNIT, _SAYS, order_by=_SAYS)
    frame = frame.with_columns(number.cast(nw.String).alias(_NUMBER))
    text = nw.concat_str(nw.lit(salt.hex()), nw.col(_SAYS), nw.col(_NUMBER))
    frame = with_sha256(frame.with_columns(text.alias(_TEXT)), _TEXT, _HASH)
    position = nw.col(_SAYS).cum_count().over(UNIT, order_by=[_HASH, _SAYS])
    frame = frame.with_columns(position.alias(_POSITION)).filter(nw.col(_POSITION) <= contributions)
    return frame.drop(_SAYS, _NUMBER, _TEXT, _HASH, _POSITION)


def _prefixed(text: nw.Expr) -> nw.Expr:
    """A text preceded by its length.

    Texts joined in this way can be separated again, so different rows stay different.
    """
    return nw.concat_str(text.str.len_chars().cast(nw.String), nw.lit(":"), text)
