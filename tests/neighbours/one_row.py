"""One row changes nothing for the others: the property behind every proof, for one case at a time.

Data D, the rows of one unit u, and both together go through the code that releases, up to the noise. With the salt fixed, the
records of both together must be those of D and those of u, added; those of u must be what one unit may have; and nothing else
may depend on u: no refusal, no state of the ledger, no word on a stream, no warning, no log, no file. Sequence and types of
columns differ between the three wherever a single row could have changed them.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import logging
import os
import re
import sys
import tempfile
import traceback
import uuid
import warnings
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

import isotone.reading.contributions
import isotone.reading.frames
import isotone.reading.text_files
import isotone.reading.warehouses
import isotone.release.kinds.series.description
from isotone.errors import InputError, IsotoneError
from isotone.reading.sources import SourceError
from isotone.reading.values import unit_of
from tests.neighbours.entries import ENTRIES, Entry, Records, charging, states
from tests.neighbours.sources import ARRAYS, SERVICES, TABLES, Form
from tests.neighbours.values import LISTED, TYPES, Column, drawn_value, drawn_values

__all__ = ["Case", "covering", "difference", "number_of_units", "random_cases"]

_USUAL = {
    "unit": "integer",
    "answer": "integer",
    "element": "text",
    "category": "text",
    "group": "text",
    "number": "float",
    "date": "date",
    "label": "integer",
    "event": "integer",
}
FORMS = {**TABLES, **ARRAYS, **SERVICES}


@dataclass(frozen=True)
class Case:
    """What is drawn by a seed: an entry point, a form of the source, and the type of one of its columns."""

    entry: str
    form: str
    type: str
    seed: int

    def __str__(self) -> str:
        return f"{self.entry} / {self.form} / {self.type} / {self.seed}"


def _forms(entry: Entry, forms: Sequence[str] | None = None) -> list[Form]:
    usual = ARRAYS if entry.of_arrays else TABLES
    return [
        form
        for name, form in FORMS.items()
        if (name in usual if forms is None else name in forms and not entry.of_arrays)
    ]


def covering(seed: int = 0, forms: Sequence[str] | None = None) -> Iterator[Case]:
    """Cases in which any entry point meets any form, and any form and any entry point about every type."""
    for place, entry in enumerate(ENTRIES.values()):
        known = _forms(entry, forms)
        for turn, form in enumerate(known):
            kinds = LISTED if form.typed else TYPES
            yield Case(
                entry.name,
                form.name,
                kinds[(turn + place + place // len(kinds) + 3 * seed) % len(kinds)],
                seed,
            )


def random_cases(number: int, seed: int, forms: Sequence[str] | None = None) -> Iterator[Case]:
    """Further cases."""
    rng = np.random.default_rng(seed)
    names = [name for name, entry in ENTRIES.items() if _forms(entry, forms)]
    for _ in range(number):
        entry = ENTRIES[names[rng.integers(len(names))]]
        known = _forms(entry, forms)
        form = known[rng.integers(len(known))]
        kinds = LISTED if form.typed else TYPES
        yield Case(entry.name, form.name, kinds[rng.integers(len(kinds))], int(rng.integers(2**31)))


# ---------------------------------------------------------------------------- the data

Table = dict[str, Column]


_NOTES = ["\r".join([name] * 9) for name in ("1", "a", "yes", "2020-01-02", "18.5")] + [
    "\n1\n",
    "\r\na,1,1,1\r\n",
    '"',
    "\r",
    "\x00",
]
"""Texts of which each could be taken for lines of others."""
_BYTES = ["\udcff", "\udce2\udc82", 'x"\udcff']
"""What is no text, for files of bytes."""


def drawn(case: Case, rng: np.random.Generator, units: int = 1) -> list[Table]:
    """Data, the rows of some units, each by itself, and all together in some sequence."""
    entry, form = ENTRIES[case.entry], FORMS[case.form]
    names = list(entry.roles)
    focus = names[rng.integers(len(names))]
    kinds: dict[str, str] = {}
    for name, role in entry.roles.items():
        usual = (
            _USUAL[role]
            if rng.random() < 0.8
            else ("text" if role != "unit" else LISTED[rng.integers(len(LISTED))])
        )
        kinds[name] = case.type if name == focus else usual
    rows, times = (
        int(rng.integers(0, 13)),
        500 if rng.random() < 1 / 50 else 1,
    )  # more than engines hold at once
    few = {name: 2 if role in ("answer", "label", "event") else 6 for name, role in entry.roles.items()}
    data = {name: drawn_values(rng, kind, rows, few[name]) * times for name, kind in kinds.items()}
    owned: dict[str | None, dict[str, list[Any]]] = {}
    for _ in range(units):
        whose, own = _one_unit(entry, form, rng, kinds, few)
        owned[str(len(owned)) if entry.unit is None or whose is None else f"unit {whose}"] = own
    if entry.unit is not None:
        others = [
            (name := unit_of(form.holds(value, kinds[entry.unit]))) is None or f"unit {name}" not in owned
            for value in data[entry.unit]
        ]
        data = {
            name: [value for value, other in zip(values, others, strict=True) if other]
            for name, values in data.items()
        }
    parts = [data, *owned.values()]
    if not entry.of_arrays and (case.form == "CSV" or rng.random() < 0.3):  # a column that nobody asks for
        notes = [*_NOTES, *_BYTES] if case.form in ("CSV", "JSON lines") else _NOTES
        data["note"] = ["n"] * _length(data)
        for own in parts[1:]:
            own["note"] = [notes[rng.integers(len(notes))] for _ in range(_length(own))]
        kinds["note"], names = "text", [*names, "note"]
    turns = rng.permutation(np.repeat(np.arange(len(parts)), [_length(part) for part in parts])).tolist()
    together: dict[str, list[Any]] = {}
    for name in names:
        values = [iter(part[name]) for part in parts]
        together[name] = [next(values[turn]) for turn in turns]
    return [{name: Column(kinds[name], part[name]) for name in names} for part in (*parts, together)]


def _length(part: dict[str, list[Any]]) -> int:
    return len(next(iter(part.values())))


def _one_unit(
    entry: Entry, form: Form, rng: np.random.Generator, kinds: dict[str, str], few: dict[str, int]
) -> tuple[str | None, dict[str, list[Any]]]:
    """The name of a unit as it is read, and its rows."""
    size = int(rng.integers(1, 5)) if entry.unit else 1
    odd = not form.typed and rng.random() < 0.6
    own = {
        name: [
            drawn_value(rng, "odd" if odd and rng.random() < 0.5 else kind, few[name]) for _ in range(size)
        ]
        for name, kind in kinds.items()
    }
    texts = [name for name, kind in kinds.items() if kind == "text" and name != entry.unit]
    if form.name in ("Arrow", "Arrow columns", "DuckDB on Arrow") and texts and rng.random() < 0.3:
        own[texts[rng.integers(len(texts))]][0] = _BYTES[rng.integers(len(_BYTES))]
    if entry.unit is None:
        return None, own
    kind, name = kinds[entry.unit], own[entry.unit][0]
    whose = unit_of(form.holds(name, kind))
    spelled = (_spelled(rng, name, kind, form) for _ in range(size))
    own[entry.unit] = [again if unit_of(form.holds(again, kind)) == whose else name for again in spelled]
    return whose, own


def _spelled(rng: np.random.Generator, value: Any, kind: str, form: Form) -> Any:
    """The same name in other words, or as another object."""
    ways: list[Any] = (
        [copy.deepcopy(value)]
        if type(value) in (str, int, float, Decimal, uuid.UUID, datetime.date)
        else [value]
    )
    if type(value) is uuid.UUID:
        ways = [uuid.UUID(int=value.int)]
    if type(value) is str:
        ways += [f" {value}", f"{value}\t", f"{value}.0"]
    if type(value) is int and not form.typed and kind != "integer":
        if abs(value) < 2**53:
            ways += [float(value), Decimal(value), f"{value}.00"]
        if abs(value) < 10**1000:  # Python writes no numbers that are much longer
            ways.append(str(value))
    return ways[rng.integers(len(ways))]


# ---------------------------------------------------------------------------- what can be seen of a reading


@dataclass
class Seen:
    """Everything that a reading shows, but its records."""

    refused: str
    state: str
    said: str
    files: list[str]


@contextlib.contextmanager
def _listening() -> Generator[list[str]]:
    """What is written to streams, warned of or logged while the block runs."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"log: {record.getMessage()}")

    listener = Listener(0)
    logging.root.addHandler(listener)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as file, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings(
            "ignore", "unclosed <socket", ResourceWarning
        )  # Spark's, with another port each time
        out = sys.stdout, sys.stderr
        stream = os.fdopen(os.dup(file.fileno()), "w")
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = sys.stderr = stream
        try:
            yield said
        finally:
            sys.stdout, sys.stderr = out
            with contextlib.suppress(ValueError):
                stream.close()
            for place, number in enumerate(kept, 1):
                os.dup2(number, place)
                os.close(number)
            logging.root.removeHandler(listener)
            file.seek(0)
            said += [line.decode(errors="replace") for line in file.read().splitlines()]
            said += [f"{w.category.__name__}: {w.message}" for w in warned]


