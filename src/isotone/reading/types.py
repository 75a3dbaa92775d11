"""The closed list of types: what a column may hold, in which role, and what each value of it means.

Where a schema is public (Parquet, Arrow files, databases, Spark) a type that is not on the list is refused from the schema alone,
before anything is charged. A frame in memory takes its types from its values, so that one row could cause a refusal: there every
value is read by :func:`isotone.reading.values.text_of`, and what is not on the list is missing.

:data:`MEANINGS` and :data:`ROLES` are the whole list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from isotone.errors import InputError

Kind = Literal["boolean", "integer", "float", "decimal", "text", "date", "timestamp", "uuid", "null"]
"""A logical type, whatever an engine calls it. Dictionaries, categories and enumerations are of the type of their values."""

Role = Literal["unit", "answer", "element", "category", "group", "number", "date", "label", "event"]
"""What a column is for."""

Roles = Mapping[str, Sequence[str]]
"""The columns that are read, by what they are for (:data:`Role`)."""

MEANINGS: dict[Kind, tuple[str, str]] = {
    "boolean": ("`true` or `false`", "1 or 0"),
    "integer": (
        "its digits; of more than 250 digits: missing",
        "the number; beyond 64 bits the nearest float; where counts are read at most ±10¹⁷; of more than 250 digits: clamped",
    ),
    "float": (
        "its shortest digits, whole numbers without a point; NaN, ±∞ and what reaches ±10³⁰⁰: missing",
        "the number; NaN: missing; ±∞ and what reaches ±10³⁰⁰: clamped",
    ),
    "decimal": ("its exact digits without zeros at the end", "the nearest float"),
    "text": (
        "without outer blanks, `7.0` as `7`; empty, `inf`, `-inf`, `infinity`, what is not UTF-8, and more than 64 MiB in a file or a frame: missing",
        "the number that it writes, `true` 1, `false` 0, `inf` clamped; everything else: missing",
    ),
    "date": ("`2020-01-31`; before year 1 or after 9999: missing", "missing"),
    "timestamp": (
        "`2020-01-31 12:00:00.5` without zeros at the end, with a time zone in UTC and `+00:00` behind; outside years 1 to 9999, and the last of nanoseconds (`pd.Timestamp.max`): missing",
        "missing",
    ),
    "uuid": ("`00000000-0000-0000-0000-000000000001`, in small letters", "missing"),
    "null": ("missing", "missing"),
}
"""For each type what a value is as text, and as a number."""

_TEXTS: tuple[Kind, ...] = get_args(Kind)
_NUMBERS: tuple[Kind, ...] = ("boolean", "integer", "float", "decimal", "text", "null")

ROLES: dict[str, tuple[tuple[Kind, ...], str]] = {
    "unit": (
        _TEXTS,
        "as text; blank, `NA`, `NaN`, `null`, `none` and the like name nobody, and the row is left out",
    ),
    "answer": (
        _TEXTS,
        "as a word of the list, in any case, or as a number of it; comparisons such as `>= 140` as a number, and ±∞ is missing",
    ),
    "element": (_TEXTS, "as text, one of the public elements"),
    "category": (_TEXTS, "as text, one of the public categories"),
    "group": (_TEXTS, "as text, one of the public groups"),
    "number": (
        _NUMBERS,
        "as a number, clamped to its public range; what is missing leaves the row out, or counts 0",
    ),
    "date": (("date", "timestamp", "text", "null"), "as the text of a date"),
    "label": (_NUMBERS, "as a number, which must be one of the two labels"),
    "event": (
        ("boolean", "integer", "float", "decimal", "null"),
        "as 1 or 0; a text column of a format with types needs the words of an event, and in CSV what is neither leaves the row out",
    ),
}
"""For each role the types that are read in it, and how."""

_CASTS = {
    "binary": "CAST(… AS VARCHAR) if the bytes are text, hex(…) if not",
    "nested": "one of its fields as a column of its own",
    "interval": "a number such as EXTRACT(epoch FROM …)",
    "time": "CAST(… AS VARCHAR)",
    "collation": "CAST(… AS STRING COLLATE UTF8_BINARY)",
    "other": "CAST(… AS VARCHAR)",
    "date": "CAST(… AS DATE)",
    "event": "CAST(… AS INTEGER), or state the words of an event",
    "no number": "CAST(… AS VARCHAR) where it is a name, EXTRACT(epoch FROM …) where it is an amount",
}


def column_names(roles: Roles) -> list[str]:
    """The columns of all roles, each once."""
    return list(dict.fromkeys(name for names in roles.values() for name in names))


def require_kinds(roles: Roles, types: Mapping[str, tuple[str | None, str]], where: str) -> None:
    """Refuse a column whose type is not read in its role. ``types`` has its kind (None: not on the list) and its name in the engine."""
    for role, names in roles.items():
        for name in names:
            kind, written = types[name]
            if kind in ROLES[role][0]:
                continue
            cast = _CASTS[role if role in _CASTS else "no number" if kind is not None else _family(written)]
            raise InputError(
                f"{where} has the column {name!r} of type {written}, which is not read as {'an' if role[0] in 'aeiou' and role != 'unit' else 'a'} {role}. "
                f"Give it another type first: {cast}."
            )


def _family(written: str) -> str:
    """Which cast helps, by the engine's name of a type."""
    lower = written.lower()
    for family, words in {
        "collation": ("collate",),
        "interval": ("interval", "duration", "period"),
        "binary": ("binary", "blob", "bytea", "bytes"),
        "nested": ("list", "struct", "map", "[", "array", "union", "row"),
        "time": ("time",),
    }.items():
        if any(word in lower for word in words):
            return family
    return "other"


