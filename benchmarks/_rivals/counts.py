"""Counts over an order: noise of other libraries, optimised strategies, trees and graphical models against the plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from experiments._posets import survey_sections
from numpy.typing import NDArray

from benchmarks._rivals.environments import ask
from benchmarks._rivals.graphical import graphical_rows
from benchmarks._rivals.matrix_mechanism import (
    FEW_STARTS,
    Found,
    Norm,
    p_identity,
    split,
    sums_of_counts,
    workload,
)
from benchmarks._rivals.orders import (
    MOST_RECORDS,
    chains,
    components,
    courses,
    filters,
    number_of_filters,
    survey,
)
from benchmarks._rivals.promises import APPROXIMATE, DELTA, EPSILON, PURE, gaussian_variance, planned
from benchmarks._rivals.published import require_reproduced
from benchmarks._rivals.rows import Row
from benchmarks._rivals.sums_across import sums_across
from isotone.counts import OrderGaussianMechanism, cut_all
from isotone.counts.independent import chains_of
from isotone.counts.matrix import MatrixMechanism, has_few_records
from isotone.counts.mechanism import AdditiveMechanism
from isotone.linear.least_squares import SumTree
from isotone.mechanism import Progress
from isotone.order import Poset

__all__ = ["Case", "best_sums", "cases", "rows"]

MOST_COUNTS = 40
"""Free weights over more counts are not searched for: in a chain sums of records are sums of counts."""
MANY_NUMBERS = 10_000
"""Of records times counts: parts that have more are large."""
SEEDS = (0, 2)
"""Of searches for a whole order: some end in worse places than others."""
BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
LIBRARIES = {
    PURE: {
        "OpenDP Laplace": "opendp_laplace",
        "OpenDP canonical noise, equal parts": "opendp_canonical",
        "diffprivlib Geometric": "diffprivlib_geometric",
        "PipelineDP Laplace": "pipeline_laplace",
    },
    APPROXIMATE: {
        "OpenDP Laplace": "opendp_laplace",
        "diffprivlib Geometric": "diffprivlib_geometric",
        "PipelineDP Laplace": "pipeline_laplace",
        "OpenDP Gaussian": "opendp_gaussian",
        "OpenDP canonical noise, equal parts": "opendp_canonical",
        "diffprivlib GaussianAnalytic": "diffprivlib_gaussian",
        "PipelineDP Gaussian": "pipeline_gaussian",
    },
}
NEEDS_DELTA = frozenset({"opendp_gaussian", "opendp_canonical", "diffprivlib_gaussian", "pipeline_gaussian"})
GAUSSIAN = "Gaussian noise of any shape (none has less: certificate)"
PACKAGE = {"OpenDP": "opendp", "diffprivlib": "diffprivlib", "PipelineDP": "pipeline-dp"}
Bools = NDArray[np.bool_]
_SEARCHED: dict[Any, Any] = {}
"""What has been searched for: both promises ask for the same."""
T = TypeVar("T")
Question = tuple[str, int, float, float]


@dataclass(frozen=True)
class Case:
    """An order, and records where there are any."""

    name: str
    P: Poset
    records: Bools | None = None
    seen: bool = False


def cases(quick: bool) -> list[Case]:
    """Orders of surveys, chains and courses; no constant was chosen with any of them."""
    first = [Case("health survey, 11 questions", *survey())]
    if quick:
        return first
    return [
        *first,
        Case("health survey, 15 questions", survey_sections(3)),
        Case("10 scales of 5 levels", chains(10, 5)),
        Case("2 chains of 100", chains(2, 100)),
        Case("30 most needed courses", courses(30)),
    ]


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Every rival on every case, at both promises; first the optimiser has to reach the errors that were published."""
    require_reproduced()
    todo = cases(quick)
    noise = LibraryNoise([question for case in todo for question in _questions(case)])
    for done, case in enumerate(todo):
        relaxation = None  # what an order out of reach was relaxed to, so that it is searched for once
        for guarantee in (PURE, APPROXIMATE):
            progress(done / len(todo), f"{case.name}: {guarantee}")
            found = planned(case.P, guarantee, relaxation)
            relaxation = found.relaxation
            yield from _ours(case, guarantee, found.best)
            yield from _libraries(case, guarantee, noise)
            yield from _matrix(case, guarantee)
            yield from _trees(case, guarantee)
        if not quick and done == 2 and todo[0].records is not None:
            P = todo[0].P
            yield from graphical_rows(todo[0].name, P, todo[0].records[::59], best_sums(P).theta)


