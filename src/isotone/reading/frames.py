"""Stream frames in memory and files of Arrow to the engine, batch by batch while a query runs.

Which type a column has in the engine follows from its declared type alone, and never from its values. Its contents are converted
while the query runs: whole batches where no value can fail, and value by value, by the one rule of
:mod:`isotone.reading.values`, where the values of a column have types of their own. Nothing here raises because of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from isotone.errors import InputError
from isotone.reading.sources import SourceError, no_column
from isotone.reading.text_files import Layout, read_fields, read_lines
from isotone.reading.types import Roles, arrow_kind, column_names, require_kinds
from isotone.reading.values import LONGEST_TEXT, cell_text, values_of

ROWS = 1 << 17
_DAYS = (-719162, 2932896)  # the calendar, from year 1 to 9999, in days since 1970
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}

Batches = Callable[[], Iterable[list[Any]]]


@contextmanager
def arrow_errors() -> Generator[None]:
    """What Arrow cannot open is a file that cannot be opened."""
    try:
        yield
    except pa.ArrowException as error:
        raise OSError("Arrow cannot open the file") from error


class Stream:
    """A table that Arrow's protocol can read any number of times.

    The batches are made while it is read.
    """

    def __init__(self, schema: pa.Schema, batches: Batches) -> None:
        self.schema = schema
        self._batches = batches

    def __arrow_c_schema__(self) -> Any:
        """The public part, names and types in the engine."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The contents, converted as they are asked for."""

        def made() -> Iterator[pa.RecordBatch]:
            for columns in self._batches():
                yield pa.record_batch(columns, schema=self.schema)

        return pa.RecordBatchReader.from_batches(self.schema, made()).__arrow_c_stream__()


def engine_type(kind: Any) -> Any:
    """The engine's type for an Arrow type. What has none of its own is read value by value, as text."""
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return engine_type(kind.value_type)
    if kinds.is_integer(kind) or kinds.is_boolean(kind):
        return kind
    if kinds.is_floating(kind):
        return pa.float64()
    if kinds.is_decimal(kind) and kind.bit_width <= 128 and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    if kinds.is_date(kind):
        return pa.date32()
    if kinds.is_timestamp(kind):
        return pa.timestamp("ns" if kind.unit == "ns" else "us", None if kind.tz is None else "UTC")
    return pa.string_view()


