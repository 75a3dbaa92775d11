"""Published counts with the law of their noise, from a manifest and values alone, without data or ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.sampler import Recent
from isotone.errors import InputError
from isotone.inference.population import Measured, combined, given_records
from isotone.linear.law import Law
from isotone.mechanism import HasGroups
from isotone.order import Poset
from isotone.release.kinds.counts.query import CountManifest
from isotone.release.manifest import Manifest, canonical_json, order_from
from isotone.release.recipes import rebuild_count_mechanism

__all__ = ["group_sum", "groups_of", "measured", "measured_parts", "mechanism_of", "origins", "union_order"]

Floats = NDArray[np.float64]

_mechanisms: Recent[Any] = Recent(4)
_laws: Recent[Law] = Recent(8)

_NUMBERS, _FEWEST = 30_000_000, 300
"""A sum over groups draws no more numbers than that, but at least so many sums."""


def mechanism_of(manifest: Manifest) -> AdditiveMechanism:
    """The mechanism of a release. The last few are kept."""
    return _mechanisms.get(
        _key(manifest),
        lambda: rebuild_count_mechanism(order_from(manifest["order"]), manifest.mechanism),
    )


def _key(manifest: Manifest) -> bytes:
    return canonical_json({"order": manifest["order"], "mechanism": manifest.mechanism})


def groups_of(manifest: Manifest) -> list[str] | None:
    """The names of the groups, or None."""
    groups = manifest.get("groups")
    return list(groups["values"]) if groups else None


def origins(manifest: Manifest) -> list[tuple[CountManifest, list[Any]]]:
    """The releases that a derived one was computed from, each as its manifest and its values."""
    derived = manifest.get("derived")
    found: list[tuple[CountManifest, list[Any]]] = []
    for part in derived["of"] if derived else []:
        origin = Manifest.from_plain(part["manifest"])
        if not isinstance(origin, CountManifest):
            raise InputError("the manifest derives counts from a release of another kind")
        found.append((origin, part["values"]))
    return found


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
        union = union_order([found[0].P for found in parts])
        return [combined(found, union) for found in zip(*parts, strict=True)]
    if how == "given":
        numbers = derived["records"]
        numbers = numbers if isinstance(numbers, list) else [numbers]
        return [given_records(found, number) for found, number in zip(parts[0], numbers, strict=True)]
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
    found, before = list[list[Measured]](), 0
    for part, own in parts:
        # the first draw keeps the stream, of which a release of a slow order knows the draws
        name = stream if before == 0 else f"{stream}.{before}"
        found.append(measured(part, own, name, draws, together=together))
        before += _draws_in(part)
    return found


def _draws_in(manifest: Manifest) -> int:
    """How many draws a release was derived from, so that the streams of all of them have names of their own."""
    derived = manifest.get("derived")
    return sum(_draws_in(part) for part, _ in origins(manifest)) if derived else 1


def group_sum(manifest: Manifest, values: Sequence[Any]) -> list[Measured]:
    """The counts of each group, with so many draws that every group can have its own."""
    groups, draw = groups_of(manifest) or [""], manifest
    while draw.get("derived"):
        draw = origins(draw)[0][0]
    width = len(draw["order"]["elements"]) + 1
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
