"""How isotone makes a release of the cases whose costs are compared."""

from __future__ import annotations

from benchmarks._rivals.measure import Data, Release, serve
from isotone.counts import PosetMechanism
from isotone.curves import PrivateIsotonicRegression
from isotone.order import Poset
from isotone.tables import TwoStageMechanism


def counts(data: Data) -> Release:
    answers, epsilon = data["answers"], float(data["epsilon"])
    P = Poset(range(answers.shape[1]), [tuple(pair) for pair in data["covers"].tolist()])
    mechanism = PosetMechanism(P, epsilon)
    return lambda: {"raw": mechanism.release(P.close_all(answers).sum(axis=0))}


def table(data: Data) -> Release:
    mechanism = TwoStageMechanism(int(data["upper"]), float(data["epsilon"]))
    return lambda: {"raw": mechanism.release(data["counts"])}


def curve(data: Data) -> Release:
    x, y, epsilon = data["x"], data["y"], float(data["epsilon"])
    model = PrivateIsotonicRegression(epsilon, (0, 1), y_values=(0, 1), output="records")
    return lambda: {"raw": model.fit(x, y).predict(x)}


if __name__ == "__main__":
    serve({"counts": counts, "table": table, "curve": curve})
