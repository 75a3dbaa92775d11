"""Counts over an order: noise of other libraries, optimised strategies, trees and graphical models against the plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from experiments._posets import survey_sections
from experiments.common import DATA, read_table
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from benchmarks._rivals.environments import ask, run_arrays
from benchmarks._rivals.matrix_mechanism import Norm, p_identity, split, workload
from benchmarks._rivals.rows import Row
from benchmarks._switching_cases import debian as debian_cases
from benchmarks._switching_cases import survey as survey_cases
from isotone.counts import (
    CountPlan,
    OrderGaussianMechanism,
    Relaxation,
    consistent,
    cut_all,
    plan,
)
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.hierarchical import chains_of
from isotone.counts.mechanisms.sum_tree import SumTree
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.privacy.calibration import sigma_squared

__all__ = ["Case", "cases", "filters", "rows"]

EPSILON, DELTA = 1.0, 1e-6
PURE, APPROXIMATE = "ε = 1", "ε = 1, δ = 10⁻⁶"
MOST_RECORDS = 5_000
"""A strategy over more possible records is not searched for."""
BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
LIBRARIES = {
    PURE: {
        "OpenDP Laplace": "opendp_laplace",
        "OpenDP canonical noise, equal parts": "opendp_canonical",
        "diffprivlib Geometric": "diffprivlib_geometric",
        "PipelineDP Laplace": "pipeline_laplace",
    },
    APPROXIMATE: {
        "OpenDP Gaussian": "opendp_gaussian",
        "OpenDP canonical noise, equal parts": "opendp_canonical",
        "diffprivlib GaussianAnalytic": "diffprivlib_gaussian",
        "PipelineDP Gaussian": "pipeline_gaussian",
    },
}
PACKAGE = {"OpenDP": "opendp", "diffprivlib": "diffprivlib", "PipelineDP": "pipeline-dp"}
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """An order, and records where there are any."""

    name: str
    P: Poset
    records: Bools | None = None
    seen: bool = False


def cases(quick: bool) -> list[Case]:
    """Orders of surveys, chains, courses and packages; the search for relaxed orders was tried on Debian's alone."""
    nhis = survey_cases(10)[0]
    assert nhis.P is not None
    answers = nhis.ways["isotone, PosetMechanism"][1]["answers"]
    first = [Case("health survey, 11 questions", nhis.P, answers)]
    if quick:
        return first
    packages = debian_cases()[0]
    assert packages.P is not None
    return [
        *first,
        Case("health survey, 15 questions", survey_sections(3)),
        Case("2 chains of 100", chains(2, 100)),
        Case("4 chains of 60", chains(4, 60)),
        Case("10 scales of 5 levels", chains(10, 5)),
        Case("30 most needed courses", courses(30)),
        Case(
            "200 Debian packages",
            packages.P,
            packages.ways["isotone, PosetMechanism"][1]["answers"],
            seen=True,
        ),
    ]


def chains(number: int, length: int) -> Poset:
    """Chains side by side."""
    return Poset(
        [(c, i) for c in range(number) for i in range(length)],
        [((c, i + 1), (c, i)) for c in range(number) for i in range(length - 1)],
    )


