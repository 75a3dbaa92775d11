"""A release is the published numbers, how uncertain they are, and the manifest."""

from __future__ import annotations

import os
import re
import secrets
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isotone.errors import DeliveryError, InputError, IsotoneError
from isotone.lazy import from_extra, new_axes
from isotone.order import Poset
from isotone.planning.plan import aligned
from isotone.privacy.checks import one_of
from isotone.privacy.guarantee import Guarantee
from isotone.release.folder import read_columns, read_json
from isotone.release.manifest import FORMAT, Manifest, digest, guarantee_from, order_from
from isotone.release.reader_questions import Questions, answered
from isotone.release.writing.column_texts import csv_text
from isotone.scratch import alone_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Release", "load_release", "seal", "set_time", "write_file", "written"]

_MOST_ROWS = 40
"""A screen shows at most so many rows of a release."""

_CSV, _MANIFEST, _REPORT = "release.csv", "manifest.json", "report.html"


@dataclass(frozen=True)
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

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee."""
        return guarantee_from(self.manifest.guarantee)

    @property
    def order(self) -> Poset:
        """The order of a release of counts."""
        written = self.manifest["description"].get("order")
        if written is None:
            raise InputError(f"A release of a {self.kind} has no partial order.")
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
        libraries = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
        if kind is None:
            kind = next(name for name, library in libraries.items() if find_spec(library))
        if kind not in libraries:
            raise InputError(f"A frame is 'pandas', 'polars' or 'arrow', not {kind!r}.")
        made = from_extra(libraries[kind], "frames")
        data = {name: list(column) for name, column in self.columns.items()}
        return made.table(data) if kind == "arrow" else made.DataFrame(data)

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
        return f"{self.manifest.title} ({self.guarantee})"

    @answered
    def consistent(
        self, *, integers: bool = True, weights: Literal["variance", "covariance"] = "variance"
    ) -> Release:
        """The same release with values that could be true, not negative, and following the order.

        Post-processing: the guarantee stays as it is. Values are the nearest in squares weighted by the variances of the
        noise, or, for some hundreds of elements, in the norm of its covariance. Intervals hold all at once. The values as
        released stay beside, in the column ``raw``, and questions are answered from them.
        """
        from isotone.release.kinds import kind_named

        chosen = one_of(weights, "weights", ("variance", "covariance"))
        return kind_named(self.kind).consistent(self, integers=integers, weights=chosen)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the release as a Hasse diagram, a distribution, or a curve."""
        from isotone.release.kinds import kind_named

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
        from isotone.release.reporting.html_report import report_html

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

    def __str__(self) -> str:
        shown = self.shown()
        rows = list(zip(*shown.values(), strict=True))
        words = {
            place for place, column in enumerate(shown.values()) if column and isinstance(column[0], str)
        }
        body = aligned([tuple(shown), *(tuple(map(written, row)) for row in rows[:_MOST_ROWS])], words)
        return "\n".join([self.title, *body, *self._left(len(rows))])

    def _repr_html_(self) -> str:
        from isotone.release.kinds import kind_named

        shown = self.shown()
        rows = list(zip(*shown.values(), strict=True))
        head = "".join(f"<th>{escape(name)}</th>" for name in shown)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(written(value))}</td>" for value in row) + "</tr>"
            for row in rows[:_MOST_ROWS]
        )
        left = "".join(f"<p>{escape(line)}</p>" for line in self._left(len(rows)))
        table = f"<table><tr>{head}</tr>{body}</table>{left}"
        # the first picture of the report, as an image: neither its styles nor those of the notebook reach the other
        page = kind_named(self.kind).page(self)
        picture = re.search("<svg.*?</svg>", page.svg(self), re.DOTALL)
        image = "" if picture is None else _image(picture[0])
        return f"<p>{escape(self.title)}</p>{table}{image}"

    @staticmethod
    def _left(number: int) -> list[str]:
        if number <= _MOST_ROWS:
            return []
        return [f"the first {_MOST_ROWS} of {number:,} rows; frame() has all"]


def _image(svg: str) -> str:
    data = b64encode(svg.encode()).decode()
    style = "display: block; max-width: 48rem; width: 100%; background: white"
    return f'<img alt="The picture of the report" style="{style}" src="data:image/svg+xml;base64,{data}">'


def written(value: Any) -> str:
    """A published value as a screen shows it."""
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return str(value)


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
    """Read a saved release, within the limits of :mod:`.folder`. ``isotone verify`` checks it, and this only reads it."""
    plain = read_json(folder, _MANIFEST)
    try:
        manifest = Manifest.from_plain(plain)
    except InputError as error:
        raise InputError(f"The release in {str(folder)!r} cannot be read: {error}") from None
    return Release(read_columns(folder, _CSV, manifest.text_columns), manifest)
