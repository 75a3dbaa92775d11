"""Whatever readers are told with a confidence holds as often as stated: by name, at two sizes and two confidences.

The answers of readers are found: all methods of all readers of all kinds of releases that take a confidence. A new one that is not in
the list here fails. Each is asked many times, of fresh draws of the noise around a truth that is known, through the code that answers.
It has to hold often enough, and must not where its ends are moved towards each other: a width that is too small fails.
"""
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import isotone as iso
from isotone.curves.bands import MeasuredSums
from isotone.curves.posterior import NoisySums, pooled
from isotone.distribution.survival import kaplan_meier
from isotone.inference import Estimate
from isotone.noise import simulate
from isotone.noise.simulate import public_stream
from isotone.privacy.guarantee import Guarantee
from isotone.release import kinds
from isotone.release.kinds.counts import reader as counts
from isotone.release.kinds.curve import description as curves
from isotone.release.kinds.distribution.kind import DistributionReader, LineReader
from isotone.release.kinds.kind import Reader
from isotone.release.kinds.series import reader as series
from isotone.release.kinds.survival.kind import SurvivalReader
from isotone.release.kinds.table.kind import sum_of, sums_of
from isotone.release.result import Within
from isotone.series import SeriesMechanism
from isotone.tables import TwoStageMechanism
from tests.support import flat

CONFIDENCES = (0.8, 0.95)
LEAST = 1e-5
Rows = Iterator[list[tuple[float, Estimate]]]
"""For each draw what is true, and what is said of it. All of one draw have to hold at once."""


@dataclass(frozen=True)
class Ask:
    """Answers whose coverage is tested by one function. ``runs`` draws, and ``planted`` is the part of the width that must be too little."""

    answers: tuple[str, ...]
    drawn: Callable[[bool, float, int], Rows]
    runs: int = 80
    planted: float = 0.2
    turns: int = 1
    """How many kinds of answers there are in turn: each has to hold by itself."""


ASKED: dict[str, Ask] = {}
REFUSED = {
    "SeriesReader.sum": "stages contain each other: it always refuses",
    "LineReader.figures": "what the answers of its kinds are made of",
    **dict.fromkeys(
        ("LineReader.figure_at", "DistributionReader.figure_at", "SurvivalReader.figure_at"),
        "what is asked of both sides of a difference",
    ),
}


def ask(name: str, *answers: str, **more: Any) -> Callable[[Any], Any]:
    """A function that draws for these answers."""

    def kept(drawn: Any) -> Any:
        ASKED[name] = Ask(answers, drawn, **more)
        return drawn

    return kept


def answers() -> set[str]:
    """All methods of readers that take a confidence, by the class that defines them."""
    for module in pkgutil.walk_packages(kinds.__path__, kinds.__name__ + "."):
        import_module(module.name)
    readers, found = [Reader], set[str]()
    for kind in readers:
        readers += kind.__subclasses__()
        for name, member in vars(kind).items():
            if kind is Reader or name.startswith("_") or name == "level" or not inspect.isfunction(member):
                continue
            if "confidence" in inspect.signature(member).parameters:
                found.add(f"{kind.__name__}.{name}")
    return found


def test_whatever_a_reader_answers_has_a_coverage() -> None:
    covered = {name for one in ASKED.values() for name in one.answers}
    assert answers() == covered | REFUSED.keys()
    asked = {
        name
        for name, member in inspect.getmembers(Reader, inspect.isfunction)
        if "confidence" in inspect.signature(member).parameters
    }
    assert asked == {name.partition(".")[2] for name in answers()} - {"figures", "figure_at"} | {"level"}


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("name", ASKED)
def test_an_answer_holds_as_often_as_stated_and_a_part_of_its_width_does_not(
    name: str, large: bool, confidence: float
) -> None:
    """Streams are fixed. What is too seldom would have a chance below 1e-5, and so has what is planted."""
    one = ASKED[name]
    held, planted, runs = np.zeros(one.turns), 0, one.runs // one.turns
    for k, row in enumerate(one.drawn(large, confidence, one.runs)):
        truth, low, high = np.array([(true, said.low, said.high) for true, said in row]).T
        held[k % one.turns] += np.all((low - 1e-9 <= truth) & (truth <= high + 1e-9))
        planted += np.all(np.abs(truth - (low + high) / 2) <= one.planted * (high - low) / 2 + 1e-9)
    assert np.all(binom.cdf(held, runs, confidence) > LEAST)
    assert binom.cdf(planted, one.runs, confidence) < LEAST


