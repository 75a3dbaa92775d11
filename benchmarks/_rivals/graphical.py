"""People of a survey: private-pgm with the skip logic as structural constraints, and noisy sums of counts, against consistent counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks._rivals.environments import run_arrays
from benchmarks._rivals.orders import components, filters
from benchmarks._rivals.promises import APPROXIMATE, PURE, gaussian_variance, planned
from benchmarks._rivals.rows import Row
from isotone.counts import consistent
from isotone.order import Poset

__all__ = ["graphical_rows"]

NAME = "private-pgm with structural constraints"
SUMS = "matrix mechanism, sums of counts, nearest possible counts"
DRAWS, STEPS = 6, 1000
FREE_DRAWS = 1000
"""Of ways that take no time."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def graphical_rows(survey: str, P: Poset, people: Bools, sums: Floats) -> Iterator[Row]:
    """Few people. The model is never negative and follows the order, so isotone's counts and those from noisy ``sums``, of which
    no record changes more than one, are made to as well."""
    sections = np.empty(len(P), np.int64)
    for number, part in enumerate(components(P)):
        sections[[P.index(x) for x in part.elements]] = number
    groupings = {"each question": np.arange(len(P)), "each section": sections}
    case = f"{survey}, {len(people):,} people, consistent"
    for guarantee in (PURE, APPROXIMATE):
        key = ("counts", case, guarantee, "rms error", False)
        yield _consistent(key, P, people)
        yield Row.of_draws((*key, SUMS), _nearest(P, people, sums))
        yield _graphical(key, P, people, groupings)


def _consistent(key: tuple[str, str, str, str, bool], P: Poset, people: Bools) -> Row:
    best, truth = planned(P, key[2]).best, people.sum(axis=0)
    noise = np.asarray(best.simulate(FREE_DRAWS, np.random.default_rng(1)))
    weights = 1 / best.error().variance
    errors = [consistent(P, np.rint(truth + each), weights) - truth for each in noise]
    drawn = np.mean(np.square(errors), axis=1).tolist()
    return Row.of_draws((*key, f"isotone, {type(best).__name__}"), drawn)


def _nearest(P: Poset, people: Bools, sums: Floats) -> list[float]:
    """Squared errors of the counts of people, never fewer than none of a record, that are nearest to noisy sums."""
    records, truth, rng = filters(P)[1:].astype(np.float64), people.sum(axis=0), np.random.default_rng(2)
    noisy = sums @ truth + rng.laplace(size=(FREE_DRAWS, len(sums)))
    errors = [nnls(sums @ records.T, each)[0] @ records - truth for each in noisy]
    return np.mean(np.square(errors), axis=1).tolist()


def _graphical(
    key: tuple[str, str, str, str, bool], P: Poset, people: Bools, groupings: dict[str, Ints]
) -> Row:
    kinds = {"Laplace noise": True} if key[2] == PURE else {"Gaussian noise": False, "Laplace noise": True}
    found: dict[str, Row] = {}
    for kind, laplace in kinds.items():
        measured = _measured(laplace, P, people, np.array(list(groupings.values())))
        if measured is None:
            return Row(*key, NAME, math.nan, how="not to be had on this machine")
        squares = np.mean(np.square(measured["raw"] - people.sum(axis=0)), axis=2)
        for grouping, drawn in zip(groupings, squares.tolist(), strict=True):
            row = Row.of_draws((*key, NAME), drawn, version=str(measured["version"]))
            found[f"{kind}, marginals of {grouping}"] = row
    rule, least = next(iter(found)), min(found, key=lambda each: found[each].public)
    best = found[least]
    return replace(found[rule], hindsight=best.public, hindsight_error=best.error, chosen=least)


def _measured(laplace: bool, P: Poset, people: Bools, groups: Ints) -> dict[str, Any] | None:
    """Marginals of groups of questions: a record is in one cell of each, and the budget is shared alike."""
    number = groups.max(axis=1) + 1
    variance = 2 * number**2 if laplace else gaussian_variance() * number
    pairs = np.array([(P.index(low), P.index(high)) for low, high in P.covers])
    data: dict[str, Any] = {
        "answers": people,
        "groups": groups,
        "covers": pairs,
        "deviation": np.sqrt(variance),
    }
    data |= {"laplace": laplace, "draws": DRAWS, "steps": STEPS, "seed": 5}
    return run_arrays("pgm", "benchmarks._rivals.pgm", data)
