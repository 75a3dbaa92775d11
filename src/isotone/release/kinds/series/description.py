"""Counts over time: how many units have reached each stage of an order by the end of each of the planned periods."""

from __future__ import annotations

import datetime
import itertools
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator

from isotone.array_types import Floats, Ints
from isotone.counts.sampler import Recent
from isotone.errors import InputError, SpecError
from isotone.mechanism import no_progress
from isotone.order import Poset
from isotone.privacy.checks import plain_text, require_list
from isotone.privacy.guarantee import Guarantee
from isotone.process import scratch
from isotone.reading.questions import Question
from isotone.reading.records import Groups, RecordSource
from isotone.reading.sources import Frame, blank
from isotone.release.description import (
    ColumnName,
    Description,
    Section,
    Text,
    described,
    gathered,
)
from isotone.release.kinds.counts.columns import LawEntry, law_entry
from isotone.release.kinds.counts.description import Counts, questions_for
from isotone.release.manifest import (
    Manifest,
    Stated,
    canonical_json,
    content_hash,
    guarantee_to,
    require_writable,
)
from isotone.release.result import Release, seal
from isotone.series.register import HistoryRules, Register, random_key
from isotone.series.series_mechanism import SeriesMechanism, rebuild
from isotone.series.series_plan import plan_series

if TYPE_CHECKING:
    import os

    from isotone.audit.exact import AuditReport
    from isotone.ledger import Ledger
    from isotone.mechanism import Progress
    from isotone.planning import Plan
    from isotone.series.state import OpenSeries

DECIMALS = 4
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_OF_SURVEY = ("order", "answers", "by")
"""What a series takes of the counts that it is about, beside unit and confidence."""
_recent: Recent[Any] = Recent(4)


@dataclass(frozen=True, kw_only=True)
class SeriesManifest(Manifest):
    """The manifest of a series. It grows by an entry of ``shown`` and ``chain`` with each period, and else stays as it is."""

    name: ClassVar[str] = "series"
    texts: ClassVar[frozenset[str]] = frozenset({"period", "group", "element"})
    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "shown": "The places of the periods that are shown, among those that are planned, from 0.",
        "errors": "For every planned period and stage the standard deviation of a count, the half-width of its interval, and the standard deviation of what is new since the period before.",
        "law": "How half-widths were found: public draws of the noise, and the rank taken.",
        "noise": "The SHA-256 of all periods' salted noise, fixed at the opening; absent for a series of the past, which keeps no secrets.",
        "chain": "The hash that the charge was sealed with at the opening, and one for each shown period, which holds the one before; absent for a series of the past.",
    }

    shown: list[int]
    errors: dict[str, list[list[float]]]
    law: LawEntry | None = None
    noise: str | None = None
    chain: list[str] | None = None

    @property
    def planned(self) -> list[str]:
        """The names of all periods."""
        return self.description["periods"]

    @property
    def shown_names(self) -> list[str]:
        """The names of the periods that are shown."""
        return [self.planned[t] for t in self.shown]

    @property
    def standing(self) -> str:
        """How far the series is, in words."""
        following = self.shown[-1] + 1 if self.shown else 0
        rest = (
            f"The next is {self.planned[following]!r}."
            if following < len(self.planned)
            else "It is at its end."
        )
        return f"{len(self.shown)} of {len(self.planned)} planned periods are shown. {rest}"


class Shown(NamedTuple):
    """The periods that are shown, and their values by period, group and stage."""

    periods: tuple[int, ...]
    values: Ints


def _survey(given: Any) -> Counts:
    if not isinstance(given, Counts):
        raise InputError(
            f"survey must be the Counts of one period, not a {type(given).__name__}: Series(Counts(order, unit=…), periods=…)."
        )
    if given.is_breakdown:
        raise InputError(
            "A series has one column of groups: name one column in by, with a list of its values."
        )
    for name in _NOT_HERE:
        if getattr(given, name) != type(given).__pydantic_fields__[name].default:  # pyright: ignore
            raise InputError(
                f"A series has no {name}: leave it out of the counts. {_WHY.get(name, '')}".rstrip()
            )
    if given.method != "best":
        raise InputError("A series has mechanisms of its own: leave mechanism out of the counts.")
    return given.checked()