# counts

P = iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
WITHIN = Within()


@cache
def place() -> Any:
    """A folder with a ledger, for releases whose numbers are then drawn anew."""
    folder = TemporaryDirectory()
    return folder, iso.Ledger(Path(folder.name) / "ledger", epsilon=10_000, unit="person")


@cache
def counted(number: int, groups: int = 0, breakdown: bool = False) -> iso.Release:
    """A release of counts, each under a charge of its own."""
    names = [f"g{k}" for k in range(groups)]
    rows = pd.DataFrame(
        {"person": range(3), "g": ["g0", "g1", "g0"], "h": ["x", "y", "x"], "hyp": 1, "twice": 0, "meds": 1}
    )
    by: Any = {"by": "g", "groups": names} if groups else {}
    if breakdown:
        by = {"by": {"g": names, "h": ["x", "y"]}, "margins": ["", "g", "*"]}
    options: dict[str, Any] = {
        "epsilon": 1,
        "mechanism": "DiscreteLaplaceMechanism",
        "unit": "person",
        "title": str(number),
    }
    return flat.counts(rows, P, ledger=place()[1], **options, **by)


def true_counts(large: bool) -> Any:
    return np.array([2_000, 1_200, 800] if large else [60, 25, 31])


def around(release: iso.Release, truth: Any, runs: int, stream: str) -> Iterator[iso.Release]:
    """The release with fresh noise around a truth, a row for each group."""
    mechanism = counts.measured(release.manifest, release.columns["value"])
    rows = len(release.columns["value"]) // 3
    assert len(mechanism) == rows
    noise = counts_mechanism(release).law(f"a test {stream}", draws=runs * rows).draws.reshape(runs, -1)
    for each in noise:
        values = tuple((np.ravel(truth) + each).tolist())
        yield replace(release, columns={**release.columns, "value": values})


def counts_mechanism(release: iso.Release) -> Any:
    from isotone.release.kinds.counts.derived import mechanism_of

    return mechanism_of(release.manifest)


@ask("contrast", "CountReader.contrast", runs=120)
def contrasts(large: bool, confidence: float, runs: int) -> Rows:
    truth = true_counts(large)
    for release in around(counted(1), truth, runs, "contrast"):
        yield [
            (
                truth[0] - truth[1] - truth[2],
                counts.CountReader(release).contrast({"hyp": 1, "twice": -1, "meds": -1}, confidence, None),
            )
        ]


@ask("share", "CountReader.share", runs=120)
def one_share(large: bool, confidence: float, runs: int) -> Rows:
    truth = true_counts(large)
    for release in around(counted(1), truth, runs, "share"):
        yield [
            (truth[1] / truth[0], counts.CountReader(release).share("twice", "hyp", confidence, None, WITHIN))
        ]


