"""One line of the comparison, and the files that keep them."""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks._rows import unfinished

__all__ = ["STORED", "Row", "read", "write"]

STORED = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks" / "rivals"


@dataclass(frozen=True)
class Row:
    """What one rival does to one case.

    ``public`` is its error when its choices follow a rule that reads no data, ``hindsight`` the least error that its free
    parameter could have given on this very case, and ``chosen`` says which value that was. NaN where there is none.
    ``seen`` tells whether isotone's constants were chosen while looking at this case.
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


def write(section: str, rows: Iterable[Row], folder: Path = STORED) -> None:
    """Keep the rows of a section. Those before stay until all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    part = unfinished(f"rivals-{section}.csv")
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([each.name for each in fields(Row)])
        for row in rows:
            values = [getattr(row, each.name) for each in fields(Row)]
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values])
            file.flush()
    shutil.move(part, folder / f"{section}.csv")


def read(section: str, folder: Path = STORED) -> list[Row]:
    """The rows of a section, as they were kept."""
    path = folder / f"{section}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_row(each) for each in csv.DictReader(file)]


def _row(cells: dict[str, str]) -> Row:
    return Row(
        cells["section"],
        cells["case"],
        cells["guarantee"],
        cells["measure"],
        cells["seen"] == "True",
        cells["rival"],
        float(cells["public"]),
        float(cells["hindsight"]),
        cells["chosen"],
        cells["how"],
        cells["version"],
    )