def _row(case: Case, guarantee: str, rival: str, squared: float, **more: Any) -> Row:
    return Row("counts", case.name, guarantee, "rms error", case.seen, rival, math.sqrt(squared), **more)


def _ours(case: Case, guarantee: str, best: AdditiveMechanism) -> Iterator[Row]:
    name = f"isotone, {type(best).__name__}"
    how = "exact" if best.error().method == "exact" else f"{best.error().method}"
    yield _row(case, guarantee, name, best.error().rmse ** 2, how=how)
    if guarantee == APPROXIMATE:
        gaussian = OrderGaussianMechanism(case.P, 1, "0.000001")
        squared, known = gaussian.error().rmse ** 2, gaussian.certificate()
        if not isinstance(best, OrderGaussianMechanism):
            yield _row(case, guarantee, "isotone, OrderGaussianMechanism", squared)
        if known.lower_bound is not None:
            least = squared * known.lower_bound / known.trace
            yield _row(case, guarantee, GAUSSIAN, least, how="a bound that isotone's certificate proves")


def _bounds(case: Case) -> list[int]:
    """Bounds on the yeses of a record that are tried in hindsight; without records there is no bias, and none is tried."""
    n = len(case.P)
    return [n] if case.records is None else sorted({n, *np.geomspace(1, n, 12).astype(int).tolist()})


def _questions(case: Case) -> Iterator[Question]:
    for guarantee, ways in LIBRARIES.items():
        yield from (_question(way, size, guarantee) for way in ways.values() for size in _bounds(case))


def _question(way: str, size: int, guarantee: str) -> Question:
    """Noise that does not need δ is the same with it."""
    return way, size, EPSILON, DELTA if guarantee == APPROXIMATE and way in NEEDS_DELTA else 0.0


class LibraryNoise:
    """Variances of other libraries, which are asked once for all of them."""

    def __init__(self, questions: list[Question]) -> None:
        found = ask("libraries", "benchmarks._rivals.scales", questions)
        self.missing = found is None
        self.versions: dict[str, str] = {} if found is None else found["versions"]
        self.variance: dict[Question, float] = (
            {} if found is None else dict(zip(questions, found["variances"], strict=True))
        )


def _libraries(case: Case, guarantee: str, noise: LibraryNoise) -> Iterator[Row]:
    """Noise on the vector of counts; the bound on yeses in a record has no public rule, so its best value is shown too."""
    bounds = _bounds(case)
    bias = {size: _bias(case, size) for size in bounds}
    for name, way in LIBRARIES[guarantee].items():
        if noise.missing:
            yield _row(case, guarantee, name, math.nan, how="not to be had on this machine")
            continue
        squared = {size: noise.variance[_question(way, size, guarantee)] + bias[size] for size in bounds}
        size = min(squared, key=squared.__getitem__)
        hindsight = {"hindsight": math.sqrt(squared[size]), "chosen": f"at most {size} yeses"}
        version = noise.versions[PACKAGE[name.split()[0]]]
        more = hindsight if len(bounds) > 1 else {}
        yield _row(case, guarantee, name, squared[len(case.P)], version=version, **more)


def _bias(case: Case, size: int) -> float:
    """The mean squared error of counts of records that are cut to so many yeses."""
    if case.records is None or size == len(case.P):
        return 0.0
    lost = case.records.sum(axis=0) - cut_all(case.P, case.records, size).sum(axis=0)
    return float(np.mean(np.square(lost.astype(float))))


