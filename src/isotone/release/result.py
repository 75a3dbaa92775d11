"""Read a folder that a stranger made, within limits on files, sizes and depth.

A release is checked by people who do not trust its publisher. So a link, a pipe, a device, a file that fills the
memory or text that is nested without end is an error with a sentence, and never a wait or a crash.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import re
import secrets
import stat
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, wraps
from html import escape
from importlib.util import find_spec
from inspect import signature
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, ParamSpec, TypeVar, cast

import numpy as np
from pydantic_core import from_json

from isotone.errors import DeliveryError, InputError, IsotoneError
from isotone.lazy import from_extra, new_axes
from isotone.order import Poset
from isotone.planning import aligned
from isotone.privacy.checks import one_of, truth
from isotone.privacy.guarantee import Guarantee
from isotone.process import alone_in
from isotone.release.manifest import FORMAT, Manifest, csv_text, digest, guarantee_from, order_from

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.inference import Estimate
    from isotone.release.kinds.kind import Reader

_MIB = 1 << 20

LARGEST = {
    "manifest.json": 64 * _MIB,
    "opening.json": 64 * _MIB,
    "release.csv": 128 * _MIB,
    "report.html": 128 * _MIB,
}
"""The largest size of each file; any other has a mebibyte."""

DEEPEST = 32
"""How deep values in a manifest may be nested; ours are nested four deep."""

LONGEST_TEXT = 100_000
"""The longest text in a manifest or in a cell, in characters."""

MOST_COLUMNS = 50
"""The most columns of a release; ours have at most ten."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.ASCII)
_DIGITS, _SHORT = b"0123456789.-,", 300  # a float of so many characters without exponent is finite
_UNEVEN = "it has lines of different lengths: it was changed or cut off"
_TOGETHER = 1000
_LONGEST_NUMBER = 400  # digits; a 64-bit integer has 19, a float at most some 330


def read_file(folder: str | os.PathLike[str], name: str) -> bytes:
    """The bytes of a regular file in ``folder``. Anything else is refused without waiting for it."""
    if name in ("", ".", "..") or len(os.fsencode(name)) > 200 or re.search(r"[/\\\0]", name):
        raise InputError(f"{_short(name)} is no plain file name. A release names files in its own folder.")
    # a link is not followed, and a pipe or device is not waited for
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(Path(folder) / name, flags)
    except FileNotFoundError:
        held = sorted(path.parent.name for path in islice(Path(folder).glob(f"*/{name}"), 100))[:3]
        there = f" There is one in {' and in '.join(map(_short, held))}." if held else ""
        raise InputError(f"{_short(str(folder))} holds no release: {name} is missing.{there}") from None
    except NotADirectoryError:
        raise InputError(f"{_short(str(folder))} is a file. Name the folder of a release.") from None
    except (OSError, ValueError) as error:
        _refuse(folder, name, _reason(error))
    try:
        return _content(handle, LARGEST.get(name, _MIB))
    except (OSError, ValueError) as error:
        _refuse(folder, name, _reason(error))
    finally:
        os.close(handle)


def _content(handle: int, largest: int) -> bytes:
    result = os.fstat(handle)
    if not stat.S_ISREG(result.st_mode):
        raise ValueError("it is not a regular file")
    too_large = f"it is larger than {largest / _MIB:g} MiB"
    if result.st_size > largest:
        raise ValueError(too_large)
    with os.fdopen(handle, "rb", closefd=False) as file:
        data = file.read(largest + 1)
    if len(data) > largest:  # it grew while it was read
        raise ValueError(too_large)
    return data


def has_file(folder: str | os.PathLike[str], name: str) -> bool:
    """Whether anything of this name is in the folder, be it a file or not."""
    return os.path.lexists(Path(folder) / name)


def read_text(folder: str | os.PathLike[str], name: str) -> str:
    """The text of a file in ``folder``."""
    try:
        return read_file(folder, name).decode("utf-8")
    except UnicodeDecodeError:
        _refuse(folder, name, "it is not UTF-8 text")


