"""Read CSV files and lines of text as Arrow batches, by one rule that no byte can bend.

The rule: a record ends where the line ending of the file stands outside quotes; the line ending is that of the header line, or
stated, and every other one is content. A field that begins with a quote goes on to the closing quote, two quotes are one, and what
follows the closing quote belongs to the field; a quote that does not close goes on to the end of the file; a quote elsewhere is
content. Lines without a byte are skipped, fields that are not there are missing, further ones are ignored, and an empty field is
missing, as is one of more than 64 MiB. Bytes that are not of the encoding make their field missing.

:func:`_slow` is this rule as one regular expression. Blocks of bytes in which quotes stand only where a writer puts them are cut by
:func:`_fast`, which gives the same fields (tests compare the two).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.reading.sources import DataFile, SourceError, no_column
from isotone.reading.values import LONGEST_TEXT

_BLOCK = 1 << 20
_LONGEST_HEADER = 1 << 22
_LONGEST_BLOCK = 1 << 30  # a view of Arrow finds its text by 31 bits
_QUOTE = 34
_INLINE = 12  # bytes of a text that Arrow keeps in its view
_SHORT = 4

_UNREADABLE = "isotone.unreadable"
codecs.register_error(_UNREADABLE, lambda error: ("\udcff", getattr(error, "end")))  # noqa: B009 (encoders have none)


class Layout(NamedTuple):
    """Where the columns that are read stand in the lines of a file."""

    places: tuple[int, ...]
    separator: str
    newline: str
    header: bool
    encoding: str


def layout_of(file: str, form: DataFile, columns: Sequence[str]) -> Layout:
    """The layout of one file, from its header line or what is stated. Nothing else is read."""
    separator = form.separator or ","
    if form.header is False:
        for name in columns:
            if name not in form.columns:
                raise InputError(f"There is no column {name!r} among the names that are stated.")
        assert form.newline is not None
        return Layout(tuple(map(form.columns.index, columns)), separator, form.newline, False, form.encoding)
    with Path(file).open("rb") as stream:
        start = next(_decoded(stream, form.encoding, _LONGEST_HEADER), b"")
    fields, end, _ = _first_record(start, separator.encode(), rb"\r\n|\n|\r")
    newline = end.decode() or "\n"
    names = [name.decode(errors="replace") for name in fields]
    if names == [""]:
        raise SourceError(
            f"{Path(file).name!r} is empty, or begins with an empty line. The first line of a CSV names its columns; if it does not, state "
            "header = false, names and newline in [data]."
        )
    for name in columns:
        if names.count(name) > 1:
            raise SourceError(f"{file!r} names the column {name!r} twice. Rename one of them.")
        if name not in names:
            raise no_column(name, f"The file {Path(file).name!r}", names if form.header else None, form)
    return Layout(tuple(map(names.index, columns)), separator, newline, True, form.encoding)


def header_names(file: str, form: DataFile, most: int = 1 << 16) -> list[str]:
    """The names in the first line of a CSV, of which at most so many bytes are read; none if the line is longer.

    Only for files of which somebody has stated that their first line holds names: it may be a record of a person.
    """
    with Path(file).open("rb") as stream:
        start = next(_decoded(stream, form.encoding, most), b"")
    separator = form.separator or ("\t" if file.endswith(".tsv") else ",")
    fields, end, _ = _first_record(start, separator.encode(), rb"\r\n|\n|\r")
    whole = bool(end) or Path(file).stat().st_size < most
    return [name.decode(errors="replace") for name in fields] if whole else []


def _first_record(block: bytes, separator: bytes, newline: bytes) -> tuple[list[bytes], bytes, int]:
    """The fields of the first line, its ending, and where the next one begins. ``newline`` is a pattern."""
    fields: list[bytes] = []
    for match in _pattern(separator, newline).finditer(block):
        fields.append(_field(match))
        if match[4] != separator:
            return fields, match[4], match.end()
    return fields, b"", len(block)


def _field(match: re.Match[bytes]) -> bytes:
    quoted, behind, plain, _ = match.groups()
    return plain if quoted is None else quoted.replace(b'""', b'"') + behind


def records_of(text: bytes, layout: Layout) -> Iterator[list[bytes]]:
    """The records of a text, the header line first, by the rule itself."""
    return _slow(text, layout.separator.encode(), layout.newline.encode())


def read_fields(file: str, layout: Layout) -> Iterator[list[Any]]:
    """Batches of the columns of a layout, as Arrow texts that are valid, null where a field is missing."""
    separator, newline = layout.separator.encode(), layout.newline.encode()
    yield from _batches(file, layout, separator, newline)


def read_lines(file: str, encoding: str) -> Iterator[list[Any]]:
    """Batches of the lines of a file, which end with a line feed, as one column of Arrow texts."""
    yield from _batches(file, Layout((0,), "", "\n", False, encoding), b"", b"\n")


def _batches(file: str, layout: Layout, separator: bytes, newline: bytes) -> Iterator[list[Any]]:
    for block, marks in _records(file, layout, separator, newline):
        if len(block) <= _LONGEST_BLOCK:
            yield _columns(block, marks, separator, newline, layout.places)
            continue
        for row in _slow(block, separator, newline):  # nearly all of it is one record
            yield _row_columns([row], layout.places)


def _decoded(stream: Any, encoding: str, size: int) -> Iterator[bytes]:
    """The bytes of a file as UTF-8, without a mark at the begin. What cannot be decoded becomes bytes that are not UTF-8."""
    first = True
    if encoding == "utf-16":
        encoding = "utf-16-be" if stream.peek(2)[:2] == codecs.BOM_UTF16_BE else "utf-16-le"
    # One letter of this encoding begins a sequence to Python, which takes bytes of the next lines.
    encoding = "cp949" if encoding == "euc-kr" else encoding
    decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)(_UNREADABLE)
    while True:
        block: bytes = stream.read(size)
        last = not block
        if decoder is not None:
            block = decoder.decode(block, last).encode("utf-8", "surrogatepass")
        if first and (block or last):
            block, first = block.removeprefix(codecs.BOM_UTF8), False
        if block:
            yield block
        if last:
            return


def _records(
    file: str, layout: Layout, separator: bytes, newline: bytes
) -> Iterator[tuple[bytes, _Marks | None]]:
    """The file in blocks that end where a record ends, without its header line, and the marks of those where they are known."""
    parts, held, size, header = list[bytes](), 0, _BLOCK, layout.header
    with Path(file).open("rb") as stream:
        for block in _decoded(stream, layout.encoding, _BLOCK):
            parts.append(block)
            held += len(block)
            if held < size:
                continue
            whole = b"".join(parts)
            cut, marks = _last_end(whole, separator, newline)
            parts = [whole[cut:]]
            held = len(parts[0])
            if not cut:
                size = 2 * held  # a longer record: look again when there is twice as much
                continue
            whole, size = whole[:cut], _BLOCK
            if header:
                whole, marks, header = _without_header(whole, separator, newline), None, False
            if whole:
                yield whole, marks
    rest = b"".join(parts)
    rest = _without_header(rest, separator, newline) if header else rest
    if rest:
        yield rest, None


def _without_header(block: bytes, separator: bytes, newline: bytes) -> bytes:
    return block[_first_record(block, separator, newline)[2] :]


def _last_end(block: bytes, separator: bytes, newline: bytes) -> tuple[int, _Marks | None]:
    """Where the last whole record of a block ends that begins with a record, or 0, and the marks up to there if they were found."""
    if not separator or b'"' not in block:
        end = block.rfind(newline)
        return end + len(newline) if end >= 0 else 0, None
    closed = (
        block[: block.rfind(b'"')] if block.count(b'"') % 2 else block
    )  # a field that goes on after the block
    marks = _Marks.of(closed, separator, newline) if closed else None
    if marks is not None:
        (ends,) = np.nonzero(marks.is_end)
        if not ends.size:
            return 0, None
        kept = slice(ends[-1] + 1)
        end = int(marks.places[ends[-1]]) + len(newline)
        return end, _Marks(marks.places[kept], marks.is_end[kept], marks.escapes)
    end = 0
    for match in _pattern(separator, newline).finditer(block):
        if match[4] == newline:
            end = match.end()
    return end, None


class _Marks(NamedTuple):
    """The separators and line endings of a block that are no content, as positions."""

    places: NDArray[np.int64]
    is_end: NDArray[np.bool_]
    escapes: NDArray[np.int64] | None
    """Where the second of two quotes stands that are one; None where there is no quote at all."""

    @classmethod
    def of(cls, block: bytes, separator: bytes, newline: bytes) -> _Marks | None:
        """None where a quote stands that no writer of CSV puts there."""
        data = np.frombuffer(block, np.uint8)
        ends = data == newline[-1]
        if len(newline) == 2:
            ends[1:] &= data[:-1] == newline[0]
            ends[0] = False
        marks = ends | (data == separator[0]) if separator else ends
        escapes = None
        if separator and b'"' in block:
            quote = data == _QUOTE
            quotes = np.flatnonzero(quote)
            opening, closing = quotes[::2], quotes[1::2]
            if opening.size != closing.size:
                return None
            if np.any(
                closing > opening + 1
            ):  # from an opening quote to before its closing one all is content
                marks &= ~(np.cumsum(quote, dtype=np.uint8) & 1).view(np.bool_)
            again = opening[1:] == closing[:-1] + 1
            if not _proper(opening, closing, again, marks, ends if len(newline) == 2 else None):
                return None
            escapes = opening[1:][again]
        places = np.flatnonzero(marks)
        is_end = ends[places]
        if len(newline) == 2:
            places = places - is_end
        return cls(places, is_end, escapes)


def _proper(opening: Any, closing: Any, again: Any, marks: Any, ends: Any) -> bool:
    """Whether quotes open after a mark, or ``again`` at once after closing, and close before one, as a writer of CSV puts them.

    ``ends`` are the second bytes of line endings that have two.
    """
    last = marks.size - 1
    opens = (opening == 0) | marks[np.maximum(opening - 1, 0)]
    opens[1:] |= again
    closes = (closing == last) | marks[np.minimum(closing + 1, last)]
    closes[:-1] |= again
    if ends is not None:
        closes |= ends[np.minimum(closing + 2, last)] & (closing + 2 <= last)
    return bool(opens.all() and closes.all())


def _pattern(separator: bytes, newline: bytes) -> re.Pattern[bytes]:
    """The rule for one field, with what ends it: (quoted, behind the quote, plain, end)."""
    end = b"|".join([*([re.escape(separator)] if separator else []), newline, rb"\Z"])
    plain = rb"((?:(?!" + end + rb").)*+)"
    quoted = rb'"([^"]*+(?:""[^"]*+)*+)(?:"|\Z)' + plain if separator else rb"(?!)()()"
    return re.compile(rb"(?:" + quoted + rb"|" + plain + rb")(" + end + rb")", re.DOTALL)


def _slow(block: bytes, separator: bytes, newline: bytes) -> Iterator[list[bytes]]:
    """The records of a block, each a list of fields."""
    record: list[bytes] = []
    for match in _pattern(separator, newline).finditer(block):
        if match.start() == len(block) and not record:
            return
        end = match[4]
        record.append(_field(match))
        if end == separator and separator:
            continue
        if match.start() + len(end) < match.end() or len(record) > 1:  # a line without a byte is skipped
            yield record
        record = []
        if not end:
            return


def _columns(
    block: bytes, marks: _Marks | None, separator: bytes, newline: bytes, places: Sequence[int]
) -> list[Any]:
    marks = marks or _Marks.of(block, separator, newline)
    fields = None if marks is None else _fast(block, marks, len(newline), places)
    if fields is None:
        return _row_columns(list(_slow(block, separator, newline)), places)
    valid = _is_utf8(block)
    return fields if valid else [_valid(column) for column in fields]


def _row_columns(rows: Sequence[Sequence[bytes]], places: Sequence[int]) -> list[Any]:
    return [_texts([row[place] if place < len(row) else b"" for row in rows]) for place in places]


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts(fields: list[bytes]) -> Any:
    """Arrow texts of fields, null where one is empty, too long or not UTF-8."""

    def text(field: bytes) -> str | None:
        try:
            return field.decode() or None if len(field) <= LONGEST_TEXT else None
        except UnicodeDecodeError:
            return None

    return pa.array([text(field) for field in fields], pa.string_view())


def _valid(column: Any) -> Any:
    return _texts([b"" if field is None else field for field in column.cast(pa.binary_view()).to_pylist()])


def _masks() -> Any:
    """For each length of a short text which of sixteen bytes it has in a view."""
    kept = np.zeros((_INLINE + 1, 16), np.uint8)
    for length in range(_INLINE + 1):
        kept[length, 4 : 4 + length] = 255
    return kept.view("V16").ravel()


_KEPT = _masks()
_KEPT_SHORT = np.array([256**length - 1 for length in range(_SHORT + 1)], "<u4").view(np.uint32)


def _fast(block: bytes, marks: _Marks, wide: int, places: Sequence[int]) -> list[Any]:
    """The columns as Arrow's views of the block, without copying long texts."""
    ends, is_end = marks.places, marks.is_end
    if not is_end.size or not is_end[-1] or ends[-1] + wide < len(block):  # a last line without an ending
        ends, is_end = np.append(ends, len(block)), np.append(is_end, True)
    # four bytes before and twelve behind, so that a window of sixteen bytes fits around every begin
    data = np.frombuffer(b"\0\0\0\0" + block + b"\0" * _INLINE, np.uint8)
    spans = _spans(ends, is_end, wide, places)
    return [_views(data, begin, length, marks.escapes) for begin, length in spans]


