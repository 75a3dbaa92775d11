"""What the rule of thumb for the split costs: the combined error objective against the share, as in Figure 8."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from _tables import COLOURS, HELD_OUT, load
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.published.tables.row_by_row import PUBLISHED, WHOLE_TABLE
from tables_split import SHARES, measure, objective, published, rows, whole

EPSILONS = (0.1, 0.5, 1.0, 5.0)
IN_THE_PAPER = {
    ("crime", 0.1): 0.024,
    ("crime", 0.5): 0.046,
    ("crime", 1.0): 0.017,
    ("crime", 5.0): 0.0,
    ("binomial", 0.1): 0.42,
}
FRAMEWORKS = {
    "published": (published, PUBLISHED, "as published"),
    "rows": (rows, PUBLISHED, "ours, row by row"),
    "table": (whole, WHOLE_TABLE, "ours, whole table"),
}


DRAWS = {"published": 100, "rows": 100, "table": 5}


def few(out: Path) -> None:
    """The first share of every framework, of the first table and ε of a full run."""
    name, epsilon, share = HELD_OUT[0], EPSILONS[0], SHARES[0]
    found = [measure(FRAMEWORKS[key][0], load(name), epsilon, share, DRAWS[key], 0) for key in DRAWS]
    cases = {"data": name, "epsilon": epsilon, "share": share}
    columns = {key: [value] * len(DRAWS) for key, value in cases.items()}
    objectives = [f"{objective(each):.4f}" for each in found]
    write_table(out, "objective", {**columns, "framework": list(DRAWS), "objective": objectives})


def run(out: Path, quick: bool, progress: Progress) -> None:
    names, epsilons = (("crime",), (0.5,)) if quick else (HELD_OUT, EPSILONS)
    draws = {"published": 2, "rows": 2, "table": 1} if quick else DRAWS
    shares = SHARES[::4] if quick else SHARES
    curves: dict[tuple[str, float, str], tuple[list[float], float, float]] = {}
    for at, name in enumerate(names):
        table = load(name)
        for step, epsilon in enumerate(epsilons):
            progress((at + step / len(epsilons)) / len(names), f"{name}, ε = {epsilon:g}")
            for key, (framework, rule, _) in FRAMEWORKS.items():
                seed = 100 * at + step
                curve = [objective(measure(framework, table, epsilon, f, draws[key], seed)) for f in shares]
                share = float(rule.share(epsilon))
                curves[name, epsilon, key] = (
                    curve,
                    share,
                    objective(measure(framework, table, epsilon, share, draws[key], seed)),
                )
    _write(out, shares, curves)
    _draw(out, epsilons, shares, curves)
    progress(1.0, "done")


def _write(
    out: Path,
    shares: tuple[float, ...],
    curves: dict[tuple[str, float, str], tuple[list[float], float, float]],
) -> None:
    write_table(
        out,
        "objective",
        {
            "data": [key[0] for key in curves for _ in shares],
            "epsilon": [key[1] for key in curves for _ in shares],
            "framework": [key[2] for key in curves for _ in shares],
            "share": [share for _ in curves for share in shares],
            "objective": [f"{value:.4f}" for curve, _, _ in curves.values() for value in curve],
        },
    )
    gaps = {key: max(0.0, at_rule - min(curve)) for key, (curve, _, at_rule) in curves.items()}
    write_table(
        out,
        "gaps",
        {
            "data": [key[0] for key in gaps],
            "epsilon": [key[1] for key in gaps],
            "framework": [key[2] for key in gaps],
            "share_by_rule": [f"{curves[key][1]:.3f}" for key in gaps],
            "gap": [f"{gap:.3f}" for gap in gaps.values()],
            "gap_in_the_paper": [
                IN_THE_PAPER.get((name, epsilon), "") if key == "published" else ""
                for name, epsilon, key in gaps
            ],
        },
    )


def _draw(
    out: Path,
    epsilons: tuple[float, ...],
    shares: tuple[float, ...],
    curves: dict[tuple[str, float, str], tuple[list[float], float, float]],
) -> None:
    figure = Figure(figsize=(3.9 * len(epsilons), 3.8), layout="constrained")
    panels = figure.subplots(1, len(epsilons), squeeze=False)
    for panel, epsilon in zip(panels[0], epsilons, strict=True):
        for key, (_, _, words) in FRAMEWORKS.items():
            curve, share, at_rule = curves["crime", epsilon, key]
            panel.plot(shares, curve, ".-", color=COLOURS[key], label=words)
            panel.plot([share], [at_rule], "D", color=COLOURS[key], mec="black")
            panel.axhline(min(curve), color=COLOURS[key], linewidth=0.6, linestyle=":")
        gap = IN_THE_PAPER.get(("crime", epsilon))
        panel.set(
            title=f"crime, ε = {epsilon:g}" + (f" (gap in the paper: {gap:g})" if gap is not None else "")
        )
        panel.title.set_fontsize(10)
        panel.set_xlabel("share of ε for the distribution")
    panels[0][0].set_ylabel("ln(count error) + ln(Wasserstein-1)")
    panels[0][0].plot([], [], "D", color="white", mec="black", label="share by the rule in use")
    panels[0][0].plot([], [], ":", color="black", label="least value seen")
    panels[0][0].legend(fontsize=8)
    save_figure(figure, out, "tables_optimality_gap")