def read_json(folder: str | os.PathLike[str], name: str) -> dict[str, Any]:
    """The JSON object in a file of ``folder``."""
    text = read_text(folder, name)
    try:
        value = plain_json(text)
    except ValueError as error:
        _refuse(folder, name, str(error))
    if not isinstance(value, dict):
        _refuse(folder, name, "it holds no JSON object")
    return value


def plain_json(text: str) -> Any:
    """A JSON value of bounded depth with finite numbers and no key twice. ValueError says what is wrong."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    waiting = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > DEEPEST:
            raise ValueError("its values are nested too deeply")
        if isinstance(part, str) and len(part) > LONGEST_TEXT:
            raise ValueError(f"a text in it has more than {LONGEST_TEXT:,} characters")
        if isinstance(part, dict):
            waiting.extend((key, depth) for key in part)
            part = list(part.values())
        if isinstance(part, list) and part:
            # numbers are as good as one of them, and there may be millions
            waiting.extend((inner, depth + 1) for inner in part if not isinstance(inner, (int, float)))
            waiting.append((0, depth + 1))
    return value


def read_columns(
    folder: str | os.PathLike[str], name: str, words: Collection[str]
) -> dict[str, tuple[Any, ...]]:
    """The columns of a CSV file in ``folder``, those called ``words`` as text and the others as numbers."""
    text = read_text(folder, name)
    if "\0" in text:
        _refuse(folder, name, "it holds a null character")
    blocks = _blocks(text)
    try:
        header = next(blocks, None)
        if header is None:
            _refuse(folder, name, "it is empty")
        titles = [cells[0] for cells in header]
        if len(set(titles)) < len(titles) or "value" not in titles or len(titles) > MOST_COLUMNS:
            _refuse(folder, name, "its first line does not name the columns of a release")
        columns: list[list[Any]] = [[] for _ in titles]
        known: dict[str, str] = {}  # a word that stands in many rows is kept once
        for block in blocks:
            for column, title, cells in zip(columns, titles, block, strict=True):
                column += _words(cells, known) if title in words else _numbers(folder, name, cells)
    except csv.Error as error:
        _refuse(folder, name, str(error))
    return {title: tuple(column) for title, column in zip(titles, columns, strict=True)}


def _blocks(text: str) -> Iterator[Sequence[Sequence[str]]]:
    """The first line of a CSV file, then some lines at a time, each time by column.

    A list of all lines may take a hundred times the room of the file.
    """
    lines = io.StringIO(text, newline="")
    first = text[: text.find("\n")]
    if '"' in text or "\r" in text or "," not in first:
        rows = csv.reader(lines, strict=True)
        titles = next(rows, None)
        if titles is not None:
            yield [[title] for title in titles]
            while some := list(islice(_even(rows, len(titles)), _TOGETHER)):
                _require_short(max(len(cell) for row in some for cell in row))
                yield list(zip(*some, strict=True))
        return
    # without quotes all commas and ends of lines are those of cells
    yield [[title] for title in next(lines).removesuffix("\n").split(",")]
    commas = first.count(",")
    while some := list(islice(lines, _TOGETHER)):
        if set(map(str.count, some, repeat(","))) != {commas}:
            raise csv.Error(_UNEVEN)
        cells = "".join(some).removesuffix("\n").replace("\n", ",").split(",")
        if max(map(len, some)) > LONGEST_TEXT:
            _require_short(max(map(len, cells)))
        yield [cells[place :: commas + 1] for place in range(commas + 1)]


def _require_short(longest: int) -> None:
    if longest > LONGEST_TEXT:
        raise csv.Error(f"a cell has more than {LONGEST_TEXT:,} characters")


def _words(cells: Sequence[str], known: dict[str, str]) -> Iterable[str]:
    """The words of a column, each kept once however often it stands there."""
    first = known.setdefault(cells[0], cells[0])
    if cells.count(first) == len(cells):  # often so, as margins and groups come one after the other
        return [first] * len(cells)
    return map(known.setdefault, cells, cells)


def _even(lines: Iterable[list[str]], length: int) -> Iterator[list[str]]:
    """Lines of the same length. Each is looked at before the next is read, as one may fill the memory."""
    for row in lines:
        if len(row) != length:
            raise csv.Error(_UNEVEN)
        yield row


def _numbers(folder: str | os.PathLike[str], name: str, cells: Sequence[str]) -> Sequence[int | float]:
    """The numbers of a column, whole where no point and no exponent is written."""
    together = ",".join(cells)
    if max(map(len, cells)) <= _SHORT and not together.encode().translate(None, _DIGITS):
        with suppress(ValueError):  # nearly never, and the cell at fault is found below
            result = from_json(f"[{together}]")
            if len(result) == len(cells):
                return result
    return [_number(folder, name, cell) for cell in cells]


def _number(folder: str | os.PathLike[str], name: str, cell: str) -> int | float:
    shape = _NUMBER.fullmatch(cell) if len(cell) <= _LONGEST_NUMBER else None
    if shape is not None and shape[1] is shape[2] is None:
        return int(cell)
    value = math.nan if shape is None else float(cell)
    if not math.isfinite(value):
        _refuse(folder, name, f"it holds {_short(cell)} where a number belongs: it was changed")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("an object in it has the same key twice")
    return result


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number in it is too long")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number in it is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of a release")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "it is a link, and only files inside the folder are read"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


def _refuse(folder: str | os.PathLike[str], name: str, reason: str) -> NoReturn:
    raise InputError(f"{name} of the release in {_short(str(Path(folder)))} cannot be read: {reason}.")


# What a reader may ask of a release, such as shares, changes, sums and comparisons, each with an interval that holds.

P = ParamSpec("P")
T = TypeVar("T")

_STRANGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a manifest that a stranger wrote can lead to, beside errors of our own."""


