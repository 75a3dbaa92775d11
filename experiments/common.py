"""What every experiment shares: where data and pictures go, and how they look."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = ["DATA", "add_rows", "read_table", "save_figure", "write_table"]

DATA = Path(__file__).resolve().parent.parent / "data"

mpl.rcParams.update(
    {
        "axes.grid": True,
        "grid.alpha": 0.3,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.dpi": 110,
    }
)


def write_table(out: Path, name: str, columns: Mapping[str, Sequence[Any]]) -> Path:
    """Write columns of equal length as ``out/name.csv``."""
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"Columns of {name} differ in length: {sorted(lengths)}")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add_rows(
    path: Path,
    keys: Sequence[str],
    names: Sequence[str],
    cases: Iterable[tuple[str, ...]],
    make: Callable[..., Sequence[object]],
) -> list[dict[str, str]]:
    """Make the cases that the file does not have yet, each a row as soon as it is made, and read all of them.

    A case has the columns ``keys``, and ``make`` gives ``names``. A run that was interrupted goes on where it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(",".join([*keys, *names]) + "\n", encoding="utf-8")
    wanted = dict.fromkeys(cases)
    for row in read_table(path):
        wanted.pop(tuple(row[key] for key in keys), None)
    for case in wanted:
        made = [*case, *make(*case)]
        with path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(made)
    return read_table(path)


def save_figure(figure: Figure, out: Path, name: str) -> Path:
    """Save a picture as ``out/name.png``, without anything in it that changes from run to run."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    figure.savefig(path, bbox_inches="tight", metadata={"Software": None})
    return path
