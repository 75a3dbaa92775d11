"""A derived release again, from what it was derived from, for those who check it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from isotone.errors import InputError
from isotone.release.kinds.counts.combining import combine_counts
from isotone.release.kinds.counts.deriving import given, made_consistent
from isotone.release.kinds.counts.measuring import groups_of, mechanism_of, origins
from isotone.release.kinds.counts.query import CountManifest, count_columns, original_columns
from isotone.release.result import Release

__all__ = ["rederived", "restored"]


def restored(manifest: CountManifest, values: Sequence[Any]) -> Release:
    """A release again, from its manifest and its values; the hash is that of what comes out."""
    if manifest.derived:
        again = rederived(manifest)
        return Release(again.columns, replace(manifest, content_hash=again.manifest.content_hash))
    mechanism = mechanism_of(manifest)
    known = count_columns(mechanism, float(manifest.confidence))
    rows = np.array(values, dtype=np.int64).reshape(-1, len(mechanism.P))
    columns = original_columns(mechanism.P, groups_of(manifest), rows, known)
    return Release(columns, replace(manifest, content_hash=manifest.hash_with(columns)))


def rederived(manifest: CountManifest) -> Release:
    """What a derived release should be, by the same steps and with the same refusals."""
    derived, parts = manifest.derived, [restored(*origin) for origin in origins(manifest)]
    if not derived or not parts:
        raise InputError("the manifest does not say what was derived from what")
    how = derived["how"]
    if how == "combined" and len(parts) > 1:
        return combine_counts(parts, derived["follows_order"])
    if how == "given" and len(parts) == 1:
        groups, records = groups_of(manifest), derived["records"]
        stated = records if groups is None else dict(zip(groups, records, strict=True))
        return given(parts[0], stated, derived["after_rules"])
    if how == "consistent" and len(parts) == 1:
        return made_consistent(parts[0], derived["integers"], derived["weights"])
    raise InputError(f"the manifest derives counts in an unknown way, {str(how)[:40]!r}")