_DUCKDB: dict[str, Kind] = {
    "boolean": "boolean",
    **dict.fromkeys(
        ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint", "uhugeint"),
        "integer",
    ),
    "float": "float",
    "double": "float",
    "decimal": "decimal",
    "varchar": "text",
    "enum": "text",
    "date": "date",
    **dict.fromkeys(
        ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone", "timestamptz_ns"),
        "timestamp",
    ),
    "uuid": "uuid",
    "null": "null",
}  # fmt: skip


def duckdb_kind(dtype: Any) -> Kind | None:
    """The logical type of a column of DuckDB, None if it is not on the list."""
    return None if str(dtype).upper() == "JSON" else _DUCKDB.get(dtype.id)


def arrow_kind(dtype: Any) -> Kind | None:
    """The logical type of an Arrow column, None if it is not on the list."""
    import pyarrow.types as kinds

    if kinds.is_dictionary(dtype) or kinds.is_run_end_encoded(dtype):
        return arrow_kind(dtype.value_type)
    if getattr(dtype, "extension_name", "") == "arrow.uuid":
        return "uuid"
    tests: dict[Kind, tuple[Any, ...]] = {
        "boolean": (kinds.is_boolean,),
        "integer": (kinds.is_integer,),
        "float": (kinds.is_floating,),
        "decimal": (kinds.is_decimal,),
        "text": (kinds.is_string, kinds.is_large_string, kinds.is_string_view),
        "date": (kinds.is_date,),
        "timestamp": (kinds.is_timestamp,),
        "null": (kinds.is_null,),
    }
    return next((kind for kind, known in tests.items() if any(is_kind(dtype) for is_kind in known)), None)


_BYTES = "UTF8_BINARY"
"""How Spark compares texts as bytes."""


def spark_kind(dtype: Any) -> Kind | None:
    """The logical type of a column of Spark, None if it is not on the list. Texts that a collation compares are not on it."""
    if getattr(dtype, "collation", _BYTES) not in (None, _BYTES):
        return None
    name = dtype.typeName()
    kinds: dict[str, Kind] = {
        "boolean": "boolean",
        **dict.fromkeys(("byte", "short", "integer", "long"), "integer"),
        **dict.fromkeys(("float", "double"), "float"),
        "decimal": "decimal",
        **dict.fromkeys(("string", "char", "varchar"), "text"),
        "date": "date",
        **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
        "void": "null",
    }
    return next((kind for known, kind in kinds.items() if name.partition("(")[0] == known), None)
