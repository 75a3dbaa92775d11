"""Open files of the formats that Arrow reads, Parquet and its own."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from isotone.reading.columns.translated import quoted
from isotone.reading.sources.files import SourceError, for_engine, no_column
from isotone.reading.sources.streams import TEXT, Stream, common_type, engine_type

__all__ = ["read_arrow", "read_parquet"]

_ROWS = 1 << 17


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
