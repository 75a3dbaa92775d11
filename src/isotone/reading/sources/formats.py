"""Open the files of each format as one relation of the embedded engine.

No format guesses: names and types come from headers and schemas, partitions in the names of folders mean nothing, and the
parts of a source are matched by the names of the columns asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from isotone.reading.columns.translated import quoted
from isotone.reading.sources.engine import connect
from isotone.reading.sources.files import SourceError, csv_places, ending_of, expand, for_engine

__all__ = ["open_path"]

_NO_DELIMITER = "\x1e"  # JSON forbids it inside a line


def open_path(path: str, columns: Sequence[str]) -> Any:
    """The named columns of the files at ``path``, as a DuckDB relation.

    Only headers and schemas are read.
    """
    import duckdb

    files = expand(path)
    ending = ending_of(path, files)
    if ending not in _READERS:
        raise SourceError(
            f"{path!r} has the ending {ending or '(none)'!r}. isotone opens .csv, .tsv, .parquet, .jsonl "
            "and .arrow files; open others yourself and pass the table."
        )
    names = list(dict.fromkeys(columns))
    try:
        return _READERS[ending](connect(), files, names)
    except (duckdb.Error, OSError):
        # The engine's own words may quote contents, so they are not repeated.
        raise SourceError(
            f"{path!r} could not be opened as {ending[1:]}. Is it what its name says?"
        ) from None


def _read_csv(connection: Any, files: list[str], names: list[str], delimiter: str = ",") -> Any:
    layouts: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    for file in files:
        layouts.setdefault(csv_places(file, delimiter, names), []).append(file)
    parts: list[Any] = []
    for (width, places), alike in layouts.items():
        relation = connection.read_csv(
            for_engine(alike),
            columns={f"c{i}": "VARCHAR" for i in range(width)},
            auto_detect=False,
            header=True,
            delimiter=delimiter,
            quotechar='"',
            escapechar='"',
            strict_mode=False,
            null_padding=True,
            ignore_errors=True,
            hive_partitioning=False,
            parallel=False,  # null padding with quoted new lines is only defined in a single scan
        )
        chosen = [f"c{place} AS {quoted(name)}" for place, name in zip(places, names, strict=True)]
        parts.append(relation.project(", ".join(chosen)))
    return _together(parts)


def _read_tsv(connection: Any, files: list[str], names: list[str]) -> Any:
    return _read_csv(connection, files, names, "\t")


def _read_json_lines(connection: Any, files: list[str], names: list[str]) -> Any:
    """Read one record for each line that holds one object.

    Brackets and commas around it, as in an array, are left out.

    The keys of a line are contents, so a column that no line has is missing everywhere, without a message.
    Nested values are missing.
    """
    lines = connection.read_csv(
        for_engine(files),
        columns={"line": "VARCHAR"},
        auto_detect=False,
        header=False,
        delimiter=_NO_DELIMITER,
        quotechar="",
        escapechar="",
        strict_mode=False,
        ignore_errors=True,
        hive_partitioning=False,
    )
    pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
    paths = "[" + ", ".join("'" + pointer.replace("'", "''") + "'" for pointer in pointers) + "]"
    objects = lines.project("trim(line, ' \t\r\n,[]') AS line").filter(
        "CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' ELSE false END"
    )
    values = objects.project(f"json_extract_string(line, {paths}) AS value, json_type(line, {paths}) AS kind")
    return values.project(
        ", ".join(
            f"CASE WHEN kind[{i}] NOT IN ('ARRAY', 'OBJECT') THEN value[{i}] END AS {quoted(name)}"
            for i, name in enumerate(names, 1)
        )
    )


def _read_parquet(connection: Any, files: list[str], names: list[str]) -> Any:
    from isotone.reading.sources.arrow_files import read_parquet  # here, as it brings Arrow

    return read_parquet(connection, files, names)


def _read_arrow(connection: Any, files: list[str], names: list[str]) -> Any:
    from isotone.reading.sources.arrow_files import read_arrow

    return read_arrow(connection, files, names)


def _together(parts: Sequence[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return whole


_READERS: dict[str, Callable[[Any, list[str], list[str]], Any]] = {
    ".csv": _read_csv,
    ".txt": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".ipc": _read_arrow,
}
