"""What strangers and readers do with a published table: sums with intervals, report, verify, attack by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone import svg as charts
from isotone.errors import InputError
from isotone.inference import Estimate
from isotone.privacy.checks import shown
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.kinds.kind import (
    INK,
    SOFT,
    TOLERANCES,
    Kind,
    Page,
    Reader,
    agrees,
    draw_bars,
    require_unit,
)
from isotone.release.kinds.table.description import BETWEEN, PER, Table, TableManifest, attack
from isotone.release.manifest import (
    ROUNDING,
    Columns,
    Floats,
    Manifest,
    guarantee_from,
    rebuild_table_mechanism,
    recipe_of,
)
from isotone.tables.estimate import is_shortest, shortest
from isotone.tables.pairs import is_matched, pair_means
from isotone.tables.published_table import Measurement, from_noise, reach
from isotone.tables.thresholds import BEYOND, HEIGHTS, SMALL, Thresholds
from isotone.tables.two_stage import GaussianTableMechanism, TableMechanism, TwoStageMechanism, cuts_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.audit.exact import AuditReport
    from isotone.mechanism import Progress
    from isotone.release.result import Release


class TableReader(Reader):
    """Sums of the top-coded counts of categories.

    A single sum is unbiased. Every interval uses the noise alone and not the estimates.
    """

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """The sum of the unbiased noisy counts of some categories, of all where none are named."""
        columns = self.release.columns
        names = columns["category"] if what is None else what
        return sum_of(columns, names, self.level(confidence), self.measured)

    def sums(self, groups: Mapping[str, Iterable[Any]], confidence: float | None) -> dict[str, Estimate]:
        """Sums over public groups."""
        return sums_of(self.release.columns, groups, self.level(confidence), self.measured)

    @cached_property
    def measured(self) -> dict[Any, Measurement]:
        """How the categories of each stratum were measured. Without strata its name is None."""
        columns, manifest = self.release.columns, self.release.manifest
        if "noisy" not in columns:
            self.refuse("sums over categories: its noisy counts were not published")
        mechanism = rebuild_table_mechanism(manifest["mechanism"])
        sizes = Counter(columns.get("stratum", (None,) * len(columns["category"])))
        finer = {entry["name"]: entry.get("finer") for entry in manifest.get("strata") or ()} or {
            None: manifest.get("finer")
        }
        return {
            name: measured_again(mechanism, size, _top(manifest), finer[name]) for name, size in sizes.items()
        }


def _top(manifest: Mapping[str, Any]) -> int:
    """The largest count of the distribution, stated or found privately."""
    stated = manifest["description"]["upper"]
    return int(manifest["top"] if stated is None else stated)


def _ends_fit(manifest: Mapping[str, Any]) -> bool:
    """Whether there is a private end of the distribution exactly where none is stated, one at which a climb can end."""
    top, beyond = manifest.get("top"), manifest.get("beyond")
    if manifest["description"]["upper"] is not None:
        return top is None and beyond is None
    return type(top) is int and top - 1 in HEIGHTS and type(beyond) is int


def _beyond_reach(manifest: Mapping[str, Any]) -> int:
    """How far the noisy number of cases beyond the end is from the true one, at most, with a probability of 95 %."""
    mechanism = rebuild_table_mechanism(manifest["mechanism"])
    assert isinstance(mechanism, TwoStageMechanism)
    rate = BEYOND * mechanism.unit.per_step(mechanism.epsilon)
    return int(reach([(Thresholds(0, rate, (), Fraction(0)), 1)], 0.95))


def measured_again(mechanism: TableMechanism, size: int, upper: int, finer: list[int] | None) -> Measurement:
    """How a stratum of this size was measured, with the thresholds that its entry says were measured last."""
    if not all(type(place) is int for place in finer or ()):
        raise InputError("The thresholds that were measured last are no whole numbers.")
    return mechanism.measurement(size, upper).with_finer(tuple(finer or ()))


def sum_of(
    columns: Columns, categories: Iterable[Any], confidence: float, measured: Mapping[Any, Measurement]
) -> Estimate:
    """The unbiased sum of the noisy counts of these categories."""
    return _sum(columns, _places(columns["category"], categories), confidence, measured)


def sums_of(
    columns: Columns,
    groups: Mapping[str, Iterable[Any]],
    confidence: float,
    measured: Mapping[Any, Measurement],
) -> dict[str, Estimate]:
    """Sums over public groups, each moved from its unbiased value towards the sum of the estimates.

    How far is decided by how much the groups differ beyond what noise explains (docs/theory/tables-whole.md, section 9).
    """
    places = {name: _places(columns["category"], members) for name, members in groups.items()}
    estimate = np.array(columns["estimate"], np.float64)
    gap = np.array(columns["noisy"], np.float64) - estimate
    noise = float(np.mean(gap**2)) if len(gap) else 0.0
    sizes = np.array([len(where) for where in places.values()], np.float64)
    rests = np.array([float(np.sum(gap[where])) for where in places.values()])
    spread = max(0.0, float(np.sum(rests**2 - sizes * noise))) / max(float(np.sum(sizes**2)), 1.0)
    result: dict[str, Estimate] = {}
    for (name, where), size, rest in zip(places.items(), sizes, rests, strict=True):
        plain = _sum(columns, where, confidence, measured)
        weight = size * spread / (size * spread + noise) if size * spread + noise > 0 else 0.0
        value = float(np.sum(estimate[where])) + weight * float(rest)
        result[name] = replace(plain, value=min(max(value, plain.low), plain.high))
    return result


def _sum(
    columns: Columns, where: NDArray[np.int64], confidence: float, measured: Mapping[Any, Measurement]
) -> Estimate:
    value = float(np.sum(np.array(columns["noisy"], np.float64)[where]))
    strata = columns.get("stratum")
    numbers = Counter(None if strata is None else strata[at] for at in where.tolist())
    away = reach([(measured[name], number) for name, number in sorted(numbers.items(), key=str)], confidence)
    most = sum(measured[name].largest * number for name, number in numbers.items())
    low, high = max(value - away, 0.0), min(value + away, most)
    return Estimate(value, min(low, high), max(low, high), confidence)


def _places(names: Sequence[Any], categories: Iterable[Any]) -> NDArray[np.int64]:
    if isinstance(categories, (str, bytes)):
        raise InputError(f"Give a list of categories, not {shown(categories)}.")
    place = {str(name): at for at, name in enumerate(names)}
    expected = [str(category) for category in categories]
    for name in expected:
        if name not in place:
            raise InputError(f"The release has no category {shown(name)}.")
    if len(set(expected)) < len(expected):
        raise InputError("A category stands twice in the sum: name each once.")
    return np.array([place[name] for name in expected], np.int64)


# The report of a table.

_Floats = NDArray[np.floating[Any]]
_NAMES = "released table", "private distribution"
_SMALL_TABLE, _ESTIMATE = 40, "estimate, with interval"
_BARS = 400  # of a distribution: more would not be told apart


class TablePage(Page):
    """The distribution of the counts."""

    lead: ClassVar[str] = "One count for each category, made so that the distribution of counts survives."
    most_rows: ClassVar[int | None] = 10_000  # no browser shows a million
    typical_error: ClassVar[str] = "typical error of a noisy count, at most"

    def caption(self, release: Release, level: str) -> str:
        """Each category, or both distributions."""
        if _is_small(release):
            return f"The estimate of each category, with its {level} interval."
        if _is_heavy(release):
            return "The share of categories with at most so many: the released table, and the private distribution it follows."
        return "How many categories have each count: the released table, and the private distribution it follows."

    def accuracy(self, release: Release, level: str) -> list[str]:
        """What an interval means."""
        if "stratum" not in release.columns and len(release.columns["category"]) < SMALL:
            return [
                f"With fewer than {SMALL} categories nothing is spent on their distribution. The noisy count is right on average, and for adding "
                "up. The released value and the estimate are that count, or 0 or the largest count where it lies beyond.",
                f"Each interval contains the true count with a probability of {level}. It comes from the noise alone.",
            ]
        return [
            "Each category has three numbers. The released value is for histograms: all of them together have the right distribution. "
            "The estimate is for maps and lists: its expected error is the smallest, and the interval belongs to it. The noisy count "
            "is for adding up: it is right on average.",
            f"Given the noisy counts, the true count of a category lies in its interval with a probability of {level}, "
            "on average over the categories and as far as the private distribution is right. Where a table or a stratum has fewer "
            f"than {SMALL} categories, its intervals come from the noise alone and hold with that probability for every count.",
        ]

    def rules(self, release: Release) -> list[str]:
        """Categories outside the list, and the top code."""
        manifest, top = release.manifest, _top(release.manifest)
        cut = f"Counts above {top} are published as {top} at most."
        if manifest.get("beyond") is not None:
            cut = (
                f"Counts have no bound. Value, estimate and interval end at {top}, which was found privately; noisy goes on. About "
                f"{max(manifest['beyond'], 0):,} cases are beyond it, within {_beyond_reach(manifest):,} with a probability of 95 %: "
                "divided by the number of categories, that is how far the distribution is from the one without an end."
            )
        return [
            "Categories that are not in the published list are ignored; listed ones without a row count 0.",
            cut,
        ]

    def draw(self, release: Release, ax: Axes) -> None:
        """Each category, or how many have each count, released and private."""
        if _is_small(release):
            columns = {**release.columns, "value": release.columns["estimate"]}
            draw_bars(ax, _category_names(release), columns, range(len(columns["value"])), _ESTIMATE)
            return
        edges, released, private = _shares(release)
        places = (edges[1:] + edges[:-1]) / 2
        ax.bar(places, released, 0.9 * (edges[1] - edges[0]), color=SOFT, label=_NAMES[0])
        ax.step(places, private, where="mid", color=INK, label=_NAMES[1])
        ax.legend(frameon=False)
        ax.set_xlabel("count")
        ax.set_ylabel("share of categories")

    def svg(self, release: Release) -> str:
        """Each category; of many, how many have each count, or at most so many if the tail is heavy, released and private."""
        if _is_small(release):
            value, low, high = (list(map(float, release.columns[key])) for key in ("estimate", "low", "high"))
            return charts.bars(_category_names(release), value, low, high, _ESTIMATE)
        if _is_heavy(release):
            return charts.cumulative(*_steps(release), _NAMES, "share of categories")
        edges, released, private = _shares(release)
        return charts.distribution(edges.tolist(), released.tolist(), private.tolist(), _NAMES)


def _is_small(release: Release) -> bool:
    """Whether every category can be shown."""
    return len(release.columns["category"]) <= _SMALL_TABLE


def _category_names(release: Release) -> list[str]:
    """The categories, with their class where there are classes."""
    names, classes = release.columns["category"], release.columns.get("stratum")
    if classes is None:
        return list(map(str, names))
    return [f"{name} ({each})" for name, each in zip(names, classes, strict=True)]


def _shares(release: Release) -> tuple[_Floats, _Floats, _Floats]:
    """Edges of bars, with the shares of the released table and of the private distribution between them."""
    value = np.array(release.columns["value"])
    upper = _top(release.manifest)
    released = np.bincount(value, minlength=upper + 1)[: upper + 1] / max(len(value), 1)
    width = -(-(upper + 1) // _BARS)  # neighbouring counts share a bar if there are many
    starts = np.arange(0, upper + 1, width)
    private = np.add.reduceat(np.array(release.manifest["distribution"], float), starts)
    return np.append(starts, starts[-1] + width) - 0.5, np.add.reduceat(released, starts), private


def _is_heavy(release: Release) -> bool:
    """Whether nearly all of the private distribution lies in the lowest tenth of a long range."""
    private = np.array(release.manifest["distribution"], float)
    return len(private) > 50 and float(private[: len(private) // 10].sum()) > 0.9 * float(private.sum())


def _steps(release: Release) -> tuple[list[int], list[float], list[float]]:
    """Counts that can be told apart on a logarithmic axis, and both cumulative shares at them."""
    upper = _top(release.manifest)
    counts = np.unique(np.round(np.expm1(np.linspace(0.0, np.log1p(upper), 400))).astype(np.int64))
    value = np.sort(np.array(release.columns["value"]))
    released = np.searchsorted(value, counts, side="right") / max(len(value), 1)
    private = np.cumsum(np.array(release.manifest["distribution"], float))[counts]
    return counts.tolist(), released.tolist(), np.minimum(private / max(private[-1], 1e-300), 1.0).tolist()


# What strangers and readers do with a published table: verify, read, attack by name.

LARGEST_TABLE = 1_500
"""Up to this count the posterior of each row is computed again."""

_EXACT = TOLERANCES["share of categories"].absolute
"""How far computers may be apart that compute the same from the same numbers."""
_COLUMNS = ("category", "value", "estimate", "low", "high", "noisy", "sd")


class TableKind(Kind):
    """A table of counts."""

    described = Table
    manifest = TableManifest
    classes = (TwoStageMechanism.__name__, GaussianTableMechanism.__name__)
    why_no_answers = (
        "Published counts are estimates, and the law of their error depends on the data; that of sums of the noisy counts is "
        "known: ask sum()."
    )

    def page(self, release: Release) -> TablePage:
        """What the report says and draws."""
        return TablePage()

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The mechanism for counts up to 20."""
        if name == GaussianTableMechanism.__name__:
            return attack(
                GaussianTableMechanism(20, Guarantee.approximate(epsilon, "1e-3")), trials, progress
            )
        return attack(TwoStageMechanism(20, epsilon), trials, progress)

    def rebuild(self, manifest: Manifest) -> TableMechanism:
        """The mechanism of the manifest."""
        return rebuild_table_mechanism(manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the mechanism of the manifest guarantees, which must be that of its description."""
        stated, mechanism = guarantee_from(release.manifest.guarantee), self.rebuild(release.manifest)
        description = Table.from_manifest(release.manifest, release.columns)
        if mechanism.unit.contributions < description.privacy_unit.most:
            raise InputError("the noise is for fewer categories a unit than the rules let through")
        if isinstance(mechanism, GaussianTableMechanism) and mechanism.once and description.aggregated:
            raise InputError(
                "the noise is for units that count once in a category, and the rules do not see to it"
            )
        require_unit(description, stated)
        if recipe_of(description.mechanism(stated)) != release.manifest.mechanism:
            raise InputError("the mechanism is not the one that the description has under this guarantee")
        return replace(mechanism.guarantee, unit=stated.unit)

    recomputed = (
        "categories, largest count and distribution are possible, values have the distribution and the order of the noise, the error is that of the "
        "noise, and each estimate and interval follows from its noisy count"
    )
    errors_are_known = False

    def looked_at(self, release: Release) -> str:
        """What was compared. Posteriors over very many counts are left out."""
        if _top(release.manifest) > LARGEST_TABLE:
            return (
                "categories, largest count and distribution are possible, values have the distribution, and the error is that of the noise; "
                f"estimates and intervals were not computed again, as counts go beyond {LARGEST_TABLE:,}"
            )
        return self.recomputed

    def reader(self, release: Release) -> TableReader:
        """Sums of categories, from the noise alone."""
        return TableReader(release, self.why_no_answers)

    def faults(self, release: Release) -> list[str]:
        """Categories, bounds, errors and intervals that the mechanism cannot have given."""
        described = Table.from_manifest(release.manifest, release.columns)
        if described.in_manifest() != release.manifest.description:
            return ["the description is not written as a release writes it"]
        if not _has_what_is_described(release, described):
            return ["the classes or the pairs are not those that are described"]
        return table_faults(release.columns, release.manifest, self.rebuild(release.manifest))


def _has_what_is_described(release: Release, described: Table) -> bool:
    """Whether labels, classes and what is said of each class are those of the description, and nothing more is there."""
    manifest, strata = release.manifest, release.manifest.get("strata")
    classes = described.classes
    named = None if classes is None else [(name, len(held)) for name, held in classes]
    listed = None if strata is None else [(entry["name"], entry["size"]) for entry in strata]
    of_each = [manifest] if strata is None else strata
    finer = manifest.get("finer") is not None
    return (
        named == listed
        and tuple(release.columns["category"]) == described.labels
        and (manifest.get("joint") is not None) == (described.counts is not None)
        and all(entry.get("finer") is not None for entry in of_each)
        and finer == (strata is None)
    )


@dataclass(frozen=True)
class _StratumRows:
    """The rows of one stratum, and what the manifest says of it."""

    rows: list[int]
    share: Floats
    method: str
    thresholds: Measurement


def table_faults(columns: Columns, manifest: Mapping[str, Any], mechanism: TableMechanism) -> list[str]:
    """Faults in the categories, bounds, distribution, errors and intervals of a table."""
    description, strata = manifest["description"], manifest.get("strata")
    expected = {*_COLUMNS, *(["stratum"] if strata is not None else [])}
    if set(columns) not in (expected, expected | {"population", "rate"}):
        return ["the columns are not those of a table"]
    size = len(columns["value"])
    faults: list[str] = []
    if len(set(columns["category"])) < size:
        faults.append("a category stands twice")
    if description["upper"] != mechanism.upper or not _ends_fit(manifest):
        faults.append("the largest count is not the mechanism's")
        return faults
    upper = _top(manifest)
    counts = [columns[name] for name in ("value", "low", "high") if size]
    if not all({*map(type, x)} == {int} and min(x) >= 0 and max(x) <= upper for x in counts):
        return [*faults, "a value or an end of an interval is no count from 0 to the largest"]
    level = float(description["confidence"])
    if not 0 < level < 1:
        return [*faults, "the confidence of the intervals is not between 0 and 1"]
    whole_table = {key: manifest.get(key) for key in ("method", "distribution", "finer")}
    entries = [{"name": None, "size": size, **whole_table}] if strata is None else strata
    try:
        parts = list(_parts(columns, entries, upper, mechanism))
    except InputError as refused:
        return [*faults, str(refused)]
    if sum(len(part.rows) for part in parts) != size or any(
        entry["size"] != len(part.rows) for entry, part in zip(entries, parts, strict=True)
    ):
        return [*faults, "the strata do not hold each category once"]
    joint = manifest.get("joint") is not None
    for part in parts:
        faults += _part_faults(columns, part, upper, level, joint=joint)
    if not faults and not _whole_fits(manifest, parts):
        faults.append("the distribution and the method of the whole table are not those of its strata")
    if joint and not faults:
        faults += pair_faults(
            columns, manifest, [part.rows for part in parts], [part.thresholds for part in parts]
        )
    if "rate" in columns and not _rates_fit(columns):
        faults.append("a rate is not its value for the population")
    return list(dict.fromkeys(faults))


def _is_distribution(share: Floats, upper: int) -> bool:
    """Whether these are shares of the counts from 0 to the largest."""
    whole = abs(share.sum() - 1) <= 1e-8 * (upper + 2)
    return share.shape == (upper + 1,) and bool(np.all(share >= 0) and whole)


def _parts(
    columns: Columns, entries: list[dict[str, Any]], upper: int, mechanism: TableMechanism
) -> Iterator[_StratumRows]:
    names = columns.get("stratum")
    for entry in entries:
        rows = [at for at in range(len(columns["value"])) if names is None or names[at] == entry["name"]]
        share = np.array(entry["distribution"], dtype=float)
        measured = measured_again(mechanism, len(rows), upper, entry.get("finer"))
        yield _StratumRows(rows, share, entry["method"], measured)


def _part_faults(columns: Columns, part: _StratumRows, upper: int, level: float, *, joint: bool) -> list[str]:
    share, size = part.share, len(part.rows)
    if not _is_distribution(share, upper):
        return ["the distribution is not one of counts from 0 to the largest"]
    faults: list[str] = []
    if part.method != ("noise" if size < SMALL or upper == 0 else "table"):
        faults.append("the method is not the mechanism's")
    sd = part.thresholds.deviation
    if not agrees([float(columns["sd"][at]) for at in part.rows], sd, "error"):
        faults.append("an error is not that of the noise")
    if part.method == "noise" and not agrees(share, 1 / (upper + 1), "share of categories"):
        faults.append("too few categories for a distribution have one")
    if part.method == "table" and not _follows(columns, part, len(part.share) if joint else 1):
        faults.append("the values do not have the private distribution")
    if upper > LARGEST_TABLE:
        return faults
    readings = _readings(columns, part)
    if not _posteriors_fit(columns, part, readings, upper, level, joint=joint):
        faults.append("an estimate or an interval does not follow from its noisy count")
    elif part.method == "table" and not joint and not _in_order(columns, part, readings):
        faults.append("the values are not in the order of the noisy counts")
    return faults


def _whole_fits(manifest: Mapping[str, Any], parts: list[_StratumRows]) -> bool:
    """Whether the whole table has the mean distribution of its strata."""
    sizes = np.array([len(part.rows) for part in parts], np.float64)
    mean = sizes / max(sizes.sum(), 1.0) @ np.array([part.share for part in parts])
    probabilities = np.array(manifest["distribution"], dtype=float)
    method = "table" if any(part.method == "table" for part in parts) else "noise"
    return (
        manifest["method"] == method
        and probabilities.shape == mean.shape
        and agrees(probabilities, mean, "share of categories")
    )


def _readings(columns: Columns, part: _StratumRows) -> list[list[int]]:
    """For each row what its noisy count may have been, computed once for equal ones."""
    known: dict[float, list[int]] = {}
    for at in part.rows:
        noisy = float(columns["noisy"][at])
        if noisy not in known:
            known[noisy] = part.thresholds.readings(noisy)
    return [known[float(columns["noisy"][at])] for at in part.rows]


def _in_order(columns: Columns, part: _StratumRows, readings: list[list[int]]) -> bool:
    """Whether no value is below that of a row with a smaller noisy count. Every row has a reading."""
    values = np.array([columns["value"][at] for at in part.rows], np.int64)
    least, most = (np.array([end(known) for known in readings], np.int64) for end in (min, max))
    order = np.argsort(most)
    highest = np.maximum.accumulate(np.append(0, values[order]))  # of the rows with the smallest noisy counts
    below = np.searchsorted(most[order], least)
    return bool(np.all(values >= highest[below]))


def _follows(columns: Columns, part: _StratumRows, slack: int) -> bool:
    """Whether as many values are at most each count as the distribution says.

    The second column of a pair is rounded with the first, by at most one for each of its counts.
    """
    size = len(part.rows)
    values = np.array([columns["value"][at] for at in part.rows], np.int64)
    result = np.cumsum(np.bincount(values, minlength=len(part.share)))[:-1]
    return bool(np.all(np.abs(result - cuts_of(part.share * size, size)) <= slack))


def _posteriors_fit(
    columns: Columns, part: _StratumRows, readings: list[list[int]], upper: int, level: float, *, joint: bool
) -> bool:
    """Whether each row has the estimate and the interval that its noisy count gives it."""
    if part.method == "noise":
        return _noise_fits(columns, part, readings, upper, level)
    beliefs = part.thresholds.beliefs(part.share, len(part.rows))
    share = beliefs.content(level)
    laws: dict[int, tuple[float, Floats, tuple[int, int]]] = {}
    for at, known in zip(part.rows, readings, strict=True):
        for k in known:
            if k not in laws:
                law = beliefs.posterior(k)
                laws[k] = beliefs.mean(k), law, shortest(law, share)
        # estimates of a pair follow from both noisy counts
        if not any(_row_fits(columns, at, *laws[k], share, own=not joint) for k in known):
            return False
    return True


def _noise_fits(
    columns: Columns, part: _StratumRows, readings: list[list[int]], upper: int, level: float
) -> bool:
    """Whether each row is its noisy count within the bounds, and has the interval of the noise alone."""
    noisy = np.array([float(columns["noisy"][at]) for at in part.rows])
    low, high = from_noise(noisy, part.thresholds, level)
    nearest = np.clip(noisy, 0, upper)
    return all(readings) and all(
        (columns["low"][at], columns["high"][at]) == (a, b)
        and columns["value"][at] == count
        and float(columns["estimate"][at]) == count
        for at, a, b, count in zip(part.rows, low, high, nearest, strict=True)
    )


def _row_fits(
    columns: Columns, at: int, mean: float, law: Floats, interval: tuple[int, int], share: float, *, own: bool
) -> bool:
    """Whether a row has its estimate, and the shortest interval with this share of its posterior."""
    low, high = columns["low"][at], columns["high"][at]
    return (not own or agrees(float(columns["estimate"][at]), mean, "estimate")) and (
        (low, high) == interval or (low <= high and is_shortest(law, low, high, share, _EXACT))
    )


def _rates_fit(columns: Columns) -> bool:
    rows = zip(*(columns[name] for name in ("value", "population", "rate")), strict=True)
    return all(
        float(people) > 0 and agrees(float(rate), PER * value / float(people), "estimate")
        for value, people, rate in rows
    )


def _names(columns: Columns, rows: list[int]) -> list[str]:
    """The categories of one column, or their whole labels where they do not end with the name of the column."""
    return [str(columns["category"][at]).removesuffix(f"{BETWEEN}{columns['stratum'][at]}") for at in rows]


def pair_faults(
    columns: Columns, manifest: Mapping[str, Any], parts: list[list[int]], measurements: list[Measurement]
) -> list[str]:
    """Faults in what both columns say together, names of rows, the joint distribution, values and estimates."""
    joint = np.array(manifest["joint"], dtype=float)
    n = manifest["description"]["upper"] + 1
    if joint.shape != (n, n) or np.any(joint < 0) or abs(joint.sum() - 1) > 1e-7:
        return ["the joint distribution is not one of pairs of counts from 0 to the largest"]
    if len(parts) != 2 or len(parts[0]) != len(parts[1]):
        return ["the two columns do not have the same categories"]
    if _names(columns, parts[0]) != _names(columns, parts[1]):
        return ["the two columns do not have the same categories"]
    if manifest["method"] == "noise":
        apart = np.outer(*(entry["distribution"] for entry in manifest["strata"]))
        fits = agrees(joint, apart, "share of categories")
        return [] if fits else ["the joint distribution is not that of two columns apart"]
    faults: list[str] = []
    size = len(parts[0])
    values = np.column_stack([[columns["value"][at] for at in rows] for rows in parts])
    result = np.zeros((n, n))
    np.add.at(result, (values[:, 0], values[:, 1]), 1.0)
    gap = np.abs((result - size * joint).cumsum(axis=0).cumsum(axis=1))
    if np.max(gap, initial=0.0) > n + 1:
        faults.append("the values do not have the joint distribution")
    channels = measurements[0].channel(), measurements[1].channel()
    readings = [
        [measurements[side].readings(float(columns["noisy"][at])) for at in rows]
        for side, rows in enumerate(parts)
    ]
    stated = np.column_stack([[float(columns["estimate"][at]) for at in rows] for rows in parts])
    top = manifest["description"]["upper"]
    for first, second, estimate in zip(*readings, stated, strict=True):
        pairs = np.array(
            [[min(max(a, 0), top), min(max(b, 0), top)] for a in first for b in second], np.int64
        )
        means = pair_means(joint, channels, pairs.reshape(-1, 2))
        if not any(agrees(estimate, mean, "estimate") for mean in means):
            return [*faults, "an estimate does not follow from its noisy counts"]
    if not is_matched(stated, values, ROUNDING):
        faults.append("the values are not as near to the estimates as they can be")
    return faults


KIND = TableKind()
