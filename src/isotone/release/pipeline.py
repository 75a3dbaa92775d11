"""Make one release of any kind in six steps: rehearse, charge, read, draw, seal, present.

What can be refused is refused before the charge. The charge is durable before the data is read, the mark ``drawn``
before the first bit of noise, and the content hash before the folder is in its place. Nothing that the data contains
is shown or branched on.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotone.errors import DeliveryError, InputError, IsotoneError, LedgerError
from isotone.kernels import committed
from isotone.ledger import Cost, Ledger, SealedError
from isotone.ledger.entries import Charge, Composition
from isotone.ledger.ledger import require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import plain_text, shown, truth
from isotone.privacy.guarantee import Guarantee
from isotone.process import alone_in, orphans, own_folder, scratch, unheard
from isotone.reading.engine import watching
from isotone.reading.sources import Frame, blank
from isotone.release.description import Description
from isotone.release.kinds.kind import Stamp
from isotone.release.manifest import Manifest, Stated, content_hash, guarantee_to, stated_texts
from isotone.release.result import LARGEST, Release, load_release, seal

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
        known = {"guarantee": guarantee_to(self.asked), "description": self.described.identity()}
        return {"kind": self.described.kind_name, **known}

    def open(self) -> Frame:
        """The columns that are needed, lazily. Only the schema is looked at."""
        return self.source.open()

    def entries(self, stamp: Stamp) -> dict[str, Any]:
        """The entries that the manifests of all kinds have."""
        return {"stated": self.stated, "guarantee": guarantee_to(self.guarantee), **stamp.entries()}

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
        entries = {
            "kind": self.described.kind_name,
            "description": self.described.in_manifest(),
            **self.entries(stamp),
        }
        return self.described.manifest(self.mechanism, drawn, entries)

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
    _require_affordable(job.guarantee, job.waves, ledger)
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
        with committed(), unheard(progress) as tell:  # the rehearsal has told what is public
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
    rehearsal: Callable[[], tuple[Release, Mapping[str, int]]], guarantee: Guarantee, *, report: bool
) -> list[int]:
    """Refuse what could not be written, or not be read again, or would state more than is charged."""
    try:
        nobody, more = rehearsal()
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
    from isotone.release.kinds.kind import kind_named  # the kinds release through here

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


def _require_affordable(guarantee: Guarantee, waves: int, ledger: Ledger) -> None:
    """Refuse a plan that the ledger's total cannot pay by its own rule. What is left is looked at by the charge."""
    if waves == 1:
        return
    each = Composition(ledger.composition).cost(guarantee, ledger.budget.kind)
    if not sum([each] * waves, Cost()).within(ledger.total):
        raise InputError(
            f"{waves} waves at this price cost {guarantee.times(waves)}, and the ledger has {ledger.total}. Plan fewer waves, "
            "or spend less on each. Nothing was charged."
        )


# Folders of releases, written beside their place, made durable, and renamed into it in one step.
#
# The content hash is in the ledger before the rename. So a process that is killed between the two leaves a folder that
# the next run of the same request recognises by its hash and puts into place. A folder that the ledger does not know
# is never adopted, and a release that stands in the place already is never overwritten: it is moved aside.
#
# A folder on its way is locked by its process. One without a living process is removed if the ledger says that it was
# drawn and never sealed, and kept if it was sealed; what this ledger does not know may be another ledger's, and is left.

_PART = "isotone-part"
_TRIAL = "isotone-free"  # as long as the other: a name that is too long for one is so for both

_ZEROS = bytes(1 << 20)


