"""Counts over time: what is published, how a series is opened and closed, read, and verified.

A folder of a series holds its opening and a manifest for each period that was shown, each with the hash of the one before.
All of it follows from the opening and the rows of the ledger, so it can be written again at any time.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.inference.estimates import Estimate
from isotone.inference.population import Measured
from isotone.ledger import Ledger
from isotone.ledger.ledger import require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.checks import plain_text, require_list
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.reading.questions import Question
from isotone.reading.records import Groups, RecordSource
from isotone.reading.sources import Frame, blank
from isotone.release.folder import read_file
from isotone.release.manifest import content_hash, guarantee_to, order_from, order_to
from isotone.scratch import scratch
from isotone.series.register import HistoryRules, Register, random_key
from isotone.series.series_mechanism import SeriesMechanism, rebuild
from isotone.series.series_plan import Matters, SeriesPlan, plan_series
from isotone.series.state import FORMAT, Closing, OpenSeries, canonical, open_series
from isotone.svg.charts import curve

__all__ = ["Histories", "PublishedSeries", "Series", "load_series", "verify_series"]

CONFIDENCE = 0.95
LATE = (
    "Late reports count when they arrive. Corrections downwards are not shown: who was counted stays counted."
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Histories:
    """Whose histories are counted: the stages, the rules by which rows become histories, and public groups."""

    stages: Poset
    rules: HistoryRules
    groups: Groups | None = None
    element: str | None = None
    columns: Mapping[Any, str] = field(default_factory=dict[Any, str])
    questions: Mapping[str, Question] = field(default_factory=dict[str, Question])
    unit: str = ""

    @property
    def unit_name(self) -> str:
        """What is protected, in words."""
        return self.unit or str(self.rules.unit)

    def open(self, data: Any) -> tuple[RecordSource, Frame]:
        """The columns that are needed. What names and types show to be wrong is refused; nothing is read."""
        source = RecordSource(data, self.element, self.columns, self.questions)
        return source, source.open(self.stages, self.rules, self.groups)

    def plain(self) -> dict[str, Any]:
        """What is public about it."""
        rules = self.rules
        return {
            "order": order_to(self.stages),
            "groups": None if self.groups is None else {c: list(v) for c, v in self.groups.lists},
            "rules": {
                **rules.unit_entry(),
                "record": rules.record,
                "date": rules.date,
                "element": self.element,
            },
            "unit": self.unit_name,
        }


@dataclass(frozen=True)
class Series:
    """How many have reached each stage by the end of each of the planned periods, under one charge.

    ``periods`` are their names, in the sequence of time; for a series of the past the last day of each, such as
    2024-01-31. ``matters`` says which error the noise is chosen for.
    """

    survey: Histories
    periods: tuple[str, ...]
    matters: Matters = "all"

    def __post_init__(self) -> None:
        require_list(self.periods, "periods")
        names = tuple(plain_text(name, "periods") for name in self.periods)
        if not names or len(set(names)) < len(names):
            raise InputError("periods must be names in the sequence of time, at least one, and each once.")
        days = [name for name in names if _DAY.fullmatch(name)]
        if days != sorted(days):
            raise InputError("periods are out of order: days must be in the sequence of time.")
        if self.survey.rules.date is not None and len(days) < len(names):
            raise InputError("With date= every period is its last day, such as 2024-01-31.")
        object.__setattr__(self, "periods", names)

    def guarantee(
        self, epsilon: Any = None, delta: Any = None, rho: Any = None, neighbours: Any = "add-remove"
    ) -> Guarantee:
        """What the whole series guarantees."""
        unit = Unit(self.survey.rules.contributions, neighbours, self.survey.unit_name)
        made = unit.guarantee(epsilon, delta, rho)
        if self.survey.groups is not None and made.kind != "pure" and unit.adjacency.exchanges:
            raise InputError(
                "Gaussian noise for groups of a series where units are replaced is not proved: use add-remove, or epsilon alone."
            )
        return made

    def plan(
        self,
        epsilon: Any = None,
        delta: Any = None,
        rho: Any = None,
        *,
        neighbours: Any = "add-remove",
        progress: Progress = no_progress,
    ) -> SeriesPlan:
        """The noise of the series, the best for what matters first. Nothing is read and nothing is spent."""
        guarantee = self.guarantee(epsilon, delta, rho, neighbours)
        contributions = self.survey.rules.contributions
        return plan_series(
            self.survey.stages, len(self.periods), guarantee, contributions, self.matters, progress
        )

    def _opening(self, mechanism: SeriesMechanism, guarantee: Guarantee, title: str) -> dict[str, Any]:
        shape = len(self.periods), len(self.survey.stages)
        return {
            "title": plain_text(title, "title", empty=True),
            **self.survey.plain(),
            "periods": list(self.periods),
            "matters": self.matters,
            "guarantee": guarantee_to(guarantee),
            "mechanism": mechanism.recipe(),
            "sd": mechanism.error().sd.reshape(shape).tolist(),
            "confidence": CONFIDENCE,
            "half_width": mechanism.half_widths(CONFIDENCE).reshape(shape).tolist(),
        }

    @property
    def _groups(self) -> int:
        return 1 if self.survey.groups is None else self.survey.groups.size

    def _prepared(
        self, budget: Mapping[str, Any], title: str, progress: Progress
    ) -> tuple[SeriesMechanism, Guarantee, dict[str, Any]]:
        plan = self.plan(**budget, progress=progress)
        return plan.best, plan.guarantee, self._opening(plan.best, plan.guarantee, title)

    def _draw(self, mechanism: SeriesMechanism) -> Ints:
        """All noise by period, group and stage; each group has a draw of its own."""
        return np.stack([mechanism.draw() for _ in range(self._groups)], axis=1)

    def open(
        self,
        ledger: Ledger,
        secrets: Path,
        *,
        title: str = "",
        again: bool = False,
        progress: Progress = no_progress,
        **budget: Any,
    ) -> OpenSeries:
        """Charge once, draw all noise and keep it in the folder ``secrets``, which must not exist."""
        require_ledger(ledger)
        mechanism, guarantee, opening = self._prepared(budget, title, progress)
        request = content_hash(
            {"series": {**self.survey.plain(), "periods": list(self.periods)}, "title": title}
        )
        return open_series(
            ledger,
            secrets,
            opening,
            guarantee,
            lambda: self._draw(mechanism),
            request=request,
            mechanism=opening["mechanism"]["name"],
            description=title,
            again=again,
        )

    def close(
        self,
        data: Any,
        period: str,
        ledger: Ledger,
        secrets: Path,
        *,
        folder: Path | None = None,
        wait: bool = True,
    ) -> Closing:
        """Close a period from what ``data`` shows now, and write the folder of the series. A period is closed once."""
        require_ledger(ledger)
        if period not in self.periods:
            raise InputError(
                f"The series has no period {period!r}: it has {self.periods[0]!r} to {self.periods[-1]!r}."
            )
        if folder is not None and secrets.resolve() in (folder.resolve(), *folder.resolve().parents):
            raise InputError("The folder of the series must not be in the folder of its secrets.")
        if folder is not None and folder.resolve() in secrets.resolve().parents:
            raise InputError("The secrets must not be in the folder of the series, which is published.")
        series = OpenSeries(ledger, secrets)
        planned = {**self.survey.plain(), "periods": list(self.periods)}
        if any(series.opening[name] != entry for name, entry in planned.items()):
            raise InputError(
                "This is not the series that was opened: other periods, stages or rules need a new charge."
            )
        source, frame = self.survey.open(data)

        def read(key: bytes, old: Path | None, new: Path) -> Ints:
            return Register(self.survey.stages, self.survey.rules, self.survey.groups, key).grown(
                source, frame, old, new
            )

        with tempfile.TemporaryDirectory(
            dir=scratch()
        ) as rehearsal:  # on no rows, so that what can fail fails here
            nobody = Register(self.survey.stages, self.survey.rules, self.survey.groups, random_key())
            nobody.grown(source, blank(frame), None, Path(rehearsal) / "nobody.parquet")
        closing = series.close(self.periods.index(period), read, wait=wait)
        if folder is not None:
            write_series(folder, series.opening, series.shown())
        return closing

    def erase(self, unit: str, ledger: Ledger, secrets: Path) -> None:
        """Freeze the lines of a unit under a random name. What it reached stays counted."""
        survey = self.survey
        OpenSeries(ledger, secrets).erase(
            unit, lambda key: Register(survey.stages, survey.rules, survey.groups, key)
        )

    def release(
        self,
        data: Any,
        ledger: Ledger,
        *,
        folder: Path,
        title: str = "",
        progress: Progress = no_progress,
        **budget: Any,
    ) -> PublishedSeries:
        """All periods of the past at once, from one final table with a day in each row. Nothing secret is kept."""
        require_ledger(ledger)
        if self.survey.rules.date is None:
            raise InputError(
                "A series of the past needs date=, the column of the day from which on a row counts."
            )
        mechanism, guarantee, opening = self._prepared(budget, title, progress)
        source, frame = self.survey.open(data)
        register = Register(self.survey.stages, self.survey.rules, self.survey.groups, random_key())
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            files = [Path(place) / f"{t}.parquet" for t in range(len(self.periods))]
            register.grown(source, blank(frame), None, Path(place) / "nobody.parquet", self.periods[0])
            with ledger.attempt(
                guarantee, mechanism=opening["mechanism"]["name"], description=title
            ) as attempt:
                counts = [
                    register.grown(source, frame, files[t - 1] if t else None, files[t], day)
                    for t, day in enumerate(self.periods)
                ]
                attempt.draw()
                values = np.array(counts) + self._draw(mechanism)
                said = {
                    "format": FORMAT,
                    "dataset": ledger.dataset,
                    "charge": attempt.charge.number,
                    **opening,
                }
                said |= {"time": attempt.charge.time, "values": content_hash({"values": values.tolist()})}
                attempt.seal(hashlib.sha256(canonical(said)).hexdigest())
        write_series(folder, said, dict(enumerate(values)))
        return load_series(folder)


def _manifests(opening: Mapping[str, Any], shown: Mapping[int, Ints]) -> list[dict[str, Any]]:
    """The manifests of the periods that were shown, each with the hash of the one before."""
    previous, chain = hashlib.sha256(canonical(opening)).hexdigest(), list[dict[str, Any]]()
    for t in sorted(shown):
        entry = {
            "format": FORMAT,
            "charge": opening["charge"],
            "period": opening["periods"][t],
            "number": t,
            "values": np.asarray(shown[t]).tolist(),
            "previous": previous,
        }
        previous = hashlib.sha256(canonical(entry)).hexdigest()
        chain.append(entry)
    return chain


def write_series(folder: Path, opening: Mapping[str, Any], shown: Mapping[int, Ints]) -> None:
    """Write the folder of a series, or what is missing of it. The same rows always give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"opening.json": canonical(opening)}
    for entry in _manifests(opening, shown):
        files[f"period-{entry['number']:04d}.json"] = canonical(entry)
    for name, content in files.items():
        if not (folder / name).exists() or (folder / name).read_bytes() != content:
            (folder / name).write_bytes(content)
    published = PublishedSeries(dict(opening), {t: np.asarray(v) for t, v in shown.items()})
    (folder / "series.csv").write_text(published.csv())
    (folder / "report.html").write_text(published.report())


