"""What a kind of release must offer, from its query to its report.

A new kind is one new folder beside this file, with files of the same names as those of the other kinds: ``section`` of
the spec, ``query`` with its manifest, ``release``, ``report``, ``faults`` and ``kind``; and one line in ``__init__.py``. Nothing else asks which kind a release is.
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, ClassVar

from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.page import Page
from isotone.release.kinds.reader import Reader
from isotone.release.manifest import Manifest

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.privacy.guarantee import Number
    from isotone.release.description import Description, Section
    from isotone.release.result import Release

__all__ = ["Kind", "Stamp"]


@dataclass(frozen=True)
class Stamp:
    """What the ledger says about a release."""

    charge: int
    time: str
    dataset: str
    request: str = ""

    def entries(self) -> dict[str, Any]:
        """The entries of a manifest that come from here, and those that say with what it was made."""
        packages = {name: _version(name) for name in ("isotone", "numpy", "scipy")}
        return {**vars(self), "versions": {"python": platform.python_version(), **packages}}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


class Kind(ABC):
    """Everything that the project knows about one kind of release."""

    described: ClassVar[type[Description]]
    """The class that describes a release of this kind."""
    manifest: ClassVar[type[Manifest]]
    classes: ClassVar[tuple[str, ...]] = ()
    """The mechanisms that can be audited by their name."""

    why_no_answers: ClassVar[str] = ""
    """Why readers get no intervals for derived figures, where they do not."""

    @property
    def key(self) -> str:
        """The section of a spec that asks for it."""
        return self.described.key

    @property
    def section(self) -> type[Section]:
        """What that section holds."""
        return self.described.section()

    @property
    def name(self) -> str:
        """What a manifest calls it."""
        return self.manifest.name

    @abstractmethod
    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """An attack on one of ``classes``, on a small example."""

    @abstractmethod
    def page(self, release: Release) -> Page:
        """What the report of a release says and draws."""

    def consistent(self, release: Release, *, integers: bool, weights: str) -> Release:
        """A release of values that could be true. By default all that are released could."""
        return release

    def reader(self, release: Release) -> Reader:
        """What answers the questions of readers, by default none, for the reason stated."""
        return Reader(release, self.why_no_answers)

    def draws(self, manifest: Manifest) -> list[Manifest]:
        """The manifests of the draws that are in a release, which is itself unless it was derived from others."""
        return [manifest]

    def paid_faults(self, release: Release, extract: Mapping[str, Any]) -> list[str]:
        """What else the ledger says about a release, and does not say of this one."""
        return []

    @abstractmethod
    def rebuild(self, manifest: Manifest) -> Any:
        """The mechanism that a manifest describes."""

    @abstractmethod
    def derived_guarantee(self, release: Release) -> Guarantee:
        """The guarantee that follows from the mechanism and the rules that a manifest describes."""

    recomputed: ClassVar[str]
    """What :meth:`faults` looks at, in words."""

    errors_are_known: ClassVar[bool] = True
    """Whether what is published about errors follows from the mechanism alone."""

    def looked_at(self, release: Release) -> str:
        """What :meth:`faults` looked at in this release, in words."""
        return self.recomputed

    def without_shortcuts(self, release: Release) -> Release:
        """The same release without what its manifest keeps to spare readers time."""
        return release

    @abstractmethod
    def faults(self, release: Release) -> list[str]:
        """What in the columns and the manifest does not follow from the mechanism that it describes."""
