"""Stream tables in memory and Arrow data to the engine.

They are passed batch by batch when a query runs.

Which type a column has in the engine follows from its declared type alone. Its contents are converted only while the
query runs, value by value where Arrow could refuse one: what cannot be read is missing, and nothing is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from isotone.reading.columns import quoted
from isotone.reading.sources import SourceError, for_engine, no_column
from isotone.reading.values import reals, text_of, values_of

__all__ = [
    "Stream",
    "common_type",
    "converted",
    "engine_type",
    "read_arrow",
    "read_parquet",
    "table_stream",
]


_ROWS = 1 << 17
TEXT = pa.large_string()

Batches = Callable[[], Iterable[list[Any]]]


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
                arrays = [
                    _whole(converted(column, field.type))
                    for column, field in zip(columns, self.schema, strict=True)
                ]
                yield pa.record_batch(arrays, schema=self.schema)

        return pa.RecordBatchReader.from_batches(self.schema, made()).__arrow_c_stream__()


def _whole(array: Any) -> Any:
    """One array of what may come in chunks, as text of tables that were put together does."""
    return (
        pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) and array.num_chunks else array
    )


def engine_type(kind: Any) -> Any:
    """The engine's type for a column of this Arrow type.

    Types that the engine does not have become text.
    """
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return engine_type(kind.value_type)
    if kinds.is_float16(kind):
        return pa.float32()
    if kinds.is_decimal128(kind):
        return kind if 0 <= kind.scale <= kind.precision else TEXT
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind):
        return kind
    if kinds.is_date(kind) or (kinds.is_timestamp(kind) and kind.tz is None):
        return kind
    return TEXT


def common_type(types: Sequence[Any]) -> Any:
    """One engine type for the parts of a column.

    Numbers take the wider type, everything else is text.
    """
    first, *others = types
    if all(kind == first for kind in others):
        return first
    if all(kinds.is_integer(kind) and kind != pa.uint64() for kind in types):
        return pa.int64()
    if all(kinds.is_integer(kind) or kinds.is_floating(kind) for kind in types):
        return pa.float64()
    return TEXT


def converted(column: Any, kind: Any) -> Any:
    """The values of a column as an Arrow array of one of the engine's types.

    No value can make it fail.
    """
    try:
        found = _by_arrow(column, kind)
        if found is not None:
            return found
    except Exception:  # one value that Arrow refuses: all are read one by one, with the same meaning
        pass
    return _by_value(column, kind)


def _by_arrow(column: Any, kind: Any) -> Any:
    """The array as Arrow converts it.

    None where a value's meaning would depend on the others.
    """
    array = _array(column)
    if array is None:
        return None
    if kinds.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind != TEXT:
        return array.cast(kind)
    if kinds.is_integer(array.type):
        return array.cast(TEXT)
    if not any(is_kind(array.type) for is_kind in _TEXTS):
        return None
    array.validate(full=True)  # an Arrow text may hold bytes that are no text
    return array.cast(TEXT)


_TEXTS = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)


def _array(column: Any) -> Any:
    """A column as an Arrow array. None where that would run code of the objects in it."""
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    if isinstance(column, pa.Array):
        return column
    if isinstance(column, list):
        return None
    if str(column.dtype) == "category":
        names = pa.array([*map(text_of, column.cat.categories.tolist()), None], TEXT)
        codes = column.cat.codes.to_numpy().astype(np.int64)
        return names.take(pa.array(np.where(codes < 0, len(names) - 1, codes)))
    if column.dtype == object:
        values = column.tolist()
        plain = all(type(value) is str or value is None for value in values)
        return pa.array(values, TEXT) if plain else None
    return pa.array(column, from_pandas=True)


def _by_value(column: Any, kind: Any) -> Any:
    values = values_of(column)
    if kind == TEXT:
        return pa.array([text_of(value) for value in values], TEXT)
    if kinds.is_boolean(kind):
        return pa.array([{"true": True, "false": False}.get(text_of(value) or "") for value in values], kind)
    if not (kinds.is_integer(kind) or kinds.is_floating(kind)):
        return pa.nulls(len(values), kind)
    numbers = reals(values)
    missing = np.isnan(numbers)
    return pc.cast(pa.array(numbers, mask=missing), kind, safe=False)


def table_stream(columns: dict[str, Any]) -> Stream:
    """A table in memory as a stream.

    It has pandas, polars or Arrow columns of equal length.
    """
    types = {name: _type_of(column) for name, column in columns.items()}
    rows = max((len(column) for column in columns.values()), default=0)

    def batches() -> Iterator[list[Any]]:
        for start in range(0, rows, _ROWS):
            yield [_slice(column, start) for column in columns.values()]

    return Stream(pa.schema(list(types.items())), batches)


def _slice(column: Any, start: int) -> Any:
    if hasattr(column, "iloc"):
        return column.iloc[start : start + _ROWS]
    part = column.slice(start, _ROWS)
    try:
        return part.to_arrow() if hasattr(part, "to_arrow") else part
    except Exception:  # polars objects: read one by one
        return part.to_list()


def _type_of(column: Any) -> Any:
    """The engine's type of a column, from its declared type alone."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return engine_type(column.type)
    if not hasattr(column, "iloc"):
        try:
            return engine_type(column.head(0).to_arrow().type)
        except Exception:  # polars objects have no Arrow type
            return TEXT
    dtype = column.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return engine_type(dtype.pyarrow_dtype)
    kind, size = getattr(dtype, "kind", "O"), getattr(dtype, "itemsize", 0)
    if kind == "b":
        return pa.bool_()
    if kind in "iu" and type(dtype).__name__ != "SparseDtype":
        return pa.uint64() if kind == "u" and size == 8 else pa.int64()
    return pa.float64() if kind == "f" else TEXT