def load_series(folder: str | Path) -> PublishedSeries:
    """A series as it was published."""
    place = Path(folder)
    try:
        opening = json.loads(read_file(place, "opening.json"))
        entries = [json.loads(read_file(place, file.name)) for file in sorted(place.glob("period-*.json"))]
        return PublishedSeries(opening, {int(e["number"]): np.array(e["values"], np.int64) for e in entries})
    except (ValueError, KeyError, TypeError, OSError):
        raise InputError(f"There is no series in {place} that can be read.") from None


@dataclass(frozen=True)
class PublishedSeries:
    """The opening of a series and the values of the periods that were shown, a row for each group."""

    opening: dict[str, Any]
    shown: dict[int, Ints]

    @cached_property
    def stages(self) -> Poset:
        """The order of the stages."""
        return order_from(self.opening["order"])

    @property
    def groups(self) -> list[str]:
        """The names of the groups, one that is empty if there are none."""
        lists = self.opening["groups"]
        names = [""]
        for values in (lists or {}).values():
            names = [f"{name} × {value}".removeprefix(" × ") for name in names for value in values]
        return names

    @cached_property
    def mechanism(self) -> SeriesMechanism:
        """The mechanism, made again from the opening."""
        return rebuild(self.stages, len(self.opening["periods"]), self.opening["mechanism"])

    def measured(self, group: str = "") -> Measured:
        """The counts of all shown periods with the law of their noise; elements are pairs of period and stage."""
        if group not in self.groups:
            raise InputError(f"There is no group {group!r}. There are: {', '.join(self.groups)}.")
        g, times, m = self.groups.index(group), sorted(self.shown), len(self.stages)
        places = np.concatenate([np.arange(t * m, (t + 1) * m) for t in times])
        law = self.mechanism.law(f"group {g}" if len(self.groups) > 1 else "")
        pick = np.eye(len(self.mechanism.P))[:, places]
        names = Poset.product(Poset.chain([self.opening["periods"][t] for t in times]), self.stages)
        return Measured(
            names,
            np.concatenate([self.shown[t][g] for t in times]).astype(float),
            law.linear(pick),
            self.mechanism.error().variance[places],
            lambda: self.mechanism.covariance()[np.ix_(places, places)],
        )

    def count(self, stage: str, period: str, group: str = "", confidence: float = CONFIDENCE) -> Estimate:
        """How many had reached a stage by the end of a period."""
        return self.measured(group).contrast({(period, stage): 1}, confidence)

    def new(
        self, stage: str, since: str, period: str, group: str = "", confidence: float = CONFIDENCE
    ) -> Estimate:
        """How many reached a stage after the period ``since``, up to another, with an interval of its own."""
        return self.measured(group).contrast({(period, stage): 1, (since, stage): -1}, confidence)

    def share(
        self, part: str, of: str, period: str, group: str = "", confidence: float = CONFIDENCE
    ) -> Estimate:
        """The share of one stage in another at the end of a period."""
        return self.measured(group).share((period, part), (period, of), confidence)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each shown count, with its error and its interval, and what is new since the last shown period."""
        found: list[dict[str, Any]] = []
        times = sorted(self.shown)
        for before, t in zip([-1, *times], times, strict=False):
            change = self.mechanism.change_sd(before, t)
            for (g, group), (s, stage) in (
                (a, b) for a in enumerate(self.groups) for b in enumerate(self.stages.elements)
            ):
                value, half = int(self.shown[t][g, s]), self.opening["half_width"][t][s]
                last = int(self.shown[before][g, s]) if before >= 0 else 0
                found.append(
                    {
                        "period": self.opening["periods"][t],
                        "group": group,
                        "stage": str(stage),
                        "value": value,
                    }
                    | {
                        "sd": self.opening["sd"][t][s],
                        "low": max(0, value - half),
                        "high": max(0, value + half),
                    }
                    | {"new": value - last, "new_sd": float(f"{change[s]:.6g}")}
                )
        return found

    def csv(self) -> str:
        """The rows as CSV."""
        rows, text = self.rows(), io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["period"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def report(self) -> str:
        """A page with a picture for each stage and group, and all numbers."""
        rows, periods = self.rows(), list(self.opening["periods"])
        parts: list[str] = []
        for group in self.groups:
            for stage in self.stages.elements:
                mine = [row for row in rows if (row["group"], row["stage"]) == (group, str(stage))]
                if len(mine) > 1:
                    band = [row["low"] for row in mine], [row["high"] for row in mine]
                    xs = [float(periods.index(row["period"]) + 1) for row in mine]
                    top = (0.0, float(max(1, *band[1])))
                    label = ", ".join(filter(None, [str(stage), group]))
                    parts.append(
                        curve(xs, [max(0, row["value"]) for row in mine], top, ("period", label), band)
                    )
        head = list(rows[0]) if rows else []
        table = "".join(
            "<tr>" + "".join(f"<td>{escape(str(row[h]))}</td>" for h in head) + "</tr>" for row in rows
        )
        words = (
            f"{len(self.shown)} of {len(periods)} planned periods are shown: {periods[0]} to {periods[-1]}. Bands hold each count "
            f"with a probability of {self.opening['confidence']:.0%}. What is new has an error of its own. {LATE}"
        )
        title = escape(self.opening["title"] or "Counts over time")
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1><p>{escape(words)}</p>'
            f"{''.join(parts)}<table><tr>{''.join(f'<th>{h}</th>' for h in head)}</tr>{table}</table></html>"
        )


def verify_series(folder: str | Path, extract: Mapping[str, Any] | None = None) -> list[str]:
    """What is wrong with the folder of a series, in sentences; none if everything follows from its opening.

    ``extract`` is the entry of the charge in an extract of the ledger. That noise and register were honest, and that ledger
    and secrets were not copied together, nobody can verify.
    """
    place, wrong = Path(folder), list[str]()
    published = load_series(place)
    opening = published.opening
    try:
        mechanism = published.mechanism
        guarantee = mechanism.guarantee
        told = opening["guarantee"]
        if any(
            str(getattr(guarantee, name)) != told[name] for name in ("epsilon", "delta", "rho", "neighbours")
        ):
            wrong.append("The mechanism does not guarantee what the opening says.")
        shape = mechanism.periods, len(published.stages)
        if not np.allclose(np.array(opening["sd"]), mechanism.error().sd.reshape(shape), rtol=1e-5):
            wrong.append("The errors are not those of the mechanism.")
        half = mechanism.half_widths(opening["confidence"]).reshape(shape)
        if not np.array_equal(np.array(opening["half_width"]), half):
            wrong.append("The intervals are not those of the mechanism.")
        if mechanism.contributions != opening["rules"]["contributions"]:
            wrong.append("The mechanism is for another number of histories a unit.")
    except (InputError, KeyError, ValueError, TypeError) as error:
        return [f"The mechanism cannot be made from the opening ({type(error).__name__})."]
    files = [json.loads(read_file(place, file.name)) for file in sorted(place.glob("period-*.json"))]
    form = len(published.groups), len(published.stages)
    if any(not 0 <= t < mechanism.periods or v.shape != form for t, v in published.shown.items()):
        return [*wrong, "A period was not planned, or its values have another form."]
    if files != _manifests(opening, published.shown):
        wrong.append(
            "The manifests of the periods do not follow each other: one is missing, repeated or changed."
        )
    if (place / "series.csv").read_text() != published.csv():
        wrong.append("series.csv is not what the manifests say.")
    if extract is not None:
        if extract.get("release") != hashlib.sha256(canonical(opening)).hexdigest():
            wrong.append("The charge was not sealed with this opening.")
        rows = extract.get("periods")
        if rows is not None and {int(t): v for t, v in rows.items()} != {
            t: v.tolist() for t, v in published.shown.items()
        }:
            wrong.append("The ledger has other periods or other values.")
    return wrong
