"""What a published surface must keep, by the estimator of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from isotone.privacy.guarantee import exact
from isotone.release.kinds.surface.query import middles
from isotone.release.writing.column_texts import Columns

__all__ = ["surface_faults"]

EDGE = 1e-9


def surface_faults(columns: Columns, manifest: Mapping[str, Any]) -> list[str]:
    """Faults in the cells of a surface."""
    recipe = manifest["mechanism"]
    if set(columns) != {"x1", "x2", "value"}:
        return ["the columns are not those of a surface"]
    if len(manifest["x"]) != 2:
        return ["a surface has two columns"]
    bounds = [[exact(end, "bounds") for end in pair] for pair in recipe["bounds"]]
    bins = [int(size) for size in recipe["bins"]]
    if min(bins) < 1 or max(bins) > 64:
        return ["the numbers of bins are none that a surface has"]
    cells = np.array(list(product(*middles(bounds, bins))))
    stated = np.array([columns["x1"], columns["x2"]], dtype=float).T
    scale = EDGE * max(1.0, float(np.abs(cells).max()))
    if stated.shape != cells.shape or not np.all(np.abs(stated - cells) <= scale):
        return ["the cells are not those of the mechanism"]
    value = np.array(columns["value"], dtype=float).reshape(bins)
    low, high = (float(exact(end, "y_range")) for end in recipe["y_range"])
    edge = EDGE * max(abs(low), abs(high), 1.0)
    if not np.all((value >= low - edge) & (value <= high + edge)):
        return ["a value leaves the range of y"]
    for axis, rises in enumerate(recipe["directions"]):
        steps = np.diff(value, axis=axis)
        if np.any((steps if rises else -steps) < -edge):
            return ["the surface is not monotone in the directions stated"]
    return []
