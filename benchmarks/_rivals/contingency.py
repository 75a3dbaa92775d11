"""OpenDP's contingency table in its own environment: fixed marginals of people by attributes.

``IN.npz OUT.npz``. In: how many people are in each cell, ρ, how often to release. Out: the estimated
margins of each way.
"""

# pyright: reportMissingImports=false, reportPrivateImportUsage=false

from __future__ import annotations

import itertools
import sys
import warnings
from typing import Any

import numpy as np

__all__ = ["WAYS"]

WAYS = {
    "keys": ("keys", "mirror descent"),
    "cuts": ("cuts", "mirror descent"),
    "cuts, L-BFGS": ("cuts", "L-BFGS"),
}
"""How values are named, and how the model is fitted: mirror descent is OpenDP's own choice."""


def main(source: str, target: str) -> None:
    warnings.simplefilter("ignore")
    import importlib.metadata

    import opendp.prelude as dp

    dp.enable_features("contrib")
    with np.load(source) as stored:
        data = {key: stored[key] for key in stored.files}
    result: dict[str, Any] = {}
    for way, choices in WAYS.items():
        released = [_release(data, *choices) for _ in range(int(data["draws"]))]
        for k in range(len(data["margins"])):
            result[f"{way}: {k}"] = np.array([each[k] for each in released])
    np.savez(target, version=importlib.metadata.version("opendp"), **result)


def _release(data: dict[str, Any], values: str, fit: str) -> list[Any]:
    """One release, as estimates of the margins."""
    import opendp.prelude as dp
    from opendp.extras.mbi import Count, Fixed, mirror_descent

    cells, margins = data["cells"], data["margins"].astype(bool)
    sizes = {f"a{i}": size for i, size in enumerate(cells.shape)}
    queries = [Count(tuple(np.array(list(sizes))[m].tolist())) for m in margins if m.any()]
    context = dp.Context.compositor(
        data=_people(cells, sizes),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=float(data["rho"])),
        split_evenly_over=1,
    )
    named: dict[str, Any]
    if values == "keys":
        named = {"keys": {name: list(range(size)) for name, size in sizes.items()}}
    else:  # intervals that are closed above, one for each whole number
        named = {"cuts": {name: list(range(size - 1)) for name, size in sizes.items()}}
    algorithm = Fixed(queries=queries, estimator=_lbfgs if fit == "L-BFGS" else mirror_descent)
    table = context.query().contingency_table(**named, algorithm=algorithm).release()
    return [_margin(table, sizes, margin) for margin in margins]


def _people(cells: Any, sizes: dict[str, int]) -> Any:
    import polars as pl

    places = np.array(list(itertools.product(*map(range, cells.shape))))
    people = np.repeat(places, cells.ravel(), axis=0)
    return pl.LazyFrame({name: people[:, i] for i, name in enumerate(sizes)})


def _lbfgs(domain: Any, loss_fn: Any, *, potentials: Any = None) -> Any:
    from mbi.estimation import lbfgs

    return lbfgs(domain, loss_fn, potentials=potentials)


def _margin(table: Any, sizes: dict[str, int], margin: Any) -> Any:
    """The estimated counts of a margin, of the values that are keys; OpenDP keeps a place for missing ones after them."""
    attributes = [name for name, wanted in zip(sizes, margin, strict=True) if wanted] or [*sizes][:1]
    counts = np.asarray(table.project(tuple(attributes)))[tuple(slice(0, sizes[name]) for name in attributes)]
    return counts if margin.any() else counts.sum()


if __name__ == "__main__":
    main(*sys.argv[1:])
