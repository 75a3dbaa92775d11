"""Which rows belong to one privacy unit, and a fair choice of at most k of them.

All that readers and releases know about a kind of unit stands here, in :class:`RowsOfUnits`.

A unit's rows are put in the order of a hash of a salt, the unit, what the row says and its number among the unit's rows that
say the same; the first k stay. The salt is secret, fresh for each attempt and stored nowhere. So for whoever does not know it,
every k of a unit's rows are chosen with the same probability, whatever they say, and independently of all other units.
What a unit keeps is a function of the salt and of its own rows alone: one unit more or less changes no other unit's choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
from typing_extensions import TypedDict

from isotone.errors import InputError
from isotone.noise.bits import random_salt
from isotone.privacy.checks import whole_number
from isotone.reading.columns import ColumnRule, as_text, as_unit, name_texts, public_texts
from isotone.reading.operations import listed, numbered, with_sha256

Frame = nw.LazyFrame[Any]

UnitKey = str | None
"""How rows name their unit: by a column, or not at all (None), so that each row is a unit."""

UNIT = "isotone_unit"
_SAYS, _NUMBER, _TEXT, _HASH, _POSITION = (
    f"isotone_{name}" for name in ("says", "number", "text", "hash", "position")
)


class UnitEntry(TypedDict):
    """Whose rows belong together and how many of them count, in the rules of a manifest."""

    unit: UnitKey
    contributions: int


class RowsOfUnits:
    """Rows of privacy units, of which at most ``contributions`` of a unit count. Readers inherit from it."""

    unit: UnitKey
    contributions: int

    @property
    def unit_roles(self) -> dict[str, list[str]]:
        """The columns that name the unit, by what they are for."""
        return {} if self.unit is None else {"unit": [self.unit]}

    def unit_keys(self) -> dict[str, ColumnRule]:
        """How the unit of a row is read."""
        return {} if self.unit is None else {UNIT: ColumnRule(as_unit, self.unit)}

    def of_somebody(self, rows: Frame) -> Frame:
        """Without the rows that belong to no unit."""
        return rows if self.unit is None else rows.filter(~nw.col(UNIT).is_null())

    def bounded(self, rows: Frame, names: Sequence[str], salt: bytes | None, *, once: bool = False) -> Frame:
        """At most ``contributions`` rows of each unit, in which ``names`` are all columns. With ``once`` no two of them alike."""
        if self.unit is None:
            return rows
        rows = self.of_somebody(rows)
        if once:
            rows = rows.unique([UNIT, *names])
        return at_most(rows, self.contributions, [nw.col(name).cast(nw.String) for name in names], salt)


@dataclass(frozen=True)
class UnitRows(RowsOfUnits):
    """Rows of which nothing is said but their units."""

    unit: UnitKey
    contributions: int


def rows_in_words(rules: Mapping[str, Any], unit: str) -> str:
    """What the rules of a manifest say about the rows of a unit, which is given in words."""
    times = int(rules.get("contributions") or 1)
    if rules.get("unit") is None:
        return f"Every row is one {unit}."
    if times == 1:
        return (
            f"The rows of one {unit} (column {rules['unit']}) count once; rows without a {unit} are left out."
        )
    return f"At most {times} rows of one {unit} (column {rules['unit']}) count."


def check_contributions(contributions: Any, unit: UnitKey) -> int:
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


# Public groups of records, one list of values, or the cells of several lists.
#
# What is in no list is left out with its row, or is one more value that all such rows share. Either way the group of a row
# depends on that row alone.

GROUP = "isotone_group"
"""The column with the number of the group, or of the cell, of a row."""


@dataclass(frozen=True)
class Groups:
    """The values of a public list, or the cells of several. Their sequence is that of the first list, then of the second, and so on.

    Each unit is counted in one of them.

    ``unlisted`` says what happens to a row with a value that is in no list: "drop" leaves it out altogether, "other" puts
    it under the last value of the list, which is for all such rows.
    """

    lists: tuple[tuple[str, tuple[str, ...]], ...]
    unlisted: Literal["drop", "other"] = "drop"

    def __post_init__(self) -> None:
        for _, values in self.lists:
            if not values:
                raise InputError("groups must be a public list with at least one entry.")
            public_texts(values, "groups")

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [column for column, _ in self.lists]

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(len(values) for _, values in self.lists)

    def keys(self) -> dict[str, ColumnRule]:
        """The texts that say the cell of a row."""
        return {_text(i): ColumnRule(as_text, column) for i, column in enumerate(self.columns)}

    def placed(self, frame: Frame) -> Frame:
        """The rows that have a cell, with its number."""
        number = nw.lit(0).cast(nw.Int64)
        for i, (_, values) in enumerate(self.lists):
            texts = name_texts(values)
            if self.unlisted == "drop":
                frame = numbered(frame, _text(i), texts, _place(i))
            else:
                places: list[int | None] = list(range(len(texts) - 1))
                frame = listed(frame, _text(i), texts[:-1], {_place(i): places})
            place = nw.col(_place(i)).fill_null(len(values) - 1).cast(nw.Int64)
            number = number * len(values) + place
        used = [name(i) for i in range(len(self.lists)) for name in (_text, _place)]
        return frame.with_columns(number.alias(GROUP)).drop(*used)


def _text(i: int) -> str:
    return f"isotone_group_name_{i}"


def _place(i: int) -> str:
    return f"isotone_group_place_{i}"
