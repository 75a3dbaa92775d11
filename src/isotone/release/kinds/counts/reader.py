"""Questions to published counts, answered from the folder alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.breakdown import Breakdown, margin_of
from isotone.counts.margins import Cell, MarginsMechanism, margins_law
from isotone.counts.sampler import Recent
from isotone.errors import InputError
from isotone.inference import (
    Estimate,
    Measured,
    changes,
    clipped,
    population_proportion,
    population_share,
    summed,
    widened,
)
from isotone.linear.mechanism import Law
from isotone.privacy.checks import did_you_mean, shown, truth
from isotone.release.kinds.counts.columns import has_margins, rebuild_margins
from isotone.release.kinds.counts.derived import (
    as_drawn,
    combine_counts,
    draws_of,
    given,
    group_sum,
    groups_of,
    measured,
    measured_tables,
    number_of_records,
    public_records,
    require_all_counted,
    require_different_draws,
    require_same_definition,
    require_same_records,
)
from isotone.release.kinds.counts.description import CountManifest, Counts
from isotone.release.kinds.kind import Reader
from isotone.release.manifest import Manifest, canonical_json
from isotone.release.result import Release, Within


class CountReader(Reader):
    """Answers from the law of the noise."""

    def _of(self, group: Any, stream: str = "", release: Release | None = None) -> Measured:
        """The counts of a group."""
        source = self.release if release is None else release
        result, names = measured(source.manifest, source.columns["value"], stream), groups_of(source.manifest)
        if names is None:
            if group is not None:
                raise InputError("This release has no groups.")
            return result[0]
        if group is None:
            raise InputError(f"Which group? There are: {', '.join(names)}. Say group=, or sum() over all.")
        return result[group_place(group, names)]

    def contrast(self, coefficients: Mapping[Any, float], confidence: float | None, group: Any) -> Estimate:
        """A linear combination of counts of one group."""
        return self._of(group).contrast(coefficients, self.level(confidence))

    def share(self, part: Any, of: Any, confidence: float | None, group: Any, within: Within) -> Estimate:
        """The share of one count in another, or in all records. In the population noise and sampling together."""
        result = self._with_records(self._of(group), of, group, within)
        level = self.level(confidence)
        if not within.population:
            return result.share(part, of, level)
        if of is None and result.records is not None:
            return population_proportion(result, part, level, within.deff)
        return population_share(result, part, of, level, within.deff)

    def _with_records(self, counts: Measured, of: Any, group: Any, within: Within) -> Measured:
        records = within.records
        if records is None:
            return counts
        if of is not None:
            raise InputError("records= is the number of all records, for shares of all: leave of= out.")
        manifest = self.release.manifest
        if not truth(within.after_rules, "after_rules"):
            require_all_counted(manifest)
        names = groups_of(manifest)
        if names is not None and isinstance(records, Mapping):
            number = public_records(records, names)[names.index(str(group))]
        else:
            number = number_of_records(records)
        if counts.records not in (None, number):
            raise InputError(
                f"This release is of {counts.records:,} records, as was stated, not of {number:,}."
            )
        return replace(counts, records=number)

    def shares(
        self, pairs: Sequence[tuple[Any, Any]] | None, together: bool, confidence: float | None, group: Any
    ) -> dict[tuple[str, str], Estimate]:
        """Shares along the covers, or of the pairs given."""
        result, level = self._of(group), self.level(confidence)
        chosen_pairs = result.P.covers if pairs is None else _pairs(pairs)
        if truth(together, "together"):
            return result.shares(chosen_pairs, level)
        return {(str(part), str(of)): result.share(part, of, level) for part, of in chosen_pairs}

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Any:
        """Counts of the other release minus those of this one."""
        if not isinstance(other, Release) or other.kind != self.release.kind or has_margins(other.manifest):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("A change is from one release of counts to another.")
        require_same_definition(self.release.manifest, other.manifest)
        require_different_draws([draws_of(one.manifest) for one in (self.release, other)])
        self._require_comparable(other, what, follows_order)
        before, after = self._of(group), self._of(group, "1", other)
        return changes(before, after, what, self.level(confidence))

    def _require_comparable(self, other: Release, what: Any, follows_order: bool) -> None:
        """Refuse changes of elements that two orders count other records for."""
        first, second = self.release.order, other.order
        later = frozenset(second.elements)
        elements = [x for x in first.elements if x in later and (what is None or str(x) == str(what))]
        stated = truth(follows_order, "follows_order")
        require_same_records(first, second, elements, self.release.manifest, stated)

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Any:
        """Counts of the second group minus those of the first."""
        names = groups_of(self.release.manifest)
        if names is None:
            raise InputError("This release has no groups to compare. contrast() compares its elements.")
        i, j = (group_place(group, names) for group in (first, second))
        if i == j:
            raise InputError("Name two different groups.")
        result = group_sum(self.release.manifest, self.release.columns["value"])
        # rows of all groups of one draw stand side by side: groups may depend on each other
        draws, width = result[0].law.draws.astype(np.float64), result[0].law.draws.shape[1]
        dealt = draws[: len(draws) // len(names) * len(names)].reshape(-1, len(names), width)
        level = self.level(confidence)
        return changes(result[i], result[j], what, level, lambda x, z: dealt[:, j, z] - dealt[:, i, x])

    def rank(self, what: Any, confidence: float | None, group: Any) -> Any:
        """The place of one count among all, or of each."""
        result, level = self._of(group), self.level(confidence)
        if what is not None:
            return result.rank(what, level)
        return {str(x): result.rank(x, level) for x in result.P.elements}

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """One element summed over all groups, or several elements of a release without groups."""
        level, names = self.level(confidence), groups_of(self.release.manifest)
        elements = element_names(what)
        if names is None:
            return self._of(None).contrast(dict.fromkeys(elements, 1), level)
        result = group_sum(self.release.manifest, self.release.columns["value"])
        weights = result[0].weights(dict.fromkeys(elements, 1))
        value, half = summed(result, weights, level)
        terms = [group.values * weights for group in result]
        return clipped(value, widened(half, terms), level, True)

    def given(self, records: Any, after_rules: bool) -> Release:
        """Adjusted by a public number of records."""
        return given(self.release, records, after_rules)

    def combine(self, others: Sequence[Release], follows_order: bool) -> Release:
        """One best estimate from all."""
        return combine_counts([self.release, *others], follows_order)


def group_place(group: Any, names: Sequence[str]) -> int:
    """The place of a group in the public list."""
    if str(group) not in names:
        raise InputError(f"There is no group {shown(group)}{did_you_mean(str(group), names) or '.'}")
    return names.index(str(group))


def element_names(what: Any) -> list[Hashable]:
    """The elements of a sum."""
    alone = isinstance(what, (str, bytes)) or not isinstance(what, Sequence)
    names: list[Hashable] = [what] if alone else list(what)
    if what is None or not names or isinstance(what, (Set, Mapping)):
        raise InputError("A sum of what? Name an element, or a list of elements.")
    if len({str(name) for name in names}) < len(names):
        raise InputError("A sum has each element once. contrast() takes factors.")
    return names


def _pairs(pairs: Any) -> list[tuple[Any, Any]]:
    try:
        return [(part, of) for part, of in pairs]
    except (TypeError, ValueError):
        raise InputError("pairs must be a list of pairs of elements: (part, whole).") from None


# Questions to a published breakdown, answered from the folder alone.

Floats = NDArray[np.float64]

_mechanisms: Recent[MarginsMechanism] = Recent(4)
_laws: Recent[Law] = Recent(8)

_REASON = "its values are estimated from margins, each with a share of the budget of its own."


def margins_of(manifest: Manifest, described: Counts | None = None) -> MarginsMechanism:
    """The mechanism of a breakdown."""
    described = described or Counts.from_manifest(manifest, {})
    if not described.is_breakdown:
        raise InputError("the mechanism is not one for what is described")
    return rebuild_margins(described.P, manifest.mechanism, described.breakdown)


class BreakdownReader(CountReader):
    """Answers from the law of the noise of all margins. ``group`` names a cell, the total if it is left out."""

    def group_named(self, words: Sequence[str]) -> Any:
        """The cell that words such as ``region=north`` name."""
        parts = [word.partition("=") for word in words]
        names = [name for name, _, _ in parts]
        for word, (name, sign, _) in zip(words, parts, strict=True):
            if not sign or names.count(name) > 1:
                raise InputError(f"A cell is named by NAME=VALUE, once for each name, not by {word!r}.")
        return {name: value for name, _, value in parts}

    def _of(self, group: Any, stream: str = "", release: Release | None = None) -> Measured:
        """The counts of a cell."""
        return _CellTable(self.release if release is None else release).measured(group, stream)

    def _with_records(self, counts: Measured, of: Any, group: Any, within: Within) -> Measured:
        if of is None and within.records is None:
            raise InputError(
                "A breakdown has no number of records. If that of the cell is public, state it with records=; otherwise "
                "count all records with an element above all others."
            )
        return super()._with_records(counts, of, group, within)

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Any:
        """Counts of a cell in the other release minus those in this one."""
        if not isinstance(other, Release) or not has_margins(other.manifest):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("A change of a breakdown is from one breakdown to another.")
        first, second = _CellTable(self.release), _CellTable(other)
        require_same_definition(first.manifest, second.manifest)
        if first.breakdown.attributes != second.breakdown.attributes:
            raise InputError("The releases are broken down by different lists.")
        require_different_draws([[as_drawn(one.manifest, one.mechanism)] for one in (first, second)])
        self._require_comparable(other, what, follows_order)
        before, after = first.measured(group, "0"), second.measured(group, "1")
        return changes(before, after, what, self.level(confidence))

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Any:
        """Counts of the second cell minus those of the first, whose noise is correlated."""
        table = _CellTable(self.release)
        cells = [table.cell(group) for group in (first, second)]
        if cells[0] == cells[1]:
            raise InputError("Name two different cells.")
        n, both = len(table.mechanism.base.P), table.law(cells, "").draws.astype(np.float64)
        before, after = table.measured(first, ""), table.measured(second, "")
        level = self.level(confidence)
        return changes(before, after, what, level, lambda x, z: both[:, n + z] - both[:, x])

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """Elements summed over all cells of the coarsest margin."""
        table, level = _CellTable(self.release), self.level(confidence)
        sizes = [math.prod(shape) for shape in table.breakdown.shapes]
        coarsest = int(np.argmin(sizes))
        cells = [(coarsest, k) for k in range(sizes[coarsest])]
        expected = dict.fromkeys(element_names(what), 1.0)
        law = table.law(cells, "")
        weights = table.counts(cells[0], law).weights(expected)
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
        assert isinstance(release.manifest, CountManifest)
        self.manifest: CountManifest = release.manifest

    @cached_property
    def _key(self) -> bytes:
        description = self.manifest["description"]
        lists = {name: description[name] for name in ("order", "by", "margins", "unlisted")}
        return canonical_json({**lists, "mechanism": self.manifest.mechanism})

    @cached_property
    def mechanism(self) -> MarginsMechanism:
        """The mechanism. The last few are kept."""
        return _mechanisms.get(self._key, lambda: margins_of(self.manifest))

    @property
    def breakdown(self) -> Breakdown:
        """Attributes and margins."""
        return self.mechanism.breakdown

    @cached_property
    def values(self) -> list[Floats]:
        """The estimates of each margin, a row for each cell."""
        result = self.mechanism.estimate(measured_tables(self.manifest, self.mechanism))
        return [table.reshape(-1, table.shape[-1]) for table in result]

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
        breakdown = self.breakdown
        if not isinstance(group, Mapping | None):
            raise InputError(
                f"The group of a breakdown is a mapping such as {{{breakdown.columns[0]!r}: …}}, not {shown(group)}."
            )
        named: dict[str, str] = {str(key): str(value) for key, value in (group or {}).items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        margin = margin_of(breakdown, list(named))
        if margin not in breakdown.margins:
            labels = ", ".join(breakdown.label(one) for one in breakdown.margins)
            raise InputError(f"The margin {breakdown.label(margin)!r} was not released. There are: {labels}.")
        places = list[int]()
        for attribute, level in zip(breakdown.attributes, margin, strict=True):
            values = attribute.values[level - 1] if level else ("",)
            value = named[attribute.names[level - 1]] if level else ""
            if value not in values:
                near = did_you_mean(value, values) or "."
                raise InputError(f"{attribute.names[level - 1]!r} has no value {shown(value)}{near}")
            places.append(values.index(value))
        sizes = breakdown.sizes(margin)
        return breakdown.margins.index(margin), int(np.ravel_multi_index(places, sizes))
