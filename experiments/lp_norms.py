"""Expected squared norms of the smallest lp balls that hold every record (Figure 2 of the counts paper).

The published picture has no numbers; its text says that Laplace noise (p = 1) is about 2 (d = 2) to 5 (d = 50)
times worse than the cube (p = ∞). The same numbers govern the mechanisms, whose error is (d+1)(d+2) times that
of the ball; simulations of the mechanisms are drawn on the curves.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from common import save_figure, write_table
from isotone.counts import LInfinityMechanism, LpMechanism
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.published.counts import squared_norm_of_ball

EXPONENTS = (1, 2, 5, 10, math.inf)
PUBLISHED = {2: 2.0, 50: 5.0}  # Laplace over cube, "approximately"


def smallest_ball(d: int, p: float) -> float:
    """The expected squared norm of a uniform point of the ball of radius d^(1/p)."""
    return float(d) ** (2 / p) * squared_norm_of_ball(d, p)


def simulated(d: int, p: float, draws: int) -> float:
    """The same from the mechanism's noise."""
    P = Poset.antichain(range(d))
    m = LInfinityMechanism(P, 1) if math.isinf(p) else LpMechanism(P, 1, p)
    noise = np.asarray(m.simulate(draws, np.random.default_rng(d)))
    return float(np.mean(np.sum(noise**2, axis=1))) / ((d + 1) * (d + 2))


def run(out: Path, quick: bool, progress: Progress) -> None:
    dimensions = range(1, 51)
    checked = (2, 10, 50) if quick else (2, 5, 10, 20, 30, 40, 50)
    draws = 2_000 if quick else 40_000
    columns: dict[str, list[float | str]] = {"p": [], "d": [], "ball": [], "simulated": []}
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for done, p in enumerate(EXPONENTS):
        progress(done / len(EXPONENTS), f"p = {p}")
        exact = [smallest_ball(d, p) for d in dimensions]
        sampled = {d: simulated(d, p, draws) for d in checked}
        columns["p"] += [p] * len(exact)
        columns["d"] += list(dimensions)
        columns["ball"] += exact
        columns["simulated"] += [sampled.get(d, "") for d in dimensions]
        name = "∞" if math.isinf(p) else f"{p}"
        (line,) = left.plot(dimensions, exact, label=f"p = {name}")
        left.plot(list(sampled), list(sampled.values()), "x", color=line.get_color())
    left.set(xlabel="dimension d", ylabel="expected squared ℓ2 norm", title="Smallest balls; × simulated")
    left.legend()
    ratio = [smallest_ball(d, 1) / smallest_ball(d, math.inf) for d in dimensions]
    right.plot(dimensions, ratio, label="exact: 6d² / ((d+1)(d+2))")
    right.plot(list(PUBLISHED), list(PUBLISHED.values()), "o", color="C3", label="published, “approximately”")
    right.set(xlabel="dimension d", ylabel="p = 1 over p = ∞", title="Laplace against the cube", ylim=0)
    right.legend()
    write_table(out, "lp_norms", columns)
    save_figure(figure, out, "lp_norms")
    progress(1.0, "done")
