"""Hierarchies that add up: noise on leaves, on levels, with the best budgets of levels, and on OpenDP's b-ary tree."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from experiments.common import DATA, read_table
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from benchmarks._rivals.rows import Row
from benchmarks._rivals.tree_strategies import best_budgets, hdmm_error
from benchmarks.hierarchies import binary, naics, nation
from isotone.counts import TreeFieldMechanism, TreeGaussianMechanism
from isotone.counts.hierarchy import WORST_POWER, gaussian_shares, require_hierarchy, worst_weights
from isotone.counts.mechanism import care_weights, cared_error
from isotone.linear.least_squares import Hierarchy, TreeLeastSquares
from isotone.mechanism import Error, Progress
from isotone.order import Poset

__all__ = ["Noise", "bary_variances", "level_variances", "rows"]

Floats = NDArray[np.float64]
CARES = {
    "nodes": "rms error of all nodes",
    "levels": "rms error, levels alike",
    "worst": "rms error of the worst node",
}
BRANCHINGS = (2, 3, 4, 6, 8, 10, 16, 24, 32, 64)


@dataclass(frozen=True)
class Noise:
    """Independent noise: its variance for a share of the budget, where the shares of a record's nodes add up to 1."""

    guarantee: str
    variance: Callable[[Floats], Floats]
    precision: Callable[[Floats], tuple[Floats, Floats]]
    """One over the variance, and its derivative by the share."""


def _geometric(share: Floats) -> Floats:
    return 0.5 / np.sinh(np.minimum(share, 1400.0) / 2) ** 2


def _gaussian(share: Floats) -> Floats:
    return 1 / share


PURE = Noise("ε = 1", _geometric, lambda share: (2 * np.sinh(share / 2) ** 2, np.sinh(share)))
CONCENTRATED = Noise("ρ = ½", _gaussian, lambda share: (share, np.ones_like(share)))


def cases(quick: bool) -> dict[str, tuple[Callable[[], Poset], bool]]:
    """Hierarchies, and whether the search for shares was tried on them while it was written."""
    some: dict[str, tuple[Callable[[], Poset], bool]] = {"ages 0 to 99 by 5 and 20 years": (ages, False)}
    if quick:
        return some
    return some | {
        "courses by department and level": (catalogue, False),
        "ternary tree of depth 6": (lambda: complete(3, 6), False),
        "NAICS": (naics, True),
        "nation, 51 states, 3,143 counties": (nation, True),
        "binary tree of depth 10": (binary, True),
    }


def ages() -> Poset:
    """Single years, by five years, by twenty years, and all."""
    parents: dict[str, str] = {f"{a}": f"{a // 5 * 5} to {a // 5 * 5 + 4}" for a in range(100)}
    parents |= {f"{a} to {a + 4}": f"{a // 20 * 20} to {a // 20 * 20 + 19}" for a in range(0, 100, 5)}
    parents |= {f"{a} to {a + 19}": "all" for a in range(0, 100, 20)}
    return Poset.from_mapping(parents, children="partition")


def catalogue() -> Poset:
    """Courses by the letters of their code, and by its first digit."""
    rows = read_table(DATA / "orders" / "course_prerequisites.csv")
    parents: dict[str, str] = {}
    for name in sorted({row[side] for row in rows for side in ("course", "prereq")}):
        department, number = name.rsplit(" ", 1)
        level = f"{department} {number[0]}xxx"
        parents |= {name: level, level: department, department: "all"}
    return Poset.from_mapping(parents, children="partition")


