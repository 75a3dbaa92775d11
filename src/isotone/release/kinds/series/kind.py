"""What strangers and readers do with counts over time: verify, read, attack by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from isotone.errors import InputError
from isotone.ledger.ledger import canonical
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.counts.columns import law_entry
from isotone.release.kinds.kind import Kind, agrees, require_unit
from isotone.release.kinds.series.description import (
    Series,
    SeriesManifest,
    Shown,
    chain_of,
    errors_of,
    mechanism_of,
    opening_of,
)
from isotone.release.kinds.series.reader import SeriesReader, values_of
from isotone.release.kinds.series.report import SeriesPage
from isotone.release.manifest import Manifest, digest, guarantee_from
from isotone.series.series_mechanism import SeriesMechanism
from isotone.series.series_plan import plan_series

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.mechanism import Progress
    from isotone.privacy.guarantee import Number
    from isotone.release.result import Release


class SeriesKind(Kind):
    """Counts over time."""

    described = Series
    manifest = SeriesManifest
    classes = (SeriesMechanism.__name__,)
    recomputed = (
        "periods, chain, standard deviations and intervals are those of the opening and the mechanism"
    )

    def page(self, release: Release) -> SeriesPage:
        """What the report says and draws."""
        return SeriesPage()

    def reader(self, release: Release) -> SeriesReader:
        """Answers from the law of the noise."""
        return SeriesReader(release)

    def consistent(self, release: Release, *, integers: bool, weights: str) -> Release:
        """Refused: values of a series stay as they were drawn."""
        raise InputError(
            "The values of a series stay as they were drawn, since each period is one link of its chain. They may shrink from one "
            "period to the next, or break the order, by less than their intervals: read differences and shares instead."
        )

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """Two stages over three periods."""
        from isotone.audit.exact import audit_count_mechanism

        example = plan_series(Poset.chain(["second", "first"]), 3, Guarantee.pure(epsilon))
        return audit_count_mechanism(example.best, trials, progress)

    def draws(self, manifest: Manifest) -> list[Manifest]:
        """The opening, whose hash the charge was sealed with, or the release itself if all its periods are of the past."""
        chain = cast("SeriesManifest", manifest).chain
        return [replace(manifest, content_hash=chain[0]) if chain else manifest]

    def rebuild(self, manifest: Manifest) -> SeriesMechanism:
        """The mechanism of all planned periods."""
        return mechanism_of(manifest)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the noise guarantees for the histories that the rules let through."""
        manifest, stated = release.manifest, guarantee_from(release.manifest.guarantee)
        described, mechanism = Series.from_manifest(manifest, {}), mechanism_of(manifest)
        if mechanism.contributions < described.privacy_unit.most:
            raise InputError("the mechanism is for fewer histories of a unit than were counted")
        if mechanism.recipe() != manifest.mechanism:
            raise InputError("the mechanism is not written as a release writes it")
        require_unit(described, stated)
        result = replace(mechanism.guarantee, unit=stated.unit)
        if described.groups is not None and result.kind != "pure" and result.adjacency.exchanges:
            raise InputError(
                "Gaussian noise for groups does not cover a unit that is replaced by one of another group"
            )
        return result

    def faults(self, release: Release) -> list[str]:
        """Periods, chain, labels, errors and intervals that do not follow from the opening and the mechanism."""
        manifest, columns = release.manifest, release.columns
        assert isinstance(manifest, SeriesManifest)
        described, mechanism = Series.from_manifest(manifest, {}), mechanism_of(manifest)
        if described.in_manifest() != manifest.description:
            return ["the description is not written as a release writes it"]
        shown, planned = manifest.shown, len(described.periods)
        if sorted(set(shown)) != shown or not all(0 <= t < planned for t in shown):
            return ["a period is shown that was not planned, or one twice, or not in the sequence of time"]
        if manifest.chain is None and (
            described.date is None or len(shown) < planned or manifest.noise is not None
        ):
            return ["it has no chain of its periods, and is no series of the past"]
        if manifest.chain is not None and manifest.noise is None:
            return ["the opening does not say which noise was fixed"]
        if not all(type(x) is int for x in columns.get("value", ())):
            return ["the values are not whole numbers"]
        values = Shown(tuple(shown), values_of(release))
        if len(values.values) != len(shown):
            return ["the values are not those of the shown periods"]
        if set(columns) != set(expected := described.columns(lambda: mechanism, values, manifest.errors)):
            return ["the columns are not those of a series"]
        faults = [
            f"the column {name} does not follow from the values and the errors"
            for name, column in expected.items()
            if list(columns[name]) != list(column)
        ]
        if manifest.chain is not None:
            opening = opening_of(manifest).manifest.content_hash or ""
            if manifest.chain != chain_of(opening, values):
                faults.append(
                    "the chain is broken: a period is missing, repeated or changed, or the opening is another one"
                )
        if manifest.law != law_entry(mechanism, described.confidence):
            faults.append("the law of the noise is not described as this version draws it")
        return faults + _error_faults(manifest.errors, mechanism, described.confidence)

    def paid_faults(self, release: Release, extract: Mapping[str, Any]) -> list[str]:
        """Periods of which the ledger knows nothing, or something else."""
        manifest = release.manifest
        assert isinstance(manifest, SeriesManifest)
        rows = {
            t: digest(canonical(values.tolist()))
            for t, values in zip(manifest.shown, values_of(release), strict=True)
        }
        if manifest.chain is None or all(extract["periods"].get(t) == row for t, row in rows.items()):
            return []
        return ["the ledger does not know a period that is shown, or knows other values of it"]


def _error_faults(stated: Mapping[str, Any], mechanism: SeriesMechanism, confidence: float) -> list[str]:
    """Errors that are not the mechanism's. Half-widths come from public draws and are compared exactly."""
    result = errors_of(mechanism, confidence)
    if set(stated) != set(result) or any(np.shape(stated[name]) != np.shape(result[name]) for name in result):
        return ["the errors are not those of the planned periods"]
    sd, spread = mechanism.error().sd, mechanism.error().standard_error
    # of a standard deviation; that of what is new is simulated from the same draws, and is a little less sure
    relative = float(np.max(spread / (2 * np.maximum(sd, 1e-9) ** 2))) if spread.size else 0.0
    faults: list[str] = []
    for name, words in (("sd", "the standard deviations"), ("new_sd", "the errors of what is new")):
        size = float(sd.max()) if name == "new_sd" else np.array(result[name])
        if not agrees(stated[name], result[name], "error", error=relative * size):
            faults.append(f"{words} are not the mechanism's")
    if stated["half_width"] != result["half_width"]:
        faults.append("the intervals are not the mechanism's")
    return faults


KIND = SeriesKind()
