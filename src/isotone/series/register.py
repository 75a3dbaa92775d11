"""The register of a series: what each unit has reached so far.

At the close of a period a unit's line becomes the union of what it was and of what the unit's rows show now, closed
upward. Dates of events are not used, and nothing is ever taken back: whatever becomes of the rows, a unit's history is
a growing sequence of filters, and depends on that unit's rows alone (docs/theory/series.md, section 1).

Lines are named by a keyed hash of the unit. The register is as sensitive as the data.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import narwhals as nw
import numpy as np
import pyarrow as pa

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.ledger.stores.sqlite import sync
from isotone.noise.bits import random_bits
from isotone.order import Poset
from isotone.order.closure import Options
from isotone.process import scratch
from isotone.reading.columns import ColumnRule, as_text
from isotone.reading.contributions import GROUP, UNIT, Groups
from isotone.reading.engine import connect
from isotone.reading.operations import totals
from isotone.reading.records import RecordRules, RecordSource, read_rows, with_options
from isotone.reading.sources import Frame, SourceError, collect

RECORD, DATE = "isotone_record", "isotone_date"
_LINE, _KEY, _ROWS = "isotone_line", "isotone_key", "isotone_rows"


def random_key() -> bytes:
    """32 bytes from cryptographic bits."""
    return random_bits(256).to_bytes(32, "big")


@dataclass(frozen=True)
class HistoryRules(RecordRules):
    """How rows become histories.

    With ``contributions=k`` above 1 ``record`` names the column of a stable key: the first k keys seen of a unit stay.
    ``date`` is for a series of the past, from one final table: the column of the day from which on a row counts.
    """

    record: str | None = None
    date: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit is None:
            raise InputError(
                "A series needs unit=: the column that says whose rows belong together over time."
            )
        if self.max_size is not None:
            raise InputError(
                "max_size has no meaning in a series: to cut a history that grows can make it shrink."
            )
        if (self.on_violation, self.on_conflict) != ("close", "first"):
            raise InputError(
                "A series closes every record upward and keeps the first option: leave out on_violation and on_conflict."
            )
        if (self.contributions > 1) != (self.record is not None):
            raise InputError(
                "contributions above 1 needs record=, the column of a stable key of each of a unit's histories, and the "
                "other way round: the first keys seen stay."
            )

    @property
    def keyed(self) -> bool:
        """Whether a unit may have several histories, each with a key."""
        return self.record is not None

    @property
    def unit_roles(self) -> dict[str, list[str]]:
        """The columns that name the unit and its record, and the day."""
        roles = {"unit": [self.unit, self.record], "date": [self.date]}
        return {role: [name for name in names if name is not None] for role, names in roles.items()}

    def unit_keys(self) -> dict[str, ColumnRule]:
        """How the unit of a row is read, and its record."""
        more = {RECORD: self.record, DATE: self.date}
        return {
            **super().unit_keys(),
            **{name: ColumnRule(as_text, x) for name, x in more.items() if x is not None},
        }


@dataclass(frozen=True)
class Register:
    """The rule by which a register grows. The file it is in is given to each call."""

    P: Poset
    rules: HistoryRules
    groups: Groups | None
    key: bytes

    @property
    def names(self) -> list[str]:
        """The columns of the elements."""
        return [f"isotone_{i}" for i in range(len(self.P))]

    def grown(
        self, source: RecordSource, frame: Frame, old: Path | None, new: Path, until: str | None = None
    ) -> Ints:
        """Write what was reached so far to ``new``, and return its counts, a row for each group.

        ``old`` is the register of the last closed period, None before the first one. Whatever fails quotes no contents.
        With ``until``, a day such as 2024-01-31, rows of later days and without a day are not looked at.
        """
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            return self._grown(_quietly(lambda: self._rows(source, frame, Path(place))), old, new, until)

    def over(self, source: RecordSource, frame: Frame, days: Sequence[str], place: Path) -> Ints:
        """The counts of every period of the past by period and group. The rows are read once, and kept at ``place`` meanwhile."""
        engine = _quietly(lambda: self._rows(source, frame, place).kept(place / "rows.parquet"))
        files = [None, *(place / f"{t}.parquet" for t in range(len(days)))]
        return np.array(
            [
                self._grown(engine, old, cast("Path", new), day)
                for old, new, day in zip(files, files[1:], days, strict=False)
            ]
        )

    def _grown(self, engine: _Local | _Cluster, old: Path | None, new: Path, until: str | None) -> Ints:
        def counted() -> Ints:
            engine.write(self._query(engine, old, until), new)
            return self._counts(engine.read(new))

        return _quietly(counted)

    def _counts(self, lines: Frame) -> Ints:
        records = with_options(lines, self.P, self.names) if self.P.choices else lines
        rows = collect(totals(records, self.names, _ROWS, GROUP))
        counts = np.zeros((self.groups.size if self.groups else 1, len(self.P)), np.int64)
        for column, name in enumerate(self.names):
            counts[[int(g) for g in rows[GROUP]], column] = [int(number or 0) for number in rows[name]]
        return counts

    def erase(self, unit: str, old: Path, new: Path) -> None:
        """Write the register to ``new`` with the lines of a unit frozen under random names.

        ``unit`` is the unit as rows name it. The lines keep counting; if the unit comes back it is somebody else.
        """

        def written() -> None:
            named = nw.from_native(connect().from_arrow(pa.table({UNIT: [unit]})))
            engine = _Local(named.with_columns(as_text(UNIT, nw.String()).alias(UNIT)).to_native())
            query = f"SELECT {engine.hmac(self.key, UNIT)} FROM {_ROWS}"
            names = {_LINE: random_key().hex(), _KEY: "00"}  # nor are its records found by their keys
            frozen = [
                f"CASE WHEN {_LINE} IN ({query}) THEN unhex('{name}') ELSE {column} END AS {column}"
                for column, name in names.items()
            ]
            engine.write(f"SELECT * REPLACE ({', '.join(frozen)}) FROM ({engine.lines(old)})", new)

        _quietly(
            written,
            "The register could not be written anew. Nobody was forgotten, and the series stands as it was.",
        )

    def _rows(self, source: RecordSource, frame: Frame, place: Path) -> _Local | _Cluster:
        """The rows, where they are joined with the register: on the cluster that has the data, otherwise here."""
        rows = read_rows(source, frame, self.P, self.rules, self.groups)
        named = as_text(UNIT, rows.collect_schema()[UNIT])  # the same text in every engine and period
        rows = rows.with_columns(named.alias(UNIT))
        if rows.implementation.is_spark_like():
            return _Cluster(rows.to_native())
        if rows.implementation.is_duckdb():
            return _Local(rows.to_native())
        from isotone.reading.warehouses import write_rows

        write_rows(rows, place / "queried.parquet")
        return _Local(connect().read_parquet(str(place / "queried.parquet")))

    def _query(self, engine: _Local | _Cluster, old: Path | None, until: str | None) -> str:
        """The lines of the new register, from the rows and the register of the last period."""
        names, leq, keyed = self.names, self.P.leq_matrix(), self.rules.keyed
        unit, record = (f"CAST({text} AS {engine.text})" for text in (UNIT, RECORD if keyed else "''"))
        seen = [
            f"{engine.hmac(self.key, unit)} AS {_LINE}",
            f"{engine.hmac(self.key, record)} AS {_KEY}",
            f"CAST({f'min({GROUP})' if self.groups else '0'} AS INTEGER) AS {GROUP}",
        ]
        for i, name in enumerate(names):
            below = " OR ".join(names[j] for j in np.flatnonzero(leq[:, i]))
            seen.append(f"bool_or({below}) AS {name}")
        both = [f"coalesce(old.{name}, new.{name}) AS {name}" for name in (_LINE, _KEY, GROUP)]
        both.append(f"old.{_LINE} IS NOT NULL AS known")
        for side in ("old", "new"):
            both += [f"coalesce({side}.{name}, false) AS {side}_{name}" for name in names]
        nobody = ", ".join(
            [
                f"unhex('00') AS {_LINE}",
                f"unhex('00') AS {_KEY}",
                f"0 AS {GROUP}",
                *(f"false AS {x}" for x in names),
            ]
        )
        same = " AND ".join(f"old.{name} = new.{name}" for name in (_LINE, _KEY))
        condition = f" WHERE {UNIT} IS NOT NULL" + (f" AND {RECORD} IS NOT NULL" if keyed else "")
        if until is not None:
            condition += (
                f" AND substr({DATE}, 1, 10) LIKE '____-__-__' AND substr({DATE}, 1, 10) <= '{until}'"
            )
        parts = [
            f"register AS ({engine.lines(old) if old else f'SELECT {nobody} WHERE 1 = 0'})",
            f"seen AS (SELECT {', '.join(seen)} FROM {_ROWS}{condition} GROUP BY 1, 2)",
            f"both_sides AS (SELECT {', '.join(both)} FROM register old FULL OUTER JOIN seen new ON {same})",
        ]
        kept, lines = "both_sides", [_LINE, _KEY, GROUP]
        if keyed:  # the first keys seen stay, those seen together by their keyed hash
            held = f"sum(CAST(known AS INTEGER)) OVER (PARTITION BY {_LINE}) AS held"
            place = f"row_number() OVER (PARTITION BY {_LINE}, known ORDER BY {_KEY}) AS place"
            parts.append(f"ranked AS (SELECT *, {held}, {place} FROM both_sides)")
            kept = f"ranked WHERE known OR place <= {self.rules.contributions} - held"
        lines += [f"old_{x} OR ({fits}) AS {x}" for x, fits in zip(names, self._fitting(), strict=True)]
        return f"WITH {', '.join(parts)} SELECT {', '.join(lines)} FROM {kept}"

    def _fitting(self) -> list[str]:
        """For each element what of the rows joins the line: nothing of an option where another one was seen first."""
        place = dict(zip(self.P.elements, self.names, strict=True))
        allowed: dict[Any, str] = {}
        for choice in self.P.choices:
            options = [place[option] for option in choice.options]
            any_old = " OR ".join(f"old_{name}" for name in options)
            for i, option in enumerate(choice.options):
                earlier = "".join(f" AND NOT new_{name}" for name in options[:i])
                first = f"(NOT ({any_old}) AND new_{place[option]}{earlier})"
                allowed[option] = f"(old_{place[option]} OR {first})"
        options_of = Options.of(self.P) if self.P.choices else None
        fitting: list[str] = []
        for x, name in place.items():
            conditions = [f"new_{name}"]
            option = options_of.nearest[x] if options_of else None
            while options_of is not None and option is not None:
                conditions.append(allowed[option])
                option = options_of.enclosing[option]
            fitting.append(" AND ".join(conditions))
        return fitting


def _hmac(key: bytes, text: str, digest: str) -> str:
    """HMAC-SHA-256 of bytes as an expression; ``digest`` is the hexadecimal SHA-256 of two joined parts."""
    padded = key.ljust(64, b"\0")
    inner, outer = (bytes(byte ^ pad for byte in padded).hex() for pad in (0x36, 0x5C))
    inside = digest.format(f"unhex('{inner}')", text)
    return "unhex(" + digest.format(f"unhex('{outer}')", f"unhex({inside})") + ")"


T = TypeVar("T")


def _quietly(
    step: Callable[[], T], words: str = "The data could not be read to its end. Nothing was shown."
) -> T:
    """The step's result. What is raised says nothing of what was read."""
    done: list[T] = []
    try:
        done.append(step())
    except InputError:
        raise
    except Exception:
        pass
    if not done:  # outside, so that not even a debugger's chain of errors quotes contents
        raise SourceError(words)
    return done[0]


