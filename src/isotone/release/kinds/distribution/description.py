"""Distributions: how a column of numbers is distributed, in each of some public groups."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict

from isotone.distribution.band import MOST_CONFIDENT, ShareBand, band_for_population, band_for_records
from isotone.distribution.estimate import bin_counts, shares_below
from isotone.distribution.figures import LineFigures
from isotone.distribution.mechanism import MOST_CELLS, DistributionMechanism, MeasuredLine
from isotone.errors import InputError
from isotone.privacy.checks import shown
from isotone.privacy.guarantee import Guarantee, budget_of
from isotone.reading.columns import public_texts
from isotone.reading.contributions import Groups, check_contributions
from isotone.reading.lines import USUAL_CELLS, CellLine, LineSource, count_line
from isotone.release.description import (
    ColumnName,
    Description,
    FrozenMapping,
    Listed,
    Pair,
    Real,
    Section,
    Size,
    described,
)
from isotone.release.manifest import Manifest, column_name, public_names, recipe_of, require_writable

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.mechanism import Progress
    from isotone.planning import Plan
    from isotone.reading.sources import Frame
    from isotone.release.kinds.kind import Stamp
    from isotone.release.pipeline import Job
    from isotone.release.result import Release

ROUNDING, DIGITS = 9, {"x": 12, "at_risk": 3}
"""Digits of published shares, and of other columns."""
_ROW, _BIN = 60, 40
"""Bytes of a row beside its group, and of what the manifest says of a bin."""


class LineEntry(TypedDict):
    """What was measured of one group: the ends of its bins, counted in cells, and noisy counts, and the seed of its band.

    ``counts`` has a row for each status, in which bins come first, and then each level of sums of neighbours.
    """

    group: str
    number: int
    edges: list[int]
    counts: list[list[int]]
    seed: int


@dataclass(frozen=True, kw_only=True)
class DistributionManifest(Manifest):
    """The manifest of a distribution."""

    name: ClassVar[str] = "distribution"
    texts: ClassVar[frozenset[str]] = frozenset({"group"})

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "lines": "What was measured, by group: the noisy number of records (or the public one), the ends of the bins as numbers of cells, the noisy "
        "counts of bins and of sums of them, and the seed of the draws of noise that the band is made of.",
    }

    lines: list[LineEntry]


def grouped_by(given: Any) -> FrozenMapping:
    """A column of groups with the public list of its values."""
    if not isinstance(given, Mapping) or len(cast("Any", given)) != 1:
        raise InputError(
            f"by must map one column to the public list of its values, such as {{'sex': ['f', 'm']}}, and is {shown(given)}."
        )
    ((name, held),) = cast("Mapping[Any, Any]", given).items()
    column = column_name(name, "by")
    require_writable([column], "by")
    values = public_names(() if held is None else held, f"by[{column!r}]")
    if not public_texts(values, f"by[{column!r}]"):
        raise InputError(f"by[{column!r}] must be a public list of distinct values with at least one entry.")
    return FrozenMapping({column: values})


_A_LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
By = Annotated[
    Any, BeforeValidator(grouped_by), WithJsonSchema({"type": "object", "additionalProperties": _A_LIST})
]


class LineDescription(Description):
    """What releases have in common that count records by cell of a public line, in each of some public groups."""

    statuses: ClassVar[int] = 1
    """How many kinds of records there are in a cell."""
    apart: ClassVar[int] = 0
    """How many cells beyond the line there are."""
    if TYPE_CHECKING:
        by: Any
        public_n: Any

    @property
    @abstractmethod
    def line(self) -> CellLine:
        """The public cells."""

    def require_possible(self, banded: bool = True) -> None:
        """Refuse what a line, its groups and its band cannot have."""
        if banded and self.confidence > MOST_CONFIDENT:
            raise InputError(f"confidence of a band is {MOST_CONFIDENT} at most, not {self.confidence:g}.")
        if self.by is not None and self.public_n is not None:
            raise InputError(
                "public_n is for one group: leave it out, and each group has a noisy number of its own."
            )
        self.mechanism(Guarantee.pure(1))  # as many cells in all groups as can be held

    @abstractmethod
    def rows(self, mechanism: DistributionMechanism, line: MeasuredLine) -> dict[str, Any]:
        """The published columns of one group, a row for each bin."""

    @abstractmethod
    def figures(
        self, mechanism: DistributionMechanism, line: MeasuredLine, confidence: float, band: str
    ) -> LineFigures:
        """What readers ask of one group."""

    def columns(self, mechanism: Any, drawn: Any, known: Any = None) -> dict[str, tuple[Any, ...]]:
        """The estimates at the ends of bins with their band, group by group."""
        del known
        names: list[str] = []
        parts: dict[str, list[float]] = {}
        for name, line in zip(self.group_names, drawn, strict=True):
            for column, numbers in self.rows(mechanism, line).items():
                parts.setdefault(column, []).extend(np.round(numbers, DIGITS.get(column, ROUNDING)).tolist())
            names += [name] * (len(parts["x"]) - len(names))
        columns = {column: tuple(values) for column, values in parts.items()}
        return columns if self.by is None else {"group": tuple(names), **columns}

    @property
    def groups(self) -> Groups | None:
        """The public groups."""
        return None if self.by is None else Groups(tuple(self.by.items()))

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the groups, one without a name where there are none."""
        return ("",) if self.by is None else tuple(next(iter(self.by.values())))

    def mechanism(self, guarantee: Guarantee) -> DistributionMechanism:
        """The mechanism with all of the budget."""
        return DistributionMechanism(
            self.line.cells + self.apart,
            statuses=self.statuses,
            apart=self.apart,
            groups=len(self.group_names),
            contributions=self.privacy_unit.most,
            public_n=cast("int | None", self.public_n),
            neighbours=guarantee.neighbours,
            **budget_of(self.charged(None, guarantee)),
        )

    def charged(self, mechanism: Any, guarantee: Guarantee) -> Guarantee:
        """Of (ε, δ) the ε alone."""
        if guarantee.kind != "approximate":
            return guarantee
        return replace(guarantee, kind="pure", delta=Fraction(0))

    def read(self, source: LineSource, frame: Frame) -> Any:
        """How many records each cell of each group has, by status."""
        return count_line(source, frame)

    def draw(self, mechanism: DistributionMechanism, statistic: Any) -> tuple[MeasuredLine, ...]:
        """Bins and noisy counts of each group."""
        return mechanism.release(statistic)

    def manifest(self, mechanism: Any, drawn: Any, common: Mapping[str, Any]) -> Manifest:
        """With everything that was measured."""
        lines = [
            LineEntry(
                group=name,
                number=line.number,
                edges=line.edges.tolist(),
                counts=line.counts.tolist(),
                seed=line.seed,
            )
            for name, line in zip(self.group_names, drawn, strict=True)
        ]
        return cast("Any", self.form)(mechanism=recipe_of(mechanism), lines=lines, **common)

    def rehearsed(self, job: Job, frame: Frame, stamp: Stamp) -> tuple[Release, dict[str, int]]:
        """Of no rows there are few bins. With many rows each cell may be one: both files must hold that."""
        release = job.publish(job.draw(job.read(frame)), stamp)
        kinds, most = job.mechanism.statuses, job.mechanism.cells * job.mechanism.groups
        longest = max(len(name.encode()) for name in self.group_names)
        return release, {"release.csv": most * (kinds * _ROW + longest), "manifest.json": most * kinds * _BIN}

    def others(self, source: Any) -> list[str]:
        """Groups of the data that are not listed."""
        from isotone.release.check import unlisted

        return [
            line
            for column, values in (self.by or {}).items()
            for line in unlisted(source, column, values, "a group", "left out")
        ]

    def planned(self, guarantee: Guarantee, guess: Any, progress: Progress) -> Plan[Any]:
        """Errors to expect for about ``guess`` records, by stated shapes."""
        from isotone.distribution.plan import USUAL, plan

        size = self.public_n if guess is None else guess
        result = plan(self.mechanism(guarantee), USUAL if size is None else size, guessed=size is not None)
        return replace(result, guarantee=guarantee)

    def least_budget(
        self, guarantee: Guarantee, error: float, guess: int | None, confidence: float
    ) -> tuple[float, dict[str, Any]]:
        """By simulation of stated shapes with about ``guess`` records."""
        from isotone.distribution.plan import least_budget, share_in_words

        size = self.public_n if guess is None else guess
        if size is None:
            raise InputError(
                "About how many records are there? Give --records, a guess that is not read from the data."
            )
        del confidence  # errors are expected ones
        name = "rho" if guarantee.kind == "zcdp" else "epsilon"
        kind: Any = "zcdp" if name == "rho" else "pure"
        unit: dict[str, Any] = {"neighbours": guarantee.neighbours, "unit": guarantee.unit}

        def made(budget: Fraction) -> DistributionMechanism:
            return self.mechanism(Guarantee(kind, **{name: budget}, **unit))

        of = {"of": f"every {share_in_words(self.statuses)}", "records": size}
        return float(least_budget(made, error, size)), of

    def attacked(
        self, mechanism: DistributionMechanism, guarantee: Guarantee, trials: int, progress: Progress
    ) -> AuditReport:
        """A unit more in the first of some cells, or moved to another: bins, number and the count of that cell are looked at."""
        from isotone.audit import audit
        from isotone.audit.exact import AuditReport

        small = replace_cells(mechanism)
        units = mechanism.unit.changes
        first = np.zeros((small.groups, small.statuses, small.cells), np.int64)
        first[0, 0, 5] = 3
        second = first.copy()
        second[0, 0, 5] += units
        if mechanism.unit.adjacency.exchanges:
            first[0, 0, 12] += units

        def release(cells: Any) -> Any:
            line = small.release(cells)[0]
            bin_of = int(np.searchsorted(line.edges, 5, side="right")) - 1
            return line.number, line.bins, line.counts[0, bin_of]

        result = audit(release, first, second, trials, claimed=mechanism.guarantee, progress=progress)
        return AuditReport((result,))


