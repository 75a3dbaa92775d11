"""Questions to published counts over time, answered from the folder alone.

A stage is meant in the last shown period, unless the period is said: ``("week 3", "first dose")``, or as text
``"week 3: first dose"``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from isotone.errors import InputError
from isotone.inference import Estimate, Measured, changes
from isotone.linear.mechanism import Law
from isotone.order import Poset
from isotone.privacy.checks import did_you_mean, shown
from isotone.release.kinds.counts.reader import CountReader, group_place
from isotone.release.kinds.series.description import Series, SeriesManifest, mechanism_of, period_of
from isotone.release.result import Release, Within


def values_of(release: Release) -> Any:
    """The values by shown period, group and stage."""
    described = Series.from_manifest(release.manifest, {})
    shape = -1, len(described.group_names or ("",)), len(described.stages)
    return np.array(release.columns["value"], np.int64).reshape(shape)


def new_since(release: Release, period: str, since: str) -> Release:
    """The rows of a period, with what is new since an earlier one, and its interval."""
    one = period_of(release, period)
    columns = {name: list(column) for name, column in one.columns.items() if name not in ("new", "new_sd")}
    groups = columns.get("group", [None] * len(columns["element"]))
    estimates = [
        release.difference(*(name if group is None else (name, group) for name in (since, period)), stage)  # pyright: ignore
        for group, stage in zip(groups, columns["element"], strict=True)
    ]
    for name, part in (("new", "value"), ("new_low", "low"), ("new_high", "high")):
        columns[name] = [round(getattr(each, part)) for each in estimates]
    return replace(one, columns={name: tuple(column) for name, column in columns.items()})


class SeriesReader(CountReader):
    """Answers from the law of the noise of the whole series. ``at`` is the place of a shown period, the last one if None."""

    def __init__(self, release: Release, at: int | None = None) -> None:
        super().__init__(release)
        assert isinstance(release.manifest, SeriesManifest)
        self.manifest = release.manifest
        if not self.manifest.shown:
            raise InputError("No period of this series is shown yet.")
        self.described = Series.from_manifest(release.manifest, {})
        self.here = len(self.manifest.shown) - 1 if at is None else at

    def _of(self, group: Any, stream: str = "", release: Release | None = None) -> Measured:
        """The counts of one period in a group."""
        reader = self if release is None else SeriesReader(release)
        return reader.measured([reader.here], group, stream)

    def measured(self, places: Sequence[int], group: Any, stream: str = "") -> Measured:
        """The counts of some shown periods in a group; of several, elements are called ``period: stage``."""
        stages, groups, mechanism = (
            self.described.stages,
            self.described.group_names,
            mechanism_of(self.manifest),
        )
        if groups is None and group is not None:
            raise InputError("This release has no groups.")
        if groups is not None and group is None:
            raise InputError(f"Which group? There are: {', '.join(groups)}. Say group=.")
        g = 0 if groups is None else group_place(group, groups)
        times = [self.manifest.shown[place] for place in places]
        where = np.concatenate([np.arange(t * len(stages), (t + 1) * len(stages)) for t in times])
        whole = mechanism.law(f"{stream}.{g}" if groups else stream)
        law = Law(whole.draws[:, where], whole.other[:, where])
        names = stages
        if len(times) > 1:
            order = Poset.product(Poset.chain([self.described.periods[t] for t in times]), stages)
            names = order.rename(lambda pair: f"{pair[0]}: {pair[1]}")
        return Measured(
            names,
            values_of(self.release)[list(places), g].ravel().astype(np.float64),
            law,
            mechanism.error().variance[where],
            lambda: mechanism.covariance()[np.ix_(where, where)],
        )

    def _place(self, name: Any) -> tuple[int, str]:
        """The shown period and the stage that are meant."""
        stages = [str(x) for x in self.described.stages.elements]
        if isinstance(name, str) and name in stages:
            return self.here, name
        if isinstance(name, str):
            pairs = [(p, x) for p in self.manifest.shown_names for x in stages if f"{p}: {x}" == name]
            if not pairs:
                near = did_you_mean(name, stages) or f"; there are: {', '.join(stages)}."
                raise InputError(f"The series has no stage {name!r}{near}")
            name = pairs[0]
        if not isinstance(name, (tuple, list)) or len(name) != 2:
            raise InputError(f"Name a stage, or a period and a stage as a pair, not {shown(name)}.")
        period, stage = str(name[0]), str(name[1])
        if stage not in stages:
            raise InputError(f"The series has no stage {stage!r}{did_you_mean(stage, stages) or '.'}")
        return self._period(period), stage

    def _period(self, name: Any) -> int:
        if str(name) not in self.manifest.shown_names:
            raise InputError(
                f"The series shows no period {shown(name)}. It shows: {', '.join(self.manifest.shown_names)}."
            )
        return self.manifest.shown_names.index(str(name))

    def contrast(self, coefficients: Mapping[Any, float], confidence: float | None, group: Any) -> Estimate:
        """A linear combination of counts of all shown periods."""
        if not isinstance(coefficients, Mapping) or not coefficients:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                "A contrast is a mapping from stages to numbers, such as {'first dose': 1, 'second dose': -1}."
            )
        result = {self._place(name): factor for name, factor in coefficients.items()}
        if len(result) < len(coefficients):
            raise InputError("A contrast names each count once.")
        return self._contrast(result, confidence, group)

    def _contrast(
        self, estimates: Mapping[tuple[int, str], float], confidence: float | None, group: Any
    ) -> Estimate:
        places = sorted({place for place, _ in estimates})
        names = self.manifest.shown_names
        weights = {
            x if len(places) == 1 else f"{names[place]}: {x}": factor
            for (place, x), factor in estimates.items()
        }
        return self.measured(places, group).contrast(weights, self.level(confidence))

    def share(self, part: Any, of: Any, confidence: float | None, group: Any, within: Within) -> Estimate:
        """The share of one count in another, of the same period or not."""
        if of is None and within.records is None:
            raise InputError("The share of what? Name the whole, of=, or state the number of records.")
        (first, a), (second, b) = self._place(part), (self._place(part) if of is None else self._place(of))
        if first == second:
            own = SeriesReader(self.release, first)
            return CountReader.share(own, a, None if of is None else b, confidence, group, within)
        if within.population or within.records is not None:
            raise InputError("The share of a population, or of all records, is about one period.")
        names, places = self.manifest.shown_names, sorted({first, second})
        result = self.measured(places, group)
        return result.share(f"{names[first]}: {a}", f"{names[second]}: {b}", self.level(confidence))

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Any:
        """What is new at the second period since the first, of one stage or of each, with intervals of their own.

        With groups a period is given with its group: ``("week 1", "north")``.
        """
        if self.described.group_names is not None:
            try:
                (first, group), (second, other) = first, second
            except (TypeError, ValueError):
                raise InputError(
                    'With groups a period is given with its group: ("week 1", "north").'
                ) from None
            if str(group) != str(other):
                raise InputError("What is new is about one group: name the same group twice.")
        else:
            group = None
        before, after = self._period(first), self._period(second)
        if before >= after:
            raise InputError("Name an earlier period, and then a later one.")

        def new(stage: Any) -> Estimate:
            return self._contrast({(after, str(stage)): 1, (before, str(stage)): -1}, confidence, group)

        if what is not None:
            return new(self._place(what)[1])
        return {str(x): new(x) for x in self.described.stages.elements}

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Any:
        """What is new from the last shown period of this release to that of another one: of this series, or of another series."""
        if not isinstance(other, Release) or not isinstance(other.manifest, SeriesManifest):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("A change is from one series to another, or to a later state of the same.")
        later = SeriesReader(other)
        own, theirs = (self.manifest.description, later.manifest.description)
        if any(own[name] != theirs[name] for name in ("order", "answers", "by", "unit", "record", "date")):
            raise InputError(
                "The two series count different things: a change needs the same stages, answers, groups and unit."
            )
        chain, longer = self.manifest.chain or [self.manifest.content_hash], later.manifest.chain or []
        if chain == longer[: len(chain)] and chain:
            first = self.manifest.shown_names[-1]
            if len(chain) == len(longer):
                raise InputError("Both folders show the same periods.")
            ends = (first, later.manifest.shown_names[-1])
            old, new = ends if group is None else [(end, group) for end in ends]
            return later.difference(old, new, what, confidence)
        draws = [m.noise or (m.dataset, m.charge, m.time) for m in (self.manifest, later.manifest)]
        if draws[0] == draws[1]:
            raise InputError(
                "The two folders are of one series, and neither continues the other: one of them was changed."
            )
        return changes(self._of(group), later._of(group, "1"), what, self.level(confidence))

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """Refused: stages contain each other."""
        self.refuse("sums: stages contain each other. contrast() takes factors")

    def given(self, records: Any, after_rules: bool) -> Release:
        """Refused: there is no noisy number of records."""
        self.refuse("noisy number of records to compare a public one with")

    def combine(self, others: Sequence[Release], follows_order: bool) -> Release:
        """Refused: the periods of a series depend on each other."""
        self.refuse("combination with others: change() compares two series")
