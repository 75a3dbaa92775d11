"""Open a series, and close its periods one by one.

The order of the steps is what keeps the noise of a period from meeting two tables; it is that of isotone.series.state.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from isotone.errors import InputError, IsotoneError, SpecError
from isotone.kernels import committed
from isotone.ledger import Ledger
from isotone.ledger.ledger import require_ledger
from isotone.mechanism import no_progress
from isotone.privacy.checks import plain_text, truth
from isotone.privacy.guarantee import Guarantee
from isotone.process import unheard
from isotone.reading.sources import Frame
from isotone.release.kinds.kind import Stamp
from isotone.release.kinds.series.description import Series, SeriesManifest, Shown, release_of
from isotone.release.manifest import Manifest, Stated, content_hash, guarantee_to, stated_texts
from isotone.release.pipeline import Outcome, require_publishable
from isotone.release.result import Release, load_release
from isotone.release.spec import Spec, open_ledger
from isotone.series.state import OPENING, OpenSeries, SeriesRequest, open_series


class Vault(NamedTuple):
    """The ledger that pays for a series, and the folder of its secrets."""

    ledger: Ledger
    secrets: Path


@np.errstate(all="ignore")
def opened(
    described: Series,
    requested: Guarantee,
    vault: Vault,
    stated: Stated,
    request: Any,
    *,
    again: bool = False,
    progress: Any = None,
) -> OpenSeries:
    """Charge, draw all noise and keep it. ``request`` is what the data is known by, in public words."""
    ledger, secrets = vault
    require_ledger(ledger)
    tell = progress or no_progress
    if described.date is not None:
        raise InputError(
            "This series is of the past, as it has a date column: release() shows all its periods at once."
        )
    words = content_hash(
        {
            "parameters": {
                "kind": described.kind_name,
                "guarantee": guarantee_to(requested),
                "description": described.identity(),
            },
            "data": request,
        }
    )
    for charge in [] if truth(again, "again") else ledger.sealed(words):
        raise InputError(
            f"This series was opened before, under charge {charge.number}: close its periods{_missing(secrets)}. A second one "
            "(again=True, --again) is a second charge. Nothing was charged."
        )
    tell(0.0, "planning")
    mechanism = described.mechanism(requested)
    charged, stated = described.charged(mechanism, requested), stated_texts(stated, described.title)

    def release(stamp: Stamp, noise: str, shown: Shown) -> Release:
        common = {"stated": stated, "guarantee": guarantee_to(charged), **stamp.entries()}
        entries = {"kind": described.kind_name, "description": described.in_manifest(), **common}
        manifest = replace(described.manifest(mechanism, shown, entries), noise=noise, chain=[])
        return release_of(manifest, dict(zip(*shown, strict=True)))

    tell(0.6, "rehearsing")
    groups = len(described.group_names or ("",))
    zeros = np.zeros((len(described.periods), groups, len(described.stages)), np.int64)
    rehearsed = Stamp(1, "2000-01-01T00:00:00+00:00", "rehearsal", words)
    every = Shown(tuple(range(len(zeros))), zeros)
    require_publishable(lambda: (release(rehearsed, "0" * 64, every), {}), charged, report=True)
    tell(0.9, "charging the ledger")
    with committed(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return open_series(
            ledger,
            secrets,
            lambda charge, noise: release(
                Stamp(charge.number, charge.time, ledger.dataset, words), noise, Shown((), zeros[:0])
            ).sealed_bytes(),
            SeriesRequest(charged, words, described.mechanism_name(mechanism), described.words),
            lambda: described.noise(mechanism),
            again=again,
        )


@np.errstate(all="ignore")
def closed(
    described: Series,
    data: Any,
    period: Any,
    vault: Vault,
    folder: Path | None,
    *,
    wait: bool = True,
    report: bool = True,
) -> Outcome:
    """Close a period, or say again what it showed, and publish the series. What can be refused is refused before a look."""
    ledger, secrets = vault
    require_ledger(ledger)
    name = plain_text(period, "period")
    if name not in described.periods:
        first, last = described.periods[0], described.periods[-1]
        raise InputError(
            f"The series has no period {name!r}: it has {len(described.periods)}, {first!r} to {last!r}."
        )
    if folder is not None:
        _require_apart(folder, secrets)
    state = OpenSeries(ledger, secrets)
    opening = _opening(state)
    if opening.description != described.in_manifest():
        raise InputError(
            "This is not the series that was opened: other periods, stages, rules or groups need a new charge. Nothing was read."
        )
    if folder is not None:
        _require_own(folder, opening, state)
    number = described.periods.index(name)
    source = described.source(data, None)
    frames: list[Frame] = []

    def ready() -> None:
        frames.append(source.open())
        source.rehearse(frames[0])

    def read(key: bytes, old: Path | None, new: Path) -> Any:
        with unheard():  # what libraries say may be about contents
            return described.register(key).grown(source.records, frames[0], old, new)

    with committed():
        fresh = state.close(number, read, ready=ready, wait=wait).fresh
    if folder is None:
        return Outcome(published(state), fresh)
    with state.alone(wait=True):  # so that nobody writes an older state over a newer one
        release = published(state)
        try:
            release.save(folder, report=report)
        except IsotoneError as error:
            error.add_note(
                "The period is closed, and the ledger has its values: the same command writes them again."
            )
            raise
    return Outcome(release, fresh)


def published(state: OpenSeries) -> Release:
    """The series as it stands, from the ledger and the folder of its secrets. No data is read."""
    return release_of(_opening(state), state.shown())


@dataclass(frozen=True)
class Standing:
    """The series that a spec describes, with its ledger and the folder of its secrets."""

    spec: Spec
    described: Series
    secrets: Path
    ledger: Ledger

    @classmethod
    def of(cls, spec: Spec) -> Standing:
        """The series of a spec. Refused where it is of the past, or none."""
        described, secrets = spec.description, getattr(spec.section, "secrets", None)
        if not isinstance(described, Series):
            raise SpecError("The spec has no [series].")
        if secrets is None:
            raise SpecError(
                "[series] secrets is missing: the folder for noise, key and register. It is as sensitive as the data, and no copy of it "
                "may be kept. A series of the past, with date, has none: isotone release shows it at once."
            )
        return cls(spec, described, spec.resolve(secrets), open_ledger(spec))

    def open(self, *, again: bool = False, progress: Any = None) -> OpenSeries:
        """Charge once, and draw all noise."""
        spec, known_as = self.spec, content_hash(self.spec.identity)
        _require_apart(spec.target, self.secrets)
        return opened(
            self.described,
            spec.guarantee,
            Vault(self.ledger, self.secrets),
            spec.output.stated,
            known_as,
            again=again,
            progress=progress,
        )

    def close(self, period: str) -> Outcome:
        """Close a period from the data of the spec, and publish the series in its folder."""
        spec = self.spec
        return closed(
            self.described,
            spec.source,
            period,
            Vault(self.ledger, self.secrets),
            spec.target,
            report=spec.output.report,
        )

    def state(self) -> OpenSeries:
        """What is open in the folder of its secrets."""
        return OpenSeries(self.ledger, self.secrets)


def _require_apart(folder: Path, secrets: Path) -> None:
    outside, inside = folder.resolve(), secrets.resolve()
    if outside == inside or outside in inside.parents or inside in outside.parents:
        raise InputError(
            f"The secrets {str(secrets)!r} and the published folder {str(folder)!r} must lie apart: neither in the other."
        )


def _missing(secrets: Path) -> str:
    there = (secrets / OPENING).is_file()
    return "" if there else f". Its secrets are not in {str(secrets)!r}: put the folder back where it was"


def _opening(state: OpenSeries) -> SeriesManifest:
    return cast("SeriesManifest", Manifest.from_plain(state.opening))


def _require_own(folder: Path, opening: SeriesManifest, state: OpenSeries) -> None:
    """Refuse a folder that cannot be written, or that holds anything but this series."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = sorted(file.name for file in folder.iterdir())
    except OSError as error:
        raise InputError(
            f"The folder {str(folder)!r} cannot be used: {error.strerror}. Nothing was read."
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"The folder {str(folder)!r} may not be written. Nothing was read.")
    if not held:
        return
    try:
        there = load_release(folder).manifest
        own = isinstance(there, SeriesManifest) and (there.chain or [""])[0] == state.seal
    except IsotoneError:
        own = {*held} <= {"release.csv", "manifest.json", "report.html"}  # of which one was being written
    if not own:
        raise InputError(
            f"The folder {str(folder)!r} holds something else than this series. Name another folder."
        )
