"""Orders to compare on, their parts and the records that are possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from experiments.common import DATA, read_table
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from isotone.order import Poset

__all__ = ["MOST_RECORDS", "chains", "components", "courses", "filters", "number_of_filters", "survey"]

MOST_RECORDS = 5_000
"""A strategy over more possible records is not searched for."""
Bools = NDArray[np.bool_]


def chains(number: int, length: int) -> Poset:
    """Chains side by side."""
    return Poset(
        [(c, i) for c in range(number) for i in range(length)],
        [((c, i + 1), (c, i)) for c in range(number) for i in range(length - 1)],
    )


def survey() -> tuple[Poset, Bools]:
    """The 2021 health survey, with answers that have exactly the published counts and are nested as the questions are."""
    found = read_table(DATA / "survey" / "nhis2021_counts.csv")
    P = Poset(
        [row["variable"] for row in found],
        [(row["variable"], row["parent"]) for row in found if row["parent"]],
    )
    answers = np.zeros((int(found[0]["n"]), len(P)), dtype=bool)
    for row in found:
        answers[: int(row["yes"]), P.index(row["variable"])] = True
    return P, answers


def courses(count: int) -> Poset:
    """The courses that most others need, and the prerequisites among them."""
    found = read_table(DATA / "orders" / "course_prerequisites.csv")
    P = Poset(
        dict.fromkeys(name for row in found for name in (row["course"], row["prereq"])),
        [(row["course"], row["prereq"]) for row in found],
    )
    needed = np.sum(P.leq_matrix(), axis=0)
    return P.induced([P.elements[x] for x in np.argsort(-needed, kind="stable")[:count]])


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
