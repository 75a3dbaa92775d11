"""Gaussian noise shaped by the order: traces, bounds, crossovers with pure noise, and bounded records.

Extends the Gaussian figure of the counts paper (Joseph, Ribero and Yu 2025), which leaves the smallest ellipse
around a poset's records open. The total variance at sensitivity 1 is drawn as a part of that of spherical noise,
n², with the lower bound that no Gaussian can beat; then the error at (ε, δ) = (1, 1e-6), and under zCDP at the
ρ = ε²/2 that ε-DP implies, over that of the pure poset mechanism at ε = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from _posets import survey_sections
from common import DATA, read_table, save_figure, write_table
from isotone.counts import OrderGaussianMechanism, PosetMechanism
from isotone.mechanism import Progress
from isotone.order import Poset

EXPECTED = {"survey, 15": 0.3456, "chain, 50": 0.0820, "antichain, 50": 0.3257, "chain, 500": 0.0149}

OFFSETS = {"survey, 15": (6, 6), "NAICS, 2125": (-30, 8), "Debian, 200": (-20, -14), "courses, 300": (2, 7)}

FAMILIES: dict[str, Callable[[int], Poset]] = {
    "chain": lambda n: Poset.chain(range(n)),
    "antichain": lambda n: Poset.antichain(range(n)),
    "star": lambda n: Poset(range(n), [(x, 0) for x in range(1, n)]),
    "binary tree": lambda n: Poset(range(n), [(x, (x - 1) // 2) for x in range(1, n)]),
}


def naics() -> Poset:
    rows = read_table(DATA / "orders" / "naics.csv")
    return Poset(
        [row["code"] for row in rows], [(row["code"], row["parent"]) for row in rows if row["parent"]]
    )


def debian() -> Poset:
    pairs = [
        (row["package"], row["requires"]) for row in read_table(DATA / "orders" / "debian_top200_covers.csv")
    ]
    return Poset(dict.fromkeys(name for pair in pairs for name in pair), pairs)


def courses(count: int) -> Poset:
    """The courses with most courses that need them, and the prerequisites among them."""
    rows = read_table(DATA / "orders" / "course_prerequisites.csv")
    lower, upper = list(rows[0])[:2]
    P = Poset(
        dict.fromkeys(name for row in rows for name in (row[lower], row[upper])),
        [(row[lower], row[upper]) for row in rows],
    )
    needed = np.sum(P.leq_matrix(), axis=0)
    return P.induced([P.elements[x] for x in np.argsort(-needed, kind="stable")[:count]])


def run(out: Path, quick: bool, progress: Progress) -> None:
    sizes = [2, 5, 15] if quick else [1, 2, 3, 5, 10, 15, 20, 32, 50, 84, 100, 150, 200, 300, 500, 1023]
    orders = [(f"{family}, {n}", family, make(n)) for family, make in FAMILIES.items() for n in sizes]
    orders += [("survey, 15", "", survey_sections(3))]
    if not quick:
        orders += [
            ("NAICS, 2125", "", naics()),
            ("Debian, 200", "", debian()),
            ("courses, 300", "", courses(300)),
        ]
    traces(out, orders, lambda f, what: progress(0.5 * f, what))
    crossovers(out, quick, lambda f, what: progress(0.5 + 0.3 * f, what))
    bounded(out, quick, lambda f, what: progress(0.8 + 0.2 * f, what))
    progress(1.0, "done")


def traces(out: Path, orders: list[tuple[str, str, Poset]], progress: Progress) -> None:
    """Total variance over n², its lower bound, and the same for replaced records."""
    names = ("order", "family", "n", "method", "ratio", "lower_bound", "gap", "replace_ratio", "expected")
    columns: dict[str, list[str | float]] = {name: [] for name in names}
    for done, (name, family, P) in enumerate(orders):
        progress(done / len(orders), name)
        n = len(P)
        certificate = OrderGaussianMechanism(P, rho="0.5").certificate()
        replaced = OrderGaussianMechanism(P, rho="0.5", neighbours="replace").error().total
        bound = certificate.lower_bound
        row = (
            name, family, n, certificate.method, certificate.trace / n**2,
            float("nan") if bound is None else bound / n**2,
            float("nan") if certificate.gap is None else certificate.gap,
            replaced / n**2, EXPECTED.get(name, float("nan")),
        )  # fmt: skip
        for key, value in zip(names, row, strict=True):
            columns[key].append(value)
    write_table(out, "traces", columns)
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    family = np.array(columns["family"])
    n, ratio, gap = (np.array(columns[key], dtype=float) for key in ("n", "ratio", "gap"))
    expected = np.array(columns["expected"], dtype=float)
    for k, name in enumerate(FAMILIES):
        of = family == name
        left.plot(n[of], ratio[of], f"C{k}.-", label=name)
        right.plot(n[of], 100 * np.maximum(gap[of], 0), f"C{k}.-", label=name)
    for x in np.flatnonzero(family == ""):
        name = str(columns["order"][x])
        left.plot(n[x], ratio[x], "kD", markersize=4)
        left.annotate(
            name, (n[x], ratio[x]), textcoords="offset points", xytext=OFFSETS[name], fontsize="small"
        )
        right.plot(n[x], 100 * gap[x], "kD", markersize=4)
    given = np.isfinite(expected)
    left.plot(
        n[given], expected[given], "o", color="none", markeredgecolor="C3", markersize=11, label="expected"
    )
    left.set(
        xscale="log",
        yscale="log",
        xlim=(0.8, 5000),
        xlabel="n",
        ylabel="total variance at sensitivity 1, over n²",
    )
    right.set(xscale="log", xlabel="n", ylabel="above the bound on every Gaussian, in %")
    left.legend(fontsize="small")
    right.legend(fontsize="small")
    save_figure(figure, out, "traces")


def crossovers(out: Path, quick: bool, progress: Progress) -> None:
    """Error over that of the pure poset mechanism at ε = 1, and where it falls below 1."""
    sizes = (
        [2, 10, 40]
        if quick
        else [2, 3, 5, 8, 12, 16, 20, 24, 28, 32, 36, 40, 50, 60, 70, 80, 84, 88, 100, 120]
    )
    names = ("family", "n", "pure", "gaussian", "zcdp")
    columns: dict[str, list[str | float]] = {name: [] for name in names}
    for done, (name, make) in enumerate(FAMILIES.items()):
        for n in sizes:
            progress((done + n / max(sizes)) / len(FAMILIES), f"{name}, {n}")
            P = make(n)
            pure = PosetMechanism(P, 1).error().total
            gaussian = OrderGaussianMechanism(P, epsilon=1, delta="1e-6").error().total
            concentrated = OrderGaussianMechanism(P, rho="0.5").error().total
            for key, value in zip(names, (name, n, pure, gaussian, concentrated), strict=True):
                columns[key].append(value)
    write_table(out, "crossovers", columns)
    family = np.array(columns["family"])
    n, pure, gaussian, zcdp = (np.array(columns[key], dtype=float) for key in names[1:])
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for k, name in enumerate(FAMILIES):
        of = family == name
        axes.plot(n[of], gaussian[of] / pure[of], f"C{k}-", label=f"{name}, (1, 1e-6)")
        axes.plot(n[of], zcdp[of] / pure[of], f"C{k}--", label=f"{name}, ρ = ½")
    axes.axhline(1, color="k", linewidth=0.8)
    for n_expected in (32, 84):
        axes.axvline(n_expected, color="C3", linewidth=0.8, linestyle=":")
    axes.annotate("expected crossings: 32 (antichain), 84 (chain)", (9, 5.8), fontsize="small", color="C3")
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="error over that of the poset mechanism at ε = 1")
    axes.legend(fontsize="x-small", ncols=2)
    save_figure(figure, out, "crossovers")


def bounded(out: Path, quick: bool, progress: Progress) -> None:
    """Records of at most k yeses: total variance over that of spherical noise of sensitivity √k, n·k."""
    cases = {"survey, 15": survey_sections(3)}
    if not quick:
        cases |= {"antichain, 50": FAMILIES["antichain"](50), "NAICS, 2125": naics(), "Debian, 200": debian()}
    columns: dict[str, list[str | float]] = {"order": [], "n": [], "k": [], "ratio": []}
    for done, (name, P) in enumerate(cases.items()):
        steps = [2, 10] if quick else [1, 2, 3, 5, 8, 12, 20, 35, 50, 100, 200, 500, 1000, 2125]
        for k in [k for k in steps if k < len(P)] + [len(P)]:
            progress((done + k / len(P)) / len(cases), f"{name}, k = {k}")
            total = OrderGaussianMechanism(P, rho="0.5", max_size=k).error().total
            for key, value in zip(columns, (name, len(P), k, total / (len(P) * k)), strict=True):
                columns[key].append(value)
    write_table(out, "bounded", columns)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    order = np.array(columns["order"])
    k, ratio = (np.array(columns[key], dtype=float) for key in ("k", "ratio"))
    for place, name in enumerate(cases):
        axes.plot(k[order == name], ratio[order == name], f"C{place}.-", label=name)
    axes.axhline(1, color="k", linewidth=0.8)
    axes.set(
        xscale="log",
        xlabel="largest number of yeses in a record, k",
        ylabel="total variance over n·k",
        ylim=(0, 1.05),
    )
    axes.legend(fontsize="small")
    save_figure(figure, out, "bounded")
