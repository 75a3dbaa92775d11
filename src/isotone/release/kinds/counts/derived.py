"""What is derived from published counts: with a public number of records, made consistent, or several releases combined."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts import consistent
from isotone.counts.consistency import consistent_margins
from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.margins import MarginsMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.sampler import Recent
from isotone.errors import InputError
from isotone.inference import Measured, combined, common_scale, given_records
from isotone.linear.mechanism import Law
from isotone.mechanism import HasGroups
from isotone.order import Poset, project_covariance
from isotone.order.building import is_hierarchy
from isotone.privacy.checks import one_of, shown, truth, whole_number
from isotone.privacy.guarantee import Guarantee
from isotone.reading.questions import Question, book_of
from isotone.release.kinds.counts.columns import DECIMALS, breakdown_columns, has_margins, known_errors
from isotone.release.kinds.counts.description import CountManifest
from isotone.release.manifest import (
    Manifest,
    canonical_json,
    guarantee_from,
    guarantee_to,
    order_from,
    order_to,
    rebuild_count_mechanism,
)
from isotone.release.result import Release, seal

Floats = NDArray[np.float64]

_mechanisms: Recent[Any] = Recent(4)
_laws: Recent[Law] = Recent(8)

_NUMBERS, _FEWEST = 30_000_000, 300
"""A sum over groups draws no more numbers than that, but at least so many sums."""


def mechanism_of(manifest: Manifest) -> AdditiveMechanism:
    """The mechanism of a release. The last few are kept."""
    return _mechanisms.get(
        _key(manifest),
        lambda: rebuild_count_mechanism(order_from(manifest["description"]["order"]), manifest.mechanism),
    )


def _key(manifest: Manifest) -> bytes:
    return canonical_json({"order": manifest["description"]["order"], "mechanism": manifest.mechanism})


def groups_of(manifest: Manifest) -> list[str] | None:
    """The names of the groups, or None."""
    by = manifest["description"]["by"]
    return list(by[0][1]) if by and not has_margins(manifest) else None


def origins(manifest: Manifest) -> list[tuple[CountManifest, list[Any]]]:
    """The releases that a derived one was computed from, each as its manifest and its values."""
    derived = manifest.get("derived")
    result: list[tuple[CountManifest, list[Any]]] = []
    for part in derived["of"] if derived else []:
        origin = Manifest.from_plain(part["manifest"])
        if not isinstance(origin, CountManifest):
            raise InputError("the manifest derives counts from a release of another kind")
        result.append((origin, part["values"]))
    return result


def measured(
    manifest: Manifest,
    values: Sequence[Any],
    stream: str = "",
    draws: int | None = None,
    *,
    together: bool = False,
) -> list[Measured]:
    """The counts of each group, as they were released, with the law of their noise.

    Laws of different ``stream`` are independent. ``draws`` is the number of draws of a law, if not the usual one.
    ``together`` is for sums over groups: in the law the rows of all groups of one draw then stand side by side.
    """
    derived = manifest.get("derived")
    if not derived:
        return _as_released(manifest, values, stream, draws, together)
    parts = measured_parts(origins(manifest), stream, draws, together=together)
    how = derived["how"]
    if how == "combined":
        union = union_order([result[0].P for result in parts])
        return [combined(result, union) for result in zip(*parts, strict=True)]
    if how == "given":
        numbers = derived["records"]
        numbers = numbers if isinstance(numbers, list) else [numbers]
        return [given_records(result, number) for result, number in zip(parts[0], numbers, strict=True)]
    if how == "consistent":
        return parts[0]
    raise InputError(f"the manifest derives counts in an unknown way, {str(how)[:40]!r}")


def measured_parts(
    parts: Sequence[tuple[Manifest, Sequence[Any]]],
    stream: str = "",
    draws: int | None = None,
    *,
    together: bool = False,
) -> list[list[Measured]]:
    """The counts of several releases, with laws that are independent of each other."""
    result, before = list[list[Measured]](), 0
    for part, own in parts:
        # the first draw keeps the stream, of which a release of a slow order knows the draws
        name = stream if before == 0 else f"{stream}.{before}"
        result.append(measured(part, own, name, draws, together=together))
        before += _draws_in(part)
    return result


def _draws_in(manifest: Manifest) -> int:
    """How many draws a release was derived from, so that the streams of all of them have names of their own."""
    derived = manifest.get("derived")
    return sum(_draws_in(part) for part, _ in origins(manifest)) if derived else 1


def group_sum(manifest: Manifest, values: Sequence[Any]) -> list[Measured]:
    """The counts of each group, with so many draws that every group can have its own."""
    groups, draw = groups_of(manifest) or [""], manifest
    while draw.get("derived"):
        draw = origins(draw)[0][0]
    width = len(draw["description"]["order"]["elements"]) + 1
    rows = min(mechanism_of(draw).law_draws, max(_FEWEST, _NUMBERS // (width * len(groups))))
    return measured(manifest, values, "sum", rows * len(groups), together=True)


def _as_released(
    manifest: Manifest, values: Sequence[Any], stream: str, draws: int | None, together: bool
) -> list[Measured]:
    mechanism: Any = mechanism_of(manifest)
    total = manifest.get("total")
    totals = total if isinstance(total, list) else [total]
    rows = np.array(values, dtype=np.float64).reshape(-1, len(mechanism.P))
    has_total = total is not None

    def drawn() -> Law:
        if together and draws and isinstance(mechanism, HasGroups):
            return mechanism.group_law(stream, draws // mechanism.groups)
        return mechanism.law(stream, total=has_total, draws=draws)

    law = _laws.get((_key(manifest), stream, has_total, draws, together), drawn)
    variance = mechanism.error().variance
    if has_total:
        rows = np.concatenate((rows, np.array(totals, dtype=np.float64)[:, None]), axis=1)
        variance = np.append(variance, mechanism.total_variance())
    guaranteed = {"epsilon", "delta", "rho"}
    shape = {key: value for key, value in manifest.mechanism.items() if key not in guaranteed}
    return [
        Measured(
            mechanism.P,
            row,
            law,
            variance=variance,
            covariance=lambda: _covariance(mechanism, has_total),
            slope=lambda: mechanism.total_covariance().variance / mechanism.total_variance(),
            has_total=has_total,
            records=mechanism.records if isinstance(mechanism, FixedRootMechanism) else None,
            shape=json.dumps([shape, total is not None], sort_keys=True),
        )
        for row in rows
    ]


def _covariance(mechanism: Any, has_total: bool) -> Floats:
    counts = mechanism.covariance()
    if not has_total:
        return counts
    with_total = mechanism.total_covariance().variance
    side = np.append(with_total, mechanism.total_variance())
    return np.block([[counts, with_total[:, None]], [side[None, :]]])


def union_order(orders: Sequence[Poset]) -> Poset:
    """The order of all elements of several orders."""
    first = orders[0]
    if all(P.elements == first.elements and first == P for P in orders):
        return first
    if any(P.choices for P in orders):
        raise InputError("Releases with exclusive options are combined only if their orders are the same.")
    elements = list(dict.fromkeys(x for P in orders for x in P.elements))
    return Poset(elements, list(dict.fromkeys(pair for P in orders for pair in P.covers)))


# Releases derived from a release, given a public number of records, or made consistent.
#
# A derived release carries what it was derived from, so anyone can compute it again from its folder, and can tell
# which draws are in it. Nothing is read but published values: the guarantee stays that of the draws.

_MOST_RECORDS = 10**12


def given(release: Release, records: Any, after_rules: bool) -> Release:
    """The release adjusted by a public number of records. See :meth:`Release.given`."""
    manifest = release.manifest
    if manifest.get("derived"):
        raise InputError("State the number of records for the release itself: call given() first.")
    if "catch_all" in manifest.mechanism:
        raise InputError(
            f"The root of this release is fixed to {manifest.mechanism['records']:,} records already."
        )
    if manifest.get("total") is None and is_hierarchy(release.order):
        raise InputError(
            "The root of a hierarchy is not fixed to a public number of records afterwards. All its counts add up exactly, so "
            "the number of records that the rules count would be published without noise, and a record that is dropped, "
            "not listed or without a leaf would show in it. Release with records= and catch_all=, or state the number "
            "beside the release."
        )
    if manifest.get("total") is None:
        raise InputError("This release has no number of records to compare with: release with total=True.")
    stated = truth(after_rules, "after_rules")
    if not stated:
        require_all_counted(manifest)
    numbers = public_records(records, groups_of(manifest))
    derived = {
        "how": "given",
        "records": numbers if groups_of(manifest) else numbers[0],
        "after_rules": stated,
        "promise": guarantee_given_records(release.guarantee),
        "covariance_error": _slope_error(manifest),
        "of": [packed(release)],
    }
    return derived_release(manifest, derived)


def _slope_error(manifest: Manifest) -> float:
    """The largest standard error of a covariance with the number of records, relative to it, or 0 if all are exact."""
    mechanism: Any = mechanism_of(manifest)
    result = mechanism.total_covariance()
    if not result.standard_error.size:
        return 0.0
    return round(float(np.max(result.standard_error / np.maximum(np.abs(result.variance), 1e-12))), 6)


def require_all_counted(manifest: Manifest) -> None:
    """Refuse a public number of records where the rules may leave units out, unless the caller counts by the rules."""
    description = manifest["description"]
    unit, answers = description["unit"], description["answers"]
    choices = bool(description["order"].get("choices"))
    reasons = {
        "records that break the order are dropped": answers["on_violation"] == "drop",
        "records with several options are dropped": choices and answers["on_conflict"] == "drop",
        "rows without a unit are left out": unit["column"] is not None,
        "rows of groups that are not listed are left out": bool(description["by"])
        and description["unlisted"] == "drop",
        "a unit may give several records": (unit["contributions"] or 1) > 1,
    }
    for reason, applies in reasons.items():
        if applies:
            raise InputError(
                f"A public number of records must count them as the rules do, and here {reason}. If your number is that "
                "of records after the rules, say so with after_rules=True."
            )


def public_records(records: Any, groups: Sequence[str] | None) -> list[int]:
    """The number of records of each group, as the caller states it."""
    if groups is None:
        return [number_of_records(records)]
    if not isinstance(records, Mapping) or set(map(str, records)) != set(groups):
        raise InputError(
            f"records must give one number for each group, {', '.join(groups)}: a mapping by name."
        )
    by_name = {str(name): number for name, number in records.items()}
    return [number_of_records(by_name[name], f"records of {shown(name)}") for name in groups]


def number_of_records(value: Any, name: str = "records") -> int:
    """A public number of records, checked, and no larger than arithmetic on it is exact."""
    return whole_number(value, name, least=0, most=_MOST_RECORDS)


def guarantee_given_records(guarantee: Guarantee) -> str:
    """What a guarantee becomes for a reader who knows the number of records."""
    if guarantee.adjacency.exchanges:
        return f"given N public: {guarantee}; the mechanism for differences of records needs less noise"
    return f"given N public: {guarantee.replacing() if guarantee.adjacency.units == 1 else guarantee}"


def made_consistent(release: Release, integers: bool, weights: str) -> Release:
    """Values that are not negative and follow the order. See :meth:`Release.consistent`."""
    if release.manifest.get("consistent"):
        return release
    derived = {
        "how": "consistent",
        "integers": truth(integers, "integers"),
        "weights": one_of(weights, "weights", ("variance", "covariance")),
        "of": [packed(release)],
    }
    return derived_release(release.manifest, derived)


def derived_release(manifest: Manifest, derived: dict[str, Any]) -> Release:
    """The release that follows from ``derived``, which names its origins, described as ``manifest`` does otherwise."""
    assert isinstance(manifest, CountManifest)
    how = derived["how"]
    described = replace(manifest, derived=derived, law=None, content_hash=None, files=None)
    result = measured(described, ())
    columns = _columns(described, result, derived)
    if how == "consistent":
        described = replace(described, consistent=True)
    if how == "given":
        described = replace(described, total=None, total_sd=None)
    if how == "combined" and result[0].has_total:
        totals = [round(float(one.values[-1]), 4) for one in result]
        sd = round(float(np.sqrt(result[0].variance[-1])), 4)
        described = replace(described, total=totals if groups_of(described) else totals[0], total_sd=sd)
    return seal(columns, described)


def _columns(
    manifest: Manifest, counts: Sequence[Measured], derived: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    P, groups, level = counts[0].P, groups_of(manifest), float(manifest["description"]["confidence"])
    rows = [
        _consistent_row(one, derived, level) if derived["how"] == "consistent" else _row(one, level)
        for one in counts
    ]
    columns: dict[str, tuple[Any, ...]] = {}
    if groups is not None:
        columns["group"] = tuple(group for group in groups for _ in P.elements)
    columns["element"] = tuple(str(x) for x in P.elements) * len(counts)
    names = ("value", "sd", "low", "high", "low_all", "high_all", "raw")
    for name in names if derived["how"] != "combined" else names[:-1]:
        columns[name] = tuple(number for row in rows for number in row[name])
    if derived["how"] == "given":
        columns["raw"] = tuple(origins(manifest)[0][1])
    return columns


def _row(counts: Measured, level: float) -> dict[str, list[Any]]:
    n = len(counts.P)
    value, most = counts.values[:n], np.inf if counts.records is None else counts.records
    alone = counts.law.half_widths(level)[:n]
    together = float(counts.law.upper(np.max(np.abs(counts.law.draws[:, :n]), axis=1), level))
    low, high = _whole_ends(value, alone, most)
    low_all, high_all = _whole_ends(value, np.full(n, together), most)
    return {
        "value": np.round(value, 4).tolist(),
        "sd": np.round(np.sqrt(counts.variance[:n]), 4).tolist(),
        "low": low,
        "high": high,
        "low_all": low_all,
        "high_all": high_all,
        "raw": [],
    }


def _whole_ends(value: Floats, half: Floats, most: float) -> tuple[list[int], list[int]]:
    """The whole numbers within the interval, as a count is one, or the nearest where there is none."""
    near = 1e-9 + 1e-12 * np.abs(value)  # of rounding
    low, high = np.ceil(value - half - near), np.floor(value + half + near)
    near = np.rint(value)
    low, high = np.where(low > high, near, low), np.where(low > high, near, high)
    ends = np.clip([low, high], 0, most)
    return ends[0].astype(np.int64).tolist(), ends[1].astype(np.int64).tolist()


def _consistent_row(counts: Measured, derived: Mapping[str, Any], level: float) -> dict[str, list[Any]]:
    n = len(counts.P)
    raw, region = counts.values[:n], counts.region(level)
    value = _projected(counts, derived["weights"], derived["integers"])
    low, high = (ends[:n] for ends in region.counts)
    low, high = np.ceil(low - 1e-9).astype(np.int64), np.floor(high + 1e-9).astype(np.int64)
    return {
        "value": (value.astype(np.int64) if derived["integers"] else np.round(value, 4)).tolist(),
        "sd": np.round(np.sqrt(counts.variance[:n]), 4).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "low_all": low.tolist(),
        "high_all": high.tolist(),
        "raw": (raw.astype(np.int64) if counts.whole else np.round(raw, 4)).tolist(),
    }


def _projected(counts: Measured, weights: str, integers: bool) -> Floats:
    """The nearest counts that are possible, by the variances of the noise or by its covariance. Options add up."""
    n, upper = len(counts.P), counts.records
    raw, variance = counts.values[:n], counts.variance[:n]
    if weights == "covariance":
        if counts.P.choices:
            raise InputError("By covariances options would not add up: leave out weights='covariance'.")
        fitted = project_covariance(counts.P, raw, counts.covariance()[:n, :n], lower=0.0, upper=upper)
        return np.rint(fitted) if integers else fitted
    # what has no noise, as a fixed root, hardly moves
    inverse = 1 / np.maximum(variance, 1e-9 * variance.max()) if np.any(variance > 0) else None
    return np.asarray(consistent(counts.P, raw, inverse, upper, integers), dtype=np.float64)


def packed(release: Release) -> dict[str, Any]:
    """A release as its manifest and its values, from which all columns follow."""
    return {
        "manifest": replace(release.manifest, files=None).plain(),
        "values": list(release.columns["value"]),
    }


# The questions of published counts, read back from their manifest.


def definitions(book: Mapping[str, Question]) -> dict[str, Any]:
    """What counts as a yes, by element, without labels."""
    return {name: question.definition() for name, question in book.items() if question.has_own_rule}


def entries_of(book: Mapping[str, Question]) -> list[dict[str, Any]]:
    """The questions as a manifest holds them."""
    return [{"name": name, **question.plain()} for name, question in book.items()]


def questions_of(manifest: Manifest) -> dict[str, Question]:
    """The questions of a manifest by name."""
    return book_of([Question(**entry) for entry in manifest["description"]["answers"]["questions"]])


def labels_of(manifest: Manifest) -> dict[str, str]:
    """What people read in place of an element, its label, or else its name."""
    book, elements = questions_of(manifest), manifest["description"]["order"]["elements"]
    return {x: book[x].shown if x in book and book[x].label else str(x).replace("_", " ") for x in elements}


# Several releases of the same or overlapping counts as one, and what must agree for that.


def combine_counts(releases: Sequence[Release], follows_order: bool) -> Release:
    """One release from several of the same counts. See :func:`isotone.combine`."""
    stated, first = truth(follows_order, "follows_order"), releases[0].manifest
    if any(has_margins(release.manifest) for release in releases):
        raise InputError("Releases of different kinds cannot be combined.")
    for other in releases[1:]:
        require_same_definition(first, other.manifest)
        if first.guarantee["neighbours"] != other.manifest.guarantee["neighbours"]:
            raise InputError("The releases guarantee different neighbours: their costs cannot be added.")
        if _stated(first, "records") != _stated(other.manifest, "records"):
            raise InputError(
                "The roots are fixed to different numbers of records: these are different counts."
            )
    require_different_draws([draws_of(release.manifest) for release in releases])
    P = union_order([release.order for release in releases])
    for one in releases:  # an element that several count must mean the same in each
        require_same_records(one.order, P, one.order.elements, first, stated)
    guarantees = _guarantees([release.manifest for release in releases])
    whole, *_ = guarantees.values()
    if len(guarantees) > 1:
        whole = reduce(_side_by_side, guarantees.values())
    assert isinstance(first, CountManifest)
    manifest = replace(
        first,
        description=_described([release.manifest for release in releases], P),
        mechanism={"name": "Combination"},
        guarantee=guarantee_to(whole),
        dataset=" + ".join(guarantees),
        charge=0,
        request="",
        time=max(release.manifest.time for release in releases),
        **dict.fromkeys(CountManifest.of_one_draw),
    )
    derived = {
        "how": "combined",
        "covariance_error": _covariance_error(releases),
        "costs": {name: guarantee_to(guarantee) for name, guarantee in guarantees.items()},
        "follows_order": stated,
        "of": [packed(release) for release in releases],
    }
    return derived_release(manifest, derived)


def _described(manifests: Sequence[Manifest], P: Poset) -> dict[str, Any]:
    """The description of the first, with the order and the questions of all. Where labels differ, that of the first."""
    book = {name: q for manifest in reversed(manifests) for name, q in questions_of(manifest).items()}
    description = manifests[0]["description"]
    return {
        **description,
        "order": order_to(P),
        "answers": {**description["answers"], "questions": entries_of(book)},
    }


def _covariance_error(releases: Sequence[Release]) -> float:
    """How well the covariances are known that the weights come from, 0 if none was needed or all are exact."""
    parts = measured_parts([(release.manifest, release.columns["value"]) for release in releases])
    if common_scale([result[0] for result in parts]) is not None:
        return 0.0
    draws = [draw for release in releases for draw in draws_of(release.manifest)]
    return round(max(mechanism_of(draw).covariance_error() for draw in draws), 6)


def draws_of(manifest: Manifest) -> list[Manifest]:
    """The manifests of the draws that are in a release, itself if it was not derived from others."""
    if "of" not in (manifest.get("derived") or {}):  # a breakdown keeps its own values when made consistent
        return [manifest]
    return [draw for origin, _ in origins(manifest) for draw in draws_of(origin)]


def require_different_draws(releases: Sequence[Sequence[Manifest]]) -> None:
    """Refuse to count one draw twice, given those that are in each release, whatever it was derived by."""
    seen: set[Any] = set()
    for draws in releases:
        for draw in draws:
            # a draw under another title is the same draw: its charge says so
            names = {draw.content_hash, (draw.dataset, draw.charge, draw.time)}
            if names & seen:
                raise InputError(
                    f"Charge {draw.charge} of {draw.dataset!r} is in two of the releases. The same draw twice is no "
                    "further evidence: leave one out."
                )
            seen |= names


_DEFINITION = ("unit", "contributions", "on_violation", "on_conflict", "max_size", "yes", "missing")


def _definition(manifest: Manifest) -> dict[str, Any]:
    """What decides about which records are counted."""
    description = manifest["description"]
    result = {
        **description["unit"],
        **description["answers"],
        "max_size": description["max_size"],
        "unit": description["unit"]["column"],
    }
    result["contributions"] = result["contributions"] or 1
    if not description["order"].get("choices"):
        result["on_conflict"] = None
    return result


def require_same_definition(first: Manifest, second: Manifest) -> None:
    """Refuse to compare counts of different things."""
    both = _definition(first), _definition(second)
    for key in _DEFINITION:
        one, other = both[0].get(key), both[1].get(key)
        if one != other:
            raise InputError(
                f"The releases count different things: their rules differ in {key!r} ({shown(one)} and {shown(other)})."
            )
    if _stated(first, "catch_all") != _stated(second, "catch_all"):
        raise InputError(
            "The releases count different things: a record that is in no leaf is in the catch-all of one of them only."
        )
    if guarantee_from(first.guarantee).unit != guarantee_from(second.guarantee).unit:
        raise InputError("The releases protect different units, so they count different things.")
    one, other = (definitions(questions_of(manifest)) for manifest in (first, second))
    for name in {*_elements(first)} & {*_elements(second)}:
        if one.get(name) != other.get(name):
            raise InputError(
                f"The releases count different things: {name!r} is not the same question in both."
            )
    if groups_of(first) != groups_of(second) or _column_names(first) != _column_names(second):
        raise InputError("The releases have different groups.")


def _elements(manifest: Manifest) -> list[str]:
    return manifest["description"]["order"]["elements"]


def _column_names(manifest: Manifest) -> list[str] | None:
    """The column of the groups, where there are groups."""
    return None if groups_of(manifest) is None else [name for name, _ in manifest["description"]["by"]]


def _stated(manifest: Manifest, name: str) -> set[Any]:
    """What the draws of a release were told about a fixed root."""
    return {draw.mechanism.get(name) for draw in draws_of(manifest)}


def require_same_records(
    one: Poset, other: Poset, elements: Iterable[Hashable], manifest: Manifest, follows_order: bool
) -> None:
    """Refuse to compare elements of two orders unless the rules count the same records for them under each.

    ``follows_order`` states that every record follows both orders. What is repaired then is nothing.
    """
    rules, differ, common = (
        _definition(manifest),
        one != other,
        frozenset(one.elements) & frozenset(other.elements),
    )
    for x in elements:
        apart = one.down_set(x) ^ other.down_set(x)
        if apart & common:
            raise InputError(f"The orders of the releases differ about {x!r}: these are different counts.")
        if differ and rules["max_size"] is not None:
            raise InputError(
                f"The releases shorten records to {rules['max_size']} elements of different orders, which counts other "
                f"records for {x!r}."
            )
        if follows_order:
            continue
        if apart or (differ and rules["on_violation"] == "drop"):
            why = "is implied by more elements" if apart else "is among other elements"
            raise InputError(
                f"{x!r} {why} in one release than in another, and the rule {rules['on_violation']!r} for "
                "records that break the order then counts other records. If all records follow the order, say so "
                "with follows_order=True."
            )


def _guarantees(manifests: Sequence[Manifest]) -> dict[str, Guarantee]:
    """What all draws guarantee together, for each data set by its name."""
    result: dict[str, Guarantee] = {}
    for manifest in manifests:
        for draw in draws_of(manifest):
            guarantee = guarantee_from(draw.guarantee)
            result[draw.dataset] = result[draw.dataset] + guarantee if draw.dataset in result else guarantee
    return result


def _side_by_side(first: Guarantee, second: Guarantee) -> Guarantee:
    """The guarantee to a unit of one of two data sets, or the sum where that cannot be told."""
    same_kind = (first.kind == "zcdp") == (second.kind == "zcdp")
    if same_kind and first.adjacency.units == 1:
        return first.parallel(second)
    return first + second


def total_guarantee(manifest: Manifest) -> Guarantee:
    """The guarantee that follows from the draws of a derived release."""
    guarantees = list(_guarantees([manifest]).values())
    return reduce(_side_by_side, guarantees) if len(guarantees) > 1 else guarantees[0]


# A breakdown whose values were moved to the nearest that could be true. Nothing is read but published numbers.

Tables = list[NDArray[np.int64] | None]


def consistent_breakdown(release: Release, mechanism: MarginsMechanism, *, integers: bool) -> Release:
    """Values that are not negative and follow the order, and still add up. See :meth:`Release.consistent`."""
    manifest = release.manifest
    assert isinstance(manifest, CountManifest)
    if manifest.consistent:
        return release
    columns = consistent_columns(mechanism, measured_tables(manifest, mechanism), release.columns, integers)
    derived = {"how": "consistent", "integers": integers}
    return seal(columns, replace(manifest, derived=derived, consistent=True, content_hash=None, files=None))


def consistent_columns(
    mechanism: MarginsMechanism, tables: Tables, columns: Mapping[str, Sequence[Any]], integers: bool
) -> dict[str, tuple[Any, ...]]:
    """The columns of a release with values that could be true, and those as estimated in the column raw."""
    moved = consistent_margins(mechanism, mechanism.estimate(tables), integers=integers)
    value = np.round(np.concatenate([table.ravel() for table in moved]), DECIMALS) + 0.0
    changed = {**columns, "value": tuple(value.tolist()), "raw": tuple(columns["value"])}
    return {name: tuple(column) for name, column in changed.items()}


def as_drawn(manifest: CountManifest, mechanism: MarginsMechanism) -> CountManifest:
    """The manifest of the release before anything was derived from it, with its own hash."""
    if manifest.derived is None:
        return manifest
    tables = measured_tables(manifest, mechanism)
    known = known_errors(mechanism, manifest["description"]["confidence"])
    columns = breakdown_columns(mechanism, mechanism.estimate(tables), known)
    return replace(manifest, derived=None, consistent=None, content_hash=None, files=None).sealed(columns)


def measured_tables(manifest: CountManifest, mechanism: MarginsMechanism) -> Tables:
    """The noisy integers as tables, or an error if they are not those of the mechanism."""
    breakdown, n = mechanism.breakdown, len(mechanism.base.P)
    sizes = breakdown.shapes
    expected = [math.prod(s) * n if share else 0 for s, share in zip(sizes, mechanism.shares, strict=True)]
    measured = manifest.measured or []
    if [len(numbers) for numbers in measured] != expected:
        raise InputError("the noisy integers are not one for each cell of a measured margin and each element")
    return [
        np.array(numbers, np.int64).reshape(*size, n) if share else None
        for size, share, numbers in zip(sizes, mechanism.shares, measured, strict=True)
    ]