class _Local:
    """The embedded engine. What does not fit into memory is spilled to a folder of this process."""

    text = "VARCHAR"

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def hmac(self, key: bytes, text: str) -> str:
        return _hmac(key, f"encode({text})", "sha256({} || {})")

    def lines(self, path: Path) -> str:
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]  # a cluster wrote a folder
        names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
        return f"SELECT * FROM read_parquet([{names}], hive_partitioning = false)"

    def write(self, query: str, new: Path) -> None:
        self.rows.query(_ROWS, query).write_parquet(str(new), compression="zstd")
        new.chmod(0o600)
        sync(new)

    def read(self, path: Path) -> Frame:
        return nw.from_native(self.rows.query(_ROWS, self.lines(path)))

    def kept(self, path: Path) -> _Local:
        self.rows.write_parquet(str(path), compression="zstd")
        path.chmod(0o600)
        return _Local(connect().read_parquet(str(path)))


class _Cluster:
    """Spark, with the register in a folder that every machine of the cluster sees."""

    text = "STRING"

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def hmac(self, key: bytes, text: str) -> str:
        return _hmac(key, f"encode({text}, 'UTF-8')", "sha2(concat({}, {}), 256)")

    def lines(self, path: Path) -> str:
        return f"SELECT * FROM parquet.`{_address(path).replace('`', '``')}`"

    def write(self, query: str, new: Path) -> None:
        self.rows.createOrReplaceTempView(_ROWS)
        self.rows.sparkSession.sql(query).write.parquet(_address(new))
        for file in new.glob("*"):
            sync(file)
        sync(new)

    def read(self, path: Path) -> Frame:
        return nw.from_native(self.rows.sparkSession.read.parquet(_address(path)))

    def kept(self, path: Path) -> _Cluster:
        """As it is: what is kept on a cluster would stay there."""
        return self


def _address(path: Path) -> str:
    """A folder as a cluster names it, whose own files may be elsewhere."""
    return f"file://{path.resolve()}"