_NOT_HERE = ("margins", "importance", "care", "relaxation", "max_size", "root", "total", "waves", "unlisted")
"""What counts may have and a series has not."""
_WHY = {
    "max_size": "To cut a history that grows can make it shrink.",
    "waves": "Its periods are one charge.",
    "total": "Add a stage above all others, and count all records there.",
}


def _periods(given: Any) -> tuple[str, ...]:
    require_list(given, "periods")
    names = tuple(plain_text(name, "periods") for name in given)
    require_writable(names, "periods")
    if not names:
        raise InputError("periods is empty: name every period that is planned, in the sequence of time.")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"The period {name!r} stands twice: name each once, in the sequence of time.")
    days = [name for name in names if _DAY.fullmatch(name)]
    for before, after in itertools.pairwise(days):
        if before > after:
            raise InputError(
                f"periods are out of order: {after!r} stands after {before!r}. Days must be in the sequence of time."
            )
    return names


class SeriesEntries(Section):
    """``[series]``: counts over time, beside ``[order]`` with the stages."""

    secrets: Text | None = None
    """The folder for noise, key and register of a series that is open. It is as sensitive as the data, and made by isotone series open. Not for a series of the past."""


@described
class Series(Description):
    """Counts over time: how many units have reached each stage by the end of each period, under one charge.

    ``survey`` says what is counted and about whom. Units reach stages and never leave them: what was counted once stays
    counted, whatever becomes of the rows. ``open()`` charges once and draws all noise; ``close()`` shows one period.
    With ``date`` all periods are of the past, and ``release()`` shows them at once.

    >>> Series(Counts(Poset.chain(["dose 2", "dose 1"]), unit="person"), periods=["May", "June"])
    Series(Counts(Poset(['dose 2', 'dose 1'], [('dose 2', 'dose 1')]..., unit=Unit('person'), periods=('May', 'June'))
    """

    kind_name: ClassVar[str] = "series"
    form: ClassVar[type[Manifest]] = SeriesManifest
    key: ClassVar[str] = "series"
    entries: ClassVar[type[Section]] = SeriesEntries
    combines: ClassVar[bool] = True

    survey: Annotated[Any, BeforeValidator(_survey)]
    """The counts of one period: the order of the stages, the answers, the unit and the groups."""
    _: KW_ONLY
    periods: Annotated[tuple[str, ...], BeforeValidator(_periods)]
    """The names of all periods, in the sequence of time. They are fixed at the opening: one more is a new charge. With date the last day of each, such as "2024-01-31"."""
    matters: Literal["all", "last", "changes"] = "all"
    """Which error the noise is chosen for: that of all counts, of the last period, or of what is new from period to period."""
    record: ColumnName | None = None
    """With contributions above 1, the column of a stable key of each of a unit's histories; the first keys seen stay."""
    date: ColumnName | None = None
    """For a series of the past, the column of the day from which on a row counts. Rows without a day are dropped."""

    def __post_init__(self) -> None:
        for name in ("unit", "confidence"):
            given, own = getattr(self, name), getattr(self.survey, name)
            if given not in (own, type(self).__pydantic_fields__[name].default):  # pyright: ignore
                raise InputError(f"{name} is said twice, and not alike: say it in the counts alone.")
            object.__setattr__(self, name, own)
        _ = self.rules
        for name in self.periods if self.date is not None else ():
            try:
                known = _DAY.fullmatch(name) and datetime.date.fromisoformat(name)
            except ValueError:
                known = None
            if not known:
                raise InputError(
                    f"With date every period is named by its last day, such as 2024-01-31, and {name!r} is no day."
                )

    # -- parts

    @property
    def reading(self) -> str:
        """What is a yes where the counts leave it as usual."""
        return self.survey.reading

    @property
    def stages(self) -> Poset:
        """The order of the stages."""
        return self.survey.P

    @property
    def groups(self) -> Groups | None:
        """The public groups."""
        return self.survey.groups

    @property
    def group_names(self) -> tuple[str, ...] | None:
        """Their names."""
        return self.survey.group_names

    @property
    def rules(self) -> HistoryRules:
        """How rows become histories."""
        rows: dict[str, Any] = vars(self.survey.rules)
        return HistoryRules(**rows, record=self.record, date=self.date)

    def register(self, key: bytes) -> Register:
        """What units have reached, under names that a key hides."""
        return Register(self.stages, self.rules, self.groups, key)

    # -- what every kind says

    @property
    def words(self) -> str:
        """How many counts there are."""
        return f"counts of {len(self.stages)} stages over {len(self.periods)} periods"

    @property
    def title(self) -> str:
        """What it is."""
        return "Counts over time"

    def mechanism(self, guarantee: Guarantee) -> SeriesMechanism:
        """The best of the plan."""
        return self._plan(guarantee).best

    def _plan(self, guarantee: Guarantee, progress: Any = None) -> Any:
        if self.groups is not None and guarantee.kind != "pure" and guarantee.adjacency.exchanges:
            raise InputError(
                "Gaussian noise for groups of a series where units are replaced is not proved: use add-remove, or epsilon alone."
            )
        parameters = self.stages, len(self.periods), guarantee, self.privacy_unit.most, self.matters
        key = _key(self.stages, len(self.periods), guarantee_to(guarantee), "plan", *map(str, parameters[3:]))
        return _recent.get(key, lambda: plan_series(*parameters, progress=progress or no_progress))

    def planned(self, guarantee: Guarantee, guess: Any, progress: Progress) -> Plan[Any]:
        """Noise for a series, the least error of what matters first."""
        return self._plan(guarantee, progress)

    def mechanism_name(self, mechanism: SeriesMechanism) -> str:
        """The class of its noise, for the ledger."""
        return type(mechanism.noise).__name__

    def charged(self, mechanism: Any, guarantee: Guarantee) -> Guarantee:
        """What the noise guarantees."""
        return replace(mechanism.guarantee, unit=guarantee.unit)

    def source(self, data: Any, mechanism: Any) -> SeriesSource:
        """Where rows are read, and how they become histories."""
        answers = self.survey.answer_rules
        questions = questions_for(self.stages, answers)
        return SeriesSource(self, RecordSource(data, answers.element, answers.columns, questions))

    def read(self, source: SeriesSource, frame: Frame) -> Ints:
        """The counts of all periods of the past, a row for each group, from one final table."""
        if self.date is None:
            raise InputError(
                "This series has no date column, so that its periods are shown one by one: open it, and close each period (isotone series "
                "open and close, or open() and close())."
            )
        register = self.register(random_key())
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            return register.over(source.records, frame, self.periods, Path(place))

    def noise(self, mechanism: SeriesMechanism) -> Ints:
        """All noise by period, group and stage; each group has a draw of its own."""
        return np.stack([mechanism.draw() for _ in self.group_names or ("",)], axis=1)

    def draw(self, mechanism: SeriesMechanism, statistic: Ints) -> Shown:
        """All periods at once."""
        return Shown(tuple(range(len(self.periods))), statistic + self.noise(mechanism))

    def known(self, mechanism: SeriesMechanism) -> dict[str, list[list[float]]]:
        """Errors of all planned periods."""
        return errors_of(mechanism, self.confidence)

    def columns(self, mechanism: Any, drawn: Shown, known: Any) -> dict[str, tuple[Any, ...]]:
        """Values with standard deviations and intervals, and what is new since the last shown period."""
        names = self.group_names
        columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS if name != "group" or names}
        last, before = np.zeros_like(drawn.values[:1].sum(axis=0)), -1
        for t, values in zip(drawn.periods, drawn.values, strict=True):
            sd, half = known["sd"][t], known["half_width"][t]
            news = (
                known["new_sd"][t]
                if before == t - 1
                else _rounded(mechanism().change_sd(before, t))
                if before >= 0
                else sd
            )
            for g, group in enumerate(names or ("",)):
                for s, stage in enumerate(self.stages.elements):
                    value = int(values[g, s])
                    row = (self.periods[t], group, str(stage), value, sd[s], max(value - int(half[s]), 0))
                    row = (*row, max(value + int(half[s]), 0), value - int(last[g, s]), news[s])
                    for name, cell in zip(_COLUMNS, row, strict=True):
                        if name in columns:
                            columns[name].append(cell)
            last, before = values, t
        return {name: tuple(column) for name, column in columns.items()}

    def manifest(self, mechanism: SeriesMechanism, drawn: Shown, common: Mapping[str, Any]) -> SeriesManifest:
        """With the errors of all planned periods."""
        return SeriesManifest(
            mechanism=mechanism.recipe(),
            shown=list(drawn.periods),
            errors=self.known(mechanism),
            law=law_entry(mechanism, self.confidence),
            **common,
        )

    def attacked(self, mechanism: Any, guarantee: Guarantee, trials: int, progress: Progress) -> AuditReport:
        """By draws of the whole series, on histories that are neighbours."""
        from isotone.audit.exact import audit_count_mechanism

        return audit_count_mechanism(mechanism, trials, progress)

    def findings(self, source: Any) -> list[str]:
        """What there is to say about the counts of one period."""
        return self.survey.findings(source)

    def plain(self) -> dict[str, Any]:
        """Every parameter as plain values; those of the counts stand beside the others."""
        return self._flat(self.survey.plain())

    def identity(self) -> dict[str, Any]:
        """Every parameter but the labels of questions."""
        return self._flat(self.survey.identity())

    def _flat(self, survey: Mapping[str, Any]) -> dict[str, Any]:
        own = {
            "periods": list(self.periods),
            "matters": self.matters,
            "record": self.record,
            "date": self.date,
        }
        return {name: survey[name] for name in (*_OF_SURVEY, "unit", "confidence")} | own

    @classmethod
    def from_manifest(cls, manifest: Manifest, columns: Mapping[str, tuple[Any, ...]]) -> Series:
        """The description of a series."""
        given = dict(manifest.description)
        survey = {name: given.pop(name) for name in (*_OF_SURVEY, "unit", "confidence")}
        return cls(Counts(survey.pop("order"), **survey), **given)

    @classmethod
    def from_sections(
        cls,
        sections: Mapping[str, Section],
        questions: Mapping[str, Question],
        resolve: Callable[[str], Path],
    ) -> Series:
        """The description that a spec gives."""
        entries = gathered(cls, sections, cls.key)
        if entries.get("date") is not None and getattr(sections[cls.key], "secrets", None) is not None:
            raise SpecError(
                "[series] has date and secrets: a series of the past keeps none. Leave one of them out."
            )
        return cls(Counts.from_sections(sections, questions, resolve), **entries)

    @classmethod
    def leaves(cls) -> frozenset[str]:
        """What stands in other sections of a spec."""
        return frozenset({"unit", "survey"})

    # -- period by period

    def open(
        self,
        *,
        ledger: Ledger,
        secrets: str | os.PathLike[str],
        epsilon: Any = None,
        delta: Any = None,
        rho: Any = None,
        request: str | None = None,
        again: bool = False,
        title: str | None = None,
        progress: Progress | None = None,
    ) -> OpenSeries:
        """Charge once for all periods, draw all noise, and keep it in the folder ``secrets``, which must be new.

        ``secrets`` is as sensitive as the data and must never be copied: whoever has the noise of a period knows its true
        counts. ``request`` names the data, if series of several are alike. What can be refused is refused before the charge.
        """
        from isotone.release.over_time import Vault, opened

        guarantee = self.checked().guarantee(epsilon, delta, rho)
        return opened(
            self.checked(),
            guarantee,
            Vault(ledger, Path(secrets)),
            Stated(title=title),
            request,
            again=again,
            progress=progress,
        )

    def close(
        self,
        data: Any,
        period: str,
        *,
        ledger: Ledger,
        secrets: str | os.PathLike[str],
        folder: str | os.PathLike[str] | None = None,
        wait: bool = True,
    ) -> Release:
        """Close a period from what ``data`` shows now, and return the series with all periods that are shown by now.

        Whether a row counts depends on whether it is there now, never on dates in it. A period is closed once: a second
        call reads nothing and shows the same. Earlier periods that were passed over stay empty. ``folder`` is where the
        series is published.
        """
        from isotone.release.over_time import Vault, closed

        where = None if folder is None else Path(folder)
        return closed(self.checked(), data, period, Vault(ledger, Path(secrets)), where, wait=wait).release

    def erase(self, unit: str, *, ledger: Ledger, secrets: str | os.PathLike[str]) -> None:
        """Freeze the lines of a unit in the register under a random name, as its owner asked to be forgotten.

        What it reached stays counted. If it comes back it is somebody else, and has a second history.
        """
        from isotone.series.state import OpenSeries

        OpenSeries(ledger, Path(secrets)).erase(plain_text(unit, "unit"), self.checked().register)


