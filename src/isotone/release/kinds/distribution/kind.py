"""What strangers and readers do with a published distribution: verify it, ask it for quantiles and shares, attack it by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from isotone.distribution.band import checked
from isotone.distribution.figures import LineFigures
from isotone.distribution.mechanism import MOST_RECORDS, DistributionMechanism, MeasuredLine
from isotone.errors import InputError
from isotone.inference import Estimate
from isotone.privacy.checks import exact, shown
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.kinds.distribution.description import (
    Distribution,
    DistributionManifest,
    LineDescription,
    lines_of,
)
from isotone.release.kinds.distribution.report import DistributionPage
from isotone.release.kinds.kind import Kind, Reader, agrees, require_unit
from isotone.release.manifest import Manifest, guarantee_from, recipe_of

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.mechanism import Progress
    from isotone.release.kinds.kind import Page
    from isotone.release.result import Release, Within

_APART = 40
"""Noise is never so many standard deviations away."""


class LineReader(Reader):
    """Quantiles from the band: all intervals of one group hold at once."""

    described: ClassVar[type[LineDescription]]

    def quantile(
        self, levels: Sequence[Any], confidence: float | None, group: Any, band: Any
    ) -> list[Estimate]:
        """Values below which a share of the records is."""
        figures, level, about = self.figures(confidence, group, band)
        return [estimate_of(figures.quantile(_share(q)), level, about) for q in levels]

    def figure_at(self, what: Any, confidence: float, group: Any) -> Estimate:
        """What is compared, at the place that is named."""
        raise NotImplementedError

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Estimate:
        """A figure of the second group minus that of the first. Each has half of what may go wrong."""
        return self._compared(self, first, second, what, confidence)

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Estimate:
        """A figure of another release of this kind minus that of this one."""
        if other.kind != self.release.kind:
            self.refuse(f"change to a release of a {other.kind}")
        return self._compared(type(self)(other), group, group, what, confidence)

    def _compared(
        self, other: LineReader, first: Any, second: Any, what: Any, confidence: float | None
    ) -> Estimate:
        half = 1 - checked(self.level(confidence), "A difference", 2) / 2
        one, two = self.figure_at(what, half, first), other.figure_at(what, half, second)
        assert one.value is not None
        assert two.value is not None
        low, high = two.low - one.high, two.high - one.low
        return Estimate(two.value - one.value, low, high, round(2 * half - 1, 12), about=one.about)

    def measured(self, group: Any) -> tuple[LineDescription, DistributionMechanism, MeasuredLine]:
        """What was measured of one group."""
        manifest = self.release.manifest
        described = self.described.from_manifest(manifest, self.release.columns)
        names = described.group_names
        name = "" if group is None else str(group)
        if name not in names:
            raise InputError(
                f"Name one of the groups of this release: {', '.join(names)}."
                if described.by
                else "This release has no groups."
            )
        line = lines_of(manifest["lines"])[names.index(name)]
        return described, rebuilt(self.described, manifest), line

    def figures(self, confidence: float | None, group: Any, band: Any) -> tuple[LineFigures, float, str]:
        """Shares with their band, the confidence, and whom they are about."""
        described, mechanism, line = self.measured(group)
        if band not in (None, "records", "population"):
            raise InputError(f"band is 'records' or 'population', not {shown(band)}.")
        own = getattr(described, "band", "records")
        about, level = band or ("population" if own == "population" else "records"), self.level(confidence)
        return described.figures(mechanism, line, level, about), level, about


class DistributionReader(LineReader):
    """Quantiles, shares and measures of inequality."""

    described: ClassVar[type[LineDescription]] = Distribution

    def cdf(self, x: Any, confidence: float | None, group: Any, band: Any) -> Estimate:
        """The share of records at a value or below."""
        figures, level, about = self.figures(confidence, group, band)
        return estimate_of(figures.share_up_to(float(exact(x, "x"))), level, about)

    def share(self, part: Any, of: Any, confidence: float | None, group: Any, within: Within) -> Estimate:
        """The share of records above one value and up to another."""
        if within.records is not None or within.after_rules or within.deff != 1:
            self.refuse("shares with records, after_rules or deff")
        if of is None:
            raise InputError(
                "The share between two values needs both: share(20_000, 50_000). For those up to one value ask cdf()."
            )
        low, high = float(exact(part, "low")), float(exact(of, "high"))
        if not low < high:
            raise InputError(
                f"The share between two values needs the lower one first, not {shown(part)} and {shown(of)}."
            )
        figures, level, about = self.figures(confidence, group, "population" if within.population else None)
        return estimate_of(figures.share_between(low, high), level, about)

    def lorenz(
        self, levels: Sequence[Any], confidence: float | None, group: Any, band: Any
    ) -> list[Estimate]:
        """The share of the sum of all values that the lowest records have."""
        figures, level, about = self._unequal(confidence, group, band)
        rows = figures.lorenz(np.array([_share(q, open_end=False) for q in levels]))
        return [estimate_of(tuple(row.tolist()), level, about) for row in rows]

    def gini(self, confidence: float | None, group: Any, band: Any) -> Estimate:
        """The Gini coefficient."""
        figures, level, about = self._unequal(confidence, group, band)
        return estimate_of(figures.gini(), level, about)

    def figure_at(self, what: Any, confidence: float, group: Any) -> Estimate:
        """A quantile."""
        if what is None:
            raise InputError("Say which quantile is compared, such as 0.5 for the median.")
        return self.quantile([what], confidence, group, None)[0]

    def _unequal(self, confidence: float | None, group: Any, band: Any) -> Any:
        if exact(self.release.manifest["description"]["bounds"][0], "bounds") < 0:
            self.refuse(
                "Lorenz curve or Gini coefficient: they are for values that are not negative, and low is below 0"
            )
        return self.figures(confidence, group, band)


def _share(level: Any, *, open_end: bool = True) -> float:
    value = float(exact(level, "a quantile"))
    if not (0 < value < 1 or (not open_end and 0 <= value <= 1)):
        raise InputError(
            f"A quantile is a share of the records between 0 and 1, such as 0.5, not {shown(level)}."
        )
    return value


def estimate_of(figure: Any, confidence: float, about: Any) -> Estimate:
    """A figure with the ends of its interval. One that is not reached has no value."""
    value, low, high = (float(x) for x in figure)
    return Estimate(value if math.isfinite(value) else None, low, high, confidence, about=about)


def rebuilt(kind: type[LineDescription], manifest: Manifest) -> DistributionMechanism:
    """The mechanism of the description that a manifest holds, which must be the one that it names."""
    described, stated = kind.from_manifest(manifest, {}), guarantee_from(manifest.guarantee)
    if described.in_manifest() != manifest.description:
        raise InputError("the description is not written as a release writes it")
    require_unit(described, stated)
    result = described.mechanism(stated)
    if recipe_of(result) != manifest.mechanism:
        raise InputError("the mechanism is not the one that the description has under this guarantee")
    return result


class LineKind(Kind):
    """What is done with every release that counts records by cell of a public line."""

    recomputed = "bins and noisy counts are possible, and shares and their band are those of the noisy counts"

    @property
    def _line(self) -> type[LineDescription]:
        return cast("type[LineDescription]", self.described)

    def rebuild(self, manifest: Manifest) -> DistributionMechanism:
        """The mechanism of the manifest."""
        return rebuilt(self._line, manifest)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the mechanism of the manifest guarantees for the rows that are let through."""
        stated = guarantee_from(release.manifest.guarantee)
        return replace(self.rebuild(release.manifest).guarantee, unit=stated.unit)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The mechanism on 32 cells."""
        return Distribution("x", bounds=(0, 31), grid="integers").audit(
            epsilon=epsilon, trials=trials, progress=progress
        )

    def faults(self, release: Release) -> list[str]:
        """Bins and counts that the mechanism cannot have given, and shares that do not follow from them."""
        manifest = release.manifest
        mechanism, described = self.rebuild(manifest), self._line.from_manifest(manifest, {})
        entries, lines = manifest["lines"], lines_of(manifest["lines"])
        if [entry["group"] for entry in entries] != list(described.group_names):
            return ["the groups are not those of the description"]
        if not all(_possible(mechanism, line) for line in lines):
            return ["the bins or the counts are not those of the mechanism"]
        expected = described.columns(mechanism, lines)
        if release.columns.keys() != expected.keys() or release.columns.get("group") != expected.get("group"):
            return ["the groups of the rows are not those of the bins"]
        for name in expected.keys() - {"group"}:
            stated, computed = (np.array(of[name], dtype=float) for of in (release.columns, expected))
            size = max(1.0, float(np.abs(computed).max(initial=0.0)))
            what = "number at risk" if name == "at_risk" else "distribution"
            if stated.shape != computed.shape or not agrees(stated, computed, what, size=size):
                return [f"{name} does not follow from the noisy counts"]
        return []


class DistributionKind(LineKind):
    """How a number is distributed."""

    described = Distribution
    manifest = DistributionManifest
    classes = (DistributionMechanism.__name__,)

    def page(self, release: Release) -> Page:
        """The distribution function with its band."""
        return DistributionPage()

    def reader(self, release: Release) -> Reader:
        """Quantiles and shares, from the band."""
        return DistributionReader(release, self.why_no_answers)


def _possible(mechanism: DistributionMechanism, line: MeasuredLine) -> bool:
    """Whether a partition has these bins, and whether there are as many counts."""
    edges, cells = line.edges, mechanism.cells
    if edges.ndim != 1 or edges.size < 2 or edges[0] != 0 or edges[-1] != cells or np.any(np.diff(edges) < 1):
        return False
    if abs(line.number) > MOST_RECORDS or not 0 <= line.seed <= MOST_RECORDS:
        return False
    if mechanism.public_n is not None and line.number != mechanism.public_n:
        return False
    rule = mechanism.rule(line.number)
    tree = mechanism.tree(line.bins)
    nodes = line.bins if tree is None else sum(tree.lengths)
    if line.counts.shape != (mechanism.statuses, nodes) or np.any(np.abs(line.counts) > MOST_RECORDS):
        return False
    if mechanism.public_n is None:  # measured twice: the number, and the counts of all bins together
        noises = mechanism.noise(mechanism.number_part), mechanism.counts_noise(rule, line.bins)
        spread = math.sqrt(noises[0].variance + mechanism.statuses * line.bins * noises[1].variance)
        if abs(line.number - int(line.counts[:, : line.bins].sum())) > _APART * (1 + spread):
            return False
    if rule.halves:
        return mechanism.partition(rule).could_give(edges, mechanism.apart)
    return np.array_equal(edges, mechanism.public_edges(rule))


KIND = DistributionKind()
