"""OpenDP's contingency table in its own environment: fixed marginals of people by attributes.

``IN.npz OUT.npz``. In: how many people are in each cell, ρ, how often to release. Out: the estimated margins.
"""

# pyright: reportMissingImports=false, reportPrivateImportUsage=false

from __future__ import annotations

import itertools
import sys
import warnings
from typing import Any

import numpy as np

__all__: list[str] = []


def main(source: str, target: str) -> None:
    warnings.simplefilter("ignore")
    import importlib.metadata

    import opendp.prelude as dp
    import polars as pl
    from opendp.extras.mbi import Count, Fixed

    dp.enable_features("contrib")
    with np.load(source) as stored:
        data = {key: stored[key] for key in stored.files}
    cells, margins = data["cells"], data["margins"].astype(bool)
    names = [f"a{i}" for i in range(cells.ndim)]
    places = np.array(list(itertools.product(*map(range, cells.shape))))
    people = np.repeat(places, cells.ravel(), axis=0)
    frame = pl.LazyFrame({name: people[:, i] for i, name in enumerate(names)})
    keys = {name: list(range(size)) for name, size in zip(names, cells.shape, strict=True)}
    queries = [Count(tuple(np.array(names)[m].tolist())) for m in margins if m.any()]
    released: list[list[Any]] = []
    for _ in range(int(data["draws"])):
        context = dp.Context.compositor(
            data=frame,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(rho=float(data["rho"])),
            split_evenly_over=1,
        )
        table = context.query().contingency_table(keys=keys, algorithm=Fixed(queries=queries)).release()
        sizes = dict(zip(names, cells.shape, strict=True))
        released.append([_margin(table, sizes, margin) for margin in margins])
    result: dict[str, Any] = {
        f"margin_{k}": np.array([each[k] for each in released]) for k in range(len(margins))
    }
    np.savez(target, version=importlib.metadata.version("opendp"), **result)


def _margin(table: Any, sizes: dict[str, int], margin: Any) -> Any:
    """The estimated counts of a margin, of the values that are keys; OpenDP keeps a place for missing ones after them."""
    attributes = [name for name, wanted in zip(sizes, margin, strict=True) if wanted] or [*sizes][:1]
    counts = np.asarray(table.project(tuple(attributes)))[tuple(slice(0, sizes[name]) for name in attributes)]
    return counts if margin.any() else counts.sum()


if __name__ == "__main__":
    main(*sys.argv[1:])
