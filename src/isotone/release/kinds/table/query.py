"""The query of a table, and what its manifest says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NotRequired

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from isotone.privacy.guarantee import Guarantee
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.contributions import UnitEntry
from isotone.release.kinds.kind import Query, Stamp
from isotone.release.kinds.table.strata import PER, Strata
from isotone.release.manifest import Manifest, Stated, guarantee_to
from isotone.release.recipes import recipe_of
from isotone.release.result import Release, seal
from isotone.tables.choosing import TableMechanism
from isotone.tables.published_table import PublishedTable

if TYPE_CHECKING:
    from isotone.reading.sources import Frame

__all__ = ["AGGREGATED", "MICRODATA", "TableManifest", "TableQuery", "TableRules"]

MICRODATA = "one row for each unit"
AGGREGATED = "rows that are already counts"
"""The form of rows whose units are bounded by the release itself, once in each category."""


class StratumEntry(TypedDict):
    """A public class of categories.

    Its name, how many it holds, the private distribution of its counts, and the thresholds that were measured after a look at the first.
    """

    name: str
    size: int
    method: str
    distribution: list[float]
    finer: NotRequired[list[int]]


_Form = TypedDict("_Form", {"form": str, "top code": int})


class TableRules(UnitEntry, _Form):
    """How rows became counts."""


@dataclass(frozen=True, kw_only=True)
class TableManifest(Manifest):
    """The manifest of a table. ``distribution`` is the private share of categories with each count."""

    name: ClassVar[str] = "table"
    texts: ClassVar[frozenset[str]] = frozenset({"category", "stratum"})

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "category": "The column of the categories.",
        "upper": "The largest count. Counts above it were clipped to it.",
        "method": "table, or noise where there are too few categories to estimate a distribution.",
        "distribution": "The private share of categories with each count from 0 to upper.",
        "finer": "Where there are no strata: the thresholds that were measured after a look at the first noisy numbers.",
        "strata": "The public classes of categories, each with its own private distribution and its own finer thresholds.",
        "joint": "For pairs of counts: the private share of categories with each pair, by the first count and the second.",
        "rules": "How rows became counts: unit, contributions, the form of the rows and the top code.",
        "confidence": "The confidence of the intervals.",
    }

    category: str
    upper: int
    method: str
    distribution: list[float]
    rules: TableRules
    confidence: float
    finer: list[int] | None = None
    strata: list[StratumEntry] | None = None
    joint: list[list[float]] | None = None


@dataclass(frozen=True)
class TableQuery(Query[NDArray[np.int64], PublishedTable]):
    """A release of a table as asked for, made and checked by :func:`table_query`."""

    source: CategorySource
    mechanism: TableMechanism
    guarantee: Guarantee
    confidence: float
    stated: Stated
    strata: Strata | None = None
    population: tuple[float, ...] | None = None

    @property
    def description(self) -> str:
        """How many categories there are."""
        return f"table of {len(self.source.categories)} categories"

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the rows."""
        return self.source.categories

    @property
    def aggregated(self) -> bool:
        """Whether the rows are already counts."""
        return self.source.count is not None

    def parameters(self) -> dict[str, Any]:
        """Columns, categories, mechanism, guarantee and rules."""
        return {
            "kind": TableManifest.name,
            "category": self.source.category,
            "categories": list(self.source.categories),
            "mechanism": recipe_of(self.mechanism),
            "guarantee": guarantee_to(self.guarantee),
            "rules": self._rules(),
            "confidence": self.confidence,
            **self._own(),
        }

    def _own(self) -> dict[str, Any]:
        return {
            "count": self.source.count,
            "strata": None if self.strata is None else [[name, list(held)] for name, held in self.strata],
            "population": None if self.population is None else list(self.population),
        }

    def read(self, frame: Frame) -> NDArray[np.int64]:
        """One count per category."""
        return count_categories(self.source, frame)

    def draw(self, statistic: NDArray[np.int64]) -> PublishedTable:
        """Both noisy measurements of each stratum, and the table that is estimated from them."""
        strata = None if self.strata is None else [np.array(held, np.int64) for _, held in self.strata]
        return self.mechanism.release_in_full(statistic, strata)

    def publish(self, drawn: PublishedTable, stamp: Stamp) -> Release:
        """Values, estimates with intervals, unbiased noisy counts, and the private distribution."""
        return self.sealed(drawn, drawn.values, drawn.estimates, stamp)

    def sealed(
        self,
        drawn: PublishedTable,
        values: NDArray[np.int64],
        estimates: NDArray[np.float64],
        stamp: Stamp,
        joint: list[list[float]] | None = None,
    ) -> Release:
        """The release with these values and estimates, and all else from what was measured."""
        low, high = drawn.interval(self.confidence)
        columns: dict[str, tuple[Any, ...]] = {
            "category": self.labels,
            **self._classes(),
            "value": tuple(values.tolist()),
            "estimate": tuple(np.round(estimates, 4).tolist()),
            "low": tuple(low.tolist()),
            "high": tuple(high.tolist()),
            "noisy": tuple(np.round(drawn.noisy, 4).tolist()),
            "sd": tuple(np.round(drawn.deviation, 4).tolist()),
            **self._rates(drawn),
        }
        manifest = TableManifest(
            kind=TableManifest.name,
            category=self.source.category,
            upper=int(drawn.upper),
            mechanism=recipe_of(self.mechanism),
            method=drawn.method,
            distribution=drawn.probabilities.tolist(),  # as computed with: rounding would empty thin tails
            rules=self._rules(),
            confidence=self.confidence,
            finer=list(drawn.strata[0].thresholds.finer) if self.strata is None else None,
            strata=self._entries(drawn),
            joint=joint,
            **self.entries(stamp),
        )
        return seal(columns, manifest)

    def _classes(self) -> dict[str, tuple[str, ...]]:
        """The class of each category, if there are classes."""
        if self.strata is None:
            return {}
        named = {at: name for name, held in self.strata for at in held}
        return {"stratum": tuple(named[at] for at in range(len(self.labels)))}

    def _rates(self, drawn: PublishedTable) -> dict[str, tuple[float, ...]]:
        """Populations and rates of the values, if populations are known."""
        if self.population is None:
            return {}
        rates = np.round(PER * drawn.values / np.array(self.population), 4)
        return {"population": self.population, "rate": tuple(rates.tolist())}

    def _entries(self, drawn: PublishedTable) -> list[StratumEntry] | None:
        if self.strata is None:
            return None
        return [
            {
                "name": name,
                "size": len(held),
                "method": part.method,
                "distribution": part.probabilities.tolist(),
                "finer": list(part.thresholds.finer),
            }
            for (name, held), part in zip(self.strata, drawn.strata, strict=True)
        ]

    def _rules(self) -> TableRules:
        return {
            **self.source.unit_entry(),
            "form": AGGREGATED if self.aggregated else MICRODATA,
            "top code": self.source.upper,
        }
