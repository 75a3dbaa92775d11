"""Tables: one count for each category of a public list, made so that the distribution of counts survives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NotRequired, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, model_validator
from typing_extensions import TypedDict

from isotone.errors import InputError
from isotone.planning import least_budget
from isotone.privacy.checks import exact, positive, require_list, shown
from isotone.privacy.guarantee import Guarantee, budget_of
from isotone.reading.categories import CategorySource, PairSource, count_categories, count_pairs
from isotone.reading.columns import public_texts
from isotone.reading.contributions import check_contributions
from isotone.reading.questions import Question
from isotone.release.description import (
    ColumnName,
    Description,
    FrozenMapping,
    Real,
    Section,
    Size,
    Text,
    Unit,
    described,
    gathered,
)
from isotone.release.manifest import Manifest, public_names, recipe_of
from isotone.release.order_files import read_categories, read_column
from isotone.tables.pairs import LARGEST_PAIR, release_pair
from isotone.tables.plan import Shape
from isotone.tables.published_table import PublishedTable
from isotone.tables.thresholds import POINTS, SMALL, Emphasis, checked_emphasis, default_emphasis
from isotone.tables.two_stage import (
    LARGEST_COUNT,
    GaussianTableMechanism,
    TableMechanism,
    table_mechanism,
)

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.mechanism import Progress
    from isotone.planning import Plan
    from isotone.reading.sources import Frame

BETWEEN = " | "
"""Between the name of a category and that of its column, in the names of rows."""
PER = 100_000
"""Rates are cases for so many people."""
_LEVEL = 0.95
GUESSED_UPPER = 100
"""The largest count in a plan of a table without a bound."""


class StratumEntry(TypedDict):
    """A public class of categories.

    Its name, how many it holds, the private distribution of its counts, and the thresholds that were measured after a look at the first.
    """

    name: str
    size: int
    method: str
    distribution: list[float]
    finer: NotRequired[list[int]]


@dataclass(frozen=True, kw_only=True)
class TableManifest(Manifest):
    """The manifest of a table. ``distribution`` is the private share of categories with each count."""

    name: ClassVar[str] = "table"
    texts: ClassVar[frozenset[str]] = frozenset({"category", "stratum"})

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "method": "table, or noise where there are too few categories to estimate a distribution.",
        "distribution": "The private share of categories with each count from 0 to upper.",
        "finer": "Where there are no strata: the thresholds that were measured after a look at the first noisy numbers.",
        "strata": "The public classes of categories, each with its own private distribution and its own finer thresholds.",
        "top": "Where upper was not stated: the largest count of the distribution, which was found privately.",
        "beyond": "Where upper was not stated: the noisy number of cases beyond it, the sum of what counts have more.",
        "joint": "For pairs of counts: the private share of categories with each pair, by the first count and the second.",
    }

    method: str
    distribution: list[float]
    finer: list[int] | None = None
    strata: list[StratumEntry] | None = None
    joint: list[list[float]] | None = None
    top: int | None = None
    beyond: int | None = None


class TableEntries(Section):
    """``[table]``: one count per category."""

    categories: list[str] | None = None
    """The public list of the categories: others are ignored, absent ones count 0."""
    categories_file: Text | None = None
    """A public CSV file that has the list, in a column called like category."""
    strata: Text | None = None
    """The column of categories_file with the public class of each category. Each class is measured with all of ε."""
    population: Text | None = None
    """The column of categories_file with the public population of each category, for rates per 100,000."""
    shape: Shape = "skewed"
    """Your guess at the distribution, for the plan alone: a release does not use it."""

    @model_validator(mode="after")
    def _one_list(self) -> TableEntries:
        if (self.categories is None) == (self.categories_file is None):
            raise ValueError("give categories (the public list) or categories_file, and not both")
        if self.categories_file is None and (self.strata or self.population):
            raise ValueError("strata and population name columns of categories_file: give that file")
        return self


@described
class Table(Description):
    """A table: one count for each category of a public list.

    For each category there is a ``value`` (integers whose distribution is right, for histograms), an ``estimate`` (the smallest
    expected error, for maps and lists) with ``low`` and ``high``, and ``noisy`` (unbiased, for adding up) with ``sd``.

    With ``delta`` the noise is Gaussian where that is less: from about ten contributions on.

    >>> Table("county", ["A", "B"], upper=50, unit="person")
    Table('county', ('A', 'B'), unit=Unit('person'), upper=50)
    """

    kind_name: ClassVar[str] = "table"
    form: ClassVar[type[Manifest]] = TableManifest
    key: ClassVar[str] = "table"
    entries: ClassVar[type[Section]] = TableEntries
    elsewhere: ClassVar[Mapping[str, str]] = FrozenMapping(
        {
            "categories": "the column category of release.csv",
            "strata": "the column stratum of release.csv, and the entry strata",
            "population": "the column population of release.csv",
        }
    )

    category: ColumnName
    """The column of the categories."""
    categories: Annotated[Sequence[Any], BeforeValidator(lambda given: public_names(given, "categories"))]
    """The public list of the categories: others are ignored, absent ones count 0. It must not come from the data."""
    _: KW_ONLY
    upper: Size | None = None
    """The largest count. Counts above it are clipped to it. Not chosen by the data. Without one the distribution ends at a count that is found privately, and noisy counts go on beyond it: for one table of 50 categories or more, with pure ε."""
    count: ColumnName | None = None
    """For rows that are already counts: the column of the count. Without it a row counts as one."""
    counts: (
        Annotated[tuple[str, ...], BeforeValidator(lambda given: public_names(given, "counts"))] | None
    ) = None
    """Two columns of counts, released with their joint distribution; or, with kind, two values of that column. The unit then says contributions, in how many of both together it may count, and upper is at most 63."""
    kind: ColumnName | None = None
    """With counts: the column that says to which of the two a row belongs. A row then counts as one."""
    emphasis: Emphasis | Real | None = None
    """What ε is spent on, from 0 (counts) to 1 (distribution), or "counts" (0.02), "both" (0.05) or "distribution" (0.5). By default "both" for an ε below 1 or eight categories or more for each pair of counts, and otherwise "counts". Below 1 it is "counts" for two columns."""
    strata: Any = None
    """Public classes of categories, such as bands of population: the class of each category in their order, or a mapping from each class to its categories. Each class is measured with all of ε. They must follow from the public category alone."""
    population: Any = None
    """The public population of each category, for a column of rates per 100,000."""

    def __post_init__(self) -> None:
        if self.counts is not None and not (
            self.count is None and self.strata is None and self.population is None
        ):
            raise InputError("Two columns (counts=) take no count, strata or population.")
        if self.kind is not None and self.counts is None:
            raise InputError("kind= goes with counts=, the two values of that column.")
        if not self.categories:
            raise InputError("categories is empty: give the public list of categories.")
        if self.upper is None and (self.strata is not None or len(self.categories) < SMALL):
            raise InputError(
                f"Classes (strata=), and tables of fewer than {SMALL} categories, need upper, the largest count. State one that is "
                "high enough, by what is public."
            )
        if self.counts is not None:
            self._require_pair(self.counts)
        if self.emphasis is not None:
            checked_emphasis(self.emphasis)
        check_contributions(self.privacy_unit.most, "" if self.aggregated else self.privacy_unit.column)
        object.__setattr__(self, "strata", _classes(self.strata, self.categories))
        object.__setattr__(self, "population", _people_of(self.population, self.categories))

    def _require_pair(self, names: Sequence[str]) -> None:
        """Refuse pairs that are none, whose contributions nobody stated, or whose rows could not be told apart."""
        if len(names) != 2:
            raise InputError(f"counts must name two columns, not {len(names)}.")
        if self.kind is None and self.privacy_unit.contributions is None:
            raise InputError(
                "contributions must be declared for two columns of counts: how often one unit may count in both together. Nothing in "
                "such rows could tell or bound it."
            )
        if self.upper is None or self.upper > LARGEST_PAIR:
            raise InputError(f"upper must be at most {LARGEST_PAIR} for pairs of counts, not {self.upper}.")
        if names[0] != names[1] and len(set(self.labels)) < 2 * len(self.categories):
            raise InputError(
                f"Two rows would have one name: rename the column or the categories with {BETWEEN!r} in them."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The public list of the categories."""
        return tuple(self.categories)

    @property
    def aggregated(self) -> bool:
        """Whether the rows are already counts."""
        return self.count is not None if self.counts is None else self.kind is None

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the rows."""
        if self.counts is None:
            return self.names
        return tuple(f"{name}{BETWEEN}{column}" for column in self.counts for name in self.categories)

    @property
    def classes(self) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
        """The name of each class and the positions of its categories. Two columns are two classes of one table."""
        size = len(self.categories)
        if self.counts is not None:
            return tuple((name, tuple(range(k * size, (k + 1) * size))) for k, name in enumerate(self.counts))
        if self.strata is None:
            return None
        place = {name: at for at, name in enumerate(self.categories)}
        return tuple((name, tuple(place[member] for member in held)) for name, held in self.strata.items())

    @property
    def words(self) -> str:
        """How many categories there are."""
        what = "table" if self.counts is None else "two columns"
        return f"{what} of {len(self.categories)} categories"

    @property
    def title(self) -> str:
        """What it is."""
        return "Table of counts" if self.counts is None else "Pairs of counts"

    def mechanism(self, guarantee: Guarantee) -> TableMechanism:
        """Geometric or Gaussian noise, by the guarantee."""
        # at a small ε the other column says much of the distribution (docs/theory/tables-whole.md, section 6)
        small = None if self.counts is None else "counts"
        # rows of a unit are counted once in a category; of aggregated rows nothing is known but their number
        more: dict[str, Any] = {"contributions": self.privacy_unit.most, "once": not self.aggregated}
        return table_mechanism(self.upper, guarantee, self.emphasis, small=small, **more)

    def charged(self, mechanism: TableMechanism, guarantee: Guarantee) -> Guarantee:
        """ε alone, where δ buys nothing."""
        return replace(mechanism.guarantee, unit=guarantee.unit)

    def source(self, data: Any, mechanism: TableMechanism) -> CategorySource | PairSource:
        """The column of the categories, and that of counts where there is one."""
        unit, top = self.privacy_unit, LARGEST_COUNT if mechanism.upper is None else mechanism.upper
        if self.counts is None:
            return CategorySource(data, self.category, self.names, top, self.count, unit.column, unit.most)
        both = self.counts[0], self.counts[1]
        return PairSource(data, self.category, self.names, top, both, self.kind, unit.column, unit.most)

    def read(self, source: Any, frame: Frame) -> NDArray[np.int64]:
        """One count per category; of two columns those of the first, then those of the second."""
        return count_categories(source, frame) if self.counts is None else count_pairs(source, frame)

    def draw(self, mechanism: TableMechanism, statistic: NDArray[np.int64]) -> Any:
        """Both noisy measurements of each stratum, and the table that is estimated from them."""
        if self.counts is not None:
            return release_pair(mechanism, *np.split(statistic, 2))
        classes = self.classes
        strata = None if classes is None else [np.array(held, np.int64) for _, held in classes]
        return mechanism.release_in_full(statistic, strata)

    def columns(self, mechanism: TableMechanism, drawn: Any, known: Any) -> dict[str, tuple[Any, ...]]:
        """Values, estimates with intervals, and unbiased noisy counts."""
        table: PublishedTable = drawn if self.counts is None else drawn.table
        values, estimates = (drawn.values, drawn.estimates) if self.counts is None else (
            drawn.values.T.ravel(), drawn.estimates.T.ravel()
        )  # fmt: skip
        low, high = table.interval(self.confidence)
        return {
            "category": self.labels,
            **self._class_column(),
            "value": tuple(values.tolist()),
            "estimate": tuple(np.round(estimates, 4).tolist()),
            "low": tuple(low.tolist()),
            "high": tuple(high.tolist()),
            "noisy": tuple(np.round(table.noisy, 4).tolist()),
            "sd": tuple(np.round(table.deviation, 4).tolist()),
            **self._rates(values),
        }

    def _class_column(self) -> dict[str, tuple[str, ...]]:
        """The class of each category, if there are classes."""
        classes = self.classes
        if classes is None:
            return {}
        named = {at: name for name, held in classes for at in held}
        return {"stratum": tuple(named[at] for at in range(len(self.labels)))}

    def _rates(self, values: NDArray[np.int64]) -> dict[str, tuple[float, ...]]:
        """Populations and rates of the values, if populations are known."""
        if self.population is None:
            return {}
        rates = np.round(PER * values / np.array(self.population), 4)
        return {"population": self.population, "rate": tuple(rates.tolist())}

    def manifest(self, mechanism: TableMechanism, drawn: Any, common: Mapping[str, Any]) -> TableManifest:
        """With the private distribution, of the whole table and of each class."""
        table: PublishedTable = drawn if self.counts is None else drawn.table
        classes = self.classes
        strata: list[StratumEntry] | None = None
        if classes is not None:
            strata = [
                {
                    "name": name,
                    "size": len(held),
                    "method": part.method,
                    "distribution": part.probabilities.tolist(),
                    "finer": list(part.thresholds.finer),
                }
                for (name, held), part in zip(classes, table.strata, strict=True)
            ]
        return TableManifest(
            mechanism=recipe_of(mechanism),
            method=table.method,
            distribution=table.probabilities.tolist(),  # as computed with: rounding would empty thin tails
            finer=list(table.strata[0].thresholds.finer) if classes is None else None,
            strata=strata,
            joint=None if self.counts is None else drawn.joint.tolist(),
            top=None if table.beyond is None else table.upper,
            beyond=table.beyond,
            **common,
        )

    def planned(self, guarantee: Guarantee, guess: Any, progress: Progress) -> Plan[Any]:
        """Mechanisms compared on a table of the guessed shape, by default a skewed one."""
        from isotone.tables.plan import plan

        public_texts(self.categories, "categories")  # what a release would refuse
        mechanism = self.mechanism(guarantee)
        return plan(
            "skewed" if guess is None else guess,
            upper=GUESSED_UPPER if self.upper is None else self.upper,
            size=len(self.categories),
            **budget_of(guarantee),
            once=not self.aggregated,
            contributions=self.privacy_unit.most,
            neighbours=guarantee.neighbours,
            progress=progress,
            released=(self.row_name(mechanism), mechanism),
        )

    def within(self, guarantee: Guarantee, shape: Any) -> int | None:
        """How far 95 % of the counts are expected to be off if the table has the guessed shape, or None for pairs of counts."""
        from isotone.tables.plan import expected_errors

        if self.counts is not None:
            return None
        upper = GUESSED_UPPER if self.upper is None else self.upper
        return expected_errors(
            self.mechanism(guarantee), shape, size=len(self.categories), upper=upper
        ).within

    def least_budget(
        self, guarantee: Guarantee, error: float, guess: Any, confidence: float
    ) -> tuple[float, dict[str, Any]] | None:
        """95 % of the counts stay within ``error`` if the table has the guessed shape."""
        if confidence != _LEVEL:
            raise InputError(f"The plan of a table knows a confidence of {_LEVEL:g} alone.")
        expected, name = float(positive(error, "error")), "rho" if guarantee.kind == "zcdp" else "epsilon"
        if self.counts is not None:
            return None

        def is_enough(budget: float) -> bool:
            other = replace(guarantee, **{name: exact(budget, name)})
            return (self.within(other, guess) or 0) <= expected

        return least_budget(is_enough), {"of": "95 % of the counts", "shape": guess}

    def row_name(self, mechanism: TableMechanism) -> str:
        """What a plan calls the mechanism that releases."""
        emphasis, names = mechanism.emphasis, {point: name for name, point in POINTS.items()}
        if isinstance(mechanism, GaussianTableMechanism):
            return f"{'counts' if emphasis is None else names.get(emphasis, f'emphasis {float(emphasis):g}')}, Gaussian"
        if emphasis is None:
            step = mechanism.unit.per_step(mechanism.epsilon)
            top = GUESSED_UPPER if mechanism.upper is None else mechanism.upper
            emphasis = default_emphasis(step, top, len(self.categories))
        return names.get(emphasis, f"emphasis {float(emphasis):g}")

    def attacked(
        self, mechanism: TableMechanism, guarantee: Guarantee, trials: int, progress: Progress
    ) -> AuditReport:
        """One unit more in the first of some categories, or (replace) moved from the first to the second."""
        return attack(mechanism, trials, progress)

    def findings(self, source: Any) -> list[str]:
        """Categories outside the list, and counts that are no numbers."""
        from isotone.release.check import numbers, unlisted

        columns = [self.count] if self.count else self.counts if self.counts and not self.kind else []
        upper = None if columns or self.kind else self.upper  # of rows that are counted
        lines = unlisted(source, self.category, self.categories, "a category", upper=upper)
        return lines + [
            line
            for column in columns
            for line in numbers(
                source, column, 0, LARGEST_COUNT if self.upper is None else self.upper, whole=True
            )
        ]

    @classmethod
    def from_manifest(cls, manifest: Manifest, columns: Mapping[str, tuple[Any, ...]]) -> Table:
        """The description of a release, with the lists that its columns hold."""
        parameters: dict[str, Any] = dict(manifest.description or {})
        names: tuple[Any, ...] = columns["category"]
        if parameters.get("counts") is not None:
            last = f"{BETWEEN}{parameters['counts'][0]}"
            return cls(
                categories=[str(name).removesuffix(last) for name in names[: len(names) // 2]], **parameters
            )
        if manifest.get("strata") is not None:
            held: dict[str, list[Any]] = {str(entry["name"]): [] for entry in manifest["strata"]}
            for name, stratum in zip(names, columns["stratum"], strict=True):
                held.setdefault(str(stratum), []).append(name)
            parameters["strata"] = held
        return cls(categories=names, population=columns.get("population"), **parameters)

    @classmethod
    def from_sections(
        cls,
        sections: Mapping[str, Section],
        questions: Mapping[str, Question],
        resolve: Callable[[str], Path],
    ) -> Table:
        """The description that a spec gives, with the columns of its file of categories."""
        parameters = gathered(cls, sections, cls.key)
        file = cast("TableEntries", sections[cls.key]).categories_file
        if file is not None:
            parameters["categories"] = read_categories(resolve(file), parameters["category"])
            for name in ("strata", "population"):
                if parameters.get(name) is not None:
                    parameters[name] = read_column(resolve(file), parameters["category"], parameters[name])
        parameters["unit"] = Unit(**gathered(Unit, sections))
        return cls(**parameters)

    @classmethod
    def guessed(cls, section: Section, records: int | None) -> Any:
        """The guessed shape of a spec."""
        return cast("TableEntries", section).shape


def _classes(strata: Any, names: Sequence[str]) -> FrozenMapping | None:
    """Strata as a list of class names, one for each category, or as a mapping from a class to its categories.

    They must follow from the public category alone. A class may be empty or hold one category.
    """
    if strata is None:
        return None
    if isinstance(strata, Mapping):
        return _of_mapping(strata, names)  # pyright: ignore[reportUnknownArgumentType]
    classes = public_names(strata, "strata")
    if len(classes) != len(names):
        raise InputError(
            f"strata must name the class of each of the {len(names):,} categories in their order, not of {len(classes):,}."
        )
    places: dict[str, list[int]] = {}
    for at, name in enumerate(classes):
        places.setdefault(name, []).append(at)
    return FrozenMapping({name: tuple(names[at] for at in members) for name, members in places.items()})


def _of_mapping(strata: Mapping[Any, Any], names: Sequence[str]) -> FrozenMapping:
    known, result = set(names), dict[str, tuple[str, ...]]()
    seen: set[str] = set()
    classes = public_names(list(strata), "strata")
    if len(set(classes)) < len(classes):
        twice = next(name for name in classes if classes.count(name) > 1)
        raise InputError(f"strata has the class {twice!r} twice: 1 and '1' are one name. Name each once.")
    for name, held in zip(classes, strata.values(), strict=True):
        members = public_names(held, f"the class {name!r} of strata")
        for member in members:
            if member not in known:
                raise InputError(
                    f"strata has {shown(member)} in {name!r}, which is not one of the categories."
                )
            if member in seen:
                raise InputError(f"strata has {shown(member)} twice: each category belongs to one class.")
            seen.add(member)
        result[name] = members
    missing = [name for name in names if name not in seen]
    if missing:
        raise InputError(f"strata has no class for {shown(missing[0])}: each category belongs to one class.")
    return FrozenMapping(result)


def _people_of(population: Any, names: Sequence[str]) -> tuple[float, ...] | None:
    """The public population of each category, in their order or by their names, above 0."""
    if population is None:
        return None
    if isinstance(population, Mapping):
        by_name: dict[str, Any] = {str(name): value for name, value in population.items()}  # pyright: ignore
        missing = [name for name in names if name not in by_name]
        if missing:
            raise InputError(f"population has no entry for {shown(missing[0])}.")
        population = [by_name[name] for name in names]
    require_list(population, "population", "numbers")
    values = [_people(value) for value in population]
    if len(values) != len(names):
        raise InputError(
            f"population must have {len(names):,} entries, one for each category, not {len(values):,}."
        )
    return tuple(values)


def _people(value: Any) -> float:
    if exact(value, "each population") <= 0:
        raise InputError(
            f"each population must be above 0, not {shown(value)}: there is no rate without people."
        )
    return float(positive(value, "each population"))


def attack(mechanism: TableMechanism, trials: int, progress: Progress) -> AuditReport:
    """One unit more in the first of some categories, or (replace) moved from the first to the second.

    Looked at are the published value of that category and the noisy numbers that it was made of.
    """
    from isotone.audit import audit
    from isotone.audit.exact import AuditReport

    units, replaced = mechanism.unit.changes, mechanism.guarantee.adjacency.exchanges
    top = GUESSED_UPPER if mechanism.upper is None else mechanism.upper
    low = min(2, max(top - units, 0))
    other = min(3, top)
    rest = np.full(max(SMALL - 2, 1), other)  # enough categories for thresholds to be measured
    first = np.append([min(low + units, top), 0], rest)
    second = np.append([low, units if replaced else 0], rest)

    def release(table: Any) -> Any:
        result = mechanism.release_in_full(table)
        (stratum,) = result.strata  # of a climb the thresholds are known when it has ended
        places = stratum.thresholds.places
        crossed = result.noisy_cumulative[places.index(low)] if low in places else 0
        return result.values[0], result.noisy_counts[0], crossed

    result = audit(release, first, second, trials, claimed=mechanism.guarantee, progress=progress)
    return AuditReport((result,))
