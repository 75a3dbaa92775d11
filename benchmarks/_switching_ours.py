"""isotone's ways for the comparison with other libraries."""

from __future__ import annotations

import numpy as np

from benchmarks._switching_measure import Data, Release, serve
from isotone.counts import OrderGaussianMechanism, PosetMechanism, relax
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.curves import PrivateIsotonicRegression
from isotone.order import Poset
from isotone.tables import TwoStageMechanism


def _order(data: Data) -> Poset:
    return Poset(range(data["answers"].shape[1]), [tuple(pair) for pair in data["covers"].tolist()])


def _counts(mechanism: AdditiveMechanism, data: Data) -> Release:
    P, answers, variance = mechanism.P, data["answers"], mechanism.error().variance
    return lambda: {"raw": mechanism.release(P.close_all(answers).sum(axis=0)), "variance": variance}


def poset(data: Data) -> Release:
    P = _order(data)
    relaxation = relax(P, seconds=20) if len(P) > 100 else None
    return _counts(PosetMechanism(P, float(data["epsilon"]), relaxation=relaxation), data)


def order_gaussian(data: Data) -> Release:
    largest, P = int(data["largest"]), _order(data)
    bound = largest if largest < len(P) else None
    epsilon, delta = float(data["epsilon"]), float(data["delta"])
    return _counts(OrderGaussianMechanism(P, epsilon, delta, max_size=bound), data)


def table(data: Data) -> Release:
    mechanism = TwoStageMechanism(int(data["upper"]), float(data["epsilon"]))
    return lambda: {"raw": mechanism.release(data["counts"])}


def curve(data: Data) -> Release:
    x, y = data["x"], data["y"]

    def release() -> dict[str, object]:
        model = PrivateIsotonicRegression(
            float(data["epsilon"]), (0, 1), y_values=(0, 1), output="records"
        ).fit(x, y)
        return {"raw": model.predict(x), "shown": model.predict(np.linspace(0, 1, 201))}

    return release


if __name__ == "__main__":
    serve({"poset": poset, "order_gaussian": order_gaussian, "table": table, "curve": curve})
