"""Releasing counts: check everything public, charge, read the data, add noise.

The order matters and is the same for every release: whatever can be refused is refused before the charge; the
charge is durable before the data is read; nothing that the data contains is ever shown or branched on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotone.counts import plan
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee, Neighbours, Number
from isotone.reading.answers import Answers
from isotone.reading.engine import watching
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records
from isotone.reading.texts import label
from isotone.release.manifest import guarantee_to, now, order_to, versions
from isotone.release.recipes import count_mechanism, recipe_of
from isotone.release.result import Release, seal

__all__ = ["count_columns", "prepare_mechanism", "release_counts"]


_WIDEST = 2.0**40
"""The largest standard deviation: far enough below 2**62 that a count and its noise never leave 64 bits."""


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
    spec: str = "",
    title: str | None = None,
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
    if not isinstance(P, Poset):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise InputError(
            f"P must be a Poset, not a {type(P).__name__}: Poset(elements, relations) makes one."
        )
    public = Groups(by, tuple(map(label, groups or ()))) if by is not None else None
    if by is None and groups is not None:
        raise InputError("groups needs by=: the column whose public values these are.")
    rules = RecordRules(unit, contributions, on_violation, max_size, answers or Answers())
    source = RecordSource(data, element, columns or {})
    promise = _promise(epsilon, delta, rho, neighbours, unit_name or unit or "record")
    noise = prepare_mechanism(P, promise, contributions, max_size, mechanism, grouped=public is not None)
    if noise.neighbours == promise.neighbours:  # the mechanism may promise more: only that is charged
        promise = replace(noise.guarantee, unit=promise.unit)
    if total and not getattr(noise, "has_total", False):
        raise InputError(
            f"{type(noise).__name__} does not give the number of records for free. Leave out total=True."
        )
    manifest = _manifest(P, promise, noise, rules, source, public, confidence, spec, title)
    frame = source.open(P, rules, public)
    published = count_columns(noise, confidence)
    _rehearse(noise, total)
    ledger.check(promise)
    progress(0.1, "charging the ledger")
    charge = ledger.charge(promise, f"counts of {len(P)} elements", mechanism=type(noise).__name__, spec=spec)
    with watching(progress, 0.2, 0.9, "counting where the data is"):
        counts, records = count_records(source, frame, P, rules, public)
    progress(0.9, "adding noise")
    values: list[NDArray[np.int64]] = []
    totals: list[int] = []
    for row, size in zip(counts, records, strict=True):
        if total:
            noisy, noisy_size = noise.release_with_total(row, int(size))
            totals.append(noisy_size)
        else:
            noisy = noise.release(row)
        values.append(np.asarray(noisy))
    extra: dict[str, Any] = {}
    if total:
        extra = {"total": totals if public else totals[0], "total_sd": total_deviation(noise)}
    stamp = {"time": now(), "charge": charge.number, "dataset": ledger.dataset}
    release = seal(_columns(P, public, values, published), {**manifest, **extra, **stamp})
    charge.finish(release.manifest["content_hash"])
    progress(1.0, "done")
    return release


def prepare_mechanism(
    P: Poset,
    promise: Guarantee,
    contributions: int,
    max_size: int | None,
    mechanism: str | AdditiveMechanism | None,
    *,
    grouped: bool,
) -> Any:
    """The mechanism that keeps ``promise``, chosen without data.

    Groups are released in parallel. Adding or removing a unit changes one group. Replacing one may take it out of
    a group and put another into a second group, which no replace-calibrated noise on one group covers; so each
    group is then promised so much about adding or removing that what is asked for about replacing follows.
    """
    if isinstance(mechanism, AdditiveMechanism):
        if mechanism.P != P or mechanism.P.elements != P.elements:
            raise InputError("The mechanism given is for another order.")
        if grouped and promise.neighbours == "replace":
            raise InputError("For groups and replace neighbours name the mechanism instead of passing one.")
        if (mechanism.contributions, mechanism.max_size) != (contributions, max_size):
            raise InputError("The mechanism given is for other contributions or another max_size.")
        if not replace(mechanism.guarantee, unit=promise.unit).within(promise):
            raise InputError(
                f"The mechanism given promises {mechanism.guarantee}, which is less than asked for."
            )
        return mechanism
    part = promise
    if grouped and promise.neighbours == "replace":
        part = promise.for_replacing()
    budget: dict[str, Any] = {"rho": part.rho} if part.kind == "zcdp" else {"epsilon": part.epsilon}
    setting: dict[str, Any] = {
        "neighbours": part.neighbours,
        "contributions": contributions,
        "max_size": max_size,
    }
    if mechanism is None or mechanism == "best":
        return plan(P, **budget, **({} if part.kind == "zcdp" else {"delta": part.delta}), **setting).best
    if part.delta:
        budget["delta"] = part.delta
    try:
        return count_mechanism(mechanism)(P, **budget, **setting)
    except TypeError:
        raise InputError(f"{mechanism} cannot promise {promise}. Leave the choice to the plan.") from None


def _rehearse(mechanism: Any, total: bool) -> None:
    """One draw for nobody, thrown away: what the public parameters make impossible fails before the charge."""
    nobody = np.zeros(len(mechanism.P), dtype=np.int64)
    try:
        _ = mechanism.release_with_total(nobody, 0) if total else mechanism.release(nobody)
    except OverflowError:
        raise InputError(
            "The noise would be too wide for 64-bit numbers. Take a larger epsilon or rho, or fewer contributions."
        ) from None


def count_columns(mechanism: Any, confidence: float) -> dict[str, NDArray[Any]]:
    """What is known about each value before any data is read: standard deviation and half-widths.

    A half-width is about noise before rounding; rounding moves a value by half at most, and values are whole.
    """
    sd = mechanism.error().sd
    if not np.all(sd <= _WIDEST):
        raise InputError(
            "The noise would be too wide for 64-bit numbers. Take a larger epsilon or rho, or fewer contributions."
        )
    alone = np.floor(mechanism.half_widths(confidence) + 0.5).astype(np.int64)
    together = math.floor(mechanism.simultaneous_half_width(confidence) + 0.5)
    return {
        "sd": np.round(sd, 4),
        "alone": alone,
        "together": np.full(len(alone), together),
    }


def total_deviation(mechanism: Any) -> float:
    """The standard deviation of the released number of records."""
    return round(math.sqrt(mechanism.total_variance()), 4)


def _columns(
    P: Poset, groups: Groups | None, values: list[NDArray[np.int64]], known: dict[str, NDArray[Any]]
) -> dict[str, tuple[Any, ...]]:
    repeat = len(values)
    value = np.concatenate(values)
    alone, together = np.tile(known["alone"], repeat), np.tile(known["together"], repeat)
    columns: dict[str, tuple[Any, ...]] = {}
    if groups is not None:
        columns["group"] = tuple(group for group in groups.values for _ in P.elements)
    columns["element"] = tuple(str(x) for x in P.elements) * repeat
    numbers: dict[str, NDArray[Any]] = {
        "value": value,
        "sd": np.tile(known["sd"], repeat),
        "low": np.maximum(value - alone, 0),
        "high": np.maximum(value + alone, 0),
        "low_all": np.maximum(value - together, 0),
        "high_all": np.maximum(value + together, 0),
    }
    return {**columns, **{name: tuple(column.tolist()) for name, column in numbers.items()}}


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


def _manifest(
    P: Poset,
    promise: Guarantee,
    mechanism: Any,
    rules: RecordRules,
    source: RecordSource,
    groups: Groups | None,
    confidence: float,
    spec: str,
    title: str | None,
) -> dict[str, Any]:
    declared: dict[str, Any] = {
        "unit": rules.unit,
        "contributions": rules.contributions,
        "on_violation": rules.on_violation,
        "max_size": rules.max_size,
        "form": "wide" if source.element is None else "long",
        "yes": list(rules.answers.yes),
        "missing": rules.answers.missing,
    }
    return {
        "kind": "counts",
        "title": title or "Counts",
        "order": order_to(P),
        "mechanism": recipe_of(mechanism),
        "guarantee": guarantee_to(promise),
        "rules": declared,
        "groups": {"by": groups.column, "values": list(groups.values)} if groups else None,
        "confidence": confidence,
        "spec": spec,
        "versions": versions(),
    }
