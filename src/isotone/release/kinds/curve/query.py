"""The query of a curve, and what its manifest says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import isotone.curves as curves
from isotone.curves.cuts import fit_counted
from isotone.privacy.guarantee import Guarantee
from isotone.reading.contributions import UnitEntry
from isotone.reading.grids import Points, PointSource, count_points
from isotone.release.kinds.curve.bands import SumsEntry, sums_to
from isotone.release.kinds.kind import Query, Stamp
from isotone.release.manifest import Manifest, Stated, guarantee_to
from isotone.release.result import Release, seal

if TYPE_CHECKING:
    from isotone.curves import PrivateIsotonicRegression
    from isotone.curves.cuts import ChainProblem
    from isotone.reading.sources import Frame

__all__ = ["ESTIMATOR", "CurveManifest", "CurveQuery"]

ESTIMATOR = "PrivateIsotonicRegression"
"""The name of the class, which is not loaded for it: it brings scikit-learn."""


class CurveRules(UnitEntry):
    """How rows became points."""

    bounds: list[str]


@dataclass(frozen=True, kw_only=True)
class CurveManifest(Manifest):
    """The manifest of a curve."""

    name: ClassVar[str] = "curve"

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "x": "The column of x.",
        "y": "The column of y.",
        "y_range": "The public range of y, as exact text.",
        "increasing": "Whether the curve rises.",
        "rules": "How rows became points: unit, contributions and the bounds of x.",
        "band": "What low and high are a band for: the population, the fit to the records, or what a model finds credible.",
        "confidence": "The confidence of the band.",
        "sums": "The noisy sums that the curve and its band were made of: bins by their first points, sums of y and of 1 - y "
        "(as shares of y_range, in labels or 65,536ths of a record), the rate or the variance of their noise, and the number of values of the posterior.",
    }

    x: str
    y: str
    y_range: list[str]
    increasing: bool
    rules: CurveRules
    band: str | None = None
    confidence: float | None = None
    sums: SumsEntry | None = None


@dataclass(frozen=True)
class CurveQuery(Query[Points, "PrivateIsotonicRegression"]):
    """A release of a curve as asked for, made and checked by :func:`curve_query`."""

    source: PointSource
    settings: Mapping[str, Any]
    problem: ChainProblem
    guarantee: Guarantee
    stated: Stated
    band: str | None = None
    confidence: float = 0.95

    @property
    def description(self) -> str:
        """The names of both columns."""
        return f"curve of {self.source.y} over {self.source.x}"

    @property
    def mechanism_name(self) -> str:
        """The class of the estimator."""
        return ESTIMATOR

    def parameters(self) -> dict[str, Any]:
        """Columns, settings of the estimator, guarantee and rules."""
        given = {key: _plain(value) for key, value in self.settings.items() if value is not None}
        bounds = [str(end) for end in self.source.bounds]
        return {
            "kind": CurveManifest.name,
            "x": self.source.x,
            "y": self.source.y,
            "mechanism": {"name": self.mechanism_name, **given},
            "guarantee": guarantee_to(self.guarantee),
            "rules": {**self.source.unit_entry(), "bounds": bounds},
            "band": self.band,
            "confidence": self.confidence,
        }

    def read(self, frame: Frame) -> Points:
        """How many records fall on each point of the grid."""
        return count_points(self.source, frame)

    def estimator(self) -> PrivateIsotonicRegression:
        """A new estimator."""
        return curves.PrivateIsotonicRegression(unit=self.guarantee.unit, **self.settings)

    def draw(self, statistic: Points) -> PrivateIsotonicRegression:
        """The fitted curve."""
        x = self.problem.grid.positions(statistic.x)
        return fit_counted(self.estimator(), x, statistic.y, statistic.count, self.problem.y_range)

    def publish(self, drawn: PrivateIsotonicRegression, stamp: Stamp) -> Release:
        """The corners of the curve and of its band."""
        xs, values, measured = drawn.X_thresholds_, drawn.y_thresholds_, drawn.measured_
        ends: dict[str, Any] = {}
        if self.band is not None and measured is not None:
            corners = self.problem.grid.positions(measured.band(self.confidence, self.band).corners)
            xs = np.union1d(xs, corners)
            values = drawn.predict(xs)
            ends = drawn.band(xs, self.confidence, self.band)._asdict()
        found = {"x": xs, "value": values, **ends}
        if self.problem.shape is None:  # rounded, a curve would not have its shape exactly
            found = {name: np.round(column, 12) for name, column in found.items()}
        columns: dict[str, tuple[Any, ...]] = {name: tuple(column.tolist()) for name, column in found.items()}
        said: dict[str, Any] = {
            **self.parameters(),
            **self.entries(stamp),
            "confidence": self.confidence if self.band else None,
        }
        manifest = CurveManifest(
            y_range=[str(end) for end in self.source.y_range],
            increasing=bool(drawn.increasing_),
            sums=measured and sums_to(measured),
            **said,
        )
        return seal(columns, manifest)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, (bool, int, str)) else str(value)
