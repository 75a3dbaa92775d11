"""What a kind of release must offer, from its query to its report.

A new kind is one new folder beside this file, with files of the same names as those of the other kinds: ``section`` of
the spec, ``query`` with its manifest, ``release``, ``report``, ``faults`` and ``kind``; and one line in ``__init__.py``. Nothing else asks which kind a release is.
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.page import Page
from isotone.release.kinds.reader import Reader
from isotone.release.manifest import Manifest, Stated, guarantee_to
from isotone.release.sections import Section

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.privacy.guarantee import Number
    from isotone.reading.sources import Frame
    from isotone.release.result import Release
    from isotone.release.spec import Spec
    from isotone.release.spec_plan import SpecPlan

__all__ = ["Kind", "Query", "Stamp"]

Statistic = TypeVar("Statistic")
Drawn = TypeVar("Drawn")


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


class Query(ABC, Generic[Statistic, Drawn]):
    """One release as asked for. All its parameters are public, and checked when it is made.

    ``open`` and ``read`` touch the data; ``draw`` is the only step that draws noise. ``read`` and ``draw`` accept
    zero rows like any others, so that the whole chain can be rehearsed.
    """

    source: Any
    """Where the data is, and how it is read."""
    mechanism: Any
    guarantee: Guarantee
    stated: Stated
    waves: int = 1
    """How many releases like this one are planned, this one among them."""

    @property
    @abstractmethod
    def description(self) -> str:
        """A few public words for the ledger."""

    @property
    def mechanism_name(self) -> str:
        """The class of the mechanism, for the ledger."""
        return type(self.mechanism).__name__

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The canonical public parameters as plain values, without what only concerns the presentation."""

    def open(self) -> Frame:
        """The columns that are needed, lazily. Only the schema is looked at."""
        return self.source.open()

    @abstractmethod
    def read(self, frame: Frame) -> Statistic:
        """The statistic of the data, computed where the data is."""

    @abstractmethod
    def draw(self, statistic: Statistic) -> Drawn:
        """The private outputs, from cryptographic bits."""

    def entries(self, stamp: Stamp) -> dict[str, Any]:
        """The entries that the manifests of all kinds have."""
        return {**vars(self.stated), "guarantee": guarantee_to(self.guarantee), **stamp.entries()}

    @abstractmethod
    def publish(self, drawn: Drawn, stamp: Stamp) -> Release:
        """The private outputs as a sealed release."""

    def rehearsal(self, frame: Frame, stamp: Stamp) -> tuple[Release, dict[str, int]]:
        """A release of zero rows, and how many bytes more some files of a real one have, by name.

        A large release may be drawn in full and written in part, by a public rule.
        """
        return self.publish(self.draw(self.read(frame)), stamp), {}


class Kind(ABC):
    """Everything that the project knows about one kind of release."""

    key: ClassVar[str]
    """The section of a spec that asks for it."""
    section: ClassVar[type[Section]]
    manifest: ClassVar[type[Manifest]]
    page: ClassVar[Page]
    """What the report says and draws."""
    combines: ClassVar[bool] = False
    """Whether ``contributions = 1`` makes one record of all rows of a unit, in place of choosing one."""
    classes: ClassVar[tuple[str, ...]] = ()
    """The mechanisms that can be audited by their name."""

    has_waves: ClassVar[bool] = False
    """Whether a release may be one of several that are planned together."""

    why_no_answers: ClassVar[str] = ""
    """Why readers get no intervals for derived figures, where they do not."""

    @property
    def name(self) -> str:
        """What a manifest calls it."""
        return self.manifest.name

    @abstractmethod
    def query(self, spec: Spec) -> Query[Any, Any]:
        """What a spec asks for, checked."""

    @abstractmethod
    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """What would be released and with what error. No data is read and no budget is spent."""

    @abstractmethod
    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """An attack on the mechanism that a spec would use. The data is not opened."""

    @abstractmethod
    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """An attack on one of ``classes``, on a small example."""

    @abstractmethod
    def check(self, spec: Spec, source: Any) -> list[str]:
        """What the steward should know about the contents of the data. Not private."""

    def consistent(self, release: Release, *, integers: bool, weights: str) -> Release:
        """A release of values that could be true. By default all that are released could."""
        return release

    def reader(self, release: Release) -> Reader:
        """What answers the questions of readers, by default none, for the reason stated."""
        return Reader(release, self.why_no_answers)

    def draws(self, manifest: Manifest) -> list[Manifest]:
        """The manifests of the draws that are in a release, which is itself unless it was derived from others."""
        return [manifest]

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
