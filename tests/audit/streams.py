"""Streams of edits through the register that releases: sixteen thousand units at once, with options, groups and several histories.

Each period every unit's rows are drawn anew, so that rows appear, change and are gone. What each unit adds is looked at line by
line (docs/theory/series.md, theorem 1), and must be the same where nobody else is in the table.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import polars as pl

from isotone.counts import PosetMechanism
from isotone.order import Poset
from isotone.reading.contributions import Groups
from isotone.reading.records import RecordSource, with_options
from isotone.series.register import HistoryRules, Register
from isotone.series.two_scale import over_time

_UNITS, _PERIODS = 1000, 4
_FORK = Poset(["root", "left", "right", "low"], [("left", "root"), ("right", "root"), ("low", "left")])
_OPTIONS = {"mail": "met", "phone": "met", "met": None, "letter": "mail"}
_NESTED = {"a1": "a", "a2": "a", "a": "r", "b": "r", "r": None, "x": "a1", "b1": "b", "b2": "b"}
_ORDERS = [
    _FORK,
    Poset.from_mapping(_OPTIONS, children={"met": "exclusive"}),
    Poset.from_mapping(_OPTIONS, children={"met": "partition"}),
    Poset.from_mapping(_NESTED, children={"r": "exclusive", "a": "exclusive", "b": "partition"}),
]
_REGIONS = Groups((("g", ("n", "s")),))
Lines = dict[tuple[str, str], tuple[int, tuple[bool, ...]]]


def audit_streams_of_edits() -> str:
    """The largest norm of what one unit adds is 1, by options, groups and number of histories."""
    rng, seen = random.Random(35), 0
    for P, groups, most in itertools.product(_ORDERS, (None, _REGIONS), (1, 2)):
        with tempfile.TemporaryDirectory() as folder:
            seen += _walk(P, groups, most, rng, Path(folder))
    return f"{seen} histories grow, by their unit's rows alone, and have norm 1 at most"


def _walk(P: Poset, groups: Groups | None, most: int, rng: random.Random, folder: Path) -> int:
    more: dict[str, Any] = {} if most == 1 else {"contributions": most, "record": "case"}
    register = Register(P, HistoryRules(unit="id", **more), groups, b"k" * 32)
    chosen = {f"u{number}" for number in rng.sample(range(_UNITS), 40)}
    stages, places = [*map(str, P.elements), "nothing", None], ["n", "s", "elsewhere", None]
    books, few = list[Lines](), list[Lines]()
    for t in range(_PERIODS):
        rows: list[tuple[str | None, ...]] = [(None, "1", stages[0], "n")] * 20
        for number in range(_UNITS):
            for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
                case = rng.choice(("1", "2", "3", " 2 ", None)) if most > 1 else "1"
                rows.append((f"u{number}", case, rng.choice(stages), rng.choice(places)))
        rng.shuffle(rows)
        books.append(_closed(register, rows, folder / "all", t))
        few.append(_closed(register, [row for row in rows if row[0] in chosen], folder / "few", t))
    for before, after in itertools.pairwise(books):
        for name, (group, reached) in before.items():
            now, further = after[name]
            assert now == group
            assert all(b or not a for a, b in zip(reached, further, strict=True))
    for whole, part in zip(books, few, strict=True):
        assert all(whole[name] == line for name, line in part.items())
    units = [line for line, _ in books[-1]]
    assert max(map(units.count, set(units))) <= most
    nobody = 0, (False,) * len(P)
    histories = np.array([[book.get(name, nobody)[1] for book in books] for name in books[-1]])
    distinct = np.unique(histories, axis=0).astype(bool)
    for row in distinct.reshape(-1, len(P)):
        assert all(np.all(row[above]) for above in P.leq_matrix()[row].astype(bool))
    totals = P.coding.encode(_counted(register, distinct.reshape(-1, len(P)))).reshape(len(distinct), -1)
    mechanism = PosetMechanism(over_time(P.coding.order, _PERIODS), 1)
    assert np.max(mechanism.norm(totals.astype(float))) <= 1 + 1e-9
    return len(histories)


def _closed(register: Register, rows: list[tuple[str | None, ...]], folder: Path, t: int) -> Lines:
    folder.mkdir(exist_ok=True)
    table = pl.DataFrame(rows, schema=dict.fromkeys(("id", "case", "stage", "g"), pl.String), orient="row")
    source, old, new = (
        RecordSource(table, element="stage"),
        folder / f"{t - 1}.parquet",
        folder / f"{t}.parquet",
    )
    frame = source.open(register.P, register.rules, register.groups)
    counts = register.grown(source, frame, old if t else None, new)
    found = duckdb.connect().execute(f"SELECT * FROM '{new}'").fetchall()
    lines = {(line.hex(), key.hex()): (group, tuple(reached)) for line, key, group, *reached in found}
    assert len(lines) == len(found), "a line stands there twice"
    held = np.array([reached for _, reached in lines.values()], bool).reshape(-1, len(register.P))
    assert np.array_equal(counts.sum(axis=0), _counted(register, held).sum(axis=0))
    return lines


def _counted(register: Register, lines: np.ndarray) -> np.ndarray:
    """What is counted of lines: of a stage that is parted only those whose option is known."""
    if not register.P.choices:
        return lines.astype(int)
    table = pl.DataFrame({name: lines[:, i] for i, name in enumerate(register.names)}).with_row_index("row")
    found: Any = with_options(nw.from_native(table.lazy()), register.P, register.names).collect()
    return found.to_native().sort("row").select(register.names).to_numpy().astype(int)
