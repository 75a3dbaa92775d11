"""One line of the comparison, and the files that keep them."""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks._rows import unfinished

__all__ = ["STORED", "Key", "Row", "keep_times", "read", "times", "write"]

Key = tuple[str, str, str, str, bool, str]
"""Section, case, guarantee, measure, whether it was seen, and rival."""
TIMES = "times.csv"
STORED = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks" / "rivals"


@dataclass(frozen=True)
class Row:
    """What one rival does to one case.

    ``public`` is its error when its choices follow a rule that reads no data, ``hindsight`` the least error that its free
    parameter could have given on this very case, and ``chosen`` says which value that was. NaN where there is none.
    ``seen`` tells whether isotone's constants were chosen while looking at this case. Errors that come from draws have
    standard errors. Where all rows of a case saw the same draws, ``draws`` are their squares or distances, draw by draw, or
    ``paired`` and ``hindsight_paired`` the relative standard errors of their ratios to isotone's first row.
    ``run`` says in which run of the command the row was made.
    """

    section: str
    case: str
    guarantee: str
    measure: str
    seen: bool
    rival: str
    public: float
    hindsight: float = math.nan
    chosen: str = ""
    how: str = "exact"
    version: str = ""
    error: float = math.nan
    hindsight_error: float = math.nan
    draws: tuple[float, ...] = ()
    paired: float = math.nan
    hindsight_paired: float = math.nan
    run: str = ""

    @property
    def ours(self) -> bool:
        """Whether this is isotone itself."""
        return self.rival.startswith("isotone")

    @property
    def key(self) -> tuple[str, str, str]:
        """What is compared with what: rows of one case, guarantee and measure."""
        return self.case, self.guarantee, self.measure

    @property
    def best(self) -> float:
        """The smaller of both errors."""
        return min((v for v in (self.public, self.hindsight) if not math.isnan(v)), default=math.nan)

    @property
    def power(self) -> float:
        """A root mean squared error is the root of the mean of draws, a distance is their mean."""
        return 0.5 if self.measure.startswith("rms") else 1.0

    @classmethod
    def of_draws(cls, key: Key, drawn: Sequence[float] | NDArray[np.float64], **more: Any) -> Row:
        """A row whose error is estimated from squared errors, or distances, draw by draw."""
        row = cls(*key, math.nan, how=f"{len(drawn)} draws", draws=tuple(map(float, drawn)), **more)
        mean = float(np.mean(drawn))
        doubt = float(np.std(drawn, ddof=1)) / len(drawn) ** 0.5
        return replace(row, public=mean**row.power, error=row.power * mean**row.power * doubt / mean)


def write(section: str, rows: Iterable[Row], folder: Path = STORED, run: str = "") -> None:
    """Keep the rows of a section and the run they are of. Those before stay until all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    part = unfinished(f"rivals-{section}.csv")
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([each.name for each in fields(Row)])
        for row in rows:
            made = replace(row, run=run)
            writer.writerow([_cell(getattr(made, each.name)) for each in fields(Row)])
            file.flush()
    shutil.move(part, folder / f"{section}.csv")


def read(section: str, folder: Path = STORED) -> list[Row]:
    """The rows of a section, as they were kept."""
    path = folder / f"{section}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_row(each) for each in csv.DictReader(file)]


def keep_times(run: str, seconds: Mapping[str, float], folder: Path = STORED) -> None:
    """Keep the CPU seconds of each section of a run."""
    with (folder / TIMES).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [run, name, f"{each:.0f}"] for name, each in seconds.items()
        )


def times(run: str | None = None, folder: Path = STORED) -> dict[str, float]:
    """The CPU seconds of each section of this run, or of the last one whatever its name."""
    if not (folder / TIMES).exists():
        return {}
    with (folder / TIMES).open(newline="", encoding="utf-8") as file:
        return {name: float(each) for made, name, each in csv.reader(file) if run in (None, made)}


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(_cell(each) for each in cast(tuple[float, ...], value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _row(cells: dict[str, str]) -> Row:
    read: dict[str, Any] = {each.name: cells[each.name] for each in fields(Row)}
    read |= {each.name: float(cells[each.name]) for each in fields(Row) if each.type == "float"}
    read["seen"], read["draws"] = cells["seen"] == "True", tuple(map(float, cells["draws"].split()))
    return Row(**read)
