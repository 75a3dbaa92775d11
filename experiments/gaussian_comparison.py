"""Pure mechanisms at ε = 1 against Gaussian noise at (1, 1e-6) (Figure 8 of the counts paper).

The published picture has no numbers; its text says that the analytic Gaussian is dominated by the cube for every
d ≤ 50. Drawn beside it: the poset mechanism on antichains and chains, and Gaussian noise shaped by the order.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from _posets import cube_error
from common import save_figure, write_table
from isotone.counts import GaussianMechanism, OrderGaussianMechanism, PosetMechanism
from isotone.mechanism import Progress
from isotone.order import Poset

EPSILON, DELTA = 1, "1e-6"


def run(out: Path, quick: bool, progress: Progress) -> None:
    dimensions = [2, 10, 50] if quick else [1, 2, 3, 5, *range(10, 71, 5)]
    names = (
        "d", "cube", "analytic_gaussian", "poset_antichain", "poset_chain",
        "order_gaussian_antichain", "order_gaussian_chain",
    )  # fmt: skip
    columns: dict[str, list[float]] = {name: [] for name in names}
    for done, d in enumerate(dimensions):
        progress(done / len(dimensions), f"d = {d}")
        antichain, chain = Poset.antichain(range(d)), Poset.chain(range(d))
        columns["d"].append(d)
        columns["cube"].append(cube_error(d))
        columns["analytic_gaussian"].append(GaussianMechanism(antichain, EPSILON, DELTA).error().total)
        for name, P in (("antichain", antichain), ("chain", chain)):
            columns[f"poset_{name}"].append(PosetMechanism(P, EPSILON).error().total)
            shaped = OrderGaussianMechanism(P, epsilon=EPSILON, delta=DELTA)
            columns[f"order_gaussian_{name}"].append(shaped.error().total)
    write_table(out, "gaussian_comparison", columns)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    styles = {
        "cube": ("ℓ∞, ε = 1 (published)", "C3-"),
        "analytic_gaussian": ("analytic Gaussian, (1, 1e-6) (published)", "C3--"),
        "poset_antichain": ("poset mechanism, ε = 1, antichain", "C0-"),
        "order_gaussian_antichain": ("order-shaped Gaussian, (1, 1e-6), antichain", "C0--"),
        "poset_chain": ("poset mechanism, ε = 1, chain", "C2-"),
        "order_gaussian_chain": ("order-shaped Gaussian, (1, 1e-6), chain", "C2--"),
    }
    for name, (label, style) in styles.items():
        axes.plot(columns["d"], columns[name], style, label=label)
    axes.axvspan(0, 50, color="C3", alpha=0.06, label="published: ℓ∞ below Gaussian for d ≤ 50")
    axes.set(xlabel="d", ylabel="expected squared ℓ2 error", yscale="log", xlim=(0, 70))
    axes.legend(fontsize="small")
    save_figure(figure, out, "gaussian_comparison")
    progress(1.0, "done")
