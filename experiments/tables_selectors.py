"""Count errors of every constructor, absolute and squared: all selectors of Figure 6 of the tables paper.

The first stage is simulated as published; given its distribution the expected error of a matrix is computed, not
simulated. The published picture has the max and the min selector and leaves the sandwich out, which "closely overlaps
with the better" of them; the picture of the mean squared error is left out there as "similar".
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from _tables import EPSILONS, HELD_OUT, Table, load, published_distribution
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.tables import Distribution, fixed_point, truncated_geometric, unfixed_optimum
from isotone.tables.matrices.count_mechanism import CountMechanism

Constructor = Callable[[Distribution, Fraction], CountMechanism]
CONSTRUCTORS: dict[str, Constructor] = {
    "max": lambda z, rest: fixed_point(z, rest, constructor="heuristic", selector="max"),
    "min": lambda z, rest: fixed_point(z, rest, constructor="heuristic", selector="min"),
    "sandwich": lambda z, rest: fixed_point(z, rest, constructor="heuristic", selector="sandwich"),
    "optimum": lambda z, rest: fixed_point(z, rest),
    "unfixed optimum": unfixed_optimum,
}
STYLES = {"max": "C1-", "min": "C2-", "sandwich": "C3-", "optimum": "C0-", "unfixed optimum": "k:"}
Errors = dict[str, tuple[float, float]]


def run(out: Path, quick: bool, progress: Progress) -> None:
    names, epsilons, draws = (HELD_OUT[:1], EPSILONS[4:5], 2) if quick else (HELD_OUT, EPSILONS, 20)
    found: dict[tuple[str, float], Errors] = {}
    for k, name in enumerate(names):
        table = load(name)
        for j, epsilon in enumerate(epsilons):
            progress((k + j / len(epsilons)) / len(names), f"{name}, ε = {epsilon:.2f}")
            found[name, epsilon] = measure(table, epsilon, draws)
    rows = [(*key, method, *pair) for key, errors in found.items() for method, pair in errors.items()]
    write_table(
        out,
        "selectors",
        {
            "data": [row[0] for row in rows],
            "epsilon": [f"{row[1]:.2f}" for row in rows],
            "method": [row[2] for row in rows],
            "absolute": [f"{row[3]:.4g}" for row in rows],
            "squared": [f"{row[4]:.4g}" for row in rows],
        },
    )
    figure = Figure(figsize=(11, 6), layout="constrained")
    for line, (which, words) in zip(
        figure.subplots(2, len(names), squeeze=False), enumerate(("absolute", "squared")), strict=True
    ):
        for axes, name in zip(line, names, strict=True):
            for method, style in [*STYLES.items(), ("truncated geometric", "k--")]:
                axes.plot(epsilons, [found[name, e][method][which] for e in epsilons], style, label=method)
            axes.set(xscale="log", yscale="log", xlabel="ε", ylabel=f"{words} error of a count", title=name)
    figure.axes[0].legend(fontsize="small")
    save_figure(figure, out, "tables_selectors")
    progress(1.0, "done")


def measure(table: Table, epsilon: float, draws: int) -> Errors:
    """The mean absolute and squared error of a count for every constructor, over simulated first stages."""
    rng = np.random.default_rng(0)
    truth = np.bincount(table.counts, minlength=table.upper + 1) / len(table.counts)
    totals = {method: np.zeros(2) for method in CONSTRUCTORS}
    for _ in range(draws):
        z, rest = published_distribution(table, epsilon, rng)
        for method, build in CONSTRUCTORS.items():
            totals[method] += both(build(z, rest), truth)
    errors = {method: (float(total[0]) / draws, float(total[1]) / draws) for method, total in totals.items()}
    plain = both(truncated_geometric(table.upper + 1, Fraction(repr(epsilon))), truth)
    return errors | {"truncated geometric": (float(plain[0]), float(plain[1]))}


def both(mechanism: CountMechanism, truth: np.ndarray) -> np.ndarray:
    """The expected absolute and squared error of a published count."""
    return np.array([mechanism.count_error(truth, "absolute"), mechanism.count_error(truth, "squared")])