def _spans(ends: Any, is_end: Any, wide: int, places: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    """Where the fields of each column begin, and how long they are."""
    width = int(np.argmax(is_end)) + 1
    rows = np.count_nonzero(is_end)
    if (
        width > 1 and rows * width == ends.size and is_end[width - 1 :: width].all()
    ):  # as many fields in every line
        table = ends.reshape(rows, width)
        for place in places:
            if place >= width:
                yield np.zeros(rows, np.int64), np.zeros(rows, np.int64)
                continue
            begin = table[:, place - 1] + 1 if place else np.append(0, table[:-1, -1] + wide)
            yield begin, table[:, place] - begin
        return
    begins = np.append(0, ends[:-1] + np.where(is_end[:-1], wide, 1))
    last = np.flatnonzero(is_end)
    first = np.append(0, last[:-1] + 1)
    widths = last - first + 1
    some = (widths > 1) | (ends[first] > begins[first])  # a line without a byte is skipped
    first, widths = first[some], widths[some]
    for place in places:
        there = widths > place
        at = first + np.minimum(place, widths - 1)
        begin = begins[at]
        yield begin, np.where(there, ends[at] - begin, 0)


def _views(data: NDArray[np.uint8], begin: Any, length: Any, escapes: Any) -> Any:
    """An Arrow column of texts that begin at ``begin + 4`` in the data, where quotes are one with the one before at ``escapes``."""
    buffers = [pa.py_buffer(data)]
    escaped = np.zeros(0, np.int64)
    if escapes is not None:
        escaped, begin, length = _unquoted(data, begin, length, escapes)
    longest = int(length.max(initial=0))
    if longest <= _SHORT:
        words = np.zeros((len(length), 4), np.uint32)
        windows = np.ndarray((data.size - 3,), dtype="V4", buffer=data, strides=(1,))
        words[:, 1] = windows[begin + 4].view(np.uint32) & _KEPT_SHORT[length]
    else:
        windows = np.ndarray((data.size - 15,), dtype="V16", buffer=data, strides=(1,))
        view = windows[begin].view(np.uint64)
        view &= _KEPT[np.minimum(length, _INLINE)].view(np.uint64)
        words = view.view(np.uint32).reshape(-1, 4)
    words[:, 0] = length
    if longest > _INLINE:
        long = np.flatnonzero(length > _INLINE)
        words[long, 2] = 0
        words[long, 3] = begin[long] + 4
    if escaped.size:
        buffers.append(pa.py_buffer(_unescape(data, words, escaped, begin, length)))
    null = (length == 0) | (length > LONGEST_TEXT)
    valid = pa.array(~null).buffers()[1] if null.any() else None
    views = pa.py_buffer(words)
    return pa.Array.from_buffers(pa.string_view(), len(words), [valid, views, *buffers])


def _unquoted(data: Any, begin: Any, length: Any, escapes: Any) -> tuple[Any, Any, Any]:
    """Fields without their quotes, and which of them hold a quote still."""
    around = (data[begin + 4] == _QUOTE) & (length > 0)
    begin, length = begin + around, length - 2 * around
    if not escapes.size:
        return escapes, begin, length
    held = np.searchsorted(escapes, begin + length) > np.searchsorted(escapes, begin)
    return np.flatnonzero(around & held), begin, length


def _unescape(data: Any, words: Any, which: Any, begin: Any, length: Any) -> bytes:
    """Texts in which two quotes are one, as a further buffer, and their views."""
    texts = bytearray()
    whole = data.tobytes()
    for row in which.tolist():
        start = int(begin[row]) + 4
        text = whole[start : start + int(length[row])].replace(b'""', b'"')
        length[row] = len(text)
        view = np.zeros(16, np.uint8)
        if len(text) <= _INLINE:
            view[4 : 4 + len(text)] = np.frombuffer(text, np.uint8)
            words[row] = view.view(np.uint32)
        else:
            view[4:8] = np.frombuffer(text[:4], np.uint8)
            words[row] = view.view(np.uint32)
            words[row, 2], words[row, 3] = 1, len(texts)
            texts += text
        words[row, 0] = len(text)
    return bytes(texts)
