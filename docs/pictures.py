"""Draw the pictures of the documentation: ``python docs/pictures.py [name …]`` writes them to docs/pictures.

Each function here draws the picture that has its name. The data is public or made up. Simulations have a fixed seed; private curves
and the picture of a report (taken in a browser, chromium) are true releases and change from run to run.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import isotone as iso

DOCS = Path(__file__).resolve().parent
DATA = DOCS.parent / "data"
OURS, OTHER, THIRD, GREY = "#3f51b5", "#c62828", "#ef8a17", "0.55"

TRAVEL = {
    "weekly": "bike",
    "to_work": "weekly",
    "helmet": "bike",
    "accident": "bike",
    "transit_daily": "transit_card",
}
SURVEY = {
    "hypertension_two_visits": "hypertension",
    "hypertension_this_year": "hypertension_two_visits",
    "hypertension_medication": "hypertension",
    "cholesterol_this_year": "cholesterol",
    "cholesterol_medication": "cholesterol",
    "asthma_still": "asthma",
    "asthma_attack": "asthma",
    "asthma_emergency": "asthma",
}

QUESTIONS = {
    "HYPEV_A": "Ever told: high blood pressure?",
    "HYPDIF_A": "Told at two or more visits?",
    "HYP12M_A": "In the last 12 months?",
    "HYPMED_A": "Taking medication?",
    "CHLEV_A": "Ever told: high cholesterol?",
    "CHL12M_A": "In the last 12 months?",
    "CHLMED_A": "Taking medication?",
    "ASEV_A": "Ever told: asthma?",
    "ASTILL_A": "Still has it?",
    "ASAT12M_A": "An attack in the last 12 months?",
    "ASER12M_A": "An emergency in the last 12 months?",
}


def questionnaire() -> Figure:
    """A questionnaire with its skip logic, and its counts as released at ε = 1: isotone beside Laplace noise on each count."""
    with (DATA / "survey" / "nhis2021_counts.csv").open(newline="", encoding="utf-8") as file:
        questions = {row["variable"]: row for row in csv.DictReader(file)}
    order = iso.Poset.from_mapping({name: row["parent"] for name, row in questions.items() if row["parent"]})
    truth = np.array([int(questions[str(name)]["yes"]) for name in order.elements])
    rng = np.random.default_rng(2021)
    kinds: list[tuple[str, Any, str]] = [
        ("isotone", iso.counts.PosetMechanism, OURS),
        ("Laplace noise", iso.counts.DiscreteLaplaceMechanism, GREY),
    ]
    released: list[tuple[str, str, Any, Any]] = []
    for name, kind, colour in kinds:
        mechanism = kind(order, epsilon=1)
        noise = np.asarray(mechanism.simulate_released(1, rng))[0]
        released.append((name, colour, noise, np.asarray(mechanism.half_widths(0.95))))
    figure, (form, ax) = plt.subplots(
        1, 2, figsize=(10.4, 4.6), width_ratios=(1, 1.25), sharey=True, layout="constrained"
    )
    rows = {name: place for place, name in enumerate(QUESTIONS)}
    for name, row in rows.items():
        parent, depth = questions[name]["parent"], _depth(questions, name)
        form.text(0.06 + 0.09 * depth, row, QUESTIONS[name], va="center", fontsize=9.5)
        if parent:
            at = 0.045 + 0.09 * (depth - 1)
            form.plot([at, at, at + 0.075], [rows[parent] + 0.35, row, row], color=OURS, lw=1.2)
    form.set(xlim=(0, 1), ylim=(len(rows) - 0.4, -1.9))
    form.text(
        0, -1.35, "The questions; a line leads to what\nis asked only after a yes", fontsize=10, va="center"
    )
    form.axis("off")
    ax.plot([0, 0], [-0.6, len(rows) - 0.4], color="0.3", lw=0.8)
    for place, element in enumerate(order.elements):
        row = rows[str(element)]
        for (_, colour, noise, width), aside in zip(released, (-0.17, 0.17), strict=True):
            ax.plot(noise[place] + width[place] * np.array([-1, 1]), [row + aside] * 2, color=colour, lw=3)
            ax.plot(noise[place], row + aside, "o", color=colour, ms=5, zorder=3)
        texts = [
            f"{truth[place]:,}",
            *(f"{truth[place] + noise[place]:,.0f} ± {width[place]:.0f}" for _, _, noise, width in released),
        ]
        for text, at, colour in zip(texts, (1.12, 1.38, 1.66), ("0.2", OURS, "0.4"), strict=True):
            ax.text(
                at,
                row,
                text,
                transform=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                fontsize=9,
                color=colour,
            )
    for text, at, colour in zip(
        ("true", "isotone", "Laplace noise"), (1.12, 1.38, 1.66), ("0.2", OURS, "0.4"), strict=True
    ):
        ax.text(
            at,
            -1.1,
            text,
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="center",
            fontsize=9,
            color=colour,
        )
    ax.set(xlim=(-90, 90), xlabel="off by so many people; 95 % of the time the truth is within the bar")
    ax.text(0, -1.35, "Released at ε = 1, of 29,482 adults", fontsize=10, va="center", ha="center")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(left=False)
    return figure


def _depth(questions: dict[str, Any], name: str) -> int:
    parent = questions[name]["parent"]
    return 1 + _depth(questions, parent) if parent else 0


def noise_shapes() -> Figure:
    """Noise of three mechanisms on two counts, one of which bounds the other."""
    P = iso.Poset.chain(["told twice", "ever told"])
    mechanisms: list[tuple[str, Any, list[tuple[float, float]]]] = [
        ("Laplace: ignores the order", iso.counts.LaplaceMechanism(P, 1), [(2, 0), (0, 2), (-2, 0), (0, -2)]),
        ("cube: every count by 1", iso.counts.LInfinityMechanism(P, 1), [(1, 1), (-1, 1), (-1, -1), (1, -1)]),
        (
            "isotone: shaped by the order",
            iso.counts.PosetMechanism(P, 1),
            [(1, 0), (1, 1), (-1, 0), (-1, -1)],
        ),
    ]
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.5), sharex=True, sharey=True, layout="constrained")
    for ax, (title, mechanism, ball) in zip(axes, mechanisms, strict=True):
        draws = np.asarray(mechanism.simulate(2500, np.random.default_rng(1)))
        ours = mechanism is mechanisms[-1][1]
        ax.plot(draws[:, 1], draws[:, 0], ".", ms=2, alpha=0.5, color=OURS if ours else GREY)
        ax.fill(*zip(*ball, strict=True), facecolor="none", edgecolor="black", lw=1.5, zorder=3)
        ax.plot([0, 1, 1], [0, 0, 1], "o", color=OTHER, ms=5, zorder=4)
        ax.set(xlim=(-9, 9), ylim=(-9, 9), aspect="equal", xlabel="noise on “ever told”")
        ax.set_title(f"{title}\nrms error {mechanism.error().rmse:.2f}", fontsize=10)
    axes[0].set_ylabel("noise on “told twice”")
    return figure


def travel_order() -> Figure:
    """The order of the survey on the first page."""
    return _figure(iso.Poset.from_mapping(TRAVEL).plot())


def survey_order() -> Figure:
    """The order of the health survey."""
    P = iso.Poset.from_mapping(SURVEY)
    return _figure(P.plot(labels={name: str(name).replace("_", " ") for name in P.elements}))


def choosing_epsilon() -> Figure:
    """Error of the health survey against ε, and how to read it."""
    P = iso.Poset.from_mapping(SURVEY)
    epsilons = np.geomspace(0.1, 4, 60)
    figure, ax = plt.subplots(figsize=(7.2, 4), layout="constrained")
    kinds = [("Laplace", iso.counts.LaplaceMechanism, GREY), ("isotone", iso.counts.PosetMechanism, OURS)]
    for name, kind, colour in kinds:
        width = kind(P, epsilon=1).unrounded_simultaneous_half_width(0.95)
        ax.loglog(epsilons, width / epsilons, color=colour, lw=2.5, label=name)
        at = width / 50
        ax.plot([at, at], [1, 50], ":", color=colour)
        ax.annotate(f"ε = {at:.2g}", (at, 2.2), xytext=(4, 0), textcoords="offset points", color=colour)
    ax.axhline(50, color=OTHER, lw=1)
    ax.text(3.9, 54, "what we can accept: ± 50", color=OTHER, fontsize=9, ha="right")
    ax.set(xlabel="ε", ylabel="all counts within ± (95 %)", ylim=(2, 1000), xlim=(0.1, 4))
    ax.set_xticks([0.1, 0.2, 0.5, 1, 2, 4], ["0.1", "0.2", "0.5", "1", "2", "4"])
    ax.set_yticks([10, 100, 1000], ["10", "100", "1,000"])
    ax.minorticks_off()
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def epsilon_odds() -> Figure:
    """What ε does to what a reader may believe about one person."""
    before = np.linspace(0.001, 0.999, 400)
    figure, ax = plt.subplots(figsize=(5.2, 4), layout="constrained")
    for epsilon, colour in ((0.1, "#9fa8da"), (0.5, "#5c6bc0"), (1, "#303f9f"), (3, "#1a237e")):
        odds = before / (1 - before) * np.exp(epsilon)
        ax.plot(100 * before, 100 * odds / (1 + odds), color=colour, lw=2, label=f"ε = {epsilon:g}")
    ax.plot([0, 100], [0, 100], color=GREY, lw=1)
    ax.set(
        xlabel="what a reader believed before (%)",
        ylabel="the most they may believe after (%)",
        xlim=(0, 100),
        ylim=(0, 100),
    )
    ax.set_title("“this person said yes”", fontsize=10)
    ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def rows_to_records() -> Figure:
    """Rows of one person become one record that follows the order."""
    steps = [
        ("rows of one person", ["weekly: yes", "helmet: yes", "weekly: (missing)"]),
        ("combined: any yes is a yes", ["bike: no", "weekly: yes", "helmet: yes"]),
        ("closed: yes to weekly\nmeans yes to bike", ["bike: YES", "weekly: yes", "helmet: yes"]),
        ("cut (max_size = 2):\nnearest to the top", ["bike: yes", "weekly: yes", "helmet: no"]),
        ("one record: every count\nchanges by 0 or 1", ["bike + 1", "weekly + 1", "helmet + 0"]),
    ]
    figure, ax = plt.subplots(figsize=(9.6, 2.1), layout="constrained")
    for i, (title, lines) in enumerate(steps):
        _box(ax, i * 2.1, 0, 1.75, 1.0, lines, OURS if i == len(steps) - 1 else "0.35")
        ax.text(i * 2.1 + 0.87, 1.12, title, ha="center", va="bottom", fontsize=8.5)
        if i:
            ax.annotate("", (i * 2.1 - 0.04, 0.5), (i * 2.1 - 0.31, 0.5), arrowprops={"arrowstyle": "->"})
    ax.set(xlim=(-0.1, 10.3), ylim=(-0.1, 1.75))
    ax.axis("off")
    return figure


def ledger_steps() -> Figure:
    """What a release does, in order, and what a crash costs at each place."""
    steps = [
        ("check what is public", "a crash here\ncosts nothing"),
        ("charge the ledger", "durable before\nany data is read"),
        ("read and count", "a crash here: the\ncharge stays spent"),
        ("add noise", "nothing has\nbeen shown"),
        ("write the release", "whole files only"),
        ("mark it finished", "the same spec is\nnot charged again"),
    ]
    figure, ax = plt.subplots(figsize=(9.6, 1.9), layout="constrained")
    for i, (title, note) in enumerate(steps):
        _box(ax, i * 1.7, 0.75, 1.45, 0.7, [title], OURS if i == 1 else "0.35")
        ax.text(i * 1.7 + 0.72, 0.62, note, ha="center", va="top", fontsize=8, color="0.35")
        if i:
            ax.annotate("", (i * 1.7 - 0.02, 1.1), (i * 1.7 - 0.24, 1.1), arrowprops={"arrowstyle": "->"})
    ax.set(xlim=(-0.1, 10.1), ylim=(0.1, 1.6))
    ax.axis("off")
    return figure


def _line_picture(ax: Any, parts: Any, colours: Any, truths: Any, survival: bool) -> None:
    """Estimates with their bands, group by group, and in grey what they are for the records themselves."""
    for (name, figures), colour, truth in zip(parts, colours, truths, strict=True):
        xs = np.concatenate([figures.start[:1], figures.stop])
        value, low, high = figures.below, figures.low, figures.high
        if survival:
            xs, value, low, high = xs[:-1], *(1 - each[:-1] for each in (value, high, low))
        ax.fill_between(xs, low, high, color=colour, alpha=0.25, linewidth=0)
        ax.plot(xs, value, color=colour, lw=1.8, label=name)
        ax.plot(
            *truth, color="black", lw=0.9, ls="--", label="the records" if colour == colours[-1] else None
        )


def _line_figures(described: Any, cells: Any, seed: int) -> Any:
    """Figures of a simulated release at ε = 1, for each group."""
    from isotone.privacy.guarantee import Guarantee

    mechanism = described.mechanism(Guarantee.pure(1))
    lines = mechanism.simulate(cells, np.random.default_rng(seed))
    return [described.figures(mechanism, line, 0.95, "records") for line in lines]


def _rows(name: str, count: str) -> dict[str, np.ndarray]:
    """The rows of a table in data/times, in which one column says how often each row is there."""
    with (DATA / "times" / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    times = [int(row.pop(count, 1)) for row in rows]
    return {column: np.repeat([row[column] for row in rows], times) for column in rows[0]}


def distributions_waiting() -> Figure:
    """Delays of flights and weekly earnings, as one release at ε = 1 shows each, with the records."""
    delays = _rows("flight_delays", "flights")["minutes"].astype(float)
    earnings = _rows("weekly_earnings", "people")
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.2), layout="constrained")
    shown = [
        (left, "minutes late", iso.Distribution("minutes", bounds=(0, 600), grid="integers"), delays, OURS, 120),
        (right, "dollars a week", iso.Distribution("dollars", bounds=(0, 5_000)), earnings["dollars"][earnings["sex"] == "f"].astype(float), OTHER, 1_200),
    ]  # fmt: skip
    for ax, name, described, every, colour, end in shown:
        line, values = described.line, np.random.default_rng(36).choice(every, 1_000, replace=False)
        values = np.clip(values, float(line.low), float(line.high))
        counts = np.bincount(np.searchsorted(line.ends()[1], values), minlength=line.cells)[None, None]
        truth = np.sort(values), np.arange(1, values.size + 1) / values.size
        _line_picture(
            ax, [("released", *_line_figures(described, counts, 1))], [colour], [truth], survival=False
        )
        ax.set(xlim=(0, end), ylim=(0, 1), xlabel=name, ylabel="share at or below")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.legend(frameon=False, loc="lower right")
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def survival_arms() -> Figure:
    """Months until prisoners who were released came back, by alcohol problems, as one release at ε = 1 shows it, with the curves of the records."""
    from isotone.distribution.survival import kaplan_meier

    rows, horizon = _rows("returns_to_prison", ""), 72
    month = np.minimum(rows["months"].astype(int) - 1, horizon)
    event = (rows["returned"] == "yes") & (month < horizon)
    cells = np.zeros((2, 2, horizon + 1), np.int64)
    np.add.at(cells, ((rows["alcohol"] == "yes").astype(int), 1 - event.astype(int), month), 1)
    by = {"alcohol": ["no", "yes"]}
    described = iso.Survival("months", event="returned", horizon=horizon, cells=horizon, by=by)
    names = ["no alcohol problems", "alcohol problems"]
    parts = list(zip(names, _line_figures(described, cells, 2), strict=True))
    truths = [(np.arange(horizon + 1), np.append(1.0, kaplan_meier(*group)[0][:-1])) for group in cells]
    figure, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    _line_picture(ax, parts, [OURS, OTHER], truths, survival=True)
    ax.set(xlim=(0, horizon), ylim=(0, 1), xlabel="months", ylabel="share not back in prison")
    ax.set_xticks(range(0, horizon + 1, 12))
    ax.legend(frameon=False, loc="lower left")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


DOSES = {  # people of the Isle of Man with a first dose, and with a second one, by Sunday (Our World in Data, CC BY 4.0)
    "7 Feb": (9063, 2184),
    "14 Feb": (10405, 3328),
    "21 Feb": (12766, 4733),
    "28 Feb": (14123, 7329),
    "7 Mar": (15832, 8966),
    "14 Mar": (20690, 11337),
    "28 Mar": (32286, 15008),
}


def series_doses() -> Figure:
    """Doses by week as a series of eight weeks shows them at ε = 1, and how wide its intervals are beside those of eight releases."""
    weeks = (*list(DOSES)[:6], "21 Mar", "28 Mar")
    order = iso.Poset.chain(["second dose", "first dose"])
    made = iso.Series(iso.Counts(order, unit="person"), periods=weeks).plan(epsilon=1).best
    noise = np.asarray(made.simulate_released(1, np.random.default_rng(2021))).reshape(8, 2)
    half = made.half_widths(0.95).reshape(8, 2)
    apart = iso.counts.PosetMechanism(order, epsilon="1/8").half_widths(0.95)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.2), layout="constrained")
    at = [weeks.index(week) for week in DOSES]
    for stage, (name, colour) in enumerate((("second dose", OTHER), ("first dose", OURS))):
        value = np.array([DOSES[week][1 - stage] for week in DOSES]) + noise[at, stage]
        left.plot(at, value, "o-", ms=4, color=colour, label=name)
        left.fill_between(at, value - half[at, stage], value + half[at, stage], color=colour, alpha=0.3)
        right.plot(range(8), half[:, stage], "o-", ms=4, color=colour, label=f"{name}: one series")
        right.axhline(apart[stage], color=colour, ls="--", label=f"{name}: eight releases")
    left.set(title="People, with bands", ylim=(0, None))
    right.set(title="Half-width of an interval, 95 %", ylim=(0, None))
    for ax in (left, right):
        ax.set_xticks(range(8), weeks, rotation=45, ha="right")
        ax.legend(fontsize=8, loc="upper left" if ax is left else "center right")
    return figure


def series_funnel() -> Figure:
    """A funnel of made-up visitors over twelve months as one series shows it at ε = 1, the truth beside it."""
    stages, rng = ("purchase", "sign-up", "visit"), np.random.default_rng(7)
    first = rng.integers(0, 12, 800)
    reached = {"visit": first}
    for before, stage, share in (("visit", "sign-up", 0.4), ("sign-up", "purchase", 0.5)):
        later = reached[before] + rng.integers(0, 3, 800)
        reached[stage] = np.where(rng.random(800) < share, later, 99)
    truth = np.array([[int(np.sum(reached[stage] <= month)) for stage in stages] for month in range(12)])
    months = tuple(f"month {month + 1}" for month in range(12))
    made = iso.Series(iso.Counts(iso.Poset.chain(stages), unit="person"), periods=months).plan(epsilon=1).best
    shown = truth + np.asarray(made.simulate_released(1, rng)).reshape(12, 3)
    half = made.half_widths(0.95).reshape(12, 3)
    figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for stage, colour in enumerate((OTHER, THIRD, OURS)):
        ax.plot(range(1, 13), shown[:, stage], "o-", ms=4, color=colour, label=stages[stage])
        low, high = shown[:, stage] - half[:, stage], shown[:, stage] + half[:, stage]
        ax.fill_between(range(1, 13), np.maximum(low, 0), high, color=colour, alpha=0.25)
        ax.plot(range(1, 13), truth[:, stage], "k:", lw=1, label="made-up truth" if stage == 2 else None)
    ax.set(xlabel="month", ylabel="people so far", ylim=(0, None), xticks=range(1, 13))
    ax.legend(fontsize=8)
    return figure


def table_distribution() -> Figure:
    """Homicides by county: what noise does to the distribution, and what isotone keeps of it."""
    counts = np.loadtxt(
        DATA / "us_counties_homicides.csv", delimiter=",", skiprows=1, usecols=-1, dtype=int, quotechar='"'
    )
    upper, epsilon = 50, "0.2"
    truth = np.minimum(counts, upper)
    rng = np.random.default_rng(3)
    plain = iso.tables.truncated_geometric(upper + 1, epsilon).simulate(truth, rng=rng)
    ours = iso.tables.TwoStageMechanism(upper, epsilon).simulate(truth, rng=rng)
    figure, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    at = np.arange(upper + 1)
    ax.bar(at, np.bincount(truth, minlength=upper + 1), color="0.8", width=1.0, label="truth")
    for values, name, colour in ((plain, "noise on each count", OTHER), (ours, "isotone", OURS)):
        ax.step(
            at,
            np.bincount(np.asarray(values), minlength=upper + 1),
            where="mid",
            color=colour,
            lw=1.8,
            label=name,
        )
    ax.set(
        yscale="symlog",
        xlabel="homicides in a county",
        ylabel="number of counties",
        xlim=(-0.5, upper + 0.5),
        ylim=(0, 3000),
    )
    ax.set_yticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1,000"])
    ax.set_title(f"3,136 counties, ε = {epsilon}", fontsize=10, loc="left")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def table_data() -> Figure:
    """The tables of the paper about distributions of counts."""
    homicides = np.loadtxt(
        DATA / "us_counties_homicides.csv", delimiter=",", skiprows=1, usecols=-1, dtype=int, quotechar='"'
    )
    flu = np.loadtxt(
        DATA / "bird_flu_by_state.csv", delimiter=",", skiprows=1, usecols=-1, dtype=int, quotechar='"'
    )
    schools = _histogram("schools_full_time_teachers")
    panels = [
        ("bird flu by state", np.bincount(flu)),
        ("binomial", _histogram("binom")),
        ("homicides by county, up to 50", np.bincount(np.minimum(homicides, 50))),
        ("full-time teachers by school, up to 80", np.append(schools[:80], schools[80:].sum())),
    ]
    figure, axes = plt.subplots(1, 4, figsize=(11, 2.6), layout="constrained")
    for ax, (title, counts) in zip(axes, panels, strict=True):
        ax.bar(np.arange(len(counts)), counts, width=1.0, color=OURS)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("count")
    axes[0].set_ylabel("categories")
    return figure


def _histogram(name: str) -> Any:
    """A histogram that ships with the project: a line for each count and how many categories have it."""
    lines = np.loadtxt(DATA / "hists" / f"{name}.csv", delimiter=",", skiprows=1, ndmin=2)
    counts = np.zeros(int(lines[:, 0].max()) + 1)
    counts[lines[:, 0].astype(int)] = lines[:, 1]
    return counts


def calibration_curve() -> Figure:
    """Calibration of a classifier: the best monotone curve, and private ones at two budgets."""
    x, y = np.loadtxt(DATA / "curves" / "calibration_breast_cancer.csv", delimiter=",", skiprows=1).T
    return _curves(x, y, "score of the classifier", "share of malignant cases", (1, 5), (0.0, 1.0))


def curve_shapes() -> Figure:
    """The same data with and without a required shape."""
    rng = np.random.default_rng(8)
    x = rng.uniform(0, 100, 4000)
    y = np.clip(0.9 * np.sqrt(x / 100) + rng.normal(0, 0.15, 4000), 0, 1)
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3), sharey=True, layout="constrained")
    shapes: list[tuple[str, Any]] = [
        ("shape=None", None),
        ('shape=("constant", 4)', ("constant", 4)),
        ('shape="concave"', "concave"),
    ]
    at = np.linspace(0, 100, 801)
    for ax, (title, shape) in zip(axes, shapes, strict=True):
        model = iso.curves.PrivateIsotonicRegression(1, (0, 100), (0, 1), shape=shape, public_n=4000).fit(
            x, y
        )
        ax.plot(x[::8], y[::8], ".", color="0.8", ms=2)
        ax.plot(at, 0.9 * np.sqrt(at / 100), color="black", lw=1, ls="--")
        ax.plot(at, model.predict(at), color=OURS, lw=2)
        ax.set_title(title, fontsize=10, family="monospace")
        ax.set_xlabel("x")
    return figure


def gaussian_crossover() -> Figure:
    """Errors of pure and Gaussian noise by the number of questions in a chain."""
    sizes = [2, 4, 8, 16, 32, 64, 128]
    lines: dict[str, list[float]] = {
        "Laplace, ε = 1": [],
        "PosetMechanism, ε = 1": [],
        "GaussianMechanism": [],
        "OrderGaussianMechanism": [],
    }
    for n in sizes:
        P = iso.Poset.chain(range(n))
        found = [
            iso.counts.LaplaceMechanism(P, 1),
            iso.counts.PosetMechanism(P, 1),
            iso.counts.GaussianMechanism(P, epsilon=1, delta="1e-6"),
            iso.counts.OrderGaussianMechanism(P, epsilon=1, delta="1e-6"),
        ]
        for line, mechanism in zip(lines.values(), found, strict=True):
            line.append(mechanism.error().rmse)
    figure, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    styles = [(GREY, "-"), (OURS, "-"), (GREY, "--"), (OURS, "--")]
    for (name, line), (colour, style) in zip(lines.items(), styles, strict=True):
        words = name if "ε" in name else f"{name}, ε = 1, δ = 10⁻⁶"
        ax.loglog(sizes, line, color=colour, ls=style, lw=2.2, marker="o", ms=4, label=words)
    ax.set(xlabel="questions in a chain", ylabel="root mean squared error of a count")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8.5)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def report() -> Path:
    """The report of the health survey, as a browser shows it."""
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("The picture of a report needs chromium.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        example = DOCS.parent / "examples" / "health-survey"
        for file in ("spec.toml", "adults.csv"):
            shutil.copy(example / file, folder / file)
        subprocess.run(
            [sys.executable, "-m", "isotone", "release", "spec.toml", "-q"], cwd=folder, check=True
        )
        out = DOCS / "pictures" / "report.png"
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
        ]
        page = f"file://{folder}/out/report.html"
        subprocess.run(
            [browser, *flags, "--window-size=900,1150", f"--screenshot={out}", page],
            check=True,
            capture_output=True,
        )
    return out


def _curves(
    x: Any, y: Any, xlabel: str, ylabel: str, epsilons: tuple[float, ...], bounds: tuple[float, float]
) -> Figure:
    from scipy.optimize import isotonic_regression

    order = np.argsort(x, kind="stable")
    figure, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    ax.plot(x, y + np.random.default_rng(0).uniform(-0.02, 0.02, len(y)), "|", color="0.8", ms=5)
    ax.step(
        x[order],
        isotonic_regression(y[order]).x,
        where="post",
        color="black",
        lw=1.2,
        label="best curve, not private",
    )
    at = np.linspace(*bounds, 1001)
    for epsilon, colour in zip(epsilons, (THIRD, OURS), strict=True):
        model = iso.curves.PrivateIsotonicRegression(epsilon, bounds, (0, 1)).fit(x, y)
        ax.plot(at, model.predict(at), color=colour, lw=2, label=f"private, ε = {epsilon:g}")
    ax.set(xlabel=xlabel, ylabel=ylabel, title=f"{len(x)} patients")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def _box(ax: Any, x: float, y: float, width: float, height: float, lines: list[str], colour: str) -> None:
    style = "round,pad=0.02,rounding_size=0.08"
    box = FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor="white", edgecolor=colour, lw=1.5)
    ax.add_patch(box)
    ax.text(
        x + width / 2, y + height / 2, "\n".join(lines), ha="center", va="center", fontsize=9, color=colour
    )


def _figure(ax: Any) -> Figure:
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


PICTURES: list[Callable[[], Figure | Path]] = [
    questionnaire,
    noise_shapes,
    travel_order,
    survey_order,
    choosing_epsilon,
    epsilon_odds,
    rows_to_records,
    ledger_steps,
    series_doses,
    series_funnel,
    distributions_waiting,
    survival_arms,
    table_distribution,
    table_data,
    calibration_curve,
    curve_shapes,
    gaussian_crossover,
    report,
]


def main() -> None:
    """Draw all pictures, or those named."""
    wanted = set(sys.argv[1:])
    for draw in PICTURES:
        if not wanted or draw.__name__ in wanted:
            made = draw()
            if isinstance(made, Figure):
                made.savefig(
                    DOCS / "pictures" / f"{draw.__name__.replace('_', '-')}.png", dpi=130, bbox_inches="tight"
                )
            print(draw.__name__)


if __name__ == "__main__":
    main()
