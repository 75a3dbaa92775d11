"""Breakdowns with margins: errors of the best shares with least squares against what a user would do otherwise."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
from experiments._posets import survey_sections

from isotone.counts import LaplaceMechanism, MarginsMechanism, OrderGaussianMechanism, PosetMechanism
from isotone.counts.breakdowns.cells import Breakdown, read_breakdown
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.mechanism import Progress
from isotone.order import Poset

MARGINS = ["", "region", "sex", "age", ("region", "sex"), "*"]
ATTRIBUTES = ["region", "sex", "age"]


def run(quick: bool, progress: Progress) -> str:
    """Exact errors of the survey of 15 questions by 51 regions, 2 sexes and 6 ages, and the time of large tables."""
    P, breakdown = survey_sections(3), survey(51, 2, 6)
    pure, gaussian = PosetMechanism(P, 1), OrderGaussianMechanism(P, rho="1/2")
    rows = [
        f"| rms error by margin | {' | '.join(map(breakdown.label, breakdown.margins))} | all margins |",
        "|---|" + "---|" * (len(MARGINS) + 1),
    ]
    for number, (name, base) in enumerate((("ε = 1", pure), ("ρ = ½", gaussian))):
        progress(number / 3, name)
        rows += [
            _row(f"{name}: full table only, added up", _only(base, breakdown)),
            _row(f"{name}: equal shares, no least squares", _alone(base, len(MARGINS))),
            _row(f"{name}: equal shares, least squares", _equal(base, breakdown)),
            _row(f"**{name}: best shares, least squares**", _errors(MarginsMechanism(base, breakdown))),
        ]
    laplace = LaplaceMechanism(P, 1)
    rows.append(_row("ε = 1: Laplace, equal shares, no least squares", _alone(laplace, len(MARGINS))))
    rows.append(
        _row("ε = 1: Laplace, best shares, least squares", _errors(MarginsMechanism(laplace, breakdown)))
    )
    progress(2 / 3, "large tables")
    times = ["| cells of the full table | questions | plan | noise and least squares |", "|---|---|---|---|"]
    times += [
        _time(P, survey(regions, 2, ages)) for regions, ages in ((51, 6), *([] if quick else [(500, 100)]))
    ]
    progress(1.0, "done")
    return "\n".join([*rows, "", *times]) + "\n\n" + _NOTES


def survey(regions: int, sexes: int, ages: int) -> Breakdown:
    """A breakdown by region, sex and age."""
    sizes = dict(zip(ATTRIBUTES, (regions, sexes, ages), strict=True))
    return read_breakdown(ATTRIBUTES, {a: [str(i) for i in range(n)] for a, n in sizes.items()}, MARGINS)


def _errors(mechanism: MarginsMechanism) -> list[float]:
    return mechanism.mean_variances().tolist()


def _only(base: AdditiveMechanism, breakdown: Breakdown) -> list[float]:
    shares = [Fraction(int(margin == breakdown.finest)) for margin in breakdown.margins]
    return _errors(MarginsMechanism(base, breakdown, shares=shares))


def _equal(base: AdditiveMechanism, breakdown: Breakdown) -> list[float]:
    number = len(breakdown.margins)
    return _errors(MarginsMechanism(base, breakdown, shares=[Fraction(1, number)] * number))


def _alone(base: AdditiveMechanism, number: int) -> list[float]:
    """Every margin by itself, with its part of the budget."""
    part = base.part(Fraction(1, number))
    return [float((part.error().variance + part.rounding_variance()).mean())] * number


def _row(name: str, variances: list[float]) -> str:
    each = " | ".join(f"{math.sqrt(variance):.2f}" for variance in variances)
    return f"| {name} | {each} | {math.sqrt(math.fsum(variances) / len(variances)):.2f} |"


def _time(P: Poset, breakdown: Breakdown) -> str:
    counts = np.zeros((breakdown.cells, len(P)), np.int64)
    started = time.process_time()
    mechanism = MarginsMechanism(PosetMechanism(P, 1), breakdown)
    planned = time.process_time()
    mechanism.release(counts)
    released = time.process_time()
    return f"| {breakdown.cells:,} | {len(P)} | {planned - started:.2f} s | {released - planned:.2f} s |"


_NOTES = (
    "Errors are exact (`MarginsMechanism.error()`), with the rounding of every measured number: the root of the mean variance over "
    "cells and questions of a margin, and of its mean over the six margins, all alike. The survey has the 15 questions of Joseph, "
    "Ribero and Yu. Times are CPU times of one core, without reading and writing."
)
