"""Folders of releases, written beside their place, made durable, and renamed into it in one step.

The content hash is in the ledger before the rename. So a process that is killed between the two leaves a folder that
the next run of the same request recognises by its hash and puts into place. A folder that the ledger does not know
is never adopted, and a release that stands in the place already is never overwritten: it is moved aside.

A folder on its way is locked by its process. One without a living process is removed if the ledger says that it was
drawn and never sealed, and kept if it was sealed; what this ledger does not know may be another ledger's, and is left.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from isotone.errors import DeliveryError, InputError, IsotoneError, LedgerError
from isotone.ledger.entries import Charge
from isotone.privacy.checks import shown
from isotone.release.manifest import Manifest
from isotone.release.result import Release, load_release
from isotone.scratch import alone_in, orphans, own_folder

__all__ = ["Place"]

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
                f"The folder {str(self.folder)!r} holds another release, which is not overwritten. Name another folder, "
                "or ask for a new draw with --again: the old one is then moved aside."
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
        found = self._release_in(self.folder)
        if found is None or _hash(found) != charge.release:
            for part in self._parts():
                waiting = self._release_in(part)
                if waiting is not None and _hash(waiting) == charge.release:
                    self._publish_orphan(part)
            found = self._release_in(
                self.folder
            )  # put there just now, by us or by the process that sealed it
        if found is not None and _hash(found) == charge.release:
            return found
        if found is not None and found.manifest.request == self.request:
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
            found = self._release_in(left.path)
            if found is None:
                if not (left.path / "manifest.json").exists():  # which is written last, and before the seal
                    shutil.rmtree(left.path, ignore_errors=True)
                continue
            charge = known.get(found.manifest.charge)
            if charge is None or not _same(charge, found.manifest):
                continue
            if not charge.finished:
                shutil.rmtree(left.path, ignore_errors=True)
            elif aside and charge.release == _hash(found):
                left.path.chmod(0o777 & ~_umask())
                self._move_aside(left.path, found)

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
    said = (manifest.dataset, manifest.time, manifest.request)
    return said == (charge.ledger.dataset, charge.time, charge.request or "")


def _hash(release: Release) -> str:
    """The hash of what is there, and not of what it says about itself."""
    found = release.manifest.hash_with(release.columns)
    return found if found == release.manifest.content_hash else ""


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