# Open files of the formats that Arrow reads, Parquet and its own.


@contextmanager
def _arrow_errors() -> Generator[None]:
    """What Arrow cannot open is a file that cannot be opened."""
    try:
        yield
    except pa.ArrowException as error:
        raise OSError("Arrow cannot open the file") from error


@_arrow_errors()
def read_parquet(connection: Any, files: list[str], names: list[str]) -> Any:
    """The named columns of Parquet files."""
    import pyarrow.parquet as pq

    schemas = [pq.read_schema(file) for file in files]
    merged = _merged(files, schemas, names)
    if any(field.type == TEXT for field in merged) or _twins(schemas, names):
        return connection.from_arrow(Stream(merged, lambda: _batches(files, names, "parquet")))
    relation = connection.read_parquet(for_engine(files), hive_partitioning=False, union_by_name=True)
    return relation.project(", ".join(map(quoted, names)))


@_arrow_errors()
def read_arrow(connection: Any, files: list[str], names: list[str]) -> Any:
    """The named columns of files in Arrow's own format."""
    schemas: list[pa.Schema] = []
    for file in files:
        with pa.OSFile(file) as opened:
            schemas.append(pa.ipc.open_file(opened).schema)
    merged = _merged(files, schemas, names)
    return connection.from_arrow(Stream(merged, lambda: _batches(files, names, "ipc")))


def _merged(files: Sequence[str], schemas: Sequence[pa.Schema], names: Sequence[str]) -> pa.Schema:
    """The engine's types of the columns asked for, one for all parts."""
    for file, schema in zip(files, schemas, strict=True):
        for name in names:
            there = len(schema.get_all_field_indices(name))
            if there == 0:
                raise no_column(name, f"The file {Path(file).name!r}")
            if there > 1:
                raise SourceError(f"{file!r} names the column {name!r} twice. Rename one of them.")
    fields = [
        (name, common_type([engine_type(schema.field(name).type) for schema in schemas])) for name in names
    ]
    return pa.schema(fields)


def _twins(schemas: Sequence[pa.Schema], names: Sequence[str]) -> bool:
    """Whether a column asked for has a namesake in other capitals, which DuckDB would confuse with it."""
    asked = {name.lower() for name in names}
    return any(sum(name.lower() in asked for name in schema.names) > len(names) for schema in schemas)


def _batches(files: Sequence[str], names: Sequence[str], kind: str) -> Iterator[list[Any]]:
    import pyarrow.dataset as ds

    for file in files:
        part = ds.dataset(file, format=kind, partitioning=None)
        for batch in part.to_batches(columns=list(names), batch_size=_ROWS):
            yield list(batch.columns)
