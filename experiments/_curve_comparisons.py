"""Curves of means against their rivals: ratios by cell, their geometric means, and the cells that a rival wins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MEASURES", "OUTPUT", "OUTPUTS", "Comparison", "comparisons", "losses", "summary"]

Row = dict[str, Any]
MEASURES = ("fit", "truth", "squared", "logistic")
OUTPUT = {"fit": "records", "truth": "population", "squared": "records", "logistic": "records"}
"""Which output is meant for which measure."""
OUTPUTS = ("population", "records")


@dataclass(frozen=True)
class Comparison:
    """One measure in one cell: ours against the former mechanism, and against the best rival, chosen in hindsight.

    Ratios of distances are of root mean squares; those of losses are of means. The best of all others, the former mechanism
    among them, is biased against us.
    """

    held_out: bool
    population: str
    n: int
    epsilon: float
    measure: str
    over_before: float
    over_best: float
    best: str
    apart: float
    """How many standard errors ours is above the best."""

    @property
    def lost(self) -> bool:
        """More than 3 % worse than the best other."""
        return self.over_best > 1.03

    @property
    def surely(self) -> bool:
        """The same, beyond two standard errors."""
        return self.lost and self.apart > 2


def comparisons(rows: list[Row]) -> list[Comparison]:
    """All measures in all cells. The logistic loss is for labels only."""
    cells: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        key = (row["held_out"], row["population"], row["n"], row["epsilon"])
        cells.setdefault(key, {})[row["method"]] = row
    found: list[Comparison] = []
    for (key, methods), measure in itertools.product(cells.items(), MEASURES):
        if measure == "logistic" and not key[1].endswith("labels"):
            continue
        power = 0.5 if measure in ("fit", "truth") else 1.0
        own = methods[OUTPUT[measure]]
        others = {name: row for name, row in methods.items() if name not in OUTPUTS}
        best = min(others, key=lambda name: others[name][measure])
        before, most = (
            (max(own[measure], 1e-12) / max(others[name][measure], 1e-12)) ** power
            for name in ("before", best)
        )
        error = math.hypot(own[f"{measure}_error"], others[best][f"{measure}_error"])
        apart = (own[measure] - others[best][measure]) / max(error, 1e-12)
        found.append(Comparison(key[0], key[1], key[2], key[3], measure, before, most, best, apart))
    return found


def summary(found: list[Comparison]) -> list[Row]:
    """For both halves of the populations, every number of records and all of them, and every measure."""
    table: list[Row] = []
    sizes = [*dict.fromkeys(each.n for each in found)]
    for held_out, n, measure in itertools.product((True, False), [*sizes, 0], MEASURES):
        part = [
            each
            for each in found
            if each.held_out == held_out and each.measure == measure and n in (0, each.n)
        ]
        if part:
            table.append(
                {
                    "held_out": held_out,
                    "n": n or "all",
                    "measure": measure,
                    "output": OUTPUT[measure],
                    "cells": len(part),
                    "over_before": _geometric(each.over_before for each in part),
                    "over_best": _geometric(each.over_best for each in part),
                    "more_than_3_percent_worse": sum(each.lost for each in part),
                    "beyond_chance": sum(each.surely for each in part),
                    "worst": max(each.over_best for each in part),
                }
            )
    return table


def _geometric(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))


def losses(found: list[Comparison]) -> list[Row]:
    """Held-out cells that another way wins by more than 3 % and two standard errors."""
    return [
        {
            "population": each.population,
            "n": each.n,
            "epsilon": each.epsilon,
            "measure": each.measure,
            "over_best": each.over_best,
            "best": each.best,
            "standard_errors": each.apart,
        }
        for each in found
        if each.held_out and each.surely
    ]