def courses(count: int) -> Poset:
    """The courses that most others need, and the prerequisites among them."""
    found = read_table(DATA / "orders" / "course_prerequisites.csv")
    P = Poset(
        dict.fromkeys(name for row in found for name in (row["course"], row["prereq"])),
        [(row["course"], row["prereq"]) for row in found],
    )
    needed = np.sum(P.leq_matrix(), axis=0)
    return P.induced([P.elements[x] for x in np.argsort(-needed, kind="stable")[:count]])


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Every rival on every case, at both promises."""
    todo = cases(quick)
    for done, case in enumerate(todo):
        relaxation = None  # what an order out of reach was relaxed to, so that it is searched for once
        for guarantee in (PURE, APPROXIMATE):
            progress(done / len(todo), f"{case.name}: {guarantee}")
            found = _plan(case, guarantee, relaxation)
            relaxation = found.relaxation
            yield from _ours(case, guarantee, found.best)
            yield from _libraries(case, guarantee)
            yield from _matrix(case, guarantee)
            yield from _trees(case, guarantee)
    if not quick:
        yield from _graphical(todo[0])


def _row(case: Case, guarantee: str, rival: str, squared: float, **more: Any) -> Row:
    return Row("counts", case.name, guarantee, "rms error", case.seen, rival, math.sqrt(squared), **more)


def _plan(case: Case, guarantee: str, relaxation: Relaxation | None = None) -> CountPlan:
    delta = 0 if guarantee == PURE else "0.000001"
    return plan(case.P, epsilon=1, delta=delta, relaxation=relaxation)


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
            yield _row(
                case, guarantee, "below which no Gaussian noise can be (certificate)", least, how="bound"
            )


def _libraries(case: Case, guarantee: str) -> Iterator[Row]:
    """Noise on the vector of counts; the bound on yeses in a record has no public rule, so its best value is shown too."""
    delta = 0.0 if guarantee == PURE else DELTA
    n = len(case.P)
    bounds = (
        [n] if case.records is None else sorted({n, *np.unique(np.geomspace(1, n, 40).astype(int)).tolist()})
    )
    questions = [(way, size, EPSILON, delta) for way in LIBRARIES[guarantee].values() for size in bounds]
    found = ask("libraries", "benchmarks._rivals.scales", questions)
    bias = {size: _bias(case, size) for size in bounds}
    for name, way in LIBRARIES[guarantee].items():
        if found is None:
            yield _row(case, guarantee, name, math.nan, how="not to be had on this machine")
            continue
        variance = {q[1]: v for q, v in zip(questions, found["variances"], strict=True) if q[0] == way}
        version = found["versions"][PACKAGE[name.split()[0]]]
        size = min(bounds, key=lambda each: variance[each] + bias[each])
        hindsight = {"hindsight": math.sqrt(variance[size] + bias[size]), "chosen": f"at most {size} yeses"}
        yield _row(
            case, guarantee, name, variance[n], version=version, **(hindsight if len(bounds) > 1 else {})
        )


def _bias(case: Case, size: int) -> float:
    """The mean squared error of counts of records that are cut to so many yeses."""
    if case.records is None or size == len(case.P):
        return 0.0
    lost = case.records.sum(axis=0) - cut_all(case.P, case.records, size).sum(axis=0)
    return float(np.mean(np.square(lost.astype(float))))


def _matrix(case: Case, guarantee: str) -> Iterator[Row]:
    """The better of one strategy over all possible records and of one for each part of the order."""
    norm: Norm = 1 if guarantee == PURE else 2
    unit = 2.0 if guarantee == PURE else sigma_squared(EPSILON, DELTA)
    parts, memo = components(case.P), dict[Any, float]()
    totals: dict[str, float] = {}
    sizes = [number_of_filters(part) for part in parts]
    if max(sizes) <= MOST_RECORDS:
        errors = [_part_error(part, norm, memo) for part in parts]
        totals["a strategy for each part"] = split(errors, norm)
    if len(parts) > 1 and math.prod(sizes) <= MOST_RECORDS:
        totals["one strategy"] = _part_error(case.P, norm, memo)
    name = "matrix mechanism, p-Identity"
    if not totals:
        how = f"not to be had: a part has more than {MOST_RECORDS:,} possible records"
        yield _row(case, guarantee, name, math.nan, how=how)
        return
    least = min(totals, key=lambda each: totals[each])
    yield _row(case, guarantee, name, unit * totals[least] / len(case.P), how=f"exact, {least}")


def _part_error(P: Poset, norm: Norm, memo: dict[Any, float]) -> float:
    W = workload(filters(P)[1:])
    key = (W.shape, W.tobytes())
    if key not in memo:
        memo[key] = p_identity(W, norm).error
    return memo[key]


def _trees(case: Case, guarantee: str) -> Iterator[Row]:
    """A tree of sums for each chain and least squares, with the branching that has the least error."""
    chains = chains_of(case.P)
    if chains is None:
        return
    totals: dict[int, float] = {}
    for branching in BRANCHINGS:
        trees = [SumTree(len(chain), branching) for chain in chains]
        nodes = sum(len(tree.lengths) for tree in trees)  # that a record is in, one of each level
        noise = (
            0.5 / math.sinh(0.5 / nodes) ** 2 if guarantee == PURE else sigma_squared(EPSILON, DELTA) * nodes
        )
        totals[branching] = noise * sum(float(np.sum(tree.variances)) for tree in trees)
    least = min(totals, key=totals.__getitem__)
    name = "a tree for each chain (Hay et al. 2010)"
    yield _row(case, guarantee, name, totals[least] / len(case.P), how=f"exact, branching {least}")


def _graphical(case: Case) -> Iterator[Row]:
    """private-pgm on people, all and a sample, after whose non-negative fit isotone is made consistent as well."""
    assert case.records is not None
    parts = np.empty(len(case.P), np.int64)
    for number, part in enumerate(components(case.P)):
        parts[[case.P.index(x) for x in part.elements]] = number
    for people in (case.records, case.records[::59]):
        named = Case(f"health survey, 11 questions, {len(people):,} people, consistent", case.P, people)
        for guarantee in (PURE, APPROXIMATE):
            yield _consistent(named, guarantee)
            found: dict[str, float] = {}
            version = ""
            for label, groups in (("each question", np.arange(len(case.P))), ("each section", parts)):
                measured = _measured(named, guarantee, groups)
                if measured is not None:
                    errors = measured["raw"] - people.sum(axis=0)
                    found[label], version = float(np.mean(np.square(errors))), str(measured["version"])
            name = "private-pgm with structural constraints"
            if not found:
                yield _row(named, guarantee, name, math.nan, how="not to be had on this machine")
                continue
            best = min(found, key=lambda each: found[each])
            yield _row(
                named,
                guarantee,
                name,
                found["each question"],
                hindsight=math.sqrt(found[best]),
                chosen=f"marginals of {best}",
                how=f"{DRAWS} draws",
                version=version,
            )


DRAWS = 12


def _consistent(case: Case, guarantee: str) -> Row:
    assert case.records is not None
    best, truth = _plan(case, guarantee).best, case.records.sum(axis=0)
    noise = np.asarray(best.simulate(200, np.random.default_rng(1)))
    weights = 1 / best.error().variance
    errors = [consistent(case.P, np.rint(truth + each), weights) - truth for each in noise]
    name = f"isotone, {type(best).__name__}"
    return _row(case, guarantee, name, float(np.mean(np.square(errors))), how="200 draws")


def _measured(case: Case, guarantee: str, groups: NDArray[np.int64]) -> dict[str, Any] | None:
    """Marginals of groups of questions: a record is in one cell of each, and the budget is shared alike."""
    number = int(groups.max()) + 1
    laplace = guarantee == PURE
    variance = 2 * number**2 if laplace else sigma_squared(EPSILON, DELTA) * number
    pairs = np.array([(case.P.index(low), case.P.index(high)) for low, high in case.P.covers])
    data = {"answers": case.records, "groups": groups, "covers": pairs, "deviation": math.sqrt(variance)}
    return run_arrays(
        "pgm", "benchmarks._rivals.pgm", data | {"laplace": laplace, "draws": DRAWS, "steps": 1000, "seed": 5}
    )


def components(P: Poset) -> list[Poset]:
    """The parts of an order that have nothing to do with each other."""
    pairs = P.cover_pairs
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(P), len(P)))
    number, label = connected_components(graph, directed=False)
    return [P.induced([P.elements[x] for x in np.nonzero(label == part)[0]]) for part in range(number)]


def filters(P: Poset) -> Bools:
    """Every possible record, one per row, the one without any yes first.

    >>> filters(Poset.chain("ab")).astype(int).tolist()
    [[0, 0], [0, 1], [1, 1]]
    """
    return np.array(list(_filters(P)))


def number_of_filters(P: Poset) -> int:
    """How many records are possible, at most one more than the limit."""
    found = 0
    for _ in _filters(P):
        found += 1
        if found > MOST_RECORDS:
            break
    return found


def _filters(P: Poset) -> Iterator[Bools]:
    above = P.leq_matrix().astype(bool)
    np.fill_diagonal(above, False)
    order: Sequence[int] = np.argsort(above.sum(axis=1), kind="stable").tolist()

    def extend(record: Bools, place: int) -> Iterator[Bools]:
        if place == len(order):
            yield record
            return
        yield from extend(record, place + 1)
        x = order[place]
        if record[above[x]].all():
            more = record.copy()
            more[x] = True
            yield from extend(more, place + 1)

    return extend(np.zeros(len(P), bool), 0)
