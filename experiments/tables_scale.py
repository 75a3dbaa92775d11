"""Both errors along the scale from counts to distribution, on shapes that were fixed before, against other designs and a rival."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from _frontier_shapes import FRESH, LAST, ROUGH, SETTINGS, SMOOTH, UNSEEN, drawn
from _held_out import real, real_unseen
from _tables import Table, load
from common import add_rows, save_figure, write_table
from isotone.mechanism import Progress
from isotone.privacy.draws import SeededDraws
from isotone.tables.smooth import many_systems
from isotone.tables.thresholds import POINTS, Thresholds, predicted_errors, preset_thresholds, thresholds_for
from isotone.tables.two_stage import published_stratum

DRAWS = 20
SCALE = ("0", "0.1", "0.25", "0.5", "1")
MIDDLE = ("200", "450", "900")
SHARES = ("0.25", "0.5", "0.9")
KEYS = ("group", "shape", "size", "upper", "epsilon", "way")
NAMES = ("estimate", "distance", "cover", "worst")
EXPECTED: dict[tuple[int, int, str], str] = {
    (1000, 20, "0.1"): ".59/.21 .61/.078 .63/.067 .64/.055 .64/.049",
    (1000, 20, "0.3"): ".83/.30 .92/.16 1.01/.11 1.15/.096 1.28/.066",
    (1000, 20, "1"): ".95/.59 1.14/.39 1.31/.31 1.75/.21 3.84/.11",
    (1000, 60, "0.1"): ".78/.31 .83/.17 .90/.14 .96/.12 1.16/.087",
    (1000, 60, "0.3"): ".91/.45 1.00/.33 1.09/.30 1.32/.27 3.08/.17",
    (1000, 60, "1"): ".98/.72 1.13/.61 1.29/.54 1.68/.46 9.90/.24",
    (10_000, 20, "0.1"): ".59/.097 .62/.013 .63/.009 .64/.007 .64/.006",
    (10_000, 20, "0.3"): ".82/.14 .92/.032 1.03/.019 1.17/.012 1.28/.008",
    (10_000, 20, "1"): ".96/.27 1.13/.085 1.33/.048 1.76/.029 3.83/.013",
    (10_000, 60, "0.1"): ".78/.13 .85/.038 .90/.024 .97/.021 1.17/.014",
    (10_000, 60, "0.3"): ".92/.21 1.03/.090 1.19/.071 1.50/.053 3.09/.029",
    (10_000, 60, "1"): ".97/.47 1.16/.26 1.38/.16 1.89/.10 9.92/.048",
}
"""What a prototype measured on six other shapes: estimate/distance relative to plain noise, for each point of the scale."""


def thresholds_of(way: str, size: int, upper: int, epsilon: str) -> Thresholds:
    """The thresholds of a point of the scale, of a design of few categories, or all of them with a share."""
    kind, _, what = way.partition(" ")
    step = Fraction(epsilon)
    if kind == "e":
        return thresholds_for(Fraction(what), upper, step, size)
    if kind == "preset":
        return preset_thresholds(next(name for name in POINTS if name == what), upper, step, size)
    return Thresholds(upper, step, tuple(range(upper)), Fraction(what))


def once(table: Table, epsilon: str, way: str, seed: list[int]) -> tuple[float, float, float]:
    """Mean squared error of the estimates, distance of the distributions and share of intervals that hold."""
    counts, upper, draws = table.counts, table.upper, SeededDraws(np.random.default_rng(seed))
    if way == "plain":
        noisy = Thresholds(upper, Fraction(epsilon), (), Fraction(0)).measure(counts, draws)[2]
        values = np.clip(noisy, 0, upper)
        return float(np.mean((values - counts) ** 2)), _distance(values, counts), 1.0
    thresholds = thresholds_of(way, len(counts), upper, epsilon)
    if way.startswith("rival"):
        return (*_rival(thresholds, counts, draws), 1.0)
    values, stratum = published_stratum(np.arange(len(counts)), counts, thresholds, draws)
    low, high = stratum.intervals(0.95)
    error = float(np.mean((stratum.estimates() - counts) ** 2))
    return error, _distance(np.asarray(values), counts), float(np.mean((low <= counts) & (counts <= high)))


def _rival(thresholds: Thresholds, counts: NDArray[np.int64], draws: SeededDraws) -> tuple[float, float]:
    """The noisy cumulative histogram alone, made to rise, and ranks of clamped noise; estimates are posterior means under it."""
    made, cumulative, noisy = thresholds.measure(counts, draws)
    size, upper = len(counts), thresholds.upper
    reached = np.clip(np.asarray(isotonic_regression(cumulative.astype(np.float64)).x), 0, size)
    histogram = np.diff(reached, prepend=0.0, append=float(size))
    values = np.searchsorted(np.cumsum(histogram), np.arange(size) + 0.5).clip(0, upper)
    seen = np.clip(noisy, 0, upper)
    joint = (histogram / size + 1e-9)[:, None] * made.channel()
    means = np.arange(upper + 1) @ joint / joint.sum(axis=0)
    return float(np.mean((means[seen] - counts) ** 2)), _distance(values, counts)


def _distance(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    return float(np.mean(np.abs(np.sort(one) - np.sort(two))))


Case = tuple[str, str, str, str, str, str]


def run(out: Path, quick: bool, progress: Progress) -> None:
    """Write the mean errors of every way on every shape, and what was aimed at."""
    cases = list(_cases(quick))

    def make(*case: str) -> list[str]:
        progress(cases.index(case) / len(cases), case[1])  # pyright: ignore[reportArgumentType]
        return _measured(case, 2 if quick else DRAWS if case[0] in ("smooth", "last") else DRAWS // 2)

    with many_systems():
        rows = add_rows(out / "measured.csv", KEYS, NAMES, cases, make)
    means = _means(out, rows)
    _aims(out, means, rows)
    _picture(out, means)
    progress(1.0, "done")


def few(out: Path) -> None:
    """Some cases of the full run, with all of their draws."""
    cases = [case for case in _cases(False) if case[0] == "real" and case[5] in ("plain", "e 0.5")][:4]
    add_rows(out / "measured.csv", KEYS, NAMES, cases, lambda *case: _measured(case, DRAWS // 2))


def _measured(case: tuple[str, ...], draws: int) -> list[str]:
    """The mean errors of one way on one shape, how often intervals hold on average, and in the worst release."""
    group, shape, size, upper, epsilon, way = case
    fixed = next((table for table in _real() if table.name == shape), None) if "real" in group else None
    found: list[tuple[float, float, float]] = []
    for draw in range(draws):
        table = fixed or drawn(shape, int(size), int(upper), draw)
        found.append(once(table, epsilon, way, [draw, int(size), int(upper)]))
    errors = np.array(found)
    numbers = errors[:, 0].mean() ** 0.5, errors[:, 1].mean(), errors[:, 2].mean(), errors[:, 2].min()
    return [f"{number:.5g}" for number in numbers]


def _real() -> list[Table]:
    return [
        load("crime"),
        load("schools"),
        *(table for table in real() if len(table.counts) >= 1000),
        *real_unseen(),
    ]


def _cases(quick: bool) -> Iterator[Case]:
    """Smooth shapes with every way, real tables, and rough shapes with those that matter there."""
    ours = [f"e {point}" for point in SCALE]
    presets = ["preset counts", "preset distribution"]
    everywhere, rivals = (
        [f"all {share}" for share in SHARES],
        [f"rival {share}" for share in (*SHARES, "0.75")],
    )
    settings = SETTINGS[:1] if quick else sorted(SETTINGS, key=lambda setting: (-setting[1], -setting[0]))
    for size, upper, epsilon in settings:
        for shape in SMOOTH[:1] if quick else SMOOTH:
            for way in ("plain", *ours, *presets, *everywhere, *rivals):
                yield "smooth", shape, str(size), str(upper), epsilon, way
    for size, upper, epsilon in settings[:1] if quick else [each for each in settings if each[1] == 60]:
        for shape in ROUGH[:1] if quick else ROUGH:
            for way in ("plain", *ours[1:], "preset distribution", *everywhere[1:], *rivals[1:]):
                yield "rough", shape, str(size), str(upper), epsilon, way
    if not quick:
        yield from _middle()
        yield from _last()
        yield from _unseen()
    for table in () if quick else _real()[: -len(real_unseen())]:
        for epsilon in ("0.1", "0.3", "1"):
            for way in ("plain", *ours[1:], "preset distribution", "all 0.5", "rival 0.5", "rival 0.9"):
                yield "real", table.name, str(len(table.counts)), str(table.upper), epsilon, way


def _middle() -> Iterator[Case]:
    """A few hundred categories, where the scale begins to replace the designs of few."""
    ways = ("plain", "e 0.05", "e 0.5", "preset both", "preset distribution")
    for size, upper, epsilon in product(MIDDLE, ("20", "60"), ("0.1", "1")):
        for shape, way in product(FRESH[:3], ways):
            yield "middle", shape, size, upper, epsilon, way


def _last() -> Iterator[Case]:
    """Three settings, on shapes that were written down last."""
    ways = ("plain", "e 0.5", "e 1", "preset distribution", "all 0.5", "all 0.9", "rival 0.5", "rival 0.9")
    for setting in (("1000", "60", "0.1"), ("1000", "20", "0.3"), ("10000", "60", "1")):
        for shape, way in product(LAST, ways):
            yield "last", shape, *setting, way


def _unseen() -> Iterator[Case]:
    """Three other settings, on shapes and real tables that a second stranger chose."""
    ways = ("plain", "e 0.1", "e 0.5", "e 1", "preset distribution", "all 0.5", "rival 0.5", "rival 0.9")
    for setting in (("1000", "60", "0.1"), ("1000", "20", "1"), ("10000", "60", "0.3")):
        for shape, way in product(UNSEEN, ways):
            yield "unseen", shape, *setting, way
    for table, epsilon, way in product(real_unseen(), ("0.1", "0.3", "1"), ways):
        yield "unseen real", table.name, str(len(table.counts)), str(table.upper), epsilon, way


Means = dict[tuple[str, str, str, str, str], tuple[float, float]]


def _means(out: Path, rows: list[dict[str, str]]) -> Means:
    """Geometric means over the shapes of a group (each real table by itself), relative to plain noise."""
    plain = {(*_where(row), row["shape"]): row for row in rows if row["way"] == "plain"}
    logs: dict[tuple[str, str, str, str, str], list[tuple[float, float]]] = {}
    for row in rows:
        if row["way"] == "plain":
            continue
        base = plain[(*_where(row), row["shape"])]
        group, size, upper, epsilon = _where(row)
        key = (row["shape"] if "real" in group else group, size, upper, epsilon, row["way"])
        ratios = [float(row[name]) / float(base[name]) for name in ("estimate", "distance")]
        logs.setdefault(key, []).append((float(np.log(ratios[0])), float(np.log(max(ratios[1], 1e-9)))))
    means = {key: tuple(np.exp(np.mean(some, axis=0)).tolist()) for key, some in logs.items()}
    columns: dict[str, list[object]] = {
        name: [key[at] for key in means]
        for at, name in enumerate(("group", "size", "upper", "epsilon", "way"))
    }
    columns |= {name: [f"{each[at]:.4g}" for each in means.values()] for at, name in enumerate(NAMES[:2])}
    write_table(out, "means", columns)
    return means  # type: ignore[return-value]


def _where(row: dict[str, str]) -> tuple[str, str, str, str]:
    return row["group"], row["size"], row["upper"], row["epsilon"]


def _aims(out: Path, means: Means, rows: list[dict[str, str]]) -> None:
    """Every aim with what was found, one line for each setting."""
    lines: list[tuple[object, ...]] = []

    def add(
        aim: str, setting: tuple[str, str, str], way: str, found: float, limit: float, at_least: bool = False
    ) -> None:
        met = found >= limit if at_least else found <= limit
        lines.append((aim, *setting, way, f"{found:.3g}", f"{limit:.3g}", "yes" if met else "no"))

    for (group, size, upper, epsilon, way), (estimate, distance) in means.items():
        setting, kind = (size, upper, epsilon), way.split()[0]
        if kind == "e" and group == "smooth":
            row = EXPECTED[int(size), int(upper), epsilon].split()[SCALE.index(way.split()[1])].split("/")
            add("estimate of the prototype's", setting, way, estimate / float(row[0]), 1.05)
            add("distance of the prototype's", setting, way, distance / float(row[1]), 1.15)
            others = [
                both
                for (name, *rest, other), both in means.items()
                if name == group and tuple(rest) == setting and other.split()[0] in ("all", "preset", "rival")
            ]
            dominated = max(min(estimate / x, distance / y) for x, y in others)
            add("dominated by", setting, way, dominated, 1.05)
        if kind == "e" and group in ("smooth", "rough"):
            shapes = [row for row in rows if _where(row) == (group, *setting) and row["way"] == way]
            add(
                "intervals, mean",
                setting,
                f"{way}, {group}",
                float(np.mean([float(r["cover"]) for r in shapes])),
                0.95,
                True,
            )
            add(
                "intervals, worst release",
                setting,
                f"{way}, {group}",
                min(float(r["worst"]) for r in shapes),
                0.93,
                True,
            )
        if kind == "all" and group in ("smooth", "rough"):
            rival = means[group, size, upper, epsilon, way.replace("all", "rival")]
            add(
                "distance of the rival's",
                setting,
                f"{way}, {group}",
                distance / rival[1],
                1.03 if group == "smooth" else 1.05,
            )
        if way == "e 1" and group == "smooth" and size == "10000":
            former = means[group, size, upper, epsilon, "preset distribution"]
            limit = {"0.1": 0.45, "0.3": 0.30, "1": 0.17}[epsilon]
            add("distance of the former distribution's", setting, way, distance / former[1], limit)
        if kind == "e" and group == "smooth":
            thresholds = thresholds_of(way, int(size), int(upper), epsilon)
            told = predicted_errors(
                int(size), int(upper), Fraction(epsilon), [(thresholds.places, thresholds.share)]
            )
            measured = [
                float(row["distance"])
                for row in rows
                if _where(row) == (group, *setting) and row["way"] == way
            ]
            off = float(np.exp(np.mean(np.log(measured)))) / told[0][1]
            add("measured distance of the planned", setting, way, max(off, 1 / off), 1.8)
    names = ("aim", "size", "upper", "epsilon", "way", "found", "limit", "met")
    write_table(out, "aims", {name: [line[at] for line in lines] for at, name in enumerate(names)})


def _picture(out: Path, means: Means) -> None:
    """Both errors of the scale, of all thresholds with any share and of the rival, at 10,000 categories and counts up to 60."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    for axis, epsilon in zip(figure.subplots(1, 3), ("0.1", "0.3", "1"), strict=True):
        for kind, marker in (("e", "o-"), ("preset", "s"), ("all", ".--"), ("rival", "x:")):
            points = sorted(
                both
                for key, both in means.items()
                if key[:4] == ("smooth", "10000", "60", epsilon) and key[4].startswith(kind)
            )
            if points:
                axis.loglog(
                    *zip(*points, strict=True),
                    marker,
                    label={"e": "scale", "preset": "before", "all": "all thresholds"}.get(kind, kind),
                )
        axis.set_title(f"ε = {epsilon}")
        axis.set_xlabel("error of an estimate, of that of plain noise")
    figure.axes[0].set_ylabel("distance of distributions, of that of plain noise")
    if figure.axes[0].get_legend_handles_labels()[0]:
        figure.axes[0].legend(fontsize=8)
    save_figure(figure, out, "scale")
