"""Folders of releases, written beside their place, made durable, and renamed into it in one step.

The content hash is in the ledger before the rename. So a process that is killed between the two leaves a folder that
the next run of the same request recognises by its hash and puts into place. A folder that the ledger does not know
is never adopted, and a release that stands in the place already is never overwritten: it is moved aside.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from isotone.errors import InputError, IsotoneError
from isotone.ledger.charge import Charge
from isotone.release.result import Release, load_release

__all__ = ["Place"]

_PART = "isotone-part"
_TRIAL = "isotone-free"  # as long as the other: a name that is too long for one is so for both


@dataclass(frozen=True)
class Place:
    """Where a release goes. Folders beside ``folder`` are on their way there.

    ``request`` marks those of one request; requests are exclusive in the ledger, so nobody else touches them.
    """

    folder: Path
    request: str

    @classmethod
    def of(cls, folder: str | os.PathLike[str], request: str) -> Place:
        """The place at a path, through links."""
        try:
            return cls(Path(os.fspath(folder)).absolute().resolve(), request)
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"The folder {folder!r} cannot be used: {error}.") from None

    @property
    def _prefix(self) -> str:
        mark = self.request.removeprefix("sha256:")[:16] or "unnamed"
        return f".{self.folder.name}.{mark}."

    def require_free(self, look_again: Callable[[], None], *, again: bool) -> None:
        """Refuse, before anything is charged, a folder that cannot take the release.

        A release that stands there may be that of another process of this request: ``look_again`` then raises.
        """
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            held = sorted(x.name for x in self.folder.iterdir()) if self.folder.is_dir() else []
            blocked = self.folder.exists() and not self.folder.is_dir()
            with tempfile.TemporaryDirectory(f".{_TRIAL}", self._prefix, self.folder.parent) as trial:
                probe = Path(trial) / "probe"
                probe.write_bytes(b"\0" * (1 << 20))  # a disk that is full says so here, not after the charge
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

    def write(self, release: Release, sealed: Iterable[Charge]) -> Path:
        """Write a release beside its place. Every byte is on the disk when this returns."""
        try:
            self._sweep({charge.release: charge for charge in sealed})
            part = Path(tempfile.mkdtemp(prefix=self._prefix, suffix=f".{_PART}", dir=self.folder.parent))
            part.chmod(0o777 & ~_umask())
            release.save(part, report=False)
            _sync(part)
            _sync(part.parent)
        except OSError as error:
            raise IsotoneError(
                f"The release could not be written beside {str(self.folder)!r}: {error.strerror or error}."
            ) from None
        return part

    def publish(self, part: Path) -> None:
        """Rename a written release into its place. What stands there is moved aside."""
        try:
            if self.folder.is_dir() and any(self.folder.iterdir()):
                self._move_aside(self.folder)
            part.rename(self.folder)
            _sync(self.folder.parent)
        except OSError as error:
            raise IsotoneError(
                f"The release is complete in {str(part)!r}, but could not be moved to {str(self.folder)!r}: "
                f"{error.strerror or error}. Run the same request again to put it there; it costs nothing."
            ) from None

    def stored(self, charge: Charge) -> Release:
        """The release that was sealed under ``charge``, from its place or from beside it."""
        found = self._release_in(self.folder)
        if found is not None and _hash(found) == charge.release:
            return found
        for part in self._parts():
            waiting = self._release_in(part)
            if waiting is not None and _hash(waiting) == charge.release:
                self.publish(part)
                return waiting
        if found is not None and found.manifest.request == self.request:
            raise InputError(
                f"The release in {str(self.folder)!r} is not the one that the ledger knows from charge {charge.number}: it "
                "was changed. Restore it from a copy, or pay for a new one with --again."
            )
        raise InputError(
            f"This was released before (charge {charge.number} of the ledger; nothing was charged now), but the release "
            f"is not in {str(self.folder)!r}. Restore it from a copy or from where it was written, or pay for a new one "
            "with --again."
        )

    def _parts(self) -> list[Path]:
        try:
            return sorted(self.folder.parent.glob(f"{_escaped(self._prefix)}*.{_PART}"))
        except OSError:
            return []

    def _sweep(self, sealed: dict[str | None, Charge]) -> None:
        """Remove what an earlier process of this request left unsealed, and keep what the ledger knows."""
        for part in self._parts() if self.request else []:
            left = self._release_in(part)
            if left is not None and _hash(left) in sealed:
                self._move_aside(part, left)
            else:
                shutil.rmtree(part, ignore_errors=True)

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


def _hash(release: Release) -> str:
    """The hash of what is there, and not of what it says about itself."""
    found = release.manifest.hash_with(release.columns)
    return found if found == release.manifest.content_hash else ""


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


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