def _looked(
    entry: Entry, form: Form, table: Table, rng: np.random.Generator, folder: Path
) -> tuple[Records | None, Seen]:
    """The records of a table, and what else can be seen."""
    source = form.make(table, rng, folder)
    before = set(folder.iterdir())
    states.clear()
    records, refused = None, ""
    with _listening() as said:
        try:
            records = entry.read(source)
        except (InputError, SourceError) as error:
            refused = f"{type(error).__name__}: {error}"
        except IsotoneError as error:
            refused = f"{type(error).__name__}: {str(error).partition(' failed')[2] or error}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            told = str(error).partition(".InputError: ")[
                2
            ]  # OpenDP tells errors of ours with where they were raised
            refused = (
                f"InputError: {told.splitlines()[0]}"
                if told
                else "".join(traceback.format_exception(error)[-3:])
            )
    files = sorted(path.name for path in set(folder.iterdir()) - before)
    return records, Seen(refused, " ".join(states), "\n".join(said), files)


_SALT = b"0123456789abcdef"


@contextlib.contextmanager
def _setting(charged: bool) -> Generator[None]:
    """One salt for all readings."""
    salts: Any = isotone.reading.contributions
    keys: Any = isotone.release.kinds.series.description
    kept = salts.random_salt, keys.random_key
    salts.random_salt = lambda: _SALT
    keys.random_key = lambda: _SALT + _SALT
    if charged:
        charging.append(True)
    try:
        yield
    finally:
        salts.random_salt, keys.random_key = kept
        charging.clear()