def _matrix(case: Case, guarantee: str) -> Iterator[Row]:
    """The best of one strategy over all possible records and of one for each part, with any noise that keeps the guarantee."""
    parts = components(case.P)
    sizes = [number_of_filters(part) for part in parts]
    norms: list[Norm] = [1] if guarantee == PURE else [1, 2]
    cells: dict[str, float] = {}
    for norm in norms:
        unit, kind = (2.0, "Laplace") if norm == 1 else (gaussian_variance(), "Gaussian")
        if max(sizes) <= MOST_RECORDS:
            errors = [_part_error(part, norm) for part in parts]
            cells[f"{kind} noise, a strategy for each part"] = unit * split(errors, norm)
        if len(parts) > 1 and math.prod(sizes) <= 1_000:  # more take too long
            cells[f"{kind} noise, one strategy"] = unit * _part_error(case.P, norm)
    yield _least(case, guarantee, "matrix mechanism, p-Identity", cells)
    sums: dict[str, float] = {}
    if max(sizes) <= MOST_RECORDS and max(len(part) for part in parts) <= MOST_COUNTS:
        each = [best_sums(part, one_of_many=len(parts) > 1) for part in parts]
        sums["Laplace noise, a strategy for each part"] = 2.0 * split([found.error for found in each], 1)
        if math.prod(sizes) > MOST_RECORDS:
            records = [filters(part).astype(float) for part in parts]
            across = _once(
                ("across", case.name), lambda: sums_across(records, [found.theta for found in each])
            )
            sums["Laplace noise, sums across parts"] = 2.0 * across
    if len(parts) > 1 and math.prod(sizes) <= MOST_RECORDS:
        sums["Laplace noise, one strategy"] = 2.0 * best_sums(case.P).error
    if has_few_records(
        case.P
    ):  # more counts than are searched for here: anybody may take the sums that isotone has found
        found = MatrixMechanism(case.P, EPSILON).error().rmse
        sums["noise on the sums that isotone's plan finds"] = found**2 * len(case.P)
    yield _least(case, guarantee, "matrix mechanism, sums of counts", sums)


def _least(case: Case, guarantee: str, name: str, totals: dict[str, float]) -> Row:
    if not totals:
        how = (
            f"not to be had: a part has more than {MOST_RECORDS:,} possible records, or {MOST_COUNTS} counts"
        )
        return _row(case, guarantee, name, math.nan, how=how)
    least = min(totals, key=lambda each: totals[each])
    return _row(case, guarantee, name, totals[least] / len(case.P), how=f"exact, {least}")


def best_sums(P: Poset, one_of_many: bool = False) -> Found:
    """The best sums of counts with Laplace noise for an order whose records can be listed. A large part of an order, from whose sums the
    search across parts only begins, has fewer starts."""
    records, leq = filters(P)[1:], P.leq_matrix().astype(float)
    restarts = FEW_STARTS if one_of_many and records.size > MANY_NUMBERS else 0
    key = ("sums", records.shape, records.tobytes(), one_of_many)
    steps, seeds = np.rint(np.linalg.inv(leq)).T, (0,) if one_of_many else SEEDS

    def search() -> Found:
        tried = (sums_of_counts(records, steps, restarts, seed) for seed in seeds)
        return min(tried, key=lambda found: found.error)

    return _once(key, search)


def _part_error(P: Poset, norm: Norm) -> float:
    W = workload(filters(P)[1:])
    return _once((norm, W.shape, W.tobytes()), lambda: p_identity(W, norm).error)


def _once(key: Any, search: Callable[[], T]) -> T:
    if key not in _SEARCHED:
        _SEARCHED[key] = search()
    return _SEARCHED[key]


def _trees(case: Case, guarantee: str) -> Iterator[Row]:
    """A tree of sums for each chain and least squares, with the branching that has the least error."""
    chains = chains_of(case.P)
    if chains is None:
        return
    totals: dict[int, float] = {}
    for branching in BRANCHINGS:
        trees = [SumTree(len(chain), branching) for chain in chains]
        nodes = sum(len(tree.lengths) for tree in trees)  # that a record is in, one of each level
        noise = 0.5 / math.sinh(0.5 / nodes) ** 2
        if guarantee == APPROXIMATE:
            noise = min(noise, gaussian_variance() * nodes)
        totals[branching] = noise * sum(float(np.sum(tree.variances)) for tree in trees)
    least = min(totals, key=totals.__getitem__)
    name = "a tree for each chain (Hay et al. 2010)"
    yield _row(case, guarantee, name, totals[least] / len(case.P), how=f"exact, branching {least}")
