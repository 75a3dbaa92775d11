"""What strangers and readers do with a published distribution: verify it, ask it for quantiles and shares, attack it by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.distribution.figures import LineFigures
from isotone.distribution.mechanism import DistributionMechanism, MeasuredLine
from isotone.errors import InputError
from isotone.inference import Estimate
from isotone.privacy.checks import confidence_level, exact, shown
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.kinds.distribution.description import (
    ROUNDING,
    Distribution,
    DistributionManifest,
    line_columns,
    lines_of,
)
from isotone.release.kinds.distribution.report import DistributionPage
from isotone.release.kinds.kind import Kind, Reader
from isotone.release.manifest import Manifest, guarantee_from, recipe_of

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.mechanism import Progress
    from isotone.release.kinds.kind import Page
    from isotone.release.result import Release

__all__ = ["KIND", "DistributionKind", "DistributionReader"]

CLOSE = 1e-6
"""Computers that compute the same shares from the same counts are not farther apart."""
_MOST_NUMBER = 1 << 53


class DistributionReader(Reader):
    """Quantiles, shares and measures of inequality, from the band: all intervals of one group hold at once."""

    def quantile(
        self, levels: Sequence[Any], confidence: float | None, group: Any, band: Any
    ) -> list[Estimate]:
        """Values below which a share of the records is."""
        figures, level, about = self._figures(confidence, group, band)
        return [_estimate(figures.quantile(_share(q)), level, about) for q in levels]

    def cdf(self, x: Any, confidence: float | None, group: Any, band: Any) -> Estimate:
        """The share of records at a value or below."""
        figures, level, about = self._figures(confidence, group, band)
        return _estimate(figures.share_up_to(float(exact(x, "x"))), level, about)

    def share(
        self,
        part: Any,
        of: Any,
        confidence: float | None,
        group: Any,
        records: Any,
        after_rules: bool,
        population: bool,
        deff: Any,
    ) -> Estimate:
        """The share of records above one value and up to another."""
        if records is not None or after_rules or deff != 1:
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
        figures, level, about = self._figures(confidence, group, "population" if population else None)
        return _estimate(figures.share_between(low, high), level, about)

    def lorenz(
        self, levels: Sequence[Any], confidence: float | None, group: Any, band: Any
    ) -> list[Estimate]:
        """The share of the sum of all values that the lowest records have."""
        figures, level, about = self._unequal(confidence, group, band)
        rows = figures.lorenz(np.array([_share(q, open_end=False) for q in levels]))
        return [_estimate(tuple(row.tolist()), level, about) for row in rows]

    def gini(self, confidence: float | None, group: Any, band: Any) -> Estimate:
        """The Gini coefficient."""
        figures, level, about = self._unequal(confidence, group, band)
        return _estimate(figures.gini(), level, about)

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Estimate:
        """A quantile of the second group minus that of the first. Each has half of what may go wrong."""
        half = _halved(self._level(confidence))
        one, other = (self.quantile([_level_of(what)], half, group, None)[0] for group in (first, second))
        return _less(other, one, 2 * half - 1)

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Estimate:
        """A quantile of another release minus that of this one. Each has half of what may go wrong."""
        if other.kind != self.release.kind:
            self.refuse(f"change to a release of a {other.kind}")
        half, there = _halved(self._level(confidence)), DistributionReader(other)
        one, two = (reader.quantile([_level_of(what)], half, group, None)[0] for reader in (self, there))
        return _less(two, one, 2 * half - 1)

    def _level(self, confidence: float | None) -> float:
        return confidence_level(
            self.release.manifest["description"]["confidence"] if confidence is None else confidence
        )

    def _unequal(self, confidence: float | None, group: Any, band: Any) -> Any:
        if exact(self.release.manifest["description"]["bounds"][0], "bounds") < 0:
            self.refuse(
                "Lorenz curve or Gini coefficient: they are for values that are not negative, and low is below 0"
            )
        return self._figures(confidence, group, band)

    def _figures(self, confidence: float | None, group: Any, band: Any) -> tuple[LineFigures, float, str]:
        manifest, level = self.release.manifest, self._level(confidence)
        described = Distribution.from_manifest(manifest, self.release.columns)
        names = described.group_names
        name = "" if group is None else str(group)
        if name not in names:
            raise InputError(
                f"Name one of the groups of this release: {', '.join(names)}."
                if described.by
                else "This release has no groups."
            )
        if band not in (None, "records", "population"):
            raise InputError(f"band is 'records' or 'population', not {shown(band)}.")
        about = band or ("population" if described.band == "population" else "records")
        line = lines_of(manifest["lines"])[names.index(name)]
        return described.figures(rebuilt(manifest), line, level, about), level, about


def _halved(confidence: float) -> float:
    return 1 - (1 - confidence) / 2


def _share(level: Any, *, open_end: bool = True) -> float:
    value = float(exact(level, "a quantile"))
    if not (0 < value < 1 or (not open_end and 0 <= value <= 1)):
        raise InputError(
            f"A quantile is a share of the records between 0 and 1, such as 0.5, not {shown(level)}."
        )
    return value


def _level_of(what: Any) -> Any:
    if what is None:
        raise InputError("Say which quantile is compared, such as 0.5 for the median.")
    return what


def _estimate(found: Any, confidence: float, about: Any) -> Estimate:
    value, low, high = (float(x) for x in found)
    return Estimate(value, low, high, confidence, about=about)


def _less(other: Estimate, one: Estimate, confidence: float) -> Estimate:
    assert other.value is not None
    assert one.value is not None
    low, high = other.low - one.high, other.high - one.low
    return Estimate(other.value - one.value, low, high, round(confidence, 12), about=one.about)


def rebuilt(manifest: Manifest) -> DistributionMechanism:
    """The mechanism of the description that a manifest holds, which must be the one that it names."""
    described, stated = Distribution.from_manifest(manifest, {}), guarantee_from(manifest.guarantee)
    if described.said() != manifest.description:
        raise InputError("the description is not written as a release writes it")
    if described.whose.neighbours != stated.neighbours:
        raise InputError("the neighbours of the description are not those of the guarantee")
    found = described.mechanism(stated)
    if recipe_of(found) != manifest.mechanism:
        raise InputError("the mechanism is not the one that the description has under this guarantee")
    return found


class DistributionKind(Kind):
    """How a number is distributed."""

    described = Distribution
    manifest = DistributionManifest
    classes = (DistributionMechanism.__name__,)
    recomputed = "bins and noisy counts are possible, and shares and their band are those of the noisy counts"

    def page(self, release: Release) -> Page:
        """The distribution function with its band."""
        return DistributionPage()

    def reader(self, release: Release) -> Reader:
        """Quantiles and shares, from the band."""
        return DistributionReader(release, self.why_no_answers)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The mechanism on 32 cells."""
        return Distribution("x", bounds=(0, 31), grid="integers").audit(
            epsilon=epsilon, trials=trials, progress=progress
        )

    def rebuild(self, manifest: Manifest) -> DistributionMechanism:
        """The mechanism of the manifest."""
        return rebuilt(manifest)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the mechanism of the manifest guarantees for the rows that are let through."""
        stated = guarantee_from(release.manifest.guarantee)
        return replace(rebuilt(release.manifest).guarantee, unit=stated.unit)

    def faults(self, release: Release) -> list[str]:
        """Bins and counts that the mechanism cannot have given, and shares that do not follow from them."""
        mechanism, manifest = rebuilt(release.manifest), release.manifest
        described = Distribution.from_manifest(manifest, {})
        entries, lines = manifest["lines"], lines_of(manifest["lines"])
        if [entry["group"] for entry in entries] != list(described.group_names):
            return ["the groups are not those of the description"]
        if not all(_possible(mechanism, line) for line in lines):
            return ["the bins or the counts are not those of the mechanism"]
        wanted = line_columns(described, mechanism, lines)
        if set(wanted) != set(release.columns) or len(wanted["value"]) != len(release.columns["value"]):
            return ["the columns are not those of a distribution"]
        if wanted.get("group") != release.columns.get("group"):
            return ["the groups of the rows are not those of the bins"]
        for name in wanted.keys() - {"group"}:
            stated, computed = (np.array(of[name], dtype=float) for of in (release.columns, wanted))
            scale = CLOSE * max(1.0, float(np.abs(computed).max(initial=0.0))) if name == "x" else CLOSE
            if not np.all(np.abs(stated - computed) <= scale + 10.0**-ROUNDING):
                return [f"{name} does not follow from the noisy counts"]
        return []


def _possible(mechanism: DistributionMechanism, line: MeasuredLine) -> bool:
    """Whether a partition has these bins, and whether there are as many counts."""
    edges, cells = line.edges, mechanism.cells
    if edges.ndim != 1 or edges.size < 2 or edges[0] != 0 or edges[-1] != cells or np.any(np.diff(edges) < 1):
        return False
    if abs(line.number) >= _MOST_NUMBER or not 0 <= line.seed < _MOST_NUMBER:
        return False
    if mechanism.public_n is not None and line.number != mechanism.public_n:
        return False
    rule = mechanism.rule(line.number)
    tree = rule.tree(line.bins)
    nodes = line.bins if tree is None else sum(tree.lengths)
    if line.counts.shape != (mechanism.statuses, nodes) or np.any(np.abs(line.counts) >= _MOST_NUMBER):
        return False
    return mechanism.partition().could_give(edges) if rule.halves else line.bins == cells


KIND = DistributionKind()
