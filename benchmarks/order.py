"""Closure, covers and height of a large random order, against networkx: time and peak memory."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from isotone.mechanism import Progress

Measured = tuple[dict[str, float], float, tuple[int, int, int]]


def relations(n: int, m: int) -> list[tuple[int, int]]:
    """Random relations without a cycle: ``m`` pairs along a random permutation of ``0..n-1``."""
    rng = np.random.default_rng(2025)
    names = rng.permutation(n)
    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < m:
        a, b = sorted(rng.integers(n, size=2).tolist())
        if a < b:
            pairs[int(names[a]), int(names[b])] = None
    return list(pairs)


def ours(n: int, m: int) -> Measured:
    from isotone.order import Poset

    small = Poset("abcd", [("a", "b"), ("c", "b"), ("c", "d")])
    _ = small.height, small.width, small.decomposition()  # load the compiled kernels
    pairs = relations(n, m)
    before = _peak()
    times: dict[str, float] = {}
    poset = _timed(times, "closure and covers", lambda: Poset(range(n), pairs))
    height = _timed(times, "height", lambda: poset.height)
    used = _peak() - before
    _timed(times, "width", lambda: poset.width)
    _timed(times, "decomposition", poset.decomposition)
    comparable = int(np.unpackbits(poset.closure_bits.view(np.uint8)).sum()) - n
    return times, used, (comparable, len(poset.cover_pairs), height)


def networkx(n: int, m: int) -> Measured:
    import networkx as nx

    pairs = relations(n, m)
    before = _peak()
    times: dict[str, float] = {}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(pairs)
    closed = _timed(times, "closure", lambda: nx.transitive_closure_dag(graph))
    reduced = _timed(times, "covers", lambda: nx.transitive_reduction(graph))
    height = _timed(times, "height", lambda: nx.dag_longest_path_length(graph) + 1)
    used = _peak() - before
    return times, used, (closed.number_of_edges(), reduced.number_of_edges(), height)


def _timed(times: dict[str, float], what: str, task: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = task()
    times[what] = time.perf_counter() - start
    return result


def _peak() -> float:
    """The most memory this process has used so far, in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _alone(task: Callable[[int, int], Measured], n: int, m: int) -> Measured:
    """Run a task in a process of its own, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(task, (n, m))


def run(quick: bool, progress: Progress) -> str:
    n, m = (1_000, 5_000) if quick else (10_000, 50_000)
    progress(0.0, "isotone")
    our_times, our_memory, our_answer = _alone(ours, n, m)
    progress(0.1, "networkx")
    their_times, their_memory, their_answer = _alone(networkx, n, m)
    progress(1.0, "done")
    if our_answer != their_answer:
        raise AssertionError(f"the two disagree: {our_answer} and {their_answer}")
    comparable, covers, height = our_answer
    rows = [
        (
            "closure and covers",
            our_times["closure and covers"],
            their_times["closure"] + their_times["covers"],
            "s",
        ),
        ("height", our_times["height"], their_times["height"], "s"),
        ("peak memory on top of the input", our_memory, their_memory, "MB"),
    ]
    table = "\n".join(
        f"| {what} | {a:,.3g} {unit} | {b:,.3g} {unit} | {b / max(a, 1e-9):,.0f}× |"
        for what, a, b, unit in rows
    )
    return (
        f"A random order with {n:,} elements and {m:,} relations. "
        f"Both find {comparable:,} comparable pairs, {covers:,} covers and height {height}.\n\n"
        "| | isotone | networkx | ratio |\n|---|---|---|---|\n" + table + "\n\n"
        "isotone builds a `Poset` from a list of pairs of names; networkx runs `transitive_closure_dag`, "
        "`transitive_reduction` and `dag_longest_path_length` on a `DiGraph` already built. Each runs in a "
        "process of its own.\n\n"
        f"networkx has no width and no modular decomposition of an order; isotone took another "
        f"{our_times['width']:.2g} s and {our_times['decomposition']:.2g} s for them.\n"
    )
