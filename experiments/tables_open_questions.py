"""Open questions of the papers on tiny tables, by linear programs: pairs of counts, and several contributions."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq, linprog
from scipy.stats import binom

from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.privacy.calibration import sigma_squared
from isotone.tables.matrices.geometric import geometric_matrix

Floats = NDArray[np.float64]
EPSILON, DELTA, MOST = 1.0, 1e-6, 80
"""What several contributions may cost together, and the most of them."""
LOSSES = {"absolute": 1, "squared": 2}


def best_channel(z: Floats, cost: Floats, edges: list[tuple[int, int]], factor: float) -> float:
    """The least expected cost of a matrix that keeps ``z`` and whose rows differ by at most ``factor`` along the edges."""
    m = len(z)
    kept = sparse.hstack([z[x] * sparse.eye_array(m) for x in range(m)])
    ones = sparse.kron(sparse.eye_array(m), np.ones((1, m)))
    rows, columns, values = list[int](), list[int](), list[float]()
    for at, (x, other, y) in enumerate(
        (x, o, y) for a, b in edges for x, o in ((a, b), (b, a)) for y in range(m)
    ):
        rows += [at, at]
        columns += [x * m + y, other * m + y]
        values += [1.0, -factor]
    private = sparse.csr_array((values, (rows, columns)), shape=(2 * len(edges) * m, m * m))
    found = linprog(
        (z[:, None] * cost).ravel(),
        A_ub=private,
        b_ub=np.zeros(private.shape[0]),  # pyright: ignore
        A_eq=sparse.vstack([kept, ones]).tocsr(),
        b_eq=np.concatenate([z, np.ones(m)]),
        method="highs",
    )
    return float(found.fun)


def transported(z: Floats, cost: Floats, noise: Floats) -> float:
    """The least expected cost if noisy states are moved so that ``z`` comes out: optimal transport of the noise."""
    m = len(z)
    joint = z[:, None] * noise
    price = joint.T @ cost  # of all that is seen as y and published as w
    left = sparse.kron(sparse.eye_array(m), np.ones((1, m)))
    # shares of y that go to w: rows sum to 1, and what arrives is z
    arrives = sparse.hstack([joint.sum(axis=0)[y] * sparse.eye_array(m) for y in range(m)])
    found = linprog(
        price.ravel(),
        A_eq=sparse.vstack([left, arrives]).tocsr(),
        b_eq=np.concatenate([np.ones(m), z]),
        method="highs",
    )
    return float(found.fun)


def pairs(n: int, epsilon: float, power: int, z: Floats) -> tuple[float, float]:
    """The least cost of a mechanism that keeps the joint distribution of two counts, and that of noise moved by optimal transport."""
    states = list(product(range(n), repeat=2))
    place = {state: at for at, state in enumerate(states)}
    edges = [(place[a, b], place[a + 1, b]) for a in range(n - 1) for b in range(n)]
    edges += [(place[a, b], place[a, b + 1]) for a in range(n) for b in range(n - 1)]
    grid = np.array(states)
    cost = (np.abs(grid[:, None, :] - grid[None, :, :]) ** power).sum(axis=2).astype(np.float64)
    single = geometric_matrix(n, epsilon)
    return best_channel(z, cost, edges, float(np.exp(epsilon))), transported(z, cost, np.kron(single, single))  # pyright: ignore


def several(n: int, steps: int, epsilon: float, power: int, z: Floats) -> tuple[float, float]:
    """The least cost if only changes of one count by up to ``steps`` must be hidden, and that of noise for each step."""
    counts = np.arange(n)
    cost = (np.abs(counts[:, None] - counts) ** power).astype(np.float64)
    edges = [(a, b) for a in range(n) for b in range(a + 1, min(a + steps, n - 1) + 1)]
    best = best_channel(z, cost, edges, float(np.exp(epsilon)))
    return best, transported(z, cost, geometric_matrix(n, epsilon / steps))


def distributions(n: int, number: int) -> list[Floats]:
    """Joint distributions of two counts: correlated, independent, and at random."""
    rng = np.random.default_rng(n)
    x = np.arange(n)
    near = np.exp(-np.abs(x[:, None] - x)).ravel()
    falling = np.exp(-0.7 * (x[:, None] + x)).ravel()
    found = [near / near.sum(), falling / falling.sum()]
    return [*found, *(rng.dirichlet(np.full(n * n, 0.5)) for _ in range(number - len(found)))]


def exact_delta(epsilon: float, number: int) -> float:
    """The δ at ``EPSILON`` of so many independent steps with two-sided geometric noise of rate ``epsilon``, exactly: each has the
    loss ε or −ε, as randomised response."""
    ahead = np.arange(number + 1)
    loss = (2 * ahead - number) * epsilon
    chance = binom.pmf(ahead, number, 1 / (1 + np.exp(-epsilon)))
    return float(np.sum(chance * np.maximum(0, -np.expm1(EPSILON - loss))))


def contributions(number: int) -> tuple[int, float, float, float, float]:
    """The variance of noise on a count for a person with so many: pure, pure by exact composition, and Gaussian."""
    rate = float(brentq(lambda each: exact_delta(each, number) - DELTA, EPSILON / number, 2 * EPSILON))  # pyright: ignore
    pure, composed = (0.5 / np.sinh(each / 2) ** 2 for each in (EPSILON / number, rate))
    return number, rate * number / EPSILON, pure, composed, number * float(sigma_squared(EPSILON, DELTA))


def run(out: Path, quick: bool, progress: Progress) -> None:
    """Write the ratio of both costs for every tiny case."""
    rows: list[tuple[object, ...]] = []
    sizes = (3,) if quick else (3, 4)
    for n, epsilon, (name, power) in product(sizes, (0.5, 1.0, 2.0), LOSSES.items()):
        progress(0.5, f"pairs of {n} counts")
        ratios = [
            b / a for z in distributions(n, 3 if quick else 8) for a, b in [pairs(n, epsilon, power, z)]
        ]
        rows.append(("pairs", n, 1, epsilon, name, len(ratios), *_shown(ratios)))
    for steps, epsilon, (name, power) in product((1, 2, 3), (0.5, 1.0, 2.0), LOSSES.items()):
        rng = np.random.default_rng(steps)
        some = [rng.dirichlet(np.ones(7)) for _ in range(3 if quick else 8)]
        ratios = [b / a for z in some for a, b in [several(7, steps, epsilon, power, z)]]
        rows.append(("one category", 7, steps, epsilon, name, len(ratios), *_shown(ratios)))
    names = ("question", "counts", "steps", "epsilon", "loss", "cases", "least", "mean", "most")
    write_table(out, "ratios", {each: [row[at] for row in rows] for at, each in enumerate(names)})
    found = [contributions(number) for number in range(2, MOST + 1)]
    columns = ("contributions", "rate", "pure", "composed", "gaussian")
    write_table(
        out, "contributions", {each: [f"{row[at]:.5g}" for row in found] for at, each in enumerate(columns)}
    )
    _picture(out, rows)
    progress(1.0, "done")


def _picture(out: Path, rows: list[tuple[object, ...]]) -> None:
    """The mean ratio with the least and the most, for absolute errors."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axis, question in zip(figure.subplots(1, 2, sharey=True), ("pairs", "one category"), strict=True):
        some = [row for row in rows if row[0] == question and row[4] == "absolute"]
        for counts, steps in dict.fromkeys(row[1:3] for row in some):
            line = [row for row in some if row[1:3] == (counts, steps)]
            least, mean, most = (np.array([float(str(row[at])) for row in line]) for at in (6, 7, 8))
            label = f"{counts} counts each" if question == "pairs" else f"contributions: {steps}"
            at = [float(str(row[3])) for row in line]
            axis.errorbar(at, mean, yerr=(mean - least, most - mean), marker="o", capsize=3, label=label)
        axis.set_title(f"{question}, kept exactly")
        axis.set_xlabel("ε")
        axis.legend(fontsize=8)
    figure.axes[0].set_ylabel("loss, of the least that can be had")
    save_figure(figure, out, "ratios")


def _shown(ratios: list[float]) -> tuple[str, str, str]:
    return f"{min(ratios):.4f}", f"{np.exp(np.mean(np.log(ratios))):.4f}", f"{max(ratios):.4f}"