_COLUMNS = ("period", "group", "element", "value", "sd", "low", "high", "new", "new_sd")


@dataclass(frozen=True)
class SeriesSource:
    """Where rows are read, and how they become histories."""

    described: Series
    records: RecordSource

    def open(self) -> Frame:
        """The columns of the answers, the unit, its record, the day and the groups."""
        series = self.described
        return self.records.open(series.stages, series.rules, series.groups)

    def rehearse(self, frame: Frame) -> None:
        """Read no rows, so that what can fail fails before anything is read."""
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            self.described.register(random_key()).grown(
                self.records, blank(frame), None, Path(place) / "nobody.parquet"
            )


def _rounded(numbers: Floats) -> list[Any]:
    return np.round(numbers, DECIMALS).tolist()


def _key(stages: Poset, periods: int, recipe: Mapping[str, Any], *more: Any) -> bytes:
    """What tells orders, recipes and lengths apart. Orders with the same relations may differ in their choices."""
    covers = [[str(a), str(b)] for a, b in stages.covers]
    choices = [[choice.kind, *map(str, choice.options)] for choice in stages.choices]
    order = [[str(x) for x in stages.elements], covers, choices]
    return canonical_json({"order": order, "recipe": recipe, "more": [periods, *more]})


def errors_of(mechanism: SeriesMechanism, confidence: float) -> dict[str, list[list[float]]]:
    """The errors of all planned periods, by period and stage. The last few are kept."""

    def compute() -> dict[str, list[list[float]]]:
        shape = mechanism.periods, len(mechanism.stages)
        sd = mechanism.error().sd.reshape(shape)
        news = [sd[0], *(mechanism.change_sd(t - 1, t) for t in range(1, mechanism.periods))]
        half = mechanism.half_widths(confidence).reshape(shape)
        parts = {"sd": sd, "half_width": half, "new_sd": np.array(news)}
        return {name: _rounded(part) for name, part in parts.items()}

    key = _key(mechanism.stages, mechanism.periods, mechanism.recipe(), confidence)
    return _recent.get(key, compute)


