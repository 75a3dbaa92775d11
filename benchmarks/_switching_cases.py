"""The four data sets of the comparison, who releases them, and how far a release is from the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from experiments.common import DATA, read_table
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from isotone.counts import consistent, cut_all
from isotone.order import Poset

EPSILON, DELTA, UPPER = 1.0, 1e-6, 50
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One promise about one data set: who releases it, from which data, and what the truth is."""

    title: str
    ways: Mapping[str, tuple[str, Mapping[str, Any]]]
    """The name of each row: the way, and its data. The first is isotone's best."""
    truth: Any
    P: Poset | None = None
    draws: int = 200
    slow: Mapping[str, int] = field(default_factory=dict[str, int])
    """Fewer draws for slow ways."""

    def errors(self, found: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """Root mean squared errors of the values, and what else matters for this kind of release."""
        if self.P is not None:
            return _count_errors(self.P, self.truth, found)
        return (
            _curve_errors(self.truth, found)
            if isinstance(self.truth, dict)
            else _table_errors(self.truth, found)
        )


def rising(values: Any, weights: Any) -> Floats:
    """The rising sequence closest to the values."""
    return np.asarray(isotonic_regression(values, weights=weights).x)


def rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _count_errors(P: Poset, truth: NDArray[np.int64], found: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    raw = found["raw"].astype(float)
    weights = 1 / found["variance"][0] if "variance" in found else None  # all alike in the other libraries
    repaired = [consistent(P, row, weights) for row in raw]
    return {"rmse": rms(raw - truth), "consistent": rms(np.array(repaired) - truth)}


def _table_errors(truth: NDArray[np.int64], found: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    raw = found["raw"]
    apart = [float(np.mean(np.abs(np.sort(row) - np.sort(truth)))) for row in raw]
    return {"rmse": rms(raw - truth), "distribution": float(np.mean(apart))}


def _curve_errors(truth: Mapping[str, Floats], found: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    if "raw" in found:
        error = rms(found["raw"] - truth["fit"])
        return {"rmse": error, "consistent": error}
    bins = np.minimum((truth["x"] * found["means"].shape[1]).astype(int), found["means"].shape[1] - 1)
    monotone = [rising(*row) for row in zip(found["means"], found["sizes"], strict=True)]
    return {
        "rmse": rms(found["means"][:, bins] - truth["fit"]),
        "consistent": rms(np.array(monotone)[:, bins] - truth["fit"]),
    }


def cases(quick: bool) -> list[Case]:
    """Every case; the survey only, when there is no time."""
    few = 10 if quick else None
    return survey(few) if quick else [*survey(few), *debian(), counties(), calibration()]


def survey(few: int | None) -> list[Case]:
    """The 2021 health survey: answers that have exactly the published counts, nested as the questions are."""
    rows = read_table(DATA / "survey" / "nhis2021_counts.csv")
    names = [row["variable"] for row in rows]
    P = Poset(names, [(row["variable"], row["parent"]) for row in rows if row["parent"]])
    answers = np.zeros((int(rows[0]["n"]), len(P)), dtype=bool)
    for row in rows:
        answers[: int(row["yes"]), P.index(row["variable"])] = True
    full = _counts("Survey, 11 questions, 29,482 people", P, answers, {"": len(P)}, few or 200, few or 10)
    if few:
        return full
    some = answers[::59]
    return [*full, *_counts(f"The same survey with {len(some)} people", P, some, {"": len(P)}, 200, 20)]


def debian() -> list[Case]:
    """5,000 packages and which of the 200 most needed ones each needs."""
    covers = read_table(DATA / "orders" / "debian_top200_covers.csv")
    table = pq.read_table(DATA / "orders" / "debian_records_sample.parquet")
    names = [name for name in table.schema.names if name != "package"]
    P = Poset(names, [(row["package"], row["requires"]) for row in covers])
    answers = np.column_stack([table[str(name)].to_numpy() for name in P.elements]).astype(bool)
    bounds = {"": len(P), ", max_size 100": 100}
    return _counts("Debian, 200 packages, 5,000 records", P, answers, bounds, 40, 2)


def _counts(
    title: str, P: Poset, answers: NDArray[np.bool_], bounds: Mapping[str, int], draws: int, few: int
) -> list[Case]:
    """Counts at pure ε and at (ε, δ), with records cut to each of the bounds for those that gain from it."""
    truth = answers.sum(axis=0)
    covers = np.array([(P.index(low), P.index(high)) for low, high in P.covers])

    def data(largest: int) -> dict[str, Any]:
        return {
            "answers": cut_all(P, answers, largest),
            "covers": covers,
            "largest": largest,
            "epsilon": EPSILON,
            "delta": DELTA,
        }

    whole = data(len(P))
    cut = {label: whole if size == len(P) else data(size) for label, size in bounds.items()}
    pure: dict[str, tuple[str, Mapping[str, Any]]] = {"isotone, PosetMechanism": ("poset", whole)}
    pure |= {f"OpenDP Laplace{label}": ("opendp_laplace", d) for label, d in cut.items()}
    pure |= {"diffprivlib Geometric": ("diffprivlib_geometric", whole)}
    pure |= {"PipelineDP Laplace": ("pipeline_laplace", whole)}
    both: dict[str, tuple[str, Mapping[str, Any]]] = {
        f"isotone, OrderGaussianMechanism{label}": ("order_gaussian", d) for label, d in cut.items()
    }
    both |= {f"OpenDP Gaussian{label}": ("opendp_gaussian", d) for label, d in cut.items()}
    both |= {"diffprivlib GaussianAnalytic": ("diffprivlib_gaussian", whole)}
    both |= {"PipelineDP Gaussian": ("pipeline_gaussian", whole)}
    slow = {"pipeline_laplace": few, "pipeline_gaussian": few}
    return [
        Case(f"{title}: ε = 1", pure, truth, P, draws, slow),
        Case(f"{title}: ε = 1, δ = 10⁻⁶", both, truth, P, draws, slow),
    ]


def counties() -> Case:
    """Homicides in 3,136 counties, top-coded at 50."""
    rows = read_table(DATA / "us_counties_homicides.csv")
    counts = np.array([int(row["homicides"]) for row in rows])
    data = {"counts": counts, "upper": UPPER, "epsilon": EPSILON, "delta": DELTA}
    ways = {
        "isotone, TwoStageMechanism": ("table", data),
        "OpenDP Laplace, clamped": ("opendp_table", data),
        "diffprivlib GeometricTruncated": ("diffprivlib_table", data),
        "PipelineDP Laplace, clamped": ("pipeline_table", data),
    }
    title = "Homicides in 3,136 counties: ε = 1"
    return Case(title, ways, np.minimum(counts, UPPER), draws=50, slow={"pipeline_table": 5})


def calibration() -> Case:
    """569 scores of a classifier and what was true."""
    rows = read_table(DATA / "curves" / "calibration_breast_cancer.csv")
    x = np.array([float(row["score"]) for row in rows])
    y = np.array([float(row["label"]) for row in rows])
    order = np.argsort(x, kind="stable")
    fit = np.empty_like(x)
    fit[order] = rising(y[order], None)
    data = {"x": x, "y": y, "epsilon": EPSILON, "delta": DELTA}
    ways = {
        "isotone, PrivateIsotonicRegression": ("curve", data),
        "OpenDP Laplace, 10 bins": ("opendp_curve", data),
        "diffprivlib LogisticRegression": ("diffprivlib_curve", data),
        "PipelineDP mean, 10 bins": ("pipeline_curve", data),
    }
    return Case(
        "Calibration of a classifier, 569 scores: ε = 1",
        ways,
        {"x": x, "fit": fit},
        draws=50,
        slow={"pipeline_curve": 10},
    )
