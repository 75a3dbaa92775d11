"""The ratios of every benchmark run, kept in one file, so that a slowdown is seen.

Seconds differ between machines and days. Ratios to the alternative in the same run hardly do, so these are kept: every
cell of a report's tables that ends in ``×``, under the name of its row and column.
"""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from pathlib import Path

import isotone

COLUMNS = ("day", "version", "benchmark", "row", "column", "ratio", "machine")
WORSE = 1.2
"""How much a ratio may change before it is worth a line."""

_RATIO = re.compile(r"^\**([0-9][0-9,]*(?:\.[0-9]+)?)\s*×\**(?: ± [0-9.e-]+)?$")


def ratios(report: str) -> dict[tuple[str, str], float]:
    """The ratios in the tables of a report, by row and column.

    >>> ratios("| | ours | ratio |\\n|---|---|---|\\n| sums | 0.1 s | 2.5× |")
    {('sums', 'ratio'): 2.5}
    """
    found: dict[tuple[str, str], float] = {}
    header: list[str] = []
    for line in report.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not header:
            header = cells
            continue
        for column, cell in zip(header[1:], cells[1:], strict=False):
            match = _RATIO.match(cell)
            if match:
                found[cells[0], column] = float(match.group(1).replace(",", ""))
    return found


def slower(history: Path, benchmark: str, found: dict[tuple[str, str], float]) -> list[str]:
    """What changed by more than a fifth since the last run of this benchmark, in either direction."""
    last = {
        (row["row"], row["column"]): float(row["ratio"])
        for row in _read(history)
        if row["benchmark"] == benchmark
    }
    return [
        f"{benchmark}: {' / '.join(key)} was {last[key]:g}×, is {ratio:g}×"
        for key, ratio in found.items()
        if key in last and not 1 / WORSE <= ratio / last[key] <= WORSE
    ]


def record(history: Path, benchmark: str, machine: str, found: dict[tuple[str, str], float]) -> None:
    """Add a run."""
    day = datetime.now(UTC).date().isoformat()
    new = not history.exists()
    with history.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        for (row, column), ratio in found.items():
            writer.writerow([day, isotone.__version__, benchmark, row, column, f"{ratio:g}", machine])


def _read(history: Path) -> list[dict[str, str]]:
    if not history.exists():
        return []
    with history.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