def answered(ask: Callable[P, T]) -> Callable[P, T]:
    """A question to a release that anyone may have written. What cannot be read is a sentence, never a traceback."""

    known = signature(ask)

    @wraps(ask)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        known.bind(*args, **kwargs)  # a call with other arguments is the caller's error
        try:
            # such errors may raise, if a caller has said so, and are no fault of the release
            with np.errstate(all="ignore"):
                return ask(*args, **kwargs)
        except IsotoneError:
            raise
        except _STRANGE as error:
            raise InputError(
                f"The manifest of a release does not describe what was released ({type(error).__name__}: "
                f"{str(error)[:100]}). isotone verify says what is wrong with it."
            ) from error

    return answer


class Within(NamedTuple):
    """What a share is within: the records, whose number may be stated, or the population that was sampled."""

    records: Any = None
    after_rules: bool = False
    population: bool = False
    deff: Any = 1


class Questions:
    """The questions of a reader.

    Every answer comes from published numbers and from the law of the noise, which is public. ``confidence`` is that of
    the release unless it is given; ``group`` names the group where there are groups, and the cell of a breakdown as a
    mapping, such as ``{"region": "north"}`` (the total if it is left out).
    """

    def _reader(self) -> Reader:
        from isotone.release.kinds.kind import kind_named

        release = cast("Release", self)
        return kind_named(release.kind).reader(release)

    @answered
    def group_named(self, words: Sequence[str]) -> Any:
        """What ``group`` is, given the words that name it on a command line, ``north``, or ``region=north`` and ``sex=f``."""
        return self._reader().group_named(list(words))

    @answered
    def contrast(
        self, coefficients: Mapping[Any, float], *, confidence: float | None = None, group: Any = None
    ) -> Estimate:
        """A linear combination of counts. ``{"hyp": 1, "meds": -1}`` is how many have the first but not the second."""
        return self._reader().contrast(coefficients, confidence, group)

    @answered
    def share(
        self,
        part: Any,
        of: Any = None,
        *,
        confidence: float | None = None,
        group: Any = None,
        records: Any = None,
        after_rules: bool = False,
        population: bool = False,
        deff: Any = 1,
    ) -> Estimate:
        """The share of ``part`` in ``of``, or in all records where ``of`` is left out.

        The share of all uses the noisy number of records, or the public one that ``records`` states (see
        :meth:`given` for ``after_rules``). The interval is about the records that were counted. With ``population`` it
        is about the population that they are a sample of, where noise and sampling are both uncertain; ``deff`` is
        the design effect of the sample.
        """
        reader = self._reader()
        if not truth(population, "population") and deff != 1:
            raise InputError("deff is of a sample: say population=True with it.")
        return reader.share(part, of, confidence, group, Within(records, after_rules, population, deff))

    @answered
    def shares(
        self,
        pairs: Sequence[tuple[Any, Any]] | None = None,
        *,
        together: bool = False,
        confidence: float | None = None,
        group: Any = None,
    ) -> dict[tuple[str, str], Estimate]:
        """Shares of pairs (part, whole), by default of all covers. With ``together`` all intervals hold at once."""
        return self._reader().shares(pairs, together, confidence, group)

    @answered
    def change(
        self,
        other: Release,
        what: Any = None,
        *,
        confidence: float | None = None,
        group: Any = None,
        follows_order: bool = False,
    ) -> Any:
        """The change from this release to ``other``, of one element or of each.

        Refused as in :func:`isotone.combine` where the two count different things. Neighbours may differ.
        """
        return self._reader().change(other, what, confidence, group, follows_order)

    @answered
    def rank(self, what: Any = None, *, confidence: float | None = None, group: Any = None) -> Any:
        """The place of a count among all, 1 for the largest, of one element or of each."""
        return self._reader().rank(what, confidence, group)

    @answered
    def sum(self, what: Any = None, *, confidence: float | None = None) -> Estimate:
        """A sum of published values, of elements, of one element over all groups, or of categories of a table."""
        return self._reader().sum(what, confidence)

    @answered
    def sums(
        self, groups: Mapping[str, Iterable[Any]], *, confidence: float | None = None
    ) -> dict[str, Estimate]:
        """Sums over public groups of the categories of a table, such as states of counties.

        Each value is between the unbiased sum and the sum of the estimates, by how much the groups differ.
        """
        return self._reader().sums(groups, confidence)

    @answered
    def at(self, x: Any, *, confidence: float | None = None) -> Estimate:
        """The value of a curve at ``x``, with its interval."""
        return self._reader().at(x, confidence)

    @answered
    def difference(
        self, first: Any, second: Any, what: Any = None, *, confidence: float | None = None
    ) -> Any:
        """The value at ``second`` minus that at ``first``, for two points of a curve, two groups, or two cells of a breakdown.

        For groups and cells ``what`` is an element; without it there is an answer for each. For a distribution it is a
        quantile, and for survival a time.
        """
        return self._reader().difference(first, second, what, confidence)

    @answered
    def quantile(
        self, level: Any, *, confidence: float | None = None, group: Any = None, band: str | None = None
    ) -> Estimate:
        """The least value with at least this share of the records at it or below: 0.5 for the median.

        All intervals of a distribution come from one band, and hold at once. ``band`` is that of the "records" or of the
        "population" that they were drawn from.
        """
        return self._reader().quantile([level], confidence, group, band)[0]

    @answered
    def quantiles(
        self,
        levels: Sequence[Any],
        *,
        confidence: float | None = None,
        group: Any = None,
        band: str | None = None,
    ) -> list[Estimate]:
        """Several quantiles, whose intervals hold at once."""
        return self._reader().quantile(list(levels), confidence, group, band)

    @answered
    def cdf(
        self, x: Any, *, confidence: float | None = None, group: Any = None, band: str | None = None
    ) -> Estimate:
        """The share of records at ``x`` or below. For the share between two values ask ``share(low, high)``."""
        return self._reader().cdf(x, confidence, group, band)

    @answered
    def survival(self, time: Any, *, confidence: float | None = None, group: Any = None) -> Estimate:
        """The share that lasts longer than ``time``, up to the horizon: the estimator of Kaplan and Meier.

        All intervals of survival come from one band, and hold at once. The median is ``quantile(0.5)``.
        """
        return self._reader().survival("survival", time, confidence, group)

    @answered
    def hazard(self, time: Any, *, confidence: float | None = None, group: Any = None) -> Estimate:
        """The cumulative hazard up to ``time``: the estimator of Nelson and Aalen."""
        return self._reader().survival("hazard", time, confidence, group)

    @answered
    def at_risk(self, time: Any, *, confidence: float | None = None, group: Any = None) -> Estimate:
        """How many records last longer than ``time``."""
        return self._reader().survival("at_risk", time, confidence, group)

    @answered
    def restricted_mean(
        self, until: Any = None, *, confidence: float | None = None, group: Any = None
    ) -> Estimate:
        """The mean time until the event, or until ``until`` if that is earlier, by default the horizon."""
        return self._reader().survival("restricted_mean", until, confidence, group)

    @answered
    def lorenz(
        self,
        levels: Sequence[Any] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        *,
        confidence: float | None = None,
        group: Any = None,
        band: str | None = None,
    ) -> list[Estimate]:
        """The share of the sum of all values that the lowest records have, for shares of the records."""
        return self._reader().lorenz(list(levels), confidence, group, band)

    @answered
    def gini(
        self, *, confidence: float | None = None, group: Any = None, band: str | None = None
    ) -> Estimate:
        """The Gini coefficient, for values that are not negative."""
        return self._reader().gini(confidence, group, band)

    @answered
    def given(self, *, records: Any, after_rules: bool = False) -> Release:
        """The release adjusted by a public number of records, which takes much of the noise off.

        ``records`` is stated by you, and never read from data: the number of records as the rules of the release count
        them, a mapping by group where there are groups. Where the rules can leave a unit out, ``after_rules=True``
        states that your number excludes it too. A wrong number biases every count. For whoever knows the number, a
        guarantee about adding or removing is one about replacing at twice ε; the manifest says so.
        """
        return self._reader().given(records, after_rules)


