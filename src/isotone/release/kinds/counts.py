"""Counts of yes answers over a partial order: one number for each element, and for each public group."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import model_validator

from isotone.counts import plan as plan_counts
from isotone.counts.choosing import choose_mechanism, count_mechanism, count_mechanisms
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.checks import confidence_level, truth, whole_number
from isotone.privacy.guarantee import Guarantee, Neighbours, Number
from isotone.reading.answers import Answers
from isotone.reading.records import Groups, RecordRules, RecordSource
from isotone.release import pipeline
from isotone.release.kinds.count_query import CountManifest, CountQuery, count_columns
from isotone.release.kinds.kind import Kind
from isotone.release.kinds.parameters import (
    column_name,
    contribution_bound,
    public_names,
    request_name,
    require_writable,
    title_text,
    unit_in_words,
)
from isotone.release.manifest import Manifest, guarantee_from, order_from, order_to
from isotone.release.order_files import read_order
from isotone.release.planning import SpecPlan
from isotone.release.recipes import rebuild_count_mechanism
from isotone.release.result import Release
from isotone.release.sections import Section, Size, Text

if TYPE_CHECKING:
    from isotone.audit.report import AuditReport
    from isotone.release.spec import Spec

__all__ = ["CountsKind", "Order", "count_query", "release_counts"]


class Order(Section):
    """``[order]``: counts over a partial order, given here or in a file."""

    elements: list[str] | None = None
    """The names, with relations; their sequence is that of the release."""
    relations: list[tuple[str, str]] | None = None
    """Pairs [lower, upper]: a yes to lower implies a yes to upper."""
    parents: dict[str, str | list[str]] | None = None
    """The same as a table: name = "what it implies", or a list of them. Other names become elements too."""
    file: Text | None = None
    """The same in a file: .csv with a line per relation, or .json or .toml with such a table."""
    lower: Text = "child"
    """In a CSV file: the column of the lower element, the one that implies."""
    upper: Text = "parent"
    """In a CSV file: the column of the upper element, the one that is implied."""
    mechanism: Text = "best"
    """The name of a mechanism, or "best": the one that the plan puts first."""
    max_size: Size | None = None
    """Records keep at most so many yeses, those nearest to the top; the noise may then be smaller."""
    total: bool = False
    """Also release the number of records, where the mechanism gives it for free."""

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("relations"), list):
            given = {
                **given,
                "relations": [tuple(x) if isinstance(x, list) else x for x in given["relations"]],
            }
        return given

    @model_validator(mode="after")
    def _one_source(self) -> Order:
        ways = [self.file is not None, self.parents is not None, self.elements is not None]
        if sum(ways) != 1:
            raise ValueError("give the order in one way: elements (and relations), or parents, or file")
        return self

    def order(self, resolve: Callable[[str], Path]) -> Poset:
        """The partial order."""
        if self.file is not None:
            return read_order(resolve(self.file), self.lower, self.upper)
        if self.parents is not None:
            return Poset.from_mapping({**self.parents})
        return Poset(self.elements or [], self.relations or [])

    def content(self, resolve: Callable[[str], Path]) -> dict[str, Any]:
        """What the section says, with the relations of a file in place of its name."""
        said = super().content(resolve)
        return said if self.file is None else {**said, "file": order_to(self.order(resolve))}


def release_counts(
    data: Any,
    P: Poset,
    *,
    ledger: Ledger,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    unit: str | None = None,
    element: str | None = None,
    columns: Mapping[Any, str] | None = None,
    answers: Answers | None = None,
    on_violation: Literal["close", "drop"] = "close",
    contributions: int = 1,
    max_size: int | None = None,
    neighbours: Neighbours = "add-remove",
    by: str | None = None,
    groups: Sequence[str | int | bool] | None = None,
    mechanism: str | AdditiveMechanism | None = None,
    total: bool = False,
    confidence: float = 0.95,
    weights: str | None = None,
    unit_name: str | None = None,
    title: str | None = None,
    request: str | None = None,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Release:
    """Release how many units say yes to each element of ``P``.

    Parameters
    ----------
    data
        A path (CSV, Parquet, JSON lines, Arrow; globs) or a table (pandas, polars, Arrow, DuckDB, ibis, Spark).
    P
        The order: a yes to the lower element of a relation implies a yes to the upper one.
    ledger
        Pays for the release. The charge is durable before the data is read.
    epsilon, delta, rho
        The promise: pure ``epsilon``, ``epsilon`` with ``delta``, or ``rho``-zCDP.
    unit
        The column that says whose row it is; without it every row is one unit. Rows without a unit are dropped.
    element
        For long data: the column that names the element that the unit has.
    columns
        For wide data: the column of each element, where it is not called like the element.
    answers
        Which values mean yes, and what a missing answer means (default: no).
    on_violation
        What happens to a record that breaks the order: "close" it upward (default), or "drop" it.
    contributions
        How many records a unit may give; the noise grows with it. 1 combines a unit's rows into one record.
    max_size
        Records keep at most this many yeses (from the top of the order); the promise may then be cheaper.
    by, groups
        A column and the public list of its values: one release for each group.
    mechanism
        A name, a mechanism over ``P``, or None for the plan's best.
    total
        Also release the number of records, where the mechanism gives it for free.
    weights
        Survey weights are refused: the error says why.
    title
        The title of the report. It is presentation, and no part of the request.
    request
        A name for this request. A second call with the same name and parameters takes over a charge whose process
        ended before anything was drawn, instead of paying again. Data in memory has no identity without it.
    again
        Draw and charge anew although the request was released before.
    folder
        Where the release is written before this returns; the same as what ``isotone release`` does with a spec. A
        request that was released there before is read back, and nothing is charged.

    Returns
    -------
    Release
        Values with standard deviations and intervals; ``confidence`` is theirs.
    """
    if weights is not None:
        raise InputError(
            "Survey weights are refused: a weight multiplies what one person reveals, and weights are computed from the "
            "data. Release unweighted counts, and weight them afterwards with public totals."
        )
    require_ledger(ledger)
    query = count_query(
        data,
        P,
        _promise(epsilon, delta, rho, neighbours, unit_in_words(unit, unit_name)),
        unit=unit,
        element=element,
        columns=columns,
        answers=answers,
        on_violation=on_violation,
        contributions=contributions,
        max_size=max_size,
        by=by,
        groups=groups,
        mechanism=mechanism,
        total=total,
        confidence=confidence,
        title=title,
    )
    shown = pipeline.Presentation(folder)
    done = pipeline.run(
        query,
        ledger=ledger,
        identity=request_name(request),
        again=truth(again, "again"),
        presentation=shown,
        progress=progress,
    )
    return done.release


def count_query(
    data: Any,
    P: Poset,
    promise: Guarantee,
    *,
    unit: str | None = None,
    element: str | None = None,
    columns: Mapping[Any, str] | None = None,
    answers: Answers | None = None,
    on_violation: Literal["close", "drop"] = "close",
    contributions: int = 1,
    max_size: int | None = None,
    by: str | None = None,
    groups: Sequence[str | int | bool] | None = None,
    mechanism: str | AdditiveMechanism | None = None,
    total: bool = False,
    confidence: float = 0.95,
    title: str | None = None,
) -> CountQuery:
    """The query that :func:`release_counts` runs, with every public parameter checked."""
    if not isinstance(P, Poset):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise InputError(
            f"P must be a Poset, not a {type(P).__name__}: Poset(elements, relations) makes one."
        )
    for x in P.elements:
        require_writable(str(x), "the order")
    if by is None and groups is not None:
        raise InputError("groups needs by=: the column whose public values these are.")
    named = {"unit": unit, "element": element, "by": by}
    unit, element, by = (None if c is None else column_name(c, n) for n, c in named.items())
    public = None if by is None else Groups(by, public_names(() if groups is None else groups, "groups"))
    units = contribution_bound(contributions, unit)
    size = None if max_size is None else whole_number(max_size, "max_size")
    rules = RecordRules(unit, units, on_violation, size, answers or Answers())
    source = RecordSource(data, element, {x: column_name(c, "columns") for x, c in (columns or {}).items()})
    noise = choose_mechanism(P, promise, units, size, mechanism, grouped=public is not None)
    if noise.neighbours == promise.neighbours:  # the mechanism may promise more: only that is charged
        promise = replace(noise.guarantee, unit=promise.unit)
    with_total = truth(total, "total")
    if with_total and not getattr(noise, "has_total", False):
        raise InputError(
            f"{type(noise).__name__} does not give the number of records for free. Leave out total=True."
        )
    level = confidence_level(confidence)
    return CountQuery(
        source,
        P,
        rules,
        public,
        noise,
        None if isinstance(mechanism, AdditiveMechanism) else mechanism or "best",
        promise,
        with_total,
        level,
        title_text(title, "Counts"),
        count_columns(noise, level),
    )


def _promise(
    epsilon: Number | None, delta: Number | None, rho: Number | None, neighbours: Neighbours, unit: str
) -> Guarantee:
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InputError("Give rho, or epsilon (with delta if you like): not both.")
        return Guarantee.zcdp(rho, neighbours=neighbours, unit=unit)
    if epsilon is None:
        raise InputError("A release needs epsilon (with delta if you like) or rho.")
    return Guarantee.approximate(epsilon, 0 if delta is None else delta, neighbours=neighbours, unit=unit)


class CountsKind(Kind):
    """Counts over a partial order."""

    name: ClassVar[str] = CountManifest.name
    key: ClassVar[str] = "order"
    section: ClassVar[type[Section]] = Order
    manifest: ClassVar[type[Manifest]] = CountManifest
    classes: ClassVar[tuple[str, ...]] = tuple(count_mechanisms())

    def query(self, spec: Spec) -> CountQuery:
        """The query of a spec with ``[order]``."""
        data, order = spec.data, spec.said(Order)
        words = {key: tuple(value) for key, value in (("yes", data.yes), ("no", data.no)) if value}
        return count_query(
            spec.source,
            order.order(spec.resolve),
            spec.privacy.guarantee(spec.unit),
            unit=data.unit,
            element=data.element,
            columns={**data.columns},
            answers=Answers(missing=data.missing, **words),
            on_violation=data.on_violation,
            contributions=data.contributions,
            max_size=order.max_size,
            by=data.by,
            groups=data.groups,
            mechanism=order.mechanism,
            total=order.total,
            confidence=spec.output.confidence,
            title=spec.output.title,
        )

    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """Every mechanism that keeps the guarantee, best first."""
        promise, order = spec.privacy.guarantee(spec.unit), spec.said(Order)
        concentrated = promise.kind == "zcdp"
        made = plan_counts(
            order.order(spec.resolve),
            None if concentrated else promise.epsilon,
            promise.delta,
            rho=promise.rho if concentrated else None,
            max_size=order.max_size,
            neighbours=promise.neighbours,
            contributions=spec.data.contributions,
            progress=progress,
        )
        made = replace(made, guarantee=promise)  # the plan does not know the unit, the spec does
        entries = ("rmse", "worst", "half_width", "note")
        rows = [{"mechanism": r.name, **{key: getattr(r, key) for key in entries}} for r in made.rows]
        return SpecPlan(made, {**spec.head(), "best": rows[0]["mechanism"], "rows": rows})

    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """The mechanism of the spec, by its density and by draws."""
        from isotone.audit.count_audit import audit_count_mechanism

        order = spec.said(Order)
        options = (spec.data.contributions, order.max_size, order.mechanism)
        promise, P = spec.privacy.guarantee(spec.unit), order.order(spec.resolve)
        mechanism = choose_mechanism(P, promise, *options, grouped=spec.data.by is not None)
        return audit_count_mechanism(mechanism, trials, progress)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """A mechanism on a survey of three questions."""
        from isotone.audit.count_audit import audit_count_mechanism, example_of

        return audit_count_mechanism(example_of(count_mechanism(name), epsilon), trials, progress)

    def check(self, spec: Spec, source: Any) -> list[str]:
        """Records that break the order, and answers that are neither yes nor no."""
        from isotone.release.check import check_counts

        return check_counts(spec, source)

    def rebuild(self, manifest: Manifest) -> Any:
        """The mechanism over the order of the manifest."""
        return rebuild_count_mechanism(order_from(manifest["order"]), manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the noise promises for records of the kind that the rules let through."""
        manifest, mechanism = release.manifest, self.rebuild(release.manifest)
        stated = guarantee_from(manifest.guarantee)
        if release.total is not None and not getattr(mechanism, "has_total", False):
            raise InputError(f"the noise of {type(mechanism).__name__} does not cover the number of records")
        rules, most = manifest["rules"], mechanism.max_size
        shorter = most is None or (rules["max_size"] is not None and rules["max_size"] <= most)
        if mechanism.contributions < rules["contributions"] or not shorter:
            raise InputError("the mechanism is for records of another kind than those that were counted")
        promise = replace(mechanism.guarantee, unit=stated.unit)
        if manifest["groups"] and stated.neighbours == "replace":
            # one unit may leave a group and another enter a second one, which noise for replacing does not cover
            if promise.neighbours == "replace":
                raise InputError("the noise is for replacing within a group, and a unit may change groups")
            promise = promise.replacing()
        return promise

    recomputed: ClassVar[str] = "elements, standard deviations and intervals are the mechanism's own"

    def faults(self, release: Release) -> list[str]:
        """Labels, errors and intervals that are not those of the mechanism."""
        from isotone.release.recomputed import count_faults

        return count_faults(release.columns, release.manifest, self.rebuild(release.manifest), count_columns)