@contextlib.contextmanager
def _batches(rng: np.random.Generator, table: Table) -> Generator[None]:
    """A few rows come in batches, and their files in blocks, of some size: of one row too."""
    frames: Any = isotone.reading.frames
    files: Any = isotone.reading.text_files
    kept = frames.ROWS, files._BLOCK
    few = max(len(column.values) for column in table.values()) < 99
    if rng.random() < 1 / 2 and few:
        frames.ROWS, files._BLOCK = int(rng.integers(1, 5)), int(rng.integers(1, 65))
    try:
        yield
    finally:
        frames.ROWS, files._BLOCK = kept


_TABLE, _ANY = re.compile(r"\brows[0-9]+\b"), "<any table>"
_RANDOM = re.compile(r"(?<=row_index)_[0-9a-f]+")
"""What narwhals puts into names."""
_statements: dict[Any, str] = {}


@contextlib.contextmanager
def _compiled_once(entry: Entry, rng: np.random.Generator) -> Generator[None]:
    """The statement of a database for one entry and one list of types is made once, as it takes longer than all else, and now and then compared."""
    warehouses: Any = isotone.reading.warehouses
    kept = warehouses._compiled

    def compiled(native: Any, backend: Any) -> Any:
        query = warehouses._source_of(warehouses.nw.from_native(native)).query
        (table,) = set(_TABLE.findall(query))
        schema = [(name, str(kind)) for name, kind in native.schema().items()]
        key = backend.name, entry.name, query.replace(table, _ANY), *schema
        if key in _statements and rng.random() > 1 / 20:
            return native, _statements[key].replace(_ANY, table)
        expression, statement = kept(native, backend)
        plain = _RANDOM.sub("", statement.replace(table, _ANY))
        assert _statements.setdefault(key, plain) == plain
        return expression, statement

    warehouses._compiled = compiled
    try:
        yield
    finally:
        warehouses._compiled = kept