def complete(branching: int, depth: int) -> Poset:
    """A complete tree."""
    size = (branching ** (depth + 1) - 1) // (branching - 1)
    return Poset.from_mapping({x: (x - 1) // branching for x in range(1, size)}, children="partition")


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Every rival on every hierarchy, for three kinds of error and two promises."""
    todo = cases(quick)
    for done, (name, (make, seen)) in enumerate(todo.items()):
        progress(done / len(todo), name)
        P = make()
        tree = require_hierarchy(P)
        for care, measure in CARES.items():
            for noise in (PURE, CONCENTRATED):
                for rival, value, more in _rivals(P, tree, care, noise):
                    yield Row("hierarchies", name, noise.guarantee, measure, seen, rival, value, **more)


def _rivals(
    P: Poset, tree: Hierarchy, care: str, noise: Noise
) -> Iterator[tuple[str, float, dict[str, Any]]]:
    wanted = cared_error(P, care)
    cared = np.ones(len(P)) if care == "worst" else care_weights(P, care)
    weights = np.bincount(tree.node, cared, len(tree)).astype(np.float64)

    def error(variance: Floats) -> float:
        return wanted(Error(variance[tree.node]))

    ours = (
        TreeFieldMechanism(P, 1, care=care)
        if noise is PURE
        else TreeGaussianMechanism(P, rho="1/2", care=care)
    )
    yield f"isotone, {type(ours).__name__}", wanted(ours.error()), {}
    levels = len(tree.levels)
    leaves = level_variances(tree, np.zeros(levels - 1), noise)
    yield "leaves only, added up", error(leaves), {}
    alike = np.full(levels - 1, 1 / levels)
    yield "levels alike, least squares (Hay et al. 2010)", error(level_variances(tree, alike, noise)), {}
    levels_alone, budgets = _best_levels(tree, lambda shares: error(level_variances(tree, shares, noise)))
    yield "best budgets of levels, least squares", levels_alone, {}
    worst = care == "worst"
    looked_at = worst_weights(tree, weights) if worst else weights
    by_nodes = gaussian_shares(tree, looked_at, WORST_POWER if worst else 1).shares
    starts = [_node_shares(tree, budgets), _node_shares(tree, alike), by_nodes, *_some_levels(tree)]
    nodes = best_budgets(tree, weights, worst, noise.precision, error, starts)
    yield "best budgets of nodes, least squares", nodes, {}
    norm, unit = (1, 2.0) if noise is PURE else (2, 1.0)
    yield "HDMM, p-Identity over the leaves", hdmm_error(_below(tree), tree.node, wanted, unit, norm), {}
    rule = _opendp_branching(int(tree.leaf.sum()))
    found = {b: error(bary_variances(tree, b, noise)) for b in sorted({*BRANCHINGS, rule})}
    least = min(found, key=lambda b: found[b])
    more = {"hindsight": found[least], "chosen": f"branching {least}", "how": f"exact, branching {rule}"}
    version = {"version": importlib.metadata.version("opendp")}
    yield "OpenDP, consistent b-ary tree of leaves", found[rule], more | version


def level_variances(tree: Hierarchy, shares: Floats, noise: Noise) -> Floats:
    """The variance of each node with a share for each level but the lowest; leaves have all that is left on their way."""
    share = _node_shares(tree, shares)
    precision = np.zeros(len(tree))
    measured = share > 1e-12
    precision[measured] = 1 / noise.variance(share[measured])
    return TreeLeastSquares.of(tree, precision).variance


def _node_shares(tree: Hierarchy, shares: Floats) -> Floats:
    above = np.concatenate([[0.0], np.cumsum(shares)])
    return np.where(tree.leaf, 1 - above[tree.depth], np.append(shares, 0.0)[tree.depth])


def _some_levels(tree: Hierarchy) -> Iterator[Floats]:
    """As much for every second, third or fourth level, counted from the leaves or from the root, and for the leaves."""
    last = len(tree.levels) - 1
    for apart in (2, 3, 4):
        for first in {last % apart, 0}:
            chosen = [at for at in range(last) if at % apart == first]
            shares = np.zeros(last)
            shares[chosen] = 1 / (len(chosen) + 1)
            yield _node_shares(tree, shares)


def _best_levels(tree: Hierarchy, error: Callable[[Floats], float]) -> tuple[float, Floats]:
    """The least error over budgets of levels, by a simplex search from two starts, and these budgets but that of the leaves."""
    levels = len(tree.levels)

    def value(logits: Floats) -> float:
        weights = np.exp(np.append(logits, 0.0) - max(0.0, float(logits.max())))
        return error(weights[:-1] / weights.sum())

    limits = {"maxiter": 120 * levels, "xatol": 1e-3, "fatol": 1e-5}
    starts = (np.zeros(levels - 1), np.linspace(-3, -1, levels - 1))
    found = [minimize(value, start, method="Nelder-Mead", options=limits) for start in starts]
    best = min(found, key=lambda one: float(one.fun))
    weights = np.exp(np.append(best.x, 0.0) - max(0.0, float(best.x.max())))
    return float(best.fun), weights[:-1] / weights.sum()


def bary_variances(tree: Hierarchy, branching: int, noise: Noise) -> Floats:
    """The variance of each node as a sum of leaves, which come from a b-ary tree over them with alike levels."""
    height = 1
    while branching ** (height - 1) < int(tree.leaf.sum()):
        height += 1
    return _bary_unit(tree, branching, height) * float(noise.variance(np.array([1 / height]))[0])


@lru_cache(maxsize=32)
def _bary_unit(tree: Hierarchy, branching: int, height: int) -> Floats:
    """The same with noise of variance 1 on each node of the b-ary tree."""
    below, size = _below(tree), int(tree.leaf.sum())
    return np.asarray(below.multiply(below @ _bary_covariance(size, branching, height)).sum(axis=1))


def _bary_covariance(size: int, branching: int, height: int) -> Floats:
    """The covariance of the leaves by least squares, with noise of variance 1 on every node of every level."""
    precision = np.zeros((size, size))
    place = np.arange(size)
    for level in range(height):
        node = place // branching**level
        precision += node[:, None] == node[None, :]
    return np.asarray(np.linalg.inv(precision), np.float64)


def _below(tree: Hierarchy) -> csr_array:
    """Which leaves are below each node, leaves in the order of a walk through the tree."""
    leaves = np.nonzero(tree.leaf)[0]
    columns = np.eye(len(leaves), dtype=np.int64)
    values = np.zeros((len(leaves), len(tree)), np.int64)
    values[:, leaves] = columns
    sums = tree.sums(values)
    walk = np.lexsort(_path_keys(tree, leaves))
    return csr_array(sums.T[:, walk].astype(float))


def _path_keys(tree: Hierarchy, leaves: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The nodes above each leaf, lowest level first, so that sorting by them keeps siblings together."""
    keys, at = [leaves], leaves
    for depth in reversed(range(len(tree.levels) - 1)):
        at = np.where(tree.depth[at] > depth, tree.parent[at], at)
        keys.append(at)
    return keys


def _opendp_branching(size: int) -> int:
    from opendp.mod import enable_features
    from opendp.transformations import choose_branching_factor

    enable_features("contrib")
    return int(choose_branching_factor(size))
