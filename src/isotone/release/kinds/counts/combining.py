"""Several releases of the same or overlapping counts as one, and what must agree for that."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from isotone.errors import InputError
from isotone.inference.population import common_scale
from isotone.order import Poset
from isotone.privacy.checks import shown, truth
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.counts.asked import definitions, entries_of, questions_of
from isotone.release.kinds.counts.deriving import derived_release, packed
from isotone.release.kinds.counts.measuring import (
    groups_of,
    measured_parts,
    mechanism_of,
    origins,
    union_order,
)
from isotone.release.kinds.counts.query import CountManifest
from isotone.release.manifest import Manifest, guarantee_from, guarantee_to, order_to
from isotone.release.result import Release

__all__ = [
    "combine_counts",
    "draws_of",
    "require_different_draws",
    "require_same_definition",
    "require_same_records",
    "total_guarantee",
]


def combine_counts(releases: Sequence[Release], follows_order: bool) -> Release:
    """One release from several of the same counts. See :func:`isotone.combine`."""
    stated, first = truth(follows_order, "follows_order"), releases[0].manifest
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
        order=order_to(P),
        mechanism={"name": "Combination"},
        guarantee=guarantee_to(whole),
        dataset=" + ".join(guarantees),
        charge=0,
        request="",
        time=max(release.manifest.time for release in releases),
        questions=_questions([release.manifest for release in releases]),
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


def _questions(manifests: Sequence[Manifest]) -> dict[str, Any] | None:
    """The questions of all releases. Where labels differ, that of the first."""
    book = {name: q for manifest in reversed(manifests) for name, q in questions_of(manifest).items()}
    return entries_of(book)


def _covariance_error(releases: Sequence[Release]) -> float:
    """How well the covariances are known that the weights come from, 0 if none was needed or all are exact."""
    parts = measured_parts([(release.manifest, release.columns["value"]) for release in releases])
    if common_scale([found[0] for found in parts]) is not None:
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


def require_same_definition(first: Manifest, second: Manifest) -> None:
    """Refuse to compare counts of different things."""
    for key in _DEFINITION:
        one, other = first["rules"].get(key), second["rules"].get(key)
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
    for name in {*first["order"]["elements"]} & {*second["order"]["elements"]}:
        if one.get(name) != other.get(name):
            raise InputError(
                f"The releases count different things: {name!r} is not the same question in both."
            )
    columns = [(manifest.get("groups") or {}).get("by") for manifest in (first, second)]
    if groups_of(first) != groups_of(second) or columns[0] != columns[1]:
        raise InputError("The releases have different groups.")


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
        manifest["rules"],
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
    found: dict[str, Guarantee] = {}
    for manifest in manifests:
        for draw in draws_of(manifest):
            guarantee = guarantee_from(draw.guarantee)
            found[draw.dataset] = found[draw.dataset] + guarantee if draw.dataset in found else guarantee
    return found


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
