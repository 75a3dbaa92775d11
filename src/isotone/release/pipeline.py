"""Make one release of any kind in six steps, rehearse, charge, read, draw, seal and present.

What can be refused is refused before the charge. The charge is durable before the data is read, the mark ``drawn``
before the first bit of noise, and the content hash before the folder is in its place. Nothing that the data contains
is shown or branched on.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotone.errors import InputError, IsotoneError
from isotone.kernels import committed
from isotone.ledger import Ledger, SealedError
from isotone.ledger.ledger import require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import plain_text, shown, truth
from isotone.privacy.guarantee import Guarantee
from isotone.reading.engine import watching
from isotone.reading.sources import Frame, blank
from isotone.release.description import Description
from isotone.release.folder import LARGEST
from isotone.release.kinds.kind import Stamp
from isotone.release.kinds.parameters import stated_texts
from isotone.release.manifest import Manifest, Stated, content_hash, guarantee_to
from isotone.release.place import Place
from isotone.release.result import Release, load_release, seal
from isotone.release.waves import require_affordable
from isotone.scratch import scratch
from isotone.silence import silent

__all__ = ["Job", "Outcome", "Presentation", "released", "request_id", "require_publishable", "run"]

_REHEARSED = Stamp(1, "2000-01-01T00:00:00+00:00", "rehearsal", "")
_FILLED = 3 / 4  # of the largest file that is read: counts have more digits than the noise of a rehearsal


@dataclass(frozen=True)
class Job:
    """One release of a description: its data, its guarantee and the one mechanism for it. Made before the charge."""

    described: Description
    source: Any
    mechanism: Any
    asked: Guarantee
    guarantee: Guarantee
    """What is charged, which may be less than what was asked for."""
    stated: Stated
    known: Any
    """What is known about errors before any data is read."""

    @classmethod
    def of(cls, described: Description, data: Any, asked: Guarantee, stated: Stated) -> Job:
        """A job of checked parameters."""
        mechanism = described.mechanism(asked)
        source, charged = described.source(data, mechanism), described.charged(mechanism, asked)
        shown = stated_texts(stated, described.title)
        return cls(described, source, mechanism, asked, charged, shown, described.known(mechanism))

    @property
    def words(self) -> str:
        """A few public words for the ledger."""
        return self.described.words

    @property
    def mechanism_name(self) -> str:
        """The class of the mechanism, for the ledger."""
        return self.described.mechanism_name(self.mechanism)

    @property
    def waves(self) -> int:
        """How many releases like this one are planned."""
        return self.described.number_of_waves

    def parameters(self) -> dict[str, Any]:
        """What a request is known by: every parameter, and the guarantee that was asked for."""
        asked = {"guarantee": guarantee_to(self.asked), "description": self.described.identity()}
        return {"kind": self.described.kind_name, **asked}

    def open(self) -> Frame:
        """The columns that are needed, lazily. Only the schema is looked at."""
        return self.source.open()

    def entries(self, stamp: Stamp) -> dict[str, Any]:
        """The entries that the manifests of all kinds have."""
        return {**vars(self.stated), "guarantee": guarantee_to(self.guarantee), **stamp.entries()}

    def read(self, frame: Frame) -> Any:
        """The statistic of the data."""
        return self.described.read(self.source, frame)

    def draw(self, statistic: Any) -> Any:
        """The private outputs."""
        return self.described.draw(self.mechanism, statistic)

    def publish(self, drawn: Any, stamp: Stamp) -> Release:
        """The private outputs as a sealed release."""
        columns = self.described.columns(self.mechanism, drawn, self.known)
        return seal(columns, self.manifest(drawn, stamp))

    def manifest(self, drawn: Any, stamp: Stamp) -> Manifest:
        """What the release says about itself."""
        said = {"kind": self.described.kind_name, "description": self.described.said(), **self.entries(stamp)}
        return self.described.manifest(self.mechanism, drawn, said)

    def rehearsal(self, frame: Frame, stamp: Stamp) -> tuple[Release, dict[str, int]]:
        """A release of zero rows, and how many bytes more some files of a real one have, by name."""
        return self.described.rehearsed(self, frame, stamp)


@dataclass(frozen=True)
class Presentation:
    """Where a release goes and whether a report is drawn. It is no part of the request."""

    folder: str | os.PathLike[str] | None = None
    report: bool = True


_NOWHERE = Presentation()


@dataclass(frozen=True)
class Outcome:
    """A release, and whether it was drawn now. If not, it was released before and nothing was charged."""

    release: Release
    fresh: bool


@np.errstate(all="ignore")  # such errors may raise, if a caller has said so, and lose what was paid for
def run(
    job: Job,
    *,
    ledger: Ledger,
    identity: Any = None,
    again: bool = False,
    presentation: Presentation = _NOWHERE,
    progress: Progress = no_progress,
) -> Outcome:
    """Release what ``job`` asks for and charge ``ledger`` for it.

    ``identity`` says which data it is, in public words: a path, or a name that the steward gives. Without it the
    request cannot be told from another one with the same parameters, and is never taken for one made before.
    """
    require_ledger(ledger)
    if not callable(progress):
        raise InputError(f"progress must be a function of a fraction and a phrase, not {shown(progress)}.")
    require_affordable(job.guarantee, job.waves, ledger)
    request = request_id(job, identity)
    place = None if presentation.folder is None else Place.of(presentation.folder, request or "")
    try:
        _require_new(ledger, request, again)
        progress(0.0, "rehearsing")
        frame = job.open()
        sizes = rehearse(job, frame, presentation)
        if place is not None:
            place.require_free(sizes, lambda: _require_new(ledger, request, again), again=again)
        progress(0.1, "charging the ledger")
        release = _drawn(job, frame, ledger, request, again, place, progress)
    except SealedError as error:  # released before, or meanwhile by another process of the same request
        if place is None:
            raise
        return Outcome(_presented(place.stored(error.charge), place, presentation), False)
    progress(0.95, "writing the report")
    if place is not None:
        _presented(release, place, presentation)
    progress(1.0, "done")
    return Outcome(release, True)


def released(job: Job, ledger: Ledger, request: Any, again: Any, folder: Any, progress: Progress) -> Release:
    """Release for a call from Python, where ``request`` names the data and ``folder`` may be None."""
    done = run(
        job,
        ledger=ledger,
        identity=None if request is None else plain_text(request, "request"),
        again=truth(again, "again"),
        presentation=Presentation(folder),
        progress=progress,
    )
    return done.release


def _require_new(ledger: Ledger, request: str | None, again: bool) -> None:
    """Raise what an attempt would raise if the request was sealed."""
    sealed = [] if request is None or again else ledger.sealed(request)
    if sealed:
        raise SealedError(sealed[-1])


def _drawn(
    job: Job,
    frame: Frame,
    ledger: Ledger,
    request: str | None,
    again: bool,
    place: Place | None,
    progress: Progress,
) -> Release:
    """Charge, read, draw and seal. Every state is durable before the next step begins."""
    with ledger.attempt(
        job.guarantee,
        request=request,
        description=job.words,
        mechanism=job.mechanism_name,
        again=again,
    ) as attempt:
        with committed(), warnings.catch_warnings(), silent(progress) as tell:
            warnings.simplefilter("ignore")  # the rehearsal has told what is public
            with watching(tell, 0.2, 0.8, "reading where the data is"):
                statistic = job.read(frame)
            tell(0.8, "adding noise")
            attempt.draw()
            stamp = Stamp(attempt.charge.number, attempt.charge.time, ledger.dataset, request or "")
            release = job.publish(job.draw(statistic), stamp)
        seal = release.manifest.content_hash or ""
        if place is None:
            attempt.seal(seal)
            return release
        with place.written(release, ledger.charges) as part:
            attempt.seal(seal)
            place.publish(part)
        return release


def request_id(job: Job, identity: Any) -> str | None:
    """A digest of the public parameters and of the data's identity, or None for data without one."""
    if identity is None:
        return None
    return content_hash({"parameters": job.parameters(), "data": identity})