@dataclass(frozen=True)
class Place:
    """Where a release goes. Folders beside ``folder`` are on their way there, and ``request`` marks those of one request."""

    folder: Path
    request: str

    @classmethod
    def of(cls, folder: str | os.PathLike[str], request: str) -> Place:
        """The place at a path, through links."""
        try:
            return cls(Path(os.fspath(folder)).absolute().resolve(), request)
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"The folder {shown(folder)} cannot be used: {error}.") from None

    @property
    def _prefix(self) -> str:
        mark = self.request.removeprefix("sha256:")[:16] or "unnamed"
        return f".{self.folder.name}.{mark}."

    def require_free(self, sizes: Sequence[int], look_again: Callable[[], None], *, again: bool) -> None:
        """Refuse, before anything is charged, a folder that cannot take a release with files of these sizes.

        A release that stands there may be that of another process of this request: ``look_again`` then raises.
        """
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            held = sorted(x.name for x in self.folder.iterdir()) if self.folder.is_dir() else []
            blocked = self.folder.exists() and not self.folder.is_dir()
            self._try_writing(sizes)
            if held and not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "it may not be written")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"The output folder {str(self.folder)!r} cannot be written: {reason}. Nothing was charged."
            ) from None
        if blocked:
            raise InputError(f"{str(self.folder)!r} is a file, and not a folder. Name another folder.")
        if "manifest.json" in held and not again:
            look_again()
            raise InputError(
                f"The folder {str(self.folder)!r} holds another release, which is not overwritten. Name another folder, or ask for a "
                "new draw, which is charged anew and moves the old release aside: --again, in Python again=True."
            )
        if held and "manifest.json" not in held:
            raise InputError(
                f"The folder {str(self.folder)!r} holds other files ({held[0]!r}). Name a new or an empty folder."
            )

    def _try_writing(self, sizes: Sequence[int]) -> None:
        """Write as much beside the place, and a mebibyte, and remove it. A full disk says so here, not after the charge.

        The disk of the rehearsal may be another one.
        """
        for left in orphans(self.folder.parent, self._prefix, f".{_TRIAL}"):
            shutil.rmtree(left.path, ignore_errors=True)
        trial = own_folder(self.folder.parent, self._prefix, f".{_TRIAL}")
        try:
            for number, size in enumerate([len(_ZEROS), *sizes]):
                with (trial.path / f"probe{number}").open("wb") as out:
                    for start in range(0, size, len(_ZEROS)):
                        out.write(_ZEROS[: size - start])
        finally:
            shutil.rmtree(trial.path, ignore_errors=True)
            trial.let_go()

    @contextmanager
    def written(self, release: Release, charges: Callable[[], Sequence[Charge]]) -> Generator[Path]:
        """Write a release beside its place, for its owner's eyes. Every byte is on the disk when the block begins.

        The block seals and publishes it. If it fails and the ledger knows of no seal, nothing drawn is left.
        """
        part = None
        try:
            try:
                self._sweep(charges(), aside=True)
                part = own_folder(self.folder.parent, self._prefix, f".{_PART}")
                self.write(release, part.path)
            except (OSError, LedgerError) as error:
                reason = getattr(error, "strerror", None) or error
                raise DeliveryError(
                    f"The release could not be written beside {str(self.folder)!r}: {reason}."
                ) from None
            yield part.path
        except BaseException:
            if part is not None:
                part.let_go()
                with suppress(IsotoneError, OSError):
                    self._sweep(charges(), aside=False)
            raise
        finally:
            if part is not None:
                part.let_go()

    def write(self, release: Release, part: Path) -> None:
        """Write a release into a folder of its own. Every byte is on the disk when this returns."""
        release.save(part, report=False)
        _sync(part)
        _sync(part.parent)

    def publish(self, part: Path) -> None:
        """Rename a written release into its place. What stands there is moved aside."""
        try:
            if self.folder.is_dir() and any(self.folder.iterdir()):
                self._move_aside(self.folder)
            part.chmod(0o777 & ~_umask())
            part.rename(self.folder)
            _sync(self.folder.parent)
        except OSError as error:
            raise DeliveryError(
                f"The release is complete in {str(part)!r}, but could not be moved to {str(self.folder)!r}: "
                f"{error.strerror or error}. {self._repair()}"
            ) from None

    def _repair(self) -> str:
        if self.request:
            return "Run the same request again to put it there; it costs nothing."
        return "Move it there by hand: the request has no name by which the next run would know it."

    def stored(self, charge: Charge) -> Release:
        """The release that was sealed under ``charge``, from its place or from beside it."""
        result = self._release_in(self.folder)
        if result is None or _hash(result) != charge.release:
            for part in self._parts():
                waiting = self._release_in(part)
                if waiting is not None and _hash(waiting) == charge.release:
                    self._publish_orphan(part)
            result = self._release_in(
                self.folder
            )  # put there just now, by us or by the process that sealed it
        if result is not None and _hash(result) == charge.release:
            return result
        if result is not None and result.manifest.request == self.request:
            raise InputError(
                f"The release in {str(self.folder)!r} is not the one that the ledger knows from charge {charge.number}: it "
                "was changed, or the ledger is an older copy. Restore what is newest, or pay for a new one with --again."
            )
        raise InputError(
            f"This was released before (charge {charge.number} of the ledger; nothing was charged now), but the release "
            f"is not in {str(self.folder)!r}. Restore it from a copy or from where it was written, or pay for a new one "
            "with --again."
        )

    def _publish_orphan(self, part: Path) -> None:
        """Put a sealed release into its place, unless the process that sealed it lives and does so itself."""
        with alone_in(part):
            if part.exists():
                self.publish(part)

    def _parts(self) -> list[Path]:
        try:
            return sorted(self.folder.parent.glob(f"{glob.escape(self._prefix)}*.{_PART}"))
        except OSError:
            return []

    def _sweep(self, charges: Sequence[Charge], *, aside: bool) -> None:
        """Remove what processes that have ended left here unsealed, and move what they sealed ``aside``, or leave it."""
        known = {charge.number: charge for charge in charges}
        for left in orphans(self.folder.parent, self._prefix, f".{_PART}"):
            result = self._release_in(left.path)
            if result is None:
                if not (left.path / "manifest.json").exists():  # which is written last, and before the seal
                    shutil.rmtree(left.path, ignore_errors=True)
                continue
            charge = known.get(result.manifest.charge)
            if charge is None or not _same(charge, result.manifest):
                continue
            if not charge.finished:
                shutil.rmtree(left.path, ignore_errors=True)
            elif aside and charge.release == _hash(result):
                left.path.chmod(0o777 & ~_umask())
                self._move_aside(left.path, result)

    def _move_aside(self, folder: Path, release: Release | None = None) -> None:
        held = release or self._release_in(folder)
        mark = f"charge-{held.manifest.charge}" if held is not None else "before"
        aside = self.folder.with_name(f"{self.folder.name}.{mark}")
        number = 1
        while aside.exists():
            number += 1
            aside = self.folder.with_name(f"{self.folder.name}.{mark}.{number}")
        folder.rename(aside)

    @staticmethod
    def _release_in(folder: Path) -> Release | None:
        try:
            return load_release(folder)
        except IsotoneError:
            return None


def _same(charge: Charge, manifest: Manifest) -> bool:
    """Whether a manifest names this charge, and not one with the same number in another ledger."""
    identity = (manifest.dataset, manifest.time, manifest.request)
    return identity == (charge.ledger.dataset, charge.time, charge.request or "")


def _hash(release: Release) -> str:
    """The hash of what is there, and not of what it says about itself."""
    result = release.manifest.hash_with(release.columns)
    return result if result == release.manifest.content_hash else ""


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
