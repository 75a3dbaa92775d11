"""How OpenDP, diffprivlib, PipelineDP and InterpretML make a release, each used as its own pages show.

This file runs in an environment of its own, where isotone is not installed: diffprivlib needs an older scikit-learn.
"""

# OpenDP re-exports its names from the prelude without declaring them; the others are not in this environment.
# pyright: reportPrivateImportUsage=false, reportMissingImports=false

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._rivals.measure import Data, Release, Way, serve

BINS = 10
"""The usual number of bins of a reliability diagram."""


def opendp_laplace(data: Data) -> Release:
    """The Laplace mechanism on the vector of counts, calibrated in ℓ1."""
    add_noise = _opendp_laplace(int(data["largest"]), float(data["epsilon"]))
    return lambda: {"raw": add_noise(data["answers"].sum(axis=0).tolist())}


def _opendp_laplace(sensitivity: int, epsilon: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)

    def make(scale: float) -> Any:
        return dp.m.make_laplace(*space, scale=scale)

    return make(dp.binary_search_param(make, d_in=sensitivity, d_out=epsilon))


def diffprivlib_geometric(data: Data) -> Release:
    from diffprivlib.mechanisms import Geometric

    noise = Geometric(epsilon=float(data["epsilon"]), sensitivity=int(data["largest"]))
    return lambda: {"raw": [noise.randomise(int(count)) for count in data["answers"].sum(axis=0)]}


def _pipeline(
    rows: Sequence[tuple[Any, ...]],
    partitions: int,
    each: int,
    epsilon: float,
    metric: str,
) -> list[Any]:
    """An aggregate for each of the public partitions, which one person may have ``each`` of, once."""
    import pipeline_dp

    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=0)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    parameters = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[getattr(pipeline_dp.Metrics, metric)],
        max_partitions_contributed=each,
        max_contributions_per_partition=1,
        min_value=0,
        max_value=1,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    result = engine.aggregate(rows, parameters, extractors, public_partitions=list(range(partitions)))
    accountant.compute_budgets()
    found = dict(result)
    return [getattr(found[i], metric.lower()) for i in range(partitions)]


def pipeline_laplace(data: Data) -> Release:
    answers = data["answers"]
    rows = [(int(i), int(j), 1) for i, j in zip(*np.nonzero(answers), strict=True)]
    settings = answers.shape[1], int(data["largest"]), float(data["epsilon"]), "COUNT"
    return lambda: {"raw": _pipeline(rows, *settings)}


def _whole(values: Any, upper: int) -> NDArray[np.int64]:
    return np.clip(np.rint(values), 0, upper).astype(np.int64)


def opendp_table(data: Data) -> Release:
    upper, add_noise = int(data["upper"]), _opendp_laplace(1, float(data["epsilon"]))
    return lambda: {"raw": _whole(add_noise(np.minimum(data["counts"], upper).tolist()), upper)}


def diffprivlib_table(data: Data) -> Release:
    from diffprivlib.mechanisms import GeometricTruncated

    upper = int(data["upper"])
    noise = GeometricTruncated(epsilon=float(data["epsilon"]), sensitivity=1, lower=0, upper=upper)
    return lambda: {"raw": [noise.randomise(int(count)) for count in np.minimum(data["counts"], upper)]}


def pipeline_table(data: Data) -> Release:
    counts, upper = data["counts"], int(data["upper"])
    rows = [(i, int(county), 1) for i, county in enumerate(np.repeat(np.arange(counts.size), counts))]
    epsilon = float(data["epsilon"])
    return lambda: {"raw": _whole(_pipeline(rows, counts.size, 1, epsilon, "COUNT"), upper)}


def _bins(x: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum((x * BINS).astype(np.int64), BINS - 1)


def opendp_curve(data: Data) -> Release:
    """Noisy counts and noisy sums of labels in equal bins, half of ε each."""
    add_noise = _opendp_laplace(1, float(data["epsilon"]) / 2)

    def release() -> dict[str, Any]:
        bins, labels = _bins(data["x"]), data["y"].astype(np.int64)
        sizes = np.array(add_noise(np.bincount(bins, minlength=BINS).tolist()))
        sums = np.array(add_noise(np.bincount(bins, labels, BINS).astype(int).tolist()))
        return {"raw": np.clip(sums / np.maximum(sizes, 1), 0, 1)}

    return release


def pipeline_curve(data: Data) -> Release:
    rows = [(i, int(b), int(y)) for i, (b, y) in enumerate(zip(_bins(data["x"]), data["y"], strict=True))]

    def release() -> dict[str, Any]:
        means = _pipeline(rows, BINS, 1, float(data["epsilon"]), "MEAN")
        return {"raw": np.clip(means, 0, 1)}

    return release


def diffprivlib_curve(data: Data) -> Release:
    """Platt's calibration: a private logistic regression on the score."""
    from diffprivlib.models import LogisticRegression

    x, y = data["x"][:, None], data["y"].astype(np.int64)

    def release() -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, about parameters that diffprivlib passes on
            model = LogisticRegression(epsilon=float(data["epsilon"]), data_norm=1.0).fit(x, y)
        return {"raw": model.predict_proba(x)[:, 1]}

    return release


def interpret_curve(data: Data) -> Release:
    """InterpretML's private boosting of one feature: with the given learning rate, else its own."""
    from interpret.privacy import DPExplainableBoostingClassifier

    x, y = data["x"][:, None], data["y"].astype(np.int64)
    promise: dict[str, Any] = {"epsilon": float(data["epsilon"]), "delta": float(data["delta"])}
    if "learning_rate" in data:
        promise["learning_rate"] = float(data["learning_rate"])

    def release() -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its guesses about types
            model = DPExplainableBoostingClassifier(privacy_bounds={0: (0.0, 1.0)}, n_jobs=1, **promise)
            return {"raw": model.fit(x, y).predict_proba(x)[:, 1]}

    return release


WAYS: dict[str, Way] = {
    "opendp_laplace": opendp_laplace,
    "diffprivlib_geometric": diffprivlib_geometric,
    "pipeline_laplace": pipeline_laplace,
    "opendp_table": opendp_table,
    "diffprivlib_table": diffprivlib_table,
    "pipeline_table": pipeline_table,
    "opendp_curve": opendp_curve,
    "diffprivlib_curve": diffprivlib_curve,
    "interpret_curve": interpret_curve,
    "pipeline_curve": pipeline_curve,
}

if __name__ == "__main__":
    serve(WAYS)