def rehearse(job: Job, frame: Frame, presentation: Presentation) -> list[int]:
    """Run the whole chain on zero rows, so that what can fail fails before the charge. Nothing of it is kept.

    Query, mechanism, manifest, files and report go through the code that a release goes through. Of a large release
    some rows are written, each name in one of them at least. Returns about how many bytes each file will have.
    """
    return require_publishable(
        lambda: job.rehearsal(blank(frame), _REHEARSED),
        job.guarantee,
        report=presentation.folder is not None and presentation.report,
    )


def require_publishable(
    made: Callable[[], tuple[Release, Mapping[str, int]]], guarantee: Guarantee, *, report: bool
) -> list[int]:
    """Refuse what could not be written, or not be read again, or would state more than is charged."""
    try:
        nobody, more = made()
        with tempfile.TemporaryDirectory(dir=scratch()) as folder:
            nobody.save(folder, report=report)
            written, sizes = _require_readable(Path(folder), more)
            _require_guarantee(written, guarantee)
            return sizes
    except IsotoneError:
        raise
    except RecursionError:
        raise InputError("These parameters nest too deeply for a release. Nothing was charged.") from None
    except (ArithmeticError, ValueError, TypeError, OSError) as error:
        raise InputError(
            f"A release with these parameters would fail ({type(error).__name__}: {error}). Nothing was charged."
        ) from error


def _require_guarantee(written: Release, charged: Guarantee) -> None:
    """Refuse a release whose manifest, read again, describes a weaker guarantee than is about to be charged."""
    from isotone.release.kinds import kind_named  # the kinds release through here

    derived = kind_named(written.kind).derived_guarantee(written)
    if not derived.within(charged):
        raise InputError(
            f"The mechanism that the manifest would describe guarantees {derived}, which is less than the {charged} that would "
            "be charged. This is a fault of isotone: please report it. Nothing was charged."
        )


def _require_readable(folder: Path, more: Mapping[str, int]) -> tuple[Release, list[int]]:
    """Refuse texts and files beyond the limits of those who verify a release, some of them with ``more`` bytes.

    Returns the release as it is read, and the sizes.
    """
    sizes: list[int] = []
    try:
        written = load_release(folder)
        for file in [folder / "release.csv", folder / "manifest.json"]:
            size = file.stat().st_size + more.get(file.name, 0)
            if size > _FILLED * LARGEST[file.name]:
                raise InputError(
                    f"{file.name} would have about {size / 2**20:,.0f} MiB, and larger numbers than those of zero rows "
                    f"must fit into {LARGEST[file.name] // 2**20} MiB too."
                )
            sizes.append(size)
    except InputError as error:
        reason = str(error).rpartition("cannot be read: ")[2]
        raise InputError(
            f"A release with these parameters could not be read again: {reason} Use shorter names, or fewer of them. "
            "Nothing was charged."
        ) from None
    return written, sizes


def _presented(release: Release, place: Place, presentation: Presentation) -> Release:
    """Draw the report into the folder, where it is wanted and not there."""
    if presentation.report and not (place.folder / "report.html").exists():
        release.save_report(place.folder)
    return release
