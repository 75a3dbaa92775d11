"""What every experiment shares: where data and pictures go, and how they look."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = ["DATA", "read_table", "save_figure", "write_table"]

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


def save_figure(figure: Figure, out: Path, name: str) -> Path:
    """Save a picture as ``out/name.png``, without anything in it that changes from run to run."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    figure.savefig(path, bbox_inches="tight", metadata={"Software": None})
    return path
