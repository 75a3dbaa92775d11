"""What a kind of release offers beside its description: verification, a page, a reader; and the table of all kinds.

A new kind is one folder beside this file, with ``description``, ``kind`` and ``report``, and one line in the table of names.
Nothing else asks which kind a release is.
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from isotone.errors import InputError
from isotone.mechanism import Progress
from isotone.privacy.checks import confidence_level, did_you_mean
from isotone.privacy.guarantee import Guarantee
from isotone.reading.questions import Question
from isotone.release.manifest import ROUNDING, Manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.audit.exact import AuditReport
    from isotone.inference import Estimate
    from isotone.privacy.guarantee import Number
    from isotone.release.description import Description, Section
    from isotone.release.result import Release, Within


@dataclass(frozen=True)
class Stamp:
    """What the ledger says about a release."""

    charge: int
    time: str
    dataset: str
    request: str = ""

    def entries(self) -> dict[str, Any]:
        """The entries of a manifest that come from here, and those that say with what it was made."""
        return {**vars(self), "versions": versions()}


def require_unit(described: Description, stated: Guarantee) -> None:
    """Refuse a guarantee for other units or against other neighbours than those of the description."""
    unit = described.privacy_unit
    if unit.neighbours != stated.neighbours:
        raise InputError("the neighbours of the description are not those of the guarantee")
    if unit.words != stated.unit:
        raise InputError("the unit of the description is not that of the guarantee")


def versions() -> dict[str, str]:
    """The software that computes here."""
    packages = {name: _version(name) for name in ("isotone", "numpy", "scipy")}
    return {"python": platform.python_version(), **packages}


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


# The kinds by name, loaded when they are asked for. Adding one is a new folder here and one line in the table below.

_DESCRIPTIONS = {
    "counts": "Counts",
    "table": "Table",
    "curve": "Curve",
    "distribution": "Distribution",
    "survival": "Survival",
    "series": "Series",
}
"""The class that describes each kind, by the name that manifests have for it and that its folder here has."""
SECTIONS = {
    "series": "series",
    "order": "counts",
    "table": "table",
    "curve": "curve",
    "distribution": "distribution",
    "survival": "survival",
}
"""The sections of a spec that ask for a release, each with the kind. The first that is there decides."""
BESIDE = {"series": "order"}
"""Sections that another one stands beside."""


def in_words(name: str) -> str:
    """A kind as a sentence says it.

    >>> in_words("counts"), in_words("curve")
    ('counts', 'a curve')
    """
    return name if name in ("counts", "survival") else f"a {name}"


def described_by(name: str) -> type[Description]:
    """The class that describes the kind that a manifest calls ``name``. What reads and verifies it is not loaded."""
    _require_known(name)
    return getattr(import_module(f"isotone.release.kinds.{name}.description"), _DESCRIPTIONS[name])


def kind_named(name: str) -> Kind:
    """The kind that a manifest calls ``name``."""
    _require_known(name)
    return import_module(f"isotone.release.kinds.{name}.kind").KIND


def _require_known(name: str) -> None:
    if name not in _DESCRIPTIONS:
        raise InputError(f"There is no kind of release {name!r}; there are: {', '.join(_DESCRIPTIONS)}.")


def kind_of_section(key: str) -> Kind:
    """The kind that a section of a spec asks for."""
    return kind_named(SECTIONS[key])


def all_kinds() -> tuple[Kind, ...]:
    """Every kind, for pages and schemas about all of them."""
    return tuple(map(kind_named, _DESCRIPTIONS))


def kind_of_mechanism(name: str) -> Kind:
    """The kind whose mechanism has this class name."""
    known = {mechanism: kind for kind in all_kinds() for mechanism in kind.classes}
    if name not in known:
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise InputError(f"There is no mechanism {name!r}{near}")
    return known[name]


# What verification allows between what is published and what is computed again from the rest.


@dataclass(frozen=True)
class Tolerance:
    """How far a published number may be from the computed one: so much, such a share of its size, so many standard errors."""

    absolute: float = 0.0
    relative: float = 0.0
    errors: float = 0.0


TOLERANCES: dict[str, Tolerance] = {
    # four decimals; a simulated error is eight standard errors off with probability below 1e-7, and a tenth off never within them
    "error": Tolerance(ROUNDING, 1e-9, 8.0),
    # four decimals; floats may be added up in another sequence elsewhere
    "estimate": Tolerance(ROUNDING, 1e-9),
    "value of a breakdown": Tolerance(2 * ROUNDING, 1e-9),
    "derived value": Tolerance(2 * ROUNDING),
    # computers that compute the same from the same numbers
    "share of categories": Tolerance(1e-9),
    "point of a curve": Tolerance(0.0, 1e-9),
    # computers with the same versions, and with others
    "posterior of a curve": Tolerance(0.0, 1e-6),
    "posterior of a curve by other versions": Tolerance(0.0, 2e-3),
    "distribution": Tolerance(1e-9, 1e-6),
    "number at risk": Tolerance(1e-3, 1e-6),
    # searches of different versions for the best shares
    "error of shares": Tolerance(0.0, 1e-3),
}
"""By what is compared. Whole numbers, names and half-widths are compared exactly."""


def agrees(stated: Any, computed: Any, what: str, *, size: Any = None, error: Any = 0.0) -> bool:
    """Whether published numbers are those computed, within the tolerance of their kind.

    The relative part is of the numbers themselves, or of ``size``; ``error`` is the standard error of a simulation.
    """
    allowed, known = TOLERANCES[what], np.asarray(computed, np.float64)
    room = (
        allowed.absolute
        + allowed.relative * (np.abs(known) if size is None else size)
        + allowed.errors * error
    )
    return bool(np.all(np.abs(np.asarray(stated, np.float64) - known) <= room))


# What readers ask of a release. Each kind answers what its law allows, and refuses the rest with the reason.


class Reader:
    """Answers that follow from a release alone. This one refuses all."""

    def __init__(self, release: Release, reason: str = "") -> None:
        self.release, self.reason = release, reason

    def refuse(self, what: str) -> NoReturn:
        """Raise an error that says why there is no answer."""
        raise InputError(f"A release of {in_words(self.release.kind)} has no {what}. {self.reason}".rstrip())

    def level(self, confidence: float | None) -> float:
        """The confidence that is asked for, or that of the release."""
        stated = self.release.manifest["description"]["confidence"]
        return confidence_level(stated if confidence is None else confidence)

    def group_named(self, words: Sequence[str]) -> Any:
        """The group that words on a command line name, or None."""
        if len(words) > 1:
            raise InputError("This release has one list of groups: name one group.")
        return words[0] if words else None

    def contrast(self, coefficients: Mapping[Any, float], confidence: float | None, group: Any) -> Estimate:
        """A linear combination of counts."""
        self.refuse("contrasts of counts")

    def share(self, part: Any, of: Any, confidence: float | None, group: Any, within: Within) -> Estimate:
        """The share of one count in another, in the records or in the population that was sampled."""
        self.refuse("shares of a population" if within.population else "shares of counts")

    def shares(
        self, pairs: Sequence[tuple[Any, Any]] | None, together: bool, confidence: float | None, group: Any
    ) -> dict[tuple[str, str], Estimate]:
        """Several shares."""
        self.refuse("shares of counts")

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Any:
        """The change from this release to another."""
        self.refuse("changes of counts")

    def rank(self, what: Any, confidence: float | None, group: Any) -> Any:
        """The place of a count among all."""
        self.refuse("ranks")

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """A sum of published values."""
        self.refuse("sums with an interval")

    def sums(self, groups: Mapping[str, Iterable[Any]], confidence: float | None) -> dict[str, Estimate]:
        """Sums over public groups."""
        self.refuse("sums over groups of categories")

    def at(self, x: Any, confidence: float | None) -> Estimate:
        """The value of a curve."""
        self.refuse("value between its numbers")

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Any:
        """The second value minus the first."""
        self.refuse("differences with an interval")

    def quantile(
        self, levels: Sequence[Any], confidence: float | None, group: Any, band: Any
    ) -> list[Estimate]:
        """Values below which a share of the records is."""
        self.refuse("quantiles")

    def cdf(self, x: Any, confidence: float | None, group: Any, band: Any) -> Estimate:
        """The share of records at a value or below."""
        self.refuse("distribution function")

    def survival(self, what: str, time: Any, confidence: float | None, group: Any) -> Estimate:
        """Survival, or a figure that goes with it, at a time."""
        self.refuse("survival curve")

    def lorenz(
        self, levels: Sequence[Any], confidence: float | None, group: Any, band: Any
    ) -> list[Estimate]:
        """The share of a sum that the lowest records have."""
        self.refuse("Lorenz curve")

    def gini(self, confidence: float | None, group: Any, band: Any) -> Estimate:
        """The Gini coefficient."""
        self.refuse("Gini coefficient")

    def given(self, records: Any, after_rules: bool) -> Release:
        """The release adjusted by a public number of records."""
        self.refuse("noisy number of records to compare a public one with")

    def combine(self, others: Sequence[Release], follows_order: bool) -> Release:
        """This release and others of the same counts as one."""
        self.refuse("combination with others")


# What the report says about one kind of release and draws of it. Only published numbers enter.

INK, SOFT = "#1f4e79", "#9dbbd6"


def draw_bars(
    ax: Axes, names: Sequence[str], columns: Mapping[str, Any], rows: Sequence[int], label: str
) -> None:
    """Bars of some rows with the upper halves of their intervals, the first on top."""
    value, high = (np.array([columns[key][i] for i in rows]) for key in ("value", "high"))
    place = np.arange(len(rows))[::-1]
    ax.barh(place, value, color=SOFT, xerr=np.maximum(high - value, 0), ecolor=INK)
    ax.set_yticks(place, names)
    ax.set_xlabel(label)


class Page(ABC):
    """The words and the picture of a report. ``level`` is the confidence of the intervals in words."""

    lead: ClassVar[str]
    """What was released, in one sentence."""
    most_rows: ClassVar[int | None] = None
    """The table shows at most so many rows; None shows all."""
    few_rows: ClassVar[int | None] = None
    """Of more than twice as many rows the table shows so many, in equal steps, and folds the rest; None folds nothing."""
    typical_error: ClassVar[str] = "typical error of a value"
    """What the mean of the published errors is called."""

    sequence_name: ClassVar[str] = "the file"
    """What the sequence of the table is called."""

    def head(self, release: Release) -> Release:
        """The release, or its first rows where the table shows no others."""
        return release

    def sequence(self, release: Release) -> list[tuple[int, int]]:
        """The rows of the table in their sequence, each with how deep it is nested."""
        return [(row, 0) for row in range(len(next(iter(release.columns.values()), ())))]

    def some(self, release: Release, rows: list[tuple[int, int]], few: int) -> list[tuple[int, int]]:
        """Few of many rows of the sequence, in equal steps."""
        del release
        return [rows[place * (len(rows) - 1) // (few - 1)] for place in range(few)]

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns of the table, by the headings they have there."""
        return dict(release.columns)

    def labels(self, release: Release) -> dict[str, str]:
        """What is read in place of an element, where a question has a label."""
        questions = (release.manifest["description"].get("answers") or {}).get("questions", ())
        return {entry["name"]: Question(**entry).shown for entry in questions if entry.get("label")}

    @abstractmethod
    def caption(self, release: Release, level: str) -> str:
        """What the picture shows."""

    @abstractmethod
    def accuracy(self, release: Release, level: str) -> list[str]:
        """How accurate the release is, a paragraph each."""

    @abstractmethod
    def rules(self, release: Release) -> list[str]:
        """The declared rules by which data was read beyond those about units, a sentence each."""

    def size(self, release: Release) -> tuple[float, float]:
        """Width and height of the picture."""
        return 7.5, 4.5

    @abstractmethod
    def draw(self, release: Release, ax: Axes) -> None:
        """Draw the release."""

    @abstractmethod
    def svg(self, release: Release) -> str:
        """The same picture as SVG text, for the page."""
