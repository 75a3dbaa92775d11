"""Operations that narwhals lacks, for each engine in its own language.

The SHA-256 of a column of texts, and a thousand yes/no columns at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

Frame = nw.LazyFrame[Any]
_ARGUMENTS = 8
_SPARK_CELLS = 500  # columns times stages from which starting Python beside Spark costs less than the stages
_ROWS = "isotone_rows"


def joined(frame: Frame, stages: Sequence[Mapping[str, Sequence[str]]]) -> Frame:
    """The frame after each stage.

    A column is a yes where it or one of those listed for it is. None is null.
    """
    if frame.implementation.is_duckdb() and stages:
        # As one text: said column by column, a thousand columns take longer to translate than a million rows to count.
        # Every column is listed: the engine plans a thousand that are replaced in a star three times as long.
        native: Any = frame.to_native()
        lists = [", ".join(_answer(name, stage) for name in native.columns) for stage in stages]
        if len(lists) == 1:  # a projection is bound once, a query three times
            return nw.from_native(native.project(lists[0]))
        text = _ROWS
        for values in lists:
            text = f"(SELECT {values} FROM {text})"
        return nw.from_native(native.query(_ROWS, f"SELECT * FROM {text}"))
    if frame.implementation.is_spark_like() and len(stages) * len(frame.columns) > _SPARK_CELLS:
        rows: Any = frame.to_native()
        if _runs_python(rows.sparkSession):
            return nw.from_native(rows.mapInArrow(_joining(stages), rows.schema))
    for stage in stages:
        yes = [any_of([nw.col(x) for x in (name, *others)]).alias(name) for name, others in stage.items()]
        frame = frame.with_columns(*yes)
    return frame


def _joining(stages: Sequence[Mapping[str, Sequence[str]]]) -> Any:
    """The stages as a function of Arrow batches.

    Spark carries every column through every stage. In a batch a stage costs only what it joins. The function is sent to
    the workers whole, as they may not have this package.
    """
    plain = [{name: list(others) for name, others in stage.items()} for stage in stages]

    def join(batches: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute

        # made when Arrow is loaded, so type checkers do not know it
        either: Any = pyarrow.compute.__dict__["or_"]
        for batch in batches:
            answers = dict(zip(batch.schema.names, batch.columns, strict=True))
            for stage in plain:
                before = {name: answers[name] for others in stage.values() for name in others}
                for name, others in stage.items():
                    for other in others:
                        answers[name] = either(answers[name], before[other])
            yield pa.RecordBatch.from_arrays(list(answers.values()), schema=batch.schema)

    return join


def _runs_python(session: Any) -> bool:
    """Whether the workers of this Spark session can run Python with Arrow. It is tried on one public row."""
    try:
        return len(session.range(1).mapInArrow(lambda batches: batches, "id long").collect()) == 1
    except Exception:
        return False


def _answer(name: str, stage: Mapping[str, Sequence[str]]) -> str:
    return f"{' OR '.join((name, *stage[name]))} AS {name}" if name in stage else f'"{name}"'


@dataclass(frozen=True)
class Pick:
    """Columns of which the first yes stays.

    ``members`` are the columns that are yes only if the option with this number is the first yes.
    """

    options: Sequence[str]
    members: Mapping[str, int]


def cleared(frame: Frame, stages: Sequence[Mapping[str, Sequence[tuple[str, Sequence[str]]]]]) -> Frame:
    """The frame after each stage.

    A column is a no where one of the pairs listed for it has a yes first and no yes among the others. None is null.
    """
    if frame.implementation.is_duckdb() and stages:
        text = _ROWS
        for stage in stages:
            kept = ", ".join(
                " AND ".join((x, *(f"NOT ({top} AND NOT ({' OR '.join(options)}))" for top, options in gone)))
                + f" AS {x}"
                for x, gone in stage.items()
            )
            text = f"(SELECT * REPLACE ({kept}) FROM {text})"
        native: Any = frame.to_native()
        return nw.from_native(native.query(_ROWS, f"SELECT * FROM {text}"))
    for stage in stages:
        kept = [
            (
                nw.col(x)
                & ~any_of([nw.col(top) & ~any_of([nw.col(y) for y in options]) for top, options in gone])
            ).alias(x)
            for x, gone in stage.items()
        ]
        frame = frame.with_columns(*kept)
    return frame


def picked(frame: Frame, stages: Sequence[Sequence[Pick]]) -> Frame:
    """The frame after each stage of picks.

    The first option of a pick stays, the members of all others go. None is null.
    """
    if frame.implementation.is_duckdb() and stages:
        text = _ROWS
        for stage in stages:
            text = f"({_picked_text(stage, text)})"
        native: Any = frame.to_native()
        return nw.from_native(native.query(_ROWS, f"SELECT * FROM {text}"))
    for stage in stages:
        frame = _picked(frame, stage)
    return frame


def _picked_text(picks: Sequence[Pick], rows: str) -> str:
    """One stage of picks as a query."""
    first = [f"isotone_pick_{g}" for g in range(len(picks))]
    numbers = ", ".join(
        f"least({', '.join(f'if({x}, {i}, {len(pick.options)})' for i, x in enumerate(pick.options))}) AS {name}"
        for name, pick in zip(first, picks, strict=True)
    )
    kept = ", ".join(
        f"{x} AND {name} = {i} AS {x}"
        for name, pick in zip(first, picks, strict=True)
        for x, i in pick.members.items()
    )
    return f"SELECT * EXCLUDE ({', '.join(first)}) REPLACE ({kept}) FROM (SELECT *, {numbers} FROM {rows})"


def _picked(frame: Frame, picks: Sequence[Pick]) -> Frame:
    first = [f"isotone_pick_{g}" for g in range(len(picks))]
    frame = frame.with_columns(
        *(
            nw.min_horizontal(
                *(
                    nw.when(nw.col(x)).then(nw.lit(i)).otherwise(nw.lit(len(pick.options)))
                    for i, x in enumerate(pick.options)
                )
            ).alias(name)
            for name, pick in zip(first, picks, strict=True)
        )
    )
    return frame.with_columns(
        *(
            (nw.col(x) & (nw.col(name) == i)).alias(x)
            for name, pick in zip(first, picks, strict=True)
            for x, i in pick.members.items()
        )
    ).drop(*first)


def totals(frame: Frame, names: Sequence[str], rows: str, by: str | None) -> Frame:
    """The number of yeses in each column of booleans, and of rows.

    They are given for each value of ``by``. No boolean may be null.
    """
    if frame.implementation.is_duckdb():
        sums = ", ".join(f"count_if({name}) AS {name}" for name in names)
        group = "" if by is None else f"{by}, "
        native: Any = frame.to_native()
        return nw.from_native(native.aggregate(f"{group}{sums}, count(*) AS {rows}", by or ""))
    # Every engine sums bytes as 64 bits.
    counted = [*(nw.col(name).cast(nw.Int8).sum().alias(name) for name in names), nw.len().alias(rows)]
    return frame.select(*counted) if by is None else frame.group_by(by).agg(*counted)


def any_of(answers: list[nw.Expr]) -> nw.Expr:
    """Whether one of the answers is a yes, as a balanced expression.

    Engines refuse deep expressions.
    """
    while len(answers) > 1:
        parts = (answers[i : i + _ARGUMENTS] for i in range(0, len(answers), _ARGUMENTS))
        answers = [nw.any_horizontal(*part, ignore_nulls=False) for part in parts]
    return answers[0]


def with_sha256(frame: Frame, text: str, name: str) -> Frame:
    """The frame with a hash column ``name``.

    It holds the SHA-256 of the column ``text`` in hexadecimal.
    """
    native: Any = frame.to_native()
    engine = frame.implementation
    if engine.is_duckdb():
        hashed = native.project(f'*, sha256("{text}") AS "{name}"')
    elif engine.is_spark_like():
        hashed = native.selectExpr("*", f"sha2({text}, 256) AS {name}")
    else:
        from isotone.reading.warehouses import with_digest

        return with_digest(frame, text, name)
    return nw.from_native(hashed)


# Join a column of texts with a public list, which may be long. It is a table, never an expression for each value.

_LISTED = "isotone_listed"


def numbered(frame: Frame, text: str, values: Sequence[str], name: str) -> Frame:
    """The rows whose ``text`` is one of ``values``, with its place among them as a column ``name``."""
    return _joined_list(frame, text, values, {name: range(len(values))}, "inner")


def listed(
    frame: Frame, text: str, values: Sequence[str], numbers: Mapping[str, Sequence[int | None]]
) -> Frame:
    """All rows, with the numbers of their ``text`` in a public list, which are null for texts that are not in it."""
    return _joined_list(frame, text, values, numbers, "left")


def _joined_list(
    frame: Frame,
    text: str,
    values: Sequence[str],
    numbers: Mapping[str, Sequence[int | None]],
    how: Literal["inner", "left"],
) -> Frame:
    native: Any = frame.to_native()
    engine = frame.implementation
    if engine.is_duckdb():
        # One query that reads the rows once; tables of another connection could not be joined.
        said = ", ".join(f'unnest({_numbers(column)}) AS "{name}"' for name, column in numbers.items())
        expected = ", ".join(f'"{name}"' for name in numbers)
        # Bytes are compared: in the collation of a table a text can be equal to several of the list.
        query = (
            f"SELECT {_ROWS}.*, {expected} FROM {_ROWS} {how} JOIN (SELECT unnest({_texts(values)}) AS {_LISTED}, {said}) "
            f'ON encode({_ROWS}."{text}") = encode({_LISTED})'
        )
        return nw.from_native(native.query(_ROWS, query))
    if engine.is_ibis():
        from isotone.reading.warehouses import list_join

        return list_join(frame, text, values, numbers, how)
    schema = ", ".join([f"{text} string", *(f"{name} int" for name in numbers)])
    rows = list(zip(values, *numbers.values(), strict=True))
    table = native.sparkSession.createDataFrame(rows, schema).hint("broadcast")
    return frame.join(nw.from_native(table), on=text, how=how)


def _texts(values: Sequence[str]) -> str:
    """Public texts as a list in SQL. It is split from one text, as a million literals take a minute to plan."""
    if not values:
        return "[]::VARCHAR[]"
    used = "".join(("'", *values))
    between = next(letter for letter in map(chr, range(1, sys.maxunicode)) if letter not in used)
    joined = between.join(values).replace("'", "''")
    return f"string_split('{joined}', '{between}')"


def _numbers(values: Sequence[int | None]) -> str:
    """Public numbers as a list in SQL."""
    in_turn = values == range(len(values))
    return f"range({len(values)})" if in_turn else f"'{json.dumps(list(values))}'::BIGINT[]"