@answered
def combine(releases: Iterable[Release], *, follows_order: bool = False) -> Release:
    """Several releases of the same or overlapping counts as one, with the law of its noise.

    Refused: one draw twice, another unit, neighbours, rules or definition of yes. Where an element is implied by others
    that one of the releases did not ask about, ``follows_order=True`` states that every record follows the order.
    """
    result = list(releases) if isinstance(releases, Iterable) else []  # pyright: ignore[reportUnnecessaryIsInstance]
    if len(result) < 2 or not all(isinstance(release, Questions) for release in result):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("combine() takes two or more releases.")
    if len({release.kind for release in result}) > 1:
        raise InputError("Releases of different kinds cannot be combined.")
    return result[0]._reader().combine(result[1:], follows_order)  # pyright: ignore[reportPrivateUsage]


# A release is the published numbers, how uncertain they are, and the manifest.

MOST_ROWS = 40
"""A screen shows at most so many rows of a release."""

_CSV, _MANIFEST, _REPORT = "release.csv", "manifest.json", "report.html"


@dataclass(frozen=True, repr=False)
class Release(Questions):
    """What a steward publishes.

    ``columns`` are the published numbers by column; ``manifest`` says what was released, by which mechanism
    and under which guarantee. Both hold private outputs and public values only, so everything here may be shown.
    """

    columns: Mapping[str, tuple[Any, ...]]
    manifest: Manifest

    @property
    def kind(self) -> str:
        """The kind of release, such as counts, a table or a curve."""
        return self.manifest.kind

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee."""
        return guarantee_from(self.manifest.guarantee)

    @cached_property
    def order(self) -> Poset:
        """The order of a release of counts."""
        written = self.manifest["description"].get("order")
        if written is None:
            from isotone.release.kinds.kind import in_words

            raise InputError(f"A release of {in_words(self.kind)} has no partial order.")
        return order_from(written)

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The published values."""
        return np.array(self.columns["value"])

    @property
    def sd(self) -> np.ndarray[Any, Any]:
        """The standard deviation of the noise on each value."""
        return np.array(self.columns["sd"])

    @property
    def low(self) -> np.ndarray[Any, Any]:
        """The lower ends of the intervals, each for itself."""
        return np.array(self.columns["low"])

    @property
    def high(self) -> np.ndarray[Any, Any]:
        """The upper ends of the intervals, each for itself."""
        return np.array(self.columns["high"])

    @property
    def total(self) -> int | float | list[int] | list[float] | None:
        """The noisy number of records (one for each group, where there are groups), if it was asked for."""
        return self.manifest.get("total")

    def frame(self, kind: Literal["pandas", "polars", "arrow"] | None = None) -> Any:
        """The published numbers as a data frame: of pandas, of polars, or an Arrow table, the first that is installed.

        ``print(release)`` shows them as a table of plain text.
        """
        libraries: dict[Literal["pandas", "polars", "arrow"], str]
        libraries = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
        chosen: str | None = kind
        if chosen is None:
            chosen = next(name for name, library in libraries.items() if find_spec(library))
        if chosen not in libraries:
            raise InputError(f"A frame is 'pandas', 'polars' or 'arrow', not {kind!r}.")
        result = from_extra(libraries[chosen], "frames")
        data = {name: list(column) for name, column in self.columns.items()}
        return result.table(data) if chosen == "arrow" else result.DataFrame(data)

    def shown(self) -> dict[str, tuple[Any, ...]]:
        """The columns that a screen shows: without the intervals that hold all at once, and with the words of questions."""
        shown = {name: column for name, column in self.columns.items() if name not in ("low_all", "high_all")}
        answers = self.manifest["description"].get("answers") or {}
        labels = {entry["name"]: entry.get("label", "") for entry in answers.get("questions", ())}
        if any(labels.values()):
            shown = {"label": tuple(labels.get(name, "") for name in shown["element"]), **shown}
        return shown

    @property
    def title(self) -> str:
        """The title, with the guarantee."""
        return f"{self.manifest.stated.title} ({self.guarantee})"

    @answered
    def consistent(
        self, *, integers: bool = True, weights: Literal["variance", "covariance"] = "variance"
    ) -> Release:
        """The same release with values that could be true, not negative, and following the order.

        Post-processing: the guarantee stays as it is. Values are the nearest in squares weighted by the variances of the
        noise, or, for some hundreds of elements, in the norm of its covariance. Intervals hold all at once. The values as
        released stay beside, in the column ``raw``, and questions are answered from them.
        """
        from isotone.release.kinds.kind import kind_named

        chosen = one_of(weights, "weights", ("variance", "covariance"))
        return kind_named(self.kind).consistent(self, integers=integers, weights=chosen)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the release as a Hasse diagram, a distribution, or a curve."""
        from isotone.release.kinds.kind import kind_named

        page = kind_named(self.kind).page(self)
        ax = new_axes(figsize=page.size(self), layout="constrained") if ax is None else ax
        page.draw(self, ax)
        return ax

    def csv(self) -> str:
        """The published numbers as CSV text."""
        return csv_text(self.columns)

    def sealed_bytes(self) -> bytes:
        """Values and manifest as canonical bytes, which are sealed and signed."""
        return self.manifest.bytes_with(self.columns)

    def save(self, folder: str | os.PathLike[str], *, report: bool = True) -> Path:
        """Write ``release.csv``, ``manifest.json`` with its hash and, last, ``report.html``.

        What was paid for is not lost to a picture: if the report cannot be made, the rest is saved, and the error
        says so.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = self.csv()
            write_file(folder / _CSV, text, self.manifest.time)
            digests = {_CSV: digest(text.encode())}
            write_file(folder / _MANIFEST, replace(self.manifest, files=digests).text(), self.manifest.time)
            (folder / _REPORT).unlink(missing_ok=True)  # that of another release
            set_time(folder, self.manifest.time)
        except OSError as error:
            raise DeliveryError(
                f"The release could not be written to {str(folder)!r}: {error.strerror or error}."
            ) from None
        if report:
            self.save_report(folder)
        return folder

    def save_report(self, folder: str | os.PathLike[str]) -> Path:
        """Draw ``report.html`` into the folder of this release, again if it is there."""
        from isotone.release.report import report_html

        try:
            page = report_html(self)
            with alone_in(Path(folder)):
                write_file(Path(folder) / _REPORT, page, self.manifest.time)
                set_time(folder, self.manifest.time)
        except Exception as error:
            raise IsotoneError(
                f"The release is saved in {str(folder)!r}, but its report could not be made: {error}"
            ) from error
        return Path(folder) / _REPORT

    def on_screen(self) -> tuple[list[tuple[Any, ...]], str]:
        """The rows of the shown columns that a screen has room for, and which ones these are if there are more."""
        from isotone.release.kinds.kind import kind_named

        rows = list(zip(*self.shown().values(), strict=True))
        if len(rows) <= MOST_ROWS:
            return rows, ""
        page = kind_named(self.kind).page(self)
        if page.few_rows is None:
            return rows[:MOST_ROWS], f"the first {MOST_ROWS} of {len(rows):,} rows"
        some = page.some(self, page.sequence(self), page.few_rows)
        return [rows[place] for place, _ in some], f"{len(some)} of {len(rows):,} rows, in equal steps"

    def __str__(self) -> str:
        shown, (rows, which) = self.shown(), self.on_screen()
        words = {
            place for place, column in enumerate(shown.values()) if column and isinstance(column[0], str)
        }
        body = aligned([tuple(shown), *(tuple(map(written, row)) for row in rows)], words)
        return "\n".join([self.title, *body, *([f"{which}; frame() has all"] if which else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from isotone.release.kinds.kind import kind_named

        rows, which = self.on_screen()
        head = "".join(f"<th>{escape(name)}</th>" for name in self.shown())
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(written(value))}</td>" for value in row) + "</tr>" for row in rows
        )
        left = f"<p>{which}; frame() has all</p>" if which else ""
        table = f"<table><tr>{head}</tr>{body}</table>{left}"
        # the first picture of the report, as an image: neither its styles nor those of the notebook reach the other
        page = kind_named(self.kind).page(self)
        picture = re.search("<svg.*?</svg>", page.svg(self), re.DOTALL)
        image = "" if picture is None else _image(picture[0])
        return f"<p>{escape(self.title)}</p>{table}{image}"


def _image(svg: str) -> str:
    data = b64encode(svg.encode()).decode()
    size = re.search(r'viewBox="\S+ \S+ ([\d.]+)', svg)
    wide = "48rem" if size is None else f"{min(48.0, float(size[1]) / 16 * 1.25):g}rem"
    style = f"display: block; max-width: {wide}; width: 100%; background: white"
    return f'<img alt="The picture of the report" style="{style}" src="data:image/svg+xml;base64,{data}">'


def written(value: Any) -> str:
    """A published value as a screen shows it."""
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else in_digits(value, 6)
    return str(value)


def in_digits(value: float, digits: int) -> str:
    """A number with so many digits that matter, and with all that stand before the point.

    >>> in_digits(11914.06, 4), in_digits(200000.0, 4), in_digits(0.0001721, 4), in_digits(20.25, 4)
    ('11,914', '200,000', '0.0001721', '20.25')
    """
    if 10 ** (digits - 1) <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def seal(columns: Mapping[str, tuple[Any, ...]], manifest: Mapping[str, Any]) -> Release:
    """A release whose manifest carries the hash of its own content and of the values."""
    if not isinstance(manifest, Manifest):
        manifest = Manifest.from_plain({"format": FORMAT, **manifest})
    return Release(columns, manifest.sealed(columns))


def write_file(path: Path, text: str, time: str | None = None) -> None:
    """Write a file in one step. Readers see the old content or the new, never a part, also if two write at once.

    ``time`` becomes the file's own: copies and archives keep it, and the time of writing would say how long the data
    took to read, which is about how much of it there is.
    """
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            if time is not None:
                set_time(file.fileno(), time)
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def set_time(file: int | str | os.PathLike[str], time: str) -> None:
    """Give a file or folder the time of the charge. A stranger's manifest may hold any text there."""
    with suppress(ValueError, OverflowError, OSError, NotImplementedError):
        moment = datetime.fromisoformat(time).timestamp()
        os.utime(file, (moment, moment))


def load_release(folder: str | os.PathLike[str]) -> Release:
    """Read a saved release, within the limits of :mod:`isotone.release.result`. ``isotone verify`` checks it, and this only reads it."""
    plain = read_json(folder, _MANIFEST)
    try:
        manifest = Manifest.from_plain(plain)
    except InputError as error:
        raise InputError(f"The release in {str(folder)!r} cannot be read: {error}") from None
    return Release(read_columns(folder, _CSV, manifest.text_columns), manifest)
