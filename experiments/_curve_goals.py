"""Methods for curves and their excess risk: by cell, as geometric means, and how many cells reach the goals."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.curves.cuts import TREE_POINTS, ChainProblem
from isotone.curves.losses import parse_loss
from isotone.curves.problem import CurveSetting, Grid
from isotone.curves.regression import rule_for

__all__ = [
    "BASELINE_POINTS",
    "METHODS",
    "UNIT",
    "Row",
    "blueprint",
    "columns_of",
    "geometric",
    "goals",
    "points_of",
    "table_of_goals",
]

Row = dict[str, Any]
UNIT = (Fraction(0), Fraction(1))
METHODS = ("auto", "threshold", "baseline", "bins")
BASELINE_POINTS = 256


def points_of(method: str) -> int:
    return BASELINE_POINTS if method == "baseline" else TREE_POINTS


def blueprint(method: str, loss: str, labels: bool = False) -> ChainProblem:
    grid = Grid(*UNIT, points_of(method))
    return ChainProblem(parse_loss(loss), UNIT, grid, method=method, labels=labels, output="records")


def by_cell(rows: list[Row]) -> dict[tuple[Any, ...], dict[str, Row]]:
    cells: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("loss", "y", "n", "epsilon", "curve", "design"))
        cells.setdefault(key, {})[row["method"]] = row
    return cells


def ratio(above: Row, below: Row) -> tuple[float, float]:
    """A ratio of two excesses and its standard error, to first order."""
    a, b = above["excess"], max(below["excess"], 1e-12)
    relative = np.hypot(above["standard_error"] / max(a, 1e-12), below["standard_error"] / b)
    return a / b, float(a / b * relative)


def goals(rows: list[Row]) -> list[Row]:
    """For every loss, size and budget: geometric means, threshold over auto, auto over the best, and how many cells reach the goals."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    means: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for key, methods in by_cell(rows).items():
        for method, row in methods.items():
            means.setdefault(key[:4], {}).setdefault(method, []).append(row["excess"])
        means[key[:4]].setdefault("optimum", []).append(methods["auto"]["optimum"])
        used = rule_for(
            blueprint("auto", key[0], key[1] == "labels").sized(
                key[2], CurveSetting(Fraction(key[3]).limit_denominator(100))
            )
        ).name
        best = min(methods.values(), key=lambda row: row["excess"])
        gain, gain_error = ratio(methods["threshold"], methods["auto"])
        loss, loss_error = ratio(methods["auto"], best)
        groups.setdefault(key[:4], []).append((gain, gain_error, loss, loss_error, used))
    table: list[Row] = []
    for (loss, y, n, epsilon), cells in groups.items():
        gains, gain_errors, losses, loss_errors = (np.array([cell[k] for cell in cells]) for k in range(4))
        table.append(
            {
                "loss": loss,
                "y": y,
                "n": n,
                "epsilon": epsilon,
                "mechanism": cells[0][4],
                "cells": len(cells),
                **{name: geometric(values) for name, values in means[loss, y, n, epsilon].items()},
                "threshold_over_auto": geometric(gains),
                "least_gain": float(gains.min()),
                "five_times": int((gains >= 5).sum()),
                "surely_less_than_five": int((gains + 2 * gain_errors < 5).sum()),
                "worst_auto_over_best": float(losses.max()),
                "auto_within_1.2": int((losses <= 1.2).sum()),
                "surely_beyond_1.2": int((losses - 2 * loss_errors > 1.2).sum()),
            }
        )
    return table


def geometric(values: Iterable[float]) -> float:
    """The geometric mean; what is not positive counts as 1e-12."""
    return float(np.exp(np.mean(np.log(np.maximum(list(values), 1e-12)))))


def table_of_goals(rows: list[Row]) -> str:
    """The same as a table of a page."""
    lines = [
        "| loss, y | records | ε | auto | threshold | baseline | bins | optimum | threshold / auto | least | auto / best, worst |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        excess = " | ".join(f"{float(row[method]):.2g}" for method in METHODS)
        case = f"{row['loss']}, {row['y']} | {int(row['n']):,} | {float(row['epsilon']):g}"
        ratios = f"{float(row['threshold_over_auto']):.1f} | {float(row['least_gain']):.1f} | {float(row['worst_auto_over_best']):.2f}"
        lines.append(f"| {case} | {excess} | {float(row['optimum']):.3g} | {ratios} |")
    return "\n".join(lines)


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return {
        name: [float(f"{row[name]:.5g}") if isinstance(row[name], float) else row[name] for row in rows]
        for name in rows[0]
    }