class DistributionEntries(Section):
    """``[distribution]``: how a number is distributed."""


@described
class Distribution(LineDescription):
    """How a number is distributed: its cumulative distribution function with a band, and with it all quantiles and shares.

    The published columns are the upper ends of bins, found privately where there are enough records, ``x``, the share of records at or below,
    ``value``, and its band, ``low`` and ``high``. Readers ask the release for quantiles, shares, the Lorenz curve and the Gini
    coefficient. With ``delta`` it is made, and charged, with ``epsilon`` alone.

    >>> Distribution("income", bounds=(0, 10**6), unit="person")
    Distribution('income', unit=Unit('person'), bounds=(0, 1e+06))
    """

    kind_name: ClassVar[str] = "distribution"
    form: ClassVar[type[Manifest]] = DistributionManifest
    key: ClassVar[str] = "distribution"
    entries: ClassVar[type[Section]] = DistributionEntries
    refused: ClassVar[Mapping[str, str]] = FrozenMapping(
        {
            "quantiles": "all quantiles come from one release: ask it for them afterwards, with release.quantile(0.5).",
            "bins": "bins are found privately, finer where there are many records: leave bins out, or give cells, the finest grid.",
        }
    )

    column: ColumnName
    """The column of the number."""
    _: KW_ONLY
    bounds: Pair
    """Public limits [low, high]; values outside are moved to the ends. Not chosen by the data."""
    grid: Literal["even", "log", "integers"] | Annotated[tuple[Real, ...], Listed] = "even"
    """The public grid: "even" cells, "log" for cells of one ratio (low above 0), "integers" for every whole number of bounds, or a list of at most 1000 values, to the nearest of which each record goes. Never the values that the data has."""
    cells: Annotated[Size, Field(ge=2, le=MOST_CELLS)] | None = None
    """How many cells an even grid or one of ratios has. By default as many as there are round steps, up to 65,536, and fewer for more than 15 groups. More cost nothing."""
    by: By | None = None
    """A column of groups with the public list of its values, such as sex = ["f", "m"]: a distribution for each, for the price of one. Rows of other values are left out."""
    public_n: Size | None = None
    """The number of records, if it is public. Otherwise a noisy one costs 2 % of the budget."""
    band: Literal["records", "population", "none"] = "records"
    """What low and high are a band for: these records, or the population that they were drawn from (one record a unit). Readers may ask for either."""

    def __post_init__(self) -> None:
        check_contributions(self.privacy_unit.most, self.privacy_unit.column)
        if self.cells is not None and not isinstance(self.grid, str):
            raise InputError("cells goes with an even grid or one of ratios: a list of values has its own.")
        if self.cells is not None and self.grid == "integers":
            raise InputError(
                "cells goes with an even grid or one of ratios: whole numbers are cells of their own."
            )
        if self.band == "population" and self.privacy_unit.most > 1:
            raise InputError(
                "There is no band for the population where a unit has several records, which are no independent draws from it: "
                "leave band out, or set contributions to 1."
            )
        self.require_possible(self.band != "none")

    @property
    def line(self) -> CellLine:
        """The public cells."""
        low, high = (Fraction(end) for end in cast("tuple[Any, Any]", self.bounds))
        usual = max(min(USUAL_CELLS, MOST_CELLS // len(self.group_names)), 2)
        return CellLine.of(low, high, self.grid, self.cells, usual)

    @property
    def words(self) -> str:
        """The name of the column."""
        return f"distribution of {self.column}"

    @property
    def title(self) -> str:
        """The name of the column."""
        return f"Distribution of {self.column}"

    def source(self, data: Any, mechanism: DistributionMechanism) -> LineSource:
        """The column, its grid and the groups."""
        unit = self.privacy_unit
        return LineSource(data, self.column, self.line, self.groups, unit.column, unit.most)

    def rows(self, mechanism: DistributionMechanism, line: MeasuredLine) -> dict[str, Any]:
        """The estimated shares at the ends of bins, with their band."""
        around = band_of(mechanism, line, self.confidence, self.band)
        below = shares_below(line.edges, bin_counts(mechanism, line).sum(axis=0), mechanism.cells)
        low, high = around.low[1:], around.high[1:]
        value = np.clip(below[line.edges[1:]], low, high)
        result = {"x": self.line.ends()[1][line.edges[1:] - 1], "value": value}
        return result if self.band == "none" else result | {"low": low, "high": high}

    def figures(
        self, mechanism: DistributionMechanism, line: MeasuredLine, confidence: float, band: str
    ) -> LineFigures:
        """What readers ask of one group."""
        around = band_of(mechanism, line, confidence, band)
        below = shares_below(line.edges, bin_counts(mechanism, line).sum(axis=0), mechanism.cells)
        return LineFigures.of(self.line.ends(), line.edges, below, around)

    def findings(self, source: Any) -> list[str]:
        """Values that are missing, no numbers or outside, and groups that are not listed."""
        from isotone.release.check import outside

        return outside(source, [(self.column, cast("Any", self.bounds))]) + self.others(source)


def replace_cells(mechanism: DistributionMechanism, cells: int = 32) -> DistributionMechanism:
    """The same mechanism for a shorter line."""
    given: dict[str, Any] = {k: v for k, v in recipe_of(mechanism).items() if k != "name"}
    given["cells"] = min(cells, mechanism.cells)
    return DistributionMechanism(**given)


def band_of(mechanism: DistributionMechanism, line: MeasuredLine, confidence: float, band: str) -> ShareBand:
    """The band that is asked for. None is one from 0 to 1."""
    if band == "none":
        return ShareBand.unknown(line.bins)
    return (band_for_population if band == "population" else band_for_records)(mechanism, line, confidence)


def lines_of(entries: list[Any]) -> tuple[MeasuredLine, ...]:
    """What a manifest says was measured."""
    return tuple(
        MeasuredLine(
            np.array(entry["edges"], np.int64),
            np.array(entry["counts"], np.int64),
            int(entry["number"]),
            int(entry["seed"]),
        )
        for entry in entries
    )
