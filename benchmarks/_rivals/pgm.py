"""private-pgm in its own environment: noisy marginals of yes/no answers, and a graphical model that knows the skip logic.

``IN.npz OUT.npz``. In: the groups of questions whose marginals are measured, the noise of a cell, the counts of cells, the relations.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

__all__: list[str] = []


def main(source: str, target: str) -> None:
    with np.load(source) as stored:
        data = {key: stored[key] for key in stored.files}
    warnings.simplefilter("ignore")
    import importlib.metadata

    from mbi import Constraint, Domain, LinearMeasurement, estimation

    answers, groups, covers = data["answers"], data["groups"], data["covers"]
    n = answers.shape[1]
    names = [f"q{i}" for i in range(n)]
    domain = Domain(names, [2] * n)
    # a lower question is never a yes without the upper one
    skips = [
        Constraint(domain.project([names[low], names[high]]), invalid=np.array([[1, 0]]))
        for low, high in covers
    ]
    rng = np.random.default_rng(int(data["seed"]))
    laplace, estimator = bool(data["laplace"]), estimation.MirrorDescent()
    released: list[Any] = []
    for grouping, deviation in zip(groups, data["deviation"].tolist(), strict=True):
        cliques = [[i for i in range(n) if grouping[i] == g] for g in range(grouping.max() + 1)]
        tables = [_cells(answers[:, clique]) for clique in cliques]
        drawn: list[Any] = []
        for _ in range(int(data["draws"])):
            measured = [
                LinearMeasurement(
                    table + _noise(rng, laplace, deviation, table.size),
                    tuple(names[i] for i in clique),
                    deviation,
                )
                for clique, table in zip(cliques, tables, strict=True)
            ]
            model = estimator.estimate(domain, measured, constraints=skips, iters=int(data["steps"]))
            drawn.append([float(np.asarray(model.project((name,)).datavector())[1]) for name in names])
        released.append(drawn)
    np.savez(target, raw=np.array(released), version=importlib.metadata.version("mbi"))


def _noise(rng: np.random.Generator, laplace: bool, deviation: float, size: int) -> Any:
    if laplace:
        return rng.laplace(scale=deviation / np.sqrt(2), size=size)
    return rng.normal(scale=deviation, size=size)


def _cells(answers: Any) -> Any:
    """How many people are in each cell of the marginal, first question slowest."""
    place = answers.astype(np.int64) @ (1 << np.arange(answers.shape[1])[::-1])
    return np.bincount(place, minlength=1 << answers.shape[1]).astype(float)


if __name__ == "__main__":
    main(*sys.argv[1:])