def converted(column: Any) -> Any:
    """An Arrow array of the engine's type. No value can make it fail."""
    if isinstance(
        column, pa.ChunkedArray
    ):  # each by itself: what joins dictionaries depends on what they hold
        parts = [converted(chunk) for chunk in column.chunks]
        return pa.concat_arrays(parts) if parts else pa.array([], engine_type(column.type))
    if kinds.is_dictionary(column.type):
        return _taken(converted(column.dictionary), column.indices)
    if kinds.is_run_end_encoded(column.type):
        rows = np.arange(column.offset, column.offset + len(column))
        runs = np.searchsorted(np.asarray(column.run_ends), rows, side="right")
        return _taken(converted(column.values), pa.array(runs))
    target = engine_type(column.type)
    if kinds.is_temporal(column.type) and target != pa.string_view():
        return _in_calendar(column, target)
    if target != pa.string_view():
        return column.cast(target)  # of the same kind, and as wide or wider
    if any(
        is_text(column.type) for is_text in (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    ):
        try:
            column.validate(full=True)  # an Arrow text may hold bytes that are no text
            if _longest(column) <= LONGEST_TEXT:  # a copy, as a whole column may be larger than views reach
                return column if column.type == target else pa.concat_arrays([column]).cast(target)
        except (pa.ArrowInvalid, pa.ArrowCapacityError):
            pass
        buffers = [value.as_buffer() for value in column]
        return by_value([x.to_pybytes() if x and x.size <= LONGEST_TEXT else None for x in buffers])
    if (
        kinds.is_nested(column.type)
        or kinds.is_duration(column.type)
        or kinds.is_time(column.type)
        or kinds.is_null(column.type)
    ):
        return pa.nulls(len(column), target)
    return by_value(values_of(column))


def _longest(texts: Any) -> int:
    """The bytes of the longest of some texts."""
    if not len(texts):
        return 0
    numbers, first, rows = texts.buffers()[1], texts.offset, len(texts)
    if texts.type == pa.string_view():
        return int(np.frombuffer(numbers, np.int32)[4 * first : 4 * (first + rows) : 4].max())
    ends = np.frombuffer(numbers, np.int32 if kinds.is_string(texts.type) else np.int64)
    return int(np.diff(ends[first : first + rows + 1]).max())


def _taken(values: Any, places: Any) -> Any:
    """The values at places. What is at a place that is none is missing."""
    found = np.asarray(places.cast(pa.int64(), safe=False).fill_null(-1))
    missing = (found < 0) | (found >= len(values))
    if missing.all():
        return pa.nulls(len(found), values.type)
    found = np.where(missing, 0, found)
    if values.type != pa.string_view():
        return _whole(values.take(pa.array(found, mask=missing)))
    missing |= np.asarray(values.is_null())[found]
    _, views, *texts = values.buffers()  # of which Arrow itself takes none
    words = np.frombuffer(views, "V16")[values.offset :][found]
    valid = pa.array(~missing).buffers()[1]
    return pa.Array.from_buffers(values.type, len(words), [valid, pa.py_buffer(words), *texts])


def by_value(values: Sequence[Any]) -> Any:
    """The texts of values, each read on its own."""
    return pa.array([cell_text(value) for value in values], pa.string_view())


def _whole(array: Any) -> Any:
    """One array of what may come in chunks."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return (
        array.chunk(0)
        if array.num_chunks == 1
        else pa.concat_arrays(array.chunks)
        if array.num_chunks
        else pa.array([], array.type)
    )


def _in_calendar(column: Any, target: Any) -> Any:
    """Dates and moments with null for what is outside the years 1 to 9999, which engines show and compare differently."""
    bits = pa.int32() if column.type.bit_width == 32 else pa.int64()
    numbers = np.asarray(column.view(bits).fill_null(0)).astype(np.int64)
    missing = np.asarray(column.is_null())
    if not (kinds.is_timestamp(column.type) and column.type.unit == "ns"):  # these end within the calendar
        per_day = 1 if kinds.is_date32(column.type) else _PER_DAY[getattr(column.type, "unit", "ms")]
        first, last = _DAYS[0] * per_day, (_DAYS[1] + 1) * per_day - 1
        missing = missing | (numbers < first) | (numbers > last)
        numbers = np.where(missing, 0, numbers)
        if kinds.is_date64(column.type):
            numbers = numbers // per_day
        elif kinds.is_timestamp(column.type):
            numbers = numbers * (_PER_DAY["us"] // per_day)
    numbers = numbers.astype(np.int32) if target == pa.date32() else numbers
    return pa.array(numbers, mask=missing).view(target)


def table_stream(columns: dict[str, Any]) -> Stream:
    """A table in memory as a stream. Its columns are of pandas, polars or Arrow, and of equal length."""
    schema = pa.schema([(name, _type_of(column)) for name, column in columns.items()])
    rows = max((len(column) for column in columns.values()), default=0)

    def batches() -> Iterator[list[Any]]:
        for start in range(0, rows, ROWS):
            yield [_part(column, start) for column in columns.values()]

    return Stream(schema, batches)


def lazy_stream(frame: Any, names: Sequence[str]) -> Stream:
    """The named columns of a lazy frame of polars as a stream.

    polars runs the plan that the frame was made with, in batches, and none of our rules.
    """
    chosen = frame.select(list(names))
    known = chosen.collect_schema()
    schema = pa.schema([(name, _polars_type(known[name])) for name in names])

    def batches() -> Iterator[list[Any]]:
        parts: Iterable[Any] = (
            chosen.collect_batches(chunk_size=ROWS)
            if hasattr(chosen, "collect_batches")
            else chosen.collect().iter_slices(ROWS)
        )
        for part in parts:
            yield [from_polars(part[name]) for name in names]

    return Stream(schema, batches)


def _type_of(column: Any) -> Any:
    """The engine's type of a column, from its declared type alone."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return engine_type(column.type)
    return _pandas_type(column.dtype) if hasattr(column, "iloc") else _polars_type(column.dtype)


def _part(column: Any, start: int) -> Any:
    if hasattr(column, "iloc"):
        return _from_pandas(column.iloc[start : start + ROWS])
    part = column.slice(start, ROWS)
    return converted(part) if isinstance(part, (pa.Array, pa.ChunkedArray)) else from_polars(part)


_POLARS_VALUES = ("Object", "Int128", "UInt128", "Binary")
"""Types of polars that Arrow lacks, or whose values have types of their own."""
_POLARS_NOTHING = ("List", "Array", "Struct", "Time", "Duration", "Null", "Unknown")
"""Types of polars that hold no value which is read."""


def has_values_of_its_own(dtype: Any) -> bool:
    """Whether values of a type of polars are read one by one, since Arrow lacks it or one value can cause it."""
    return str(dtype.base_type()) in _POLARS_VALUES


def _polars_type(dtype: Any) -> Any:
    name = str(dtype.base_type())
    if name in (*_POLARS_VALUES, *_POLARS_NOTHING):
        return pa.string_view()
    polars_types = {
        "Boolean": pa.bool_(),
        "Decimal": None,
        "Date": pa.date32(),
        "Float16": pa.float64(),
        "Float32": pa.float64(),
        "Float64": pa.float64(),
    }
    if name == "Datetime":
        return pa.timestamp(
            "ns" if dtype.time_unit == "ns" else "us", None if dtype.time_zone is None else "UTC"
        )
    if name == "Decimal":
        return pa.decimal128(dtype.precision or 38, dtype.scale)
    integers = {
        f"{sign}{bits}": f"{sign.lower()}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)
    }
    if name in integers:
        return getattr(pa, integers[name])()
    return polars_types.get(name) or pa.string_view()


def from_polars(column: Any) -> Any:
    """A column of polars as an Arrow array of the engine's type. No value can make it fail."""
    name = str(column.dtype.base_type())
    if name in _POLARS_NOTHING:
        return pa.nulls(len(column), pa.string_view())
    if has_values_of_its_own(column.dtype):
        return by_value(column.to_list())
    result = converted(column.to_arrow())
    expected = _polars_type(column.dtype)
    return result if result.type == expected else result.cast(expected)


def _pandas_type(dtype: Any) -> Any:
    if type(dtype).__module__.partition(".")[0] not in ("numpy", "pandas"):
        raise InputError(  # no value of a column causes such a type, and its own code would run on every value
            f"The type {type(dtype).__name__} of a column comes from another library than pandas, and is not read. Give the column another "
            "type first: astype(object), or astype(str)."
        )
    if hasattr(dtype, "pyarrow_dtype"):
        return engine_type(dtype.pyarrow_dtype)
    kind, size = getattr(dtype, "kind", "O"), getattr(dtype, "itemsize", 0)
    name = type(dtype).__name__
    if name == "DatetimeTZDtype":
        return pa.timestamp("ns" if dtype.unit == "ns" else "us", "UTC")
    if name in ("SparseDtype", "CategoricalDtype", "PeriodDtype", "IntervalDtype"):
        return pa.string_view()
    if kind == "b":
        return pa.bool_()
    if kind in "iu":
        return pa.uint64() if kind == "u" and size == 8 else pa.int64()
    if kind == "M":
        return pa.timestamp("ns" if np.datetime_data(dtype)[0] == "ns" else "us")
    return pa.float64() if kind == "f" else pa.string_view()


def _from_pandas(column: Any) -> Any:
    dtype, target = column.dtype, _pandas_type(column.dtype)
    if hasattr(dtype, "pyarrow_dtype"):
        return converted(column.array.__arrow_array__())
    if target == pa.string_view():
        return _pandas_texts(column)
    if kinds.is_timestamp(target):
        stamps = column.array.asi8 if hasattr(column.array, "asi8") else column.to_numpy().view(np.int64)
        unit = getattr(dtype, "unit", None) or np.datetime_data(dtype)[0]
        array = pa.array(stamps, mask=stamps == np.iinfo(np.int64).min)
        return converted(array.view(pa.timestamp(unit, target.tz)))
    if isinstance(dtype, np.dtype):
        values = column.to_numpy()
        return pa.array(values.astype(_NUMPY[target], copy=False))
    missing = np.asarray(column.isna(), bool)  # a masked column of pandas
    return pa.array(column.to_numpy(_NUMPY[target], na_value=_NUMPY[target](0)), mask=missing)


_NUMPY = {pa.bool_(): np.bool_, pa.int64(): np.int64, pa.uint64(): np.uint64, pa.float64(): np.float64}


def _pandas_texts(column: Any) -> Any:
    """A column of pandas whose values have types of their own."""
    if type(column.dtype).__name__ == "CategoricalDtype":
        return _taken(by_value(values_of(column.cat.categories)), pa.array(column.cat.codes.to_numpy()))
    storage = getattr(column.array, "_pa_array", None)
    if isinstance(storage, pa.ChunkedArray):
        return converted(storage)
    values = values_of(column)
    if all(type(value) is str or value is None for value in values):
        try:
            texts = pa.array(values, pa.string_view())
            if _longest(texts) <= LONGEST_TEXT:
                return texts
        except (pa.ArrowException, UnicodeError):  # half a surrogate pair
            pass
    return by_value(values)


def arrow_stream(files: Sequence[str], roles: Roles) -> Stream:
    """The columns of files in Arrow's own format."""
    schemas: list[pa.Schema] = []
    for file in files:
        with pa.OSFile(file) as opened:
            schemas.append(pa.ipc.open_file(opened).schema)
    return _file_stream(files, schemas, roles, "ipc")


_PLAIN = {"boolean", "integer", "float", "uuid"}
"""Types of a column of Parquet that the engine reads as we would, if all files have the same."""


def parquet_stream(files: Sequence[str], roles: Roles) -> tuple[Stream, bool]:
    """The columns of Parquet files as a stream, and whether the engine may read them itself, as no value can make it fail."""
    import pyarrow.parquet as pq

    schemas = [pq.read_schema(file) for file in files]
    stream = _file_stream(files, schemas, roles, "parquet")
    kinds_of = {
        name: {arrow_kind(schema.field(name).type) for schema in schemas} for name in stream.schema.names
    }
    plain = all(len(kinds) == 1 and kinds <= _PLAIN for kinds in kinds_of.values())
    expected = {name.lower() for name in stream.schema.names}
    # DuckDB would confuse namesakes in other capitals
    twins = any(sum(name.lower() in expected for name in schema.names) > len(expected) for schema in schemas)
    return stream, plain and not twins


def _file_stream(files: Sequence[str], schemas: Sequence[pa.Schema], roles: Roles, form: str) -> Stream:
    names = column_names(roles)
    for file, schema in zip(files, schemas, strict=True):
        for name in names:
            there = len(schema.get_all_field_indices(name))
            if there == 0:
                raise no_column(name, f"The file {Path(file).name!r}", schema.names)
            if there > 1:
                raise SourceError(f"{file!r} names the column {name!r} twice. Rename one of them.")
        types = {name: (arrow_kind(schema.field(name).type), str(schema.field(name).type)) for name in names}
        require_kinds(roles, types, f"The file {Path(file).name!r}")
    found = {name: {engine_type(schema.field(name).type) for schema in schemas} for name in names}
    merged = pa.schema([(name, _common(types)) for name, types in found.items()])

    def batches() -> Iterator[list[Any]]:
        import pyarrow.dataset as ds

        for file in files:
            part = ds.dataset(file, format=form, partitioning=None)
            for batch in part.to_batches(columns=list(names), batch_size=ROWS):
                yield [_of_type(converted(batch.column(name)), merged.field(name).type) for name in names]

    return Stream(merged, batches)


def _common(types: set[Any]) -> Any:
    """One engine type for the parts of a column."""
    if len(types) == 1:
        return next(iter(types))
    return (
        pa.int64()
        if all(kinds.is_integer(kind) and kind != pa.uint64() for kind in types)
        else pa.string_view()
    )


def _of_type(column: Any, target: Any) -> Any:
    if column.type == target:
        return column
    if kinds.is_null(column.type) or column.null_count == len(column):
        return pa.nulls(len(column), target)
    return column.cast(target) if target == pa.int64() else by_value(values_of(column))


def field_stream(parts: Sequence[tuple[str, Layout]], names: Sequence[str]) -> Stream:
    """The fields of CSV files as a stream."""
    schema = pa.schema([(name, pa.string_view()) for name in names])
    return Stream(
        schema, lambda: (columns for file, layout in parts for columns in read_fields(file, layout))
    )


def line_stream(files: Sequence[str], encoding: str) -> Stream:
    """The lines of files as a stream of one column, ``line``."""
    schema = pa.schema([("line", pa.string_view())])
    return Stream(schema, lambda: (columns for file in files for columns in read_lines(file, encoding)))