@ask("share of a population", "CountReader.share", runs=60, turns=2)
def population(large: bool, confidence: float, runs: int) -> Rows:
    """Of those drawn, and of all records, whose number is public."""
    rng, n = np.random.default_rng(3), 3_000 if large else 100
    noise = counts_mechanism(counted(1)).law("a test of populations", draws=runs).draws
    for k, each in enumerate(noise):
        whole = rng.binomial(n, 0.6)
        truth = np.array([whole, rng.binomial(whole, 0.5), whole // 3])
        reader = counts.CountReader(
            replace(counted(1), columns={**counted(1).columns, "value": tuple((truth + each).tolist())})
        )
        of_all = reader.share(
            "hyp", None, confidence, None, Within(records=n, population=True, after_rules=True)
        )
        yield (
            [(0.5, reader.share("twice", "hyp", confidence, None, Within(population=True)))]
            if k % 2
            else [(0.6, of_all)]
        )


@ask("shares together", "CountReader.shares", runs=40)
def all_shares(large: bool, confidence: float, runs: int) -> Rows:
    truth = dict(zip(P.elements, true_counts(large), strict=True))
    for release in around(counted(1), true_counts(large), runs, "shares"):
        found = counts.CountReader(release).shares(None, True, confidence, None)
        yield [(truth[part] / truth[of], said) for (part, of), said in found.items()]


@ask("change of counts", "CountReader.change", runs=120)
def change_of_counts(large: bool, confidence: float, runs: int) -> Rows:
    before, after = true_counts(large), true_counts(large) + 17
    pairs = zip(
        around(counted(1), before, runs, "before"), around(counted(2), after, runs, "after"), strict=True
    )
    for one, other in pairs:
        yield [(17, counts.CountReader(one).change(other, "hyp", confidence, None, False))]


@ask("difference of groups", "CountReader.difference", "CountReader.sum", turns=2)
def of_groups(large: bool, confidence: float, runs: int) -> Rows:
    """A difference of two groups in every other draw, and a sum over all in the others."""
    truth = np.stack([true_counts(large) + 10 * k for k in range(6 if large else 2)])
    for k, release in enumerate(around(counted(1, len(truth)), truth, runs, "groups")):
        reader = counts.CountReader(release)
        if k % 2:
            yield [(10, reader.difference("g0", "g1", "hyp", confidence))]
        else:
            yield [(float(truth[:, 0].sum()), reader.sum("hyp", confidence))]


@ask("rank", "CountReader.rank", runs=150, planted=-1.0)
def ranks(large: bool, confidence: float, runs: int) -> Rows:
    """Three counts that are nearly alike, of which the second is the smallest. A place of its own is too little: no interval is one, unless it holds one place."""
    truth = np.array([40, 30, 34]) + (1_000 if large else 0)
    for release in around(counted(1), truth, runs, "rank"):
        yield [(3, counts.CountReader(release).rank("twice", confidence, None))]


@ask(
    "breakdown",
    "BreakdownReader.change",
    "BreakdownReader.difference",
    "BreakdownReader.sum",
    turns=3,
    runs=90,
)
def of_cells(large: bool, confidence: float, runs: int) -> Rows:
    """A difference of two cells, a sum over the coarsest margin, and a change between two releases, in turn."""
    groups, rng = 5 if large else 2, np.random.default_rng(8)
    releases = [counted(k, groups, breakdown=True) for k in (1, 2)]
    mechanism = counts._CellTable(releases[0]).mechanism
    sizes = [int(np.prod(shape)) for shape in mechanism.breakdown.shapes]
    cells = np.arange(groups * 2)[:, None] * 5 + true_counts(large)
    tables = [table.reshape(-1, 3).astype(float) for table in mechanism.breakdown.tables(cells)]
    noise = np.asarray(mechanism.simulate(2 * runs, rng)).reshape(runs, 2, -1)
    ends = np.cumsum([0, *(3 * size for size in sizes)])
    with pytest.MonkeyPatch.context() as patch:
        shown: dict[int, list[Any]] = {}
        patch.setattr(counts._CellTable, "values", property(lambda self: shown[self.manifest.charge]))
        for k, pair in enumerate(noise):
            for release, each in zip(releases, pair, strict=True):
                shown[release.manifest.charge] = [
                    table + each[a:b].reshape(-1, 3)
                    for table, a, b in zip(tables, ends, ends[1:], strict=False)
                ]
            reader = counts.BreakdownReader(releases[0])
            if k % 3 == 0:
                said = reader.difference({"g": "g0"}, {"g": "g1"}, "hyp", confidence)
                yield [(float(tables[1][1, 0] - tables[1][0, 0]), said)]
            elif k % 3 == 1:
                yield [(float(tables[0][0, 0]), reader.sum("hyp", confidence))]
            else:
                yield [(0.0, reader.change(releases[1], "hyp", confidence, {"g": "g0", "h": "x"}, False))]


# curves

LEVELS = np.array([0.15, 0.4, 0.7, 0.9])
STARTS = np.array([0, 5, 10, 15])


@cache
def curve() -> iso.Release:
    x = np.arange(400) % 20
    data = pd.DataFrame({"x": x, "y": (x > 9) * 1, "person": range(400)})
    return flat.curve(
        data,
        x="x",
        y="y",
        bounds=(0, 19),
        y_values=(0, 1),
        x_grid="integers",
        epsilon=2,
        unit="person",
        ledger=place()[1],
    )


def sums_around(large: bool, runs: int) -> Iterator[tuple[Any, NoisySums]]:
    """Labels by bin, with the probability of each bin, and the noisy sums of both labels."""
    rng, n = np.random.default_rng(5), np.array([60, 200, 80, 90]) * (10 if large else 1)
    for _ in range(runs):
        ones = rng.binomial(n, LEVELS)
        noise = np.asarray(simulate.two_sided_geometrics(rng, 1, 8)).reshape(2, 4)
        yield (
            pooled(ones / n, n.astype(float)),
            NoisySums(STARTS, ones + noise[0], n - ones + noise[1], 1, Fraction(1), 20),
        )


@ask("curve", "CurveReader.at", "CurveReader.difference", runs=60, planted=0.1, turns=2)
def of_curve(large: bool, confidence: float, runs: int) -> Rows:
    """The value at every bin and what it rises between two, all at once, of the population and of the records in turn."""
    with pytest.MonkeyPatch.context() as patch:
        for k, (fit, sums) in enumerate(sums_around(large, runs)):
            kind = "records" if k % 2 else "population"
            release = replace(curve(), manifest=replace(curve().manifest, band=kind))
            patch.setattr(curves, "measured_from", lambda *_, sums=sums: MeasuredSums(sums, True, True, 101))
            reader, truth = curves.CurveReader(release), fit if k % 2 else LEVELS
            values = [
                (float(level), reader.at(int(at), confidence))
                for level, at in zip(truth, STARTS, strict=True)
            ]
            yield [*values, (float(truth[3] - truth[1]), reader.difference(5, 15, None, confidence))]


# distributions and survival

CELLS = 48
GROUPS = ["a", "b"]


class Lines:
    """A reader of lines that are drawn now, group by group."""

    def __init__(self, kind: type[LineReader], described: Any, large: bool) -> None:
        self.kind, self.described = kind, described
        self.mechanism = described.mechanism(Guarantee.pure(4 if large else 1))
        self.rng = np.random.default_rng(7)

    def reader(self, *cells: Any) -> Any:
        """A release of these counts, with fresh noise."""
        manifest = {"description": {"bounds": ["0", "47"], "confidence": 0.95}}
        release = SimpleNamespace(kind=self.described.kind_name, manifest=manifest)
        kept, described, mechanism = dict[Any, Any](), self.described, self.mechanism
        lines = self.mechanism.simulate(
            np.array(cells).reshape(self.mechanism.groups, self.mechanism.statuses, -1), self.rng
        )

        class Drawn(self.kind):
            def measured(self, group: Any) -> Any:
                return described, mechanism, lines[GROUPS.index(group)]

            def figures(
                self, confidence: float | None, group: Any, band: Any
            ) -> Any:  # the same for all questions
                if (confidence, group, band) not in kept:
                    kept[confidence, group, band] = super().figures(confidence, group, band)
                return kept[confidence, group, band]

        return Drawn(release)


def values_of(large: bool, k: int) -> Any:
    n = 3_000 if large else 400
    return np.minimum(np.random.default_rng(k).gamma(3.0, 4.0 + 3 * k, n), CELLS - 1).round().astype(int)


def gini_of(values: Any) -> float:
    n, ordered = values.size, np.sort(values)
    return float(2 * np.sum(np.arange(1, n + 1) * ordered) / (n * ordered.sum()) - (n + 1) / n)


DISTRIBUTION = iso.Distribution("x", bounds=(0, CELLS - 1), grid="integers", unit="person", by={"g": GROUPS})
SURVIVAL = iso.Survival("t", event="e", horizon=CELLS, cells=CELLS, unit="person", by={"g": GROUPS})


@ask(
    "distribution",
    *(f"DistributionReader.{name}" for name in ("cdf", "share", "lorenz", "gini")),
    "LineReader.quantile",
    runs=30,
)
def of_distribution(large: bool, confidence: float, runs: int) -> Rows:
    lines, values = Lines(DistributionReader, DISTRIBUTION, large), values_of(large, 0)
    cells, ordered = np.bincount(values, minlength=CELLS), np.sort(values)
    for _ in range(runs):
        reader = lines.reader(cells, cells)
        low, middle = reader.quantile([0.25, 0.5], confidence, "a", None)
        (poorest,) = reader.lorenz([0.5], confidence, "a", None)
        yield [
            (ordered[int(np.ceil(0.25 * values.size)) - 1], low),
            (ordered[int(np.ceil(0.5 * values.size)) - 1], middle),
            (float(np.mean(values <= 9)), reader.cdf(9, confidence, "a", None)),
            (float(np.mean((values > 5) & (values <= 20))), reader.share(5, 20, confidence, "a", WITHIN)),
            (
                float(ordered[: values.size // 2].sum() / ordered.sum()),
                replace(poorest, low=poorest.low - 1e-3, high=poorest.high + 1e-3),
            ),
            (gini_of(values), reader.gini(confidence, "a", None)),
        ]


def lived(large: bool, k: int) -> Any:
    """Events and censored records by cell of time, the last of which is beyond the horizon."""
    rng, n = np.random.default_rng([k, 9]), 4_000 if large else 500
    time, end = rng.exponential(25 + 20 * k, n), rng.uniform(20, 90, n)
    seen = np.minimum(time, end)
    cell = np.where(seen > CELLS, CELLS, np.clip(np.ceil(seen) - 1, 0, CELLS - 1)).astype(int)
    event = (time <= end) & (seen <= CELLS)
    return np.array([np.bincount(cell[which], minlength=CELLS + 1) for which in (event, ~event)])


@ask("survival", "SurvivalReader.survival", runs=30)
def of_survival(large: bool, confidence: float, runs: int) -> Rows:
    """Survival, the hazard and the number at risk at three times, and the mean time up to the horizon, all at once."""
    lines, cells = Lines(SurvivalReader, SURVIVAL, large), lived(large, 0)
    alive, hazard = kaplan_meier(*cells)
    left = cells.sum() - np.cumsum(cells.sum(axis=0))
    for _ in range(runs):
        reader = lines.reader(cells, cells)
        said: list[tuple[float, Estimate]] = []
        for at in (6, 24, 47):
            for name, truth in (("survival", alive), ("hazard", hazard), ("at_risk", left)):
                said.append((float(truth[at - 1]), reader.survival(name, at, confidence, "a")))
        area = (1 + 2 * alive[: CELLS - 1].sum() + alive[CELLS - 1]) / 2
        yield [*said, (float(area), reader.survival("restricted_mean", None, confidence, "a"))]


class Normal:
    """Answers with an error that is normal, and an interval that holds exactly as often as it is asked to: differences are made of two."""

    def __init__(self, truth: float, rng: Any) -> None:
        self.truth, self.error, self.asked = truth, float(rng.standard_normal()), list[float]()

    def __call__(self, level: float) -> Estimate:
        self.asked.append(level)
        value, half = self.truth + self.error, float(norm.ppf((1 + level) / 2))
        return Estimate(value, value - half, value + half, level)


@ask(
    "difference of lines",
    "LineReader.difference",
    "LineReader.change",
    runs=120,
    planted=0.1,
    turns=4,
)
def of_two_lines(large: bool, confidence: float, runs: int) -> Rows:
    """Of two groups and of two releases, each with half of what may go wrong: the bands that both are made of have their own tests."""
    rng, truth = np.random.default_rng(6), 30.0 if large else 2.0
    for k in range(runs):
        kind: Any = (DistributionReader, SurvivalReader)[k % 2]
        first, second = Normal(5.0, rng), Normal(5.0 + truth, rng)
        one, other = (
            kind(SimpleNamespace(kind="line", manifest={"description": {"confidence": 0.5}}))
            for _ in range(2)
        )
        with pytest.MonkeyPatch.context() as patch:
            by_group = {"a": first, "b": second}

            def asked(reader: Any, _: Any, level: float, group: Any, by_group: Any = by_group) -> Estimate:
                return by_group[group or reader.release.manifest["is"]](level)

            patch.setattr(kind, "figure_at", asked)
            if k % 4 < 2:
                said = one.difference("a", "b", 0.5, confidence)
            else:
                one.release.manifest["is"], other.release.manifest["is"] = "a", "b"
                said = one.change(other.release, 0.5, confidence, None, False)
        assert said.confidence == pytest.approx(confidence)
        assert [*first.asked, *second.asked] == pytest.approx([(1 + confidence) / 2] * 2)
        yield [(truth, said)]


# tables


@ask("sum of a table", "TableReader.sum", "TableReader.sums", runs=150, turns=2)
def of_table(large: bool, confidence: float, runs: int) -> Rows:
    """Sums of some unbiased noisy counts, alone and in two groups of which one is looked at. Counts are in the middle of their range."""
    rng, upper, size = np.random.default_rng(4), 40, 30 if large else 3
    measured = TwoStageMechanism(upper, "0.5", "counts").measurement(20)
    names = [str(k) for k in range(size)]
    truth = rng.integers(12, 28, size)
    laws = [measured.errors(int(count)) for count in truth]
    for k in range(runs):
        noise = np.array([rng.choice(errors, p=law / law.sum()) for errors, law in laws])
        noisy = tuple((truth + noise).tolist())
        columns = {"category": tuple(names), "noisy": noisy, "estimate": tuple(map(float, truth))}
        if k % 2:
            yield [(float(truth.sum()), sum_of(columns, names, confidence, {None: measured}))]
        else:
            found = sums_of(columns, {"one": names[:2], "other": names[2:]}, confidence, {None: measured})
            yield [(float(truth[:2].sum()), found["one"])]


# counts over time


@cache
def over_time(number: int, periods: int) -> iso.Release:
    days = [f"2024-0{k}-28" for k in range(1, periods + 1)]
    survey = iso.Counts(iso.Poset.chain(["second", "first"]), unit=iso.Unit("person"))
    rows = pd.DataFrame({"person": ["u"], "first": [1], "second": [0], "day": ["2024-01-05"]})
    described = iso.Series(survey, periods=days, date="day")
    return described.release(rows, epsilon=1, ledger=place()[1], title=str(number))


@ask(
    "series",
    *(f"SeriesReader.{name}" for name in ("contrast", "share", "difference", "change")),
    runs=48,
    planted=0.08,
    turns=4,
)
def of_series(large: bool, confidence: float, runs: int) -> Rows:
    """What is new, the same as a contrast, a share of two periods, and a change between two series, in turn."""
    periods = 4 if large else 2
    releases = [over_time(k, periods) for k in (1, 2)]
    described, law = series.mechanism_of(releases[0].manifest), SeriesMechanism.law
    truth = np.cumsum(np.tile([30 if large else 12, 50], (periods, 1)), axis=0) + 100
    stream = public_stream("a test of answers over time")
    noise = np.asarray(described.simulate_released(2 * runs, stream)).reshape(runs, 2, -1)
    names = releases[0].manifest["description"]["periods"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SeriesMechanism, "law", cache(lambda self, name="": law(self, name, draws=6_000)))
        for k, pair in enumerate(noise):
            shown = [replace(one, columns={**one.columns, "value": tuple((truth.ravel() + each).astype(int).tolist())})
                     for one, each in zip(releases, pair, strict=True)]  # fmt: skip
            reader, last, first = series.SeriesReader(shown[0]), (names[-1], "first"), (names[0], "first")
            if k % 4 == 0:
                yield [
                    (
                        float(truth[-1, 1] - truth[0, 1]),
                        reader.difference(names[0], names[-1], "first", confidence),
                    )
                ]
            elif k % 4 == 1:
                yield [
                    (
                        float(truth[-1, 1] - truth[0, 1]),
                        reader.contrast({last: 1, first: -1}, confidence, None),
                    )
                ]
            elif k % 4 == 2:
                yield [
                    (float(truth[0, 1] / truth[-1, 1]), reader.share(first, last, confidence, None, WITHIN))
                ]
            else:
                yield [(0.0, reader.change(shown[1], "first", confidence, None, False))]


def test_the_noise_of_a_period_is_its_own_where_one_was_passed_over(monkeypatch) -> None:
    """The second period is not shown: the law of the second that is shown is that of the third."""
    law = SeriesMechanism.law
    monkeypatch.setattr(SeriesMechanism, "law", lambda self, name="": law(self, name, draws=500))
    release = over_time(1, 4)
    manifest = replace(release.manifest, shown=[0, 2, 3])
    some = {name: tuple(column[:6]) for name, column in release.columns.items()}
    reader, whole = (
        series.SeriesReader(replace(release, manifest=manifest, columns=some)),
        series.mechanism_of(release.manifest),
    )
    found = reader.measured([1], None)
    np.testing.assert_array_equal(found.law.draws, whole.law("").draws[:, 4:6])
    np.testing.assert_array_equal(found.variance, whole.error().variance[4:6])
