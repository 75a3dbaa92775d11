"""Pictures of the comparison: all errors as multiples of isotone's, and three releases at a glance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks._switching_cases import Case, rising

if TYPE_CHECKING:
    from benchmarks.switching import Row

OURS, THEIRS, TRUTH = "#1f5fa8", "#b9b9b9", "#111111"
COLOURS = {"isotone": OURS, "OpenDP": "#d98c2b", "diffprivlib": "#7f9f5f", "PipelineDP": "#9a6fb0"}
Measured = list[tuple[Case, "list[Row]"]]


def errors_picture(measured: Measured, path: Path) -> None:
    """A bar for each row: root mean squared error as a multiple of isotone's first one."""
    figure = Figure(figsize=(10, 2.0 + 0.24 * sum(len(rows) for _, rows in measured)), layout="constrained")
    axes = figure.subplots()
    place, ticks, labels = 0.0, [], []
    for case, rows in measured:
        axes.text(0.05, place, case.title, fontsize=9, fontweight="bold", va="center")
        place += 1
        for row in rows:
            ratio = row.errors["rmse"] / rows[0].errors["rmse"]
            colour = COLOURS[row.name.split()[0].rstrip(",")]
            axes.barh(place, ratio, color=colour, height=0.75)
            told = f" {ratio:.2f} ×"
            if "distribution" in row.errors:
                other = row.errors["distribution"] / rows[0].errors["distribution"]
                told += f" (and {other:.2f} × the distance of distributions)"
            axes.text(ratio, place, told, va="center", fontsize=8)
            ticks.append(place)
            labels.append(row.name)
            place += 1
        place += 0.4
    axes.axvline(1, color=OURS, lw=1, zorder=0)
    axes.set_xlim(0, 8)
    axes.grid(False)
    axes.set_yticks(ticks, labels, fontsize=8)
    axes.set_ylim(place, -0.8)
    axes.set_xlabel("root mean squared error, as a multiple of isotone's at the same promise")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def first_picture(measured: Measured, path: Path) -> None:
    """Counts, a table and a curve at ε = 1: the truth, isotone, and OpenDP's Laplace mechanism."""
    figure = Figure(figsize=(12, 4.0), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    by_kind = {_kind(case): (case, rows) for case, rows in reversed(measured)}
    _draw_counts(left, *by_kind["counts"])
    _draw_table(middle, *by_kind["table"])
    _draw_curve(right, *by_kind["curve"])
    figure.suptitle(
        "Releases at ε = 1 of the same data: isotone, and OpenDP's Laplace mechanism", fontsize=12
    )
    for axes in (left, middle, right):
        axes.grid(False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def _kind(case: Case) -> str:
    return "counts" if case.P is not None else "curve" if isinstance(case.truth, dict) else "table"


def _draw_counts(axes: Any, case: Case, rows: list[Row]) -> None:
    assert case.P is not None
    rng = np.random.default_rng(0)
    for row, colour, shift, name in (
        (rows[1], THEIRS, 0.17, "OpenDP Laplace"),
        (rows[0], OURS, -0.17, "isotone"),
    ):
        errors = row.values["raw"][:100] - case.truth
        across = np.arange(errors.shape[1]) + shift + rng.uniform(-0.1, 0.1, errors.shape)
        axes.plot(across.ravel(), errors.ravel(), ".", ms=3, color=colour, alpha=0.7, label=name)
    axes.axhline(0, color=TRUTH, lw=1)
    axes.set(
        title="Counts: 11 survey questions, nested",
        ylabel="error of a released count",
        xlabel="question",
        ylim=(-62, 62),
    )
    axes.set_xticks(range(len(case.P)), [str(k + 1) for k in range(len(case.P))])
    axes.legend(frameon=False, markerscale=3, loc="upper right", ncols=2)


def _draw_table(axes: Any, case: Case, rows: list[Row]) -> None:
    shown, width = np.arange(10), 0.27

    def histogram(values: Any) -> Any:
        return np.bincount(np.asarray(values, dtype=int), minlength=60)[: len(shown)]

    bars = (("truth", case.truth, TRUTH), ("isotone", rows[0].values["raw"][0], OURS))
    bars += (("OpenDP Laplace, clamped", rows[1].values["raw"][0], THEIRS),)
    for k, (name, values, colour) in enumerate(bars):
        axes.bar(shown + (k - 1) * width, histogram(values), width, color=colour, label=name)
    axes.set(
        title="Table: homicides in 3,136 counties",
        xlabel="homicides",
        ylabel="counties with so many",
    )
    axes.set_xticks(shown)
    axes.legend(frameon=False)


def _draw_curve(axes: Any, case: Case, rows: list[Row]) -> None:
    order = np.argsort(case.truth["x"])
    grid, bins = np.linspace(0, 1, 201), np.linspace(0, 1, rows[1].values["means"].shape[1] + 1)
    theirs = [rising(*row) for row in zip(rows[1].values["means"], rows[1].values["sizes"], strict=True)]
    low, high = np.quantile(theirs, [0.1, 0.9], axis=0)
    axes.stairs(
        high,
        bins,
        baseline=low,
        color=THEIRS,
        fill=True,
        alpha=0.6,
        label="OpenDP Laplace, bins",
    )
    low, high = np.quantile(rows[0].values["shown"], [0.1, 0.9], axis=0)
    axes.fill_between(grid, low, high, color=OURS, alpha=0.55, lw=0, label="isotone")
    axes.step(
        case.truth["x"][order],
        case.truth["fit"][order],
        color=TRUTH,
        lw=1.6,
        where="post",
        label="no privacy",
    )
    axes.set(
        title="Curve: calibration (8 of 10 releases)",
        xlabel="classifier's score",
        ylabel="share malignant",
    )
    axes.legend(frameon=False, loc="upper left")
