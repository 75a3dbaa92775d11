"""Questions to a published breakdown, answered from the folder alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.breakdown import Breakdown, margin_of
from isotone.counts.margins import Cell, MarginsMechanism, margins_law
from isotone.counts.sampler import Recent
from isotone.errors import InputError
from isotone.inference.estimates import Estimate
from isotone.inference.population import Measured, changes, clipped, widened
from isotone.linear.law import Law
from isotone.privacy.checks import did_you_mean, shown
from isotone.release.kinds.breakdown.deriving import as_drawn, measured_tables
from isotone.release.kinds.breakdown.query import BreakdownManifest, rebuild_margins
from isotone.release.kinds.counts.combining import require_different_draws, require_same_definition
from isotone.release.kinds.counts.reader import CountReader, element_names
from isotone.release.manifest import canonical_json, order_from
from isotone.release.result import Release

__all__ = ["BreakdownReader"]

Floats = NDArray[np.float64]

_mechanisms: Recent[MarginsMechanism] = Recent(4)
_laws: Recent[Law] = Recent(8)

_REASON = "its values are estimated from margins, each with a share of the budget of its own."


class BreakdownReader(CountReader):
    """Answers from the law of the noise of all margins. ``group`` names a cell, the total if it is left out."""

    def group_named(self, words: Sequence[str]) -> Any:
        """The cell that words such as ``region=north`` name."""
        pairs = [word.partition("=") for word in words]
        names = [name for name, _, _ in pairs]
        for word, (name, sign, _) in zip(words, pairs, strict=True):
            if not sign or names.count(name) > 1:
                raise InputError(f"A cell is named by NAME=VALUE, once for each name, not by {word!r}.")
        return {name: value for name, _, value in pairs}

    def _of(self, group: Any, stream: str = "", release: Release | None = None) -> Measured:
        """The counts of a cell."""
        return _CellTable(self.release if release is None else release).measured(group, stream)

    def _with_records(
        self, found: Measured, of: Any, group: Any, records: Any, after_rules: bool
    ) -> Measured:
        if of is None and records is None:
            raise InputError(
                "A breakdown has no number of records. If that of the cell is public, state it with records=; otherwise "
                "count all records with an element above all others."
            )
        return super()._with_records(found, of, group, records, after_rules)

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Any:
        """Counts of a cell in the other release minus those in this one."""
        if not isinstance(other, Release) or other.kind != self.release.kind:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("A change of a breakdown is from one breakdown to another.")
        first, second = _CellTable(self.release), _CellTable(other)
        require_same_definition(first.manifest, second.manifest)
        if first.breakdown.attributes != second.breakdown.attributes:
            raise InputError("The releases are broken down by different lists.")
        require_different_draws([[as_drawn(one.manifest, one.mechanism)] for one in (first, second)])
        self._require_comparable(other, what, follows_order)
        before, after = first.measured(group, "0"), second.measured(group, "1")
        return changes(before, after, what, self._level(confidence))

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Any:
        """Counts of the second cell minus those of the first, whose noise is correlated."""
        table = _CellTable(self.release)
        cells = [table.cell(group) for group in (first, second)]
        if cells[0] == cells[1]:
            raise InputError("Name two different cells.")
        n, both = len(table.mechanism.base.P), table.law(cells, "").draws.astype(np.float64)
        before, after = table.measured(first, ""), table.measured(second, "")
        level = self._level(confidence)
        return changes(before, after, what, level, lambda x, z: both[:, n + z] - both[:, x])

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """Elements summed over all cells of the coarsest margin."""
        table, level = _CellTable(self.release), self._level(confidence)
        sizes = [math.prod(table.breakdown.sizes(margin)) for margin in table.breakdown.margins]
        coarsest = int(np.argmin(sizes))
        cells = [(coarsest, k) for k in range(sizes[coarsest])]
        wanted = dict.fromkeys(element_names(what), 1.0)
        law = table.law(cells, "")
        weights = table.counts(cells[0], law).weights(wanted)
        terms = table.values[coarsest] * weights
        half = law.half_width(np.tile(weights, len(cells)), level)
        return clipped(float(terms.sum()), widened(half, terms), level, True)

    def given(self, records: Any, after_rules: bool) -> Release:
        """Refuse, since no number of records was released."""
        raise InputError(
            f"A breakdown has no noisy number of records to compare a public one with: {_REASON}"
        )

    def combine(self, others: Sequence[Release], follows_order: bool) -> Release:
        """Refuse, since each release has weights of its own for every cell."""
        raise InputError(f"Breakdowns are not combined: of each, {_REASON} change() compares them.")


class _CellTable:
    """The cells of a breakdown with their values and laws, from its manifest."""

    def __init__(self, release: Release) -> None:
        assert isinstance(release.manifest, BreakdownManifest)
        self.manifest: BreakdownManifest = release.manifest

    @cached_property
    def _key(self) -> bytes:
        said = self.manifest
        return canonical_json({"order": said.order, "mechanism": said.mechanism, "by": said.breakdown})

    @cached_property
    def mechanism(self) -> MarginsMechanism:
        """The mechanism. The last few are kept."""
        return _mechanisms.get(
            self._key, lambda: rebuild_margins(order_from(self.manifest["order"]), self.manifest)
        )

    @property
    def breakdown(self) -> Breakdown:
        """Attributes and margins."""
        return self.mechanism.breakdown

    @cached_property
    def values(self) -> list[Floats]:
        """The estimates of each margin, a row for each cell."""
        found = self.mechanism.estimate(measured_tables(self.manifest, self.mechanism))
        return [table.reshape(-1, table.shape[-1]) for table in found]

    def law(self, cells: Sequence[Cell], stream: str) -> Law:
        """The law of the noise on some cells. The last few are kept."""
        key = self._key, tuple(cells), stream
        return _laws.get(key, lambda: margins_law(self.mechanism, cells, stream))

    def measured(self, group: Any, stream: str) -> Measured:
        """The counts of the cell that a reader names."""
        cell = self.cell(group)
        return self.counts(cell, self.law([cell], stream))

    def counts(self, cell: Cell, law: Law) -> Measured:
        """The counts of a cell, with the law that is given."""
        margin, place = cell
        variances = self.mechanism.variances()[margin].reshape(-1, len(self.mechanism.base.P))

        def covariance() -> Floats:
            raise InputError(f"A breakdown has no covariance of its own: {_REASON}")

        values, P = self.values[margin][place], self.mechanism.base.P
        return Measured(P, values, law, variance=variances[place], covariance=covariance, whole=False)

    def cell(self, group: Any) -> Cell:
        """The cell that a reader names by the values of its attributes. None is the total."""
        said = self.breakdown
        if not isinstance(group, Mapping | None):
            raise InputError(
                f"The group of a breakdown is a mapping such as {{{said.columns[0]!r}: …}}, not {shown(group)}."
            )
        named: dict[str, str] = {str(key): str(value) for key, value in (group or {}).items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        margin = margin_of(said, list(named))
        if margin not in said.margins:
            labels = ", ".join(said.label(one) for one in said.margins)
            raise InputError(f"The margin {said.label(margin)!r} was not released. There are: {labels}.")
        places = list[int]()
        for attribute, level in zip(said.attributes, margin, strict=True):
            values = attribute.values[level - 1] if level else ("",)
            value = named[attribute.names[level - 1]] if level else ""
            if value not in values:
                near = did_you_mean(value, values) or "."
                raise InputError(f"{attribute.names[level - 1]!r} has no value {shown(value)}{near}")
            places.append(values.index(value))
        sizes = said.sizes(margin)
        return said.margins.index(margin), int(np.ravel_multi_index(places, sizes))
