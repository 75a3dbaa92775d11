"""Acceptance of rejection sampling from the cube, by dimension (Theorem 3.17 of the counts paper).

The ball of a poset with d elements has volume (extended bipartitions)/d!, the cube 2^d. The paper shows that at most
2/2^d of the cube is accepted for posets with a greatest element, with equality for a star. Without one an antichain
has (d+1)/2^d, a chain 1/d!.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from _posets import survey_sections
from common import save_figure, write_table
from isotone.counts import LInfinityMechanism, PosetMechanism
from isotone.mechanism import Progress
from isotone.order import Poset


def acceptance(P: Poset) -> float:
    """The volume of the poset's ball over that of the cube, exactly."""
    return P.count_extended_bipartitions() / (math.factorial(len(P)) * 2 ** len(P))


def measured(P: Poset, draws: int) -> float:
    """The fraction of uniform points of the cube that lie in the poset's ball."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(draws, len(P)))
    assert LInfinityMechanism(P, 1).norm(points).max() <= 1
    return float(np.mean(PosetMechanism(P, 1).norm(points) <= 1))


def families(d: int, rng: np.random.Generator, posets: int) -> dict[str, list[Poset]]:
    """The posets of each family with d elements."""
    star = Poset.series(Poset.antichain(range(1, d)), Poset.chain([0])) if d > 1 else Poset.chain([0])
    return {
        "antichain": [Poset.antichain(range(d))],
        "star": [star],
        "chain": [Poset.chain(range(d))],
        "random": [Poset.random_dag(d, rng) for _ in range(posets)],
    }


def run(out: Path, quick: bool, progress: Progress) -> None:
    dimensions = [2, 5, 20] if quick else [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 35, 40]
    posets, draws = (2, 20_000) if quick else (20, 1_000_000)
    rng = np.random.default_rng(0)
    columns: dict[str, list[Any]] = {name: [] for name in ("family", "d", "acceptance", "measured")}
    for done, d in enumerate(dimensions):
        progress(done / (len(dimensions) + 1), f"d = {d}")
        for family, members in families(d, rng, posets).items():
            columns["family"].append(family)
            columns["d"].append(d)
            columns["acceptance"].append(math.exp(np.mean([math.log(acceptance(P)) for P in members])))
            columns["measured"].append(measured(members[0], draws) if d <= 8 and len(members) == 1 else "")
    for sections in (1, 2, 3):
        P = survey_sections(sections)
        columns["family"].append("survey")
        columns["d"].append(len(P))
        columns["acceptance"].append(acceptance(P))
        columns["measured"].append(measured(P, draws))
    write_table(out, "linf_rejection", columns)
    save_figure(picture(columns), out, "linf_rejection")
    progress(1.0, "done")


def picture(columns: dict[str, list[Any]]) -> Figure:
    """Acceptance by dimension, one line per family; crosses are measured."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    rows = list(zip(*columns.values(), strict=True))
    for family in dict.fromkeys(columns["family"]):
        points = [row for row in rows if row[0] == family]
        (line,) = axes.plot([p[1] for p in points], [p[2] for p in points], "o-", ms=3, label=family)
        shown = [p for p in points if p[3]]
        axes.plot([p[1] for p in shown], [p[3] for p in shown], "x", ms=9, color=line.get_color())
    d = np.arange(1, 41)
    axes.plot(
        d, 2.0 ** (1 - d), ":", color="C3", lw=3, alpha=0.6, label="published bound with a root: 2 / 2^d"
    )
    axes.set(
        xlabel="number of elements d", ylabel="accepted fraction of the cube", yscale="log", ylim=(1e-50, 2)
    )
    axes.set_title("Rejection from the ℓ∞ ball (× measured; random: geometric mean)")
    axes.legend(fontsize="small")
    return figure
