"""Questions to published counts, answered from the folder alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from isotone.errors import InputError
from isotone.inference.estimates import Estimate
from isotone.inference.population import (
    Measured,
    changes,
    clipped,
    population_proportion,
    population_share,
    summed,
    widened,
)
from isotone.privacy.checks import confidence_level, did_you_mean, shown, truth
from isotone.release.kinds.counts.combining import (
    combine_counts,
    draws_of,
    require_different_draws,
    require_same_definition,
    require_same_records,
)
from isotone.release.kinds.counts.deriving import (
    given,
    number_of_records,
    public_records,
    require_all_counted,
)
from isotone.release.kinds.counts.measuring import group_sum, groups_of, measured
from isotone.release.kinds.reader import Reader
from isotone.release.result import Release

__all__ = ["CountReader", "element_names"]


class CountReader(Reader):
    """Answers from the law of the noise."""

    def _of(self, group: Any, stream: str = "", release: Release | None = None) -> Measured:
        """The counts of a group."""
        source = self.release if release is None else release
        found, names = measured(source.manifest, source.columns["value"], stream), groups_of(source.manifest)
        if names is None:
            if group is not None:
                raise InputError("This release has no groups.")
            return found[0]
        if group is None:
            raise InputError(f"Which group? There are: {', '.join(names)}. Say group=, or sum() over all.")
        return found[group_place(group, names)]

    def _level(self, confidence: float | None) -> float:
        return confidence_level(self.release.manifest["confidence"] if confidence is None else confidence)

    def contrast(self, coefficients: Mapping[Any, float], confidence: float | None, group: Any) -> Estimate:
        """A linear combination of counts of one group."""
        return self._of(group).contrast(coefficients, self._level(confidence))

    def share(
        self,
        part: Any,
        of: Any,
        confidence: float | None,
        group: Any,
        records: Any,
        after_rules: bool,
        population: bool,
        deff: Any,
    ) -> Estimate:
        """The share of one count in another, or in all records. In the population noise and sampling together."""
        found = self._with_records(self._of(group), of, group, records, after_rules)
        level = self._level(confidence)
        if not population:
            return found.share(part, of, level)
        if of is None and found.records is not None:
            return population_proportion(found, part, level, deff)
        return population_share(found, part, of, level, deff)

    def _with_records(
        self, found: Measured, of: Any, group: Any, records: Any, after_rules: bool
    ) -> Measured:
        if records is None:
            return found
        if of is not None:
            raise InputError("records= is the number of all records, for shares of all: leave of= out.")
        manifest = self.release.manifest
        if not truth(after_rules, "after_rules"):
            require_all_counted(manifest)
        names = groups_of(manifest)
        if names is not None and isinstance(records, Mapping):
            number = public_records(records, names)[names.index(str(group))]
        else:
            number = number_of_records(records)
        if found.records not in (None, number):
            raise InputError(
                f"This release is of {found.records:,} records, as was stated, not of {number:,}."
            )
        return replace(found, records=number)

    def shares(
        self, pairs: Sequence[tuple[Any, Any]] | None, together: bool, confidence: float | None, group: Any
    ) -> dict[tuple[str, str], Estimate]:
        """Shares along the covers, or of the pairs given."""
        found, level = self._of(group), self._level(confidence)
        asked = found.P.covers if pairs is None else _pairs(pairs)
        if truth(together, "together"):
            return found.shares(asked, level)
        return {(str(part), str(of)): found.share(part, of, level) for part, of in asked}

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Any:
        """Counts of the other release minus those of this one."""
        if not isinstance(other, Release) or other.kind != self.release.kind:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("A change is from one release of counts to another.")
        require_same_definition(self.release.manifest, other.manifest)
        require_different_draws([draws_of(one.manifest) for one in (self.release, other)])
        self._require_comparable(other, what, follows_order)
        before, after = self._of(group), self._of(group, "1", other)
        return changes(before, after, what, self._level(confidence))

    def _require_comparable(self, other: Release, what: Any, follows_order: bool) -> None:
        """Refuse changes of elements that two orders count other records for."""
        first, second = self.release.order, other.order
        later = frozenset(second.elements)
        asked = [x for x in first.elements if x in later and (what is None or str(x) == str(what))]
        stated = truth(follows_order, "follows_order")
        require_same_records(first, second, asked, self.release.manifest, stated)

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Any:
        """Counts of the second group minus those of the first."""
        names = groups_of(self.release.manifest)
        if names is None:
            raise InputError("This release has no groups to compare. contrast() compares its elements.")
        i, j = (group_place(group, names) for group in (first, second))
        if i == j:
            raise InputError("Name two different groups.")
        found = group_sum(self.release.manifest, self.release.columns["value"])
        # rows of all groups of one draw stand side by side: groups may depend on each other
        draws, width = found[0].law.draws.astype(np.float64), found[0].law.draws.shape[1]
        dealt = draws[: len(draws) // len(names) * len(names)].reshape(-1, len(names), width)
        level = self._level(confidence)
        return changes(found[i], found[j], what, level, lambda x, z: dealt[:, j, z] - dealt[:, i, x])

    def rank(self, what: Any, confidence: float | None, group: Any) -> Any:
        """The place of one count among all, or of each."""
        found, level = self._of(group), self._level(confidence)
        if what is not None:
            return found.rank(what, level)
        return {str(x): found.rank(x, level) for x in found.P.elements}

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """One element summed over all groups, or several elements of a release without groups."""
        level, names = self._level(confidence), groups_of(self.release.manifest)
        elements = element_names(what)
        if names is None:
            return self._of(None).contrast(dict.fromkeys(elements, 1), level)
        found = group_sum(self.release.manifest, self.release.columns["value"])
        weights = found[0].weights(dict.fromkeys(elements, 1))
        value, half = summed(found, weights, level)
        terms = [group.values * weights for group in found]
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
