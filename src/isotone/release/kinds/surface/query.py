"""The query of a surface, and what its manifest says."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.curves.cuts import fit_counted
from isotone.privacy.guarantee import Guarantee
from isotone.reading.contributions import UnitEntry
from isotone.reading.grids import Cells, CellSource, count_cells
from isotone.release.kinds.kind import Query, Stamp
from isotone.release.manifest import Manifest, Stated, guarantee_to
from isotone.release.result import Release, seal

if TYPE_CHECKING:
    from isotone.curves import PrivatePosetRegression
    from isotone.reading.sources import Frame

__all__ = ["ESTIMATOR", "SurfaceManifest", "SurfaceQuery", "middles"]

ESTIMATOR = "PrivatePosetRegression"
"""The name of the class, which is not loaded for it: it brings scikit-learn."""


@dataclass(frozen=True, kw_only=True)
class SurfaceManifest(Manifest):
    """The manifest of a surface."""

    name: ClassVar[str] = "surface"

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "x": "The two columns.",
        "y": "The column of y.",
        "rules": "How rows fell into cells: unit and contributions. Limits and bins stand in the mechanism.",
    }

    x: list[str]
    y: str
    rules: UnitEntry


def middles(source_bounds: Any, bins: Any) -> list[NDArray[np.float64]]:
    """The middles of the bins of each column."""
    return [
        float(low) + (np.arange(size) + 0.5) / size * (float(high) - float(low))
        for (low, high), size in zip(source_bounds, bins, strict=True)
    ]


@dataclass(frozen=True)
class SurfaceQuery(Query[Cells, "PrivatePosetRegression"]):
    """A release of a surface as asked for, made and checked by :func:`surface_query`."""

    source: CellSource
    recipe: dict[str, Any]
    guarantee: Guarantee
    stated: Stated

    @property
    def description(self) -> str:
        """The names of the columns."""
        return f"surface of {self.source.y} over {' and '.join(self.source.x)}"

    @property
    def mechanism_name(self) -> str:
        """The class of the estimator."""
        return ESTIMATOR

    def parameters(self) -> dict[str, Any]:
        """Columns, settings of the estimator, guarantee and rules."""
        return {
            "kind": SurfaceManifest.name,
            "x": list(self.source.x),
            "y": self.source.y,
            "mechanism": self.recipe,
            "guarantee": guarantee_to(self.guarantee),
            "rules": self.source.unit_entry(),
        }

    def read(self, frame: Frame) -> Cells:
        """How many records fall in each cell."""
        return count_cells(self.source, frame)

    def estimator(self) -> PrivatePosetRegression:
        """A new estimator."""
        from isotone.release.recipes import surface_estimator

        return surface_estimator(self.recipe, self.guarantee.unit)

    def draw(self, statistic: Cells) -> PrivatePosetRegression:
        """The fitted surface."""
        places = middles(self.source.bounds, self.source.bins)
        x = np.stack([at[statistic.bins[:, axis]] for axis, at in enumerate(places)], axis=1)
        return fit_counted(self.estimator(), x, statistic.y, statistic.count, self.source.y_range)

    def publish(self, drawn: PrivatePosetRegression, stamp: Stamp) -> Release:
        """A row for each cell, with the middles of its bins, and the value."""
        cells = np.array(list(product(*middles(self.source.bounds, self.source.bins))))
        columns: dict[str, tuple[Any, ...]] = {
            "x1": tuple(np.round(cells[:, 0], 12).tolist()),
            "x2": tuple(np.round(cells[:, 1], 12).tolist()),
            "value": tuple(np.round(drawn.predict(cells), 12).tolist()),
        }
        return seal(columns, SurfaceManifest(**self.parameters() | self.entries(stamp)))