def mechanism_of(manifest: Manifest) -> SeriesMechanism:
    """The mechanism of a series. The last few are kept."""
    from isotone.release.manifest import order_from

    stages, periods = order_from(manifest.description["order"]), len(manifest.description["periods"])
    key = _key(stages, periods, manifest.mechanism)
    return _recent.get(key, lambda: rebuild(stages, periods, manifest.mechanism))


# The chain. The charge is sealed with the hash of a release that shows nothing yet: the opening. Each period adds a hash of its
# place, its values and the hash before it.


def opening_of(manifest: SeriesManifest) -> Release:
    """The release that shows nothing, as it was when the series was opened."""
    empty = replace(manifest, shown=[], chain=[], content_hash=None, files=None)
    nothing = Shown((), np.zeros((0, 1, 1), np.int64))
    described = Series.from_manifest(manifest, {})
    return seal(described.columns(None, nothing, manifest.errors), empty)


def release_of(opening: SeriesManifest, shown: Mapping[int, Ints]) -> Release:
    """The series with these periods. The same values always make the same release."""
    described = Series.from_manifest(opening, {})
    values = Shown(tuple(sorted(shown)), np.array([shown[t] for t in sorted(shown)], np.int64))
    if not shown:
        return opening_of(opening)
    chain = chain_of(opening_of(opening).manifest.content_hash or "", values)
    columns = described.columns(lambda: mechanism_of(opening), values, opening.errors)
    manifest = replace(opening, shown=list(values.periods), chain=chain, content_hash=None, files=None)
    return seal(columns, manifest)


def period_of(release: Release, period: str) -> Release:
    """The rows of one period."""
    rows = [row for row, name in enumerate(release.columns["period"]) if name == period]
    columns = {
        name: tuple(column[row] for row in rows)
        for name, column in release.columns.items()
        if name != "period"
    }
    stated = replace(release.manifest.stated, title=f"{release.manifest.stated.title}, {period}")
    return replace(release, columns=columns, manifest=replace(release.manifest, stated=stated))


def chain_of(opening: str, shown: Shown) -> list[str]:
    """The hash of the opening, and one for each shown period."""
    chain = [opening]
    for t, values in zip(shown.periods, shown.values, strict=True):
        chain.append(content_hash({"previous": chain[-1], "period": t, "values": values.tolist()}))
    return chain