def _rng(case: Case) -> np.random.Generator:
    return np.random.default_rng([case.seed, *f"{case.entry}{case.form}{case.type}".encode()])


def number_of_units(case: Case, units: int) -> int:
    """How many units are drawn where so many are asked for: two of one name are one."""
    return len(drawn(case, _rng(case), units)) - 2


def difference(case: Case, charged: bool | None = None, units: int = 1) -> str:
    """What the rows of some units change for others, or nothing. The same seed draws the same data.

    With more than one unit, all are read alone and all together. ``charged`` cases go through rehearsal and ledger too, which costs
    three times as much: by default one in eight of them.
    """
    rng, entry, form = _rng(case), ENTRIES[case.entry], FORMS[case.form]
    tables = drawn(case, rng, units)
    charged = rng.random() < 1 / 8 / units if charged is None else charged
    with _setting(charged), tempfile.TemporaryDirectory() as folder:
        # columns of a typed form have one type in all tables; those of others may have any that keeps their values
        rngs = [np.random.default_rng([case.seed, 0 if form.typed else turn]) for turn in range(len(tables))]
        found: list[tuple[Records | None, Seen]] = []
        for table, own in zip(tables, rngs, strict=True):
            with _batches(rng, table), _compiled_once(entry, rng):
                found.append(_looked(entry, form, table, own, Path(folder)))
    problem = _problem(entry, [records for records, _ in found], [seen for _, seen in found])
    if not problem:
        return ""
    names = ["data", *(f"unit {place}" for place in range(1, len(tables) - 1)), "together"]
    shown = "\n".join(f"{name}: {_shown(table)}" for name, table in zip(names, tables, strict=True))
    return f"{case}\n{problem}\n{shown}"


def _shown(table: Table) -> str:
    try:
        return repr(table)
    except Exception:  # hostile values may refuse to be shown
        return ", ".join(
            f"{name}: {[type(x).__name__ for x in column.values]}" for name, column in table.items()
        )


def _problem(entry: Entry, records: Sequence[Any], seen: Sequence[Seen]) -> str:
    """What is wrong with the records of the data, of each unit and of all together, and with what could be seen of them."""
    first = seen[0]
    if any(other != first for other in seen):
        return "\n".join(f"seen of part {place}: {other}" for place, other in enumerate(seen))
    if first.said:
        return f"said: {first.said}"
    if (
        "charge" in first.state
        or "failed" in first.state
        or (first.refused and not first.refused.startswith(("InputError", "SourceError")))
        or (first.refused and "reading" in first.state)
    ):
        return f"{first}"
    if entry.name == "twin codes":
        return "" if first.refused else "names that are equal once read were not refused"
    *parts, together = records
    if together is None:
        return "" if not first.state else f"{first}"
    alone = sum(parts, Counter())
    if together != alone:
        more, less = together - alone, alone - together
        return f"records of others changed: more {dict(more)}, less {dict(less)}; of the units {[dict(own) for own in parts[1:]]}"
    wrong = next(filter(None, map(entry.fault, parts[1:])), "")
    return f"one unit has {wrong}" if wrong else ""
