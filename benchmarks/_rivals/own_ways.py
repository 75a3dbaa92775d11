"""How isotone makes a release of the cases whose costs are compared."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

import isotone as iso
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


def _charged(description: Any, rows: pa.Table, data: Data) -> Release:
    """The call of a user: data of a frame, a ledger on disk that is charged before they are read, all checks."""
    place = tempfile.mkdtemp()
    ledger = iso.Ledger(Path(place) / "spent.ledger", epsilon=10_000, unit=description.unit.name)
    epsilon = float(data["epsilon"])

    def release() -> dict[str, Any]:
        description.release(rows, epsilon=epsilon, ledger=ledger)
        return {"raw": 0}  # only its cost is asked for

    return release


def counts_charged(data: Data) -> Release:
    answers = data["answers"]
    names = [f"q{i}" for i in range(answers.shape[1])]
    P = Poset(names, [(names[a], names[b]) for a, b in data["covers"].tolist()])
    columns = {name: answers[:, i].astype(int) for i, name in enumerate(names)}
    rows = pa.table({"person": range(len(answers)), **columns})
    return _charged(iso.Counts(P, unit="person"), rows, data)


def table_charged(data: Data) -> Release:
    names = [f"county {i}" for i in range(len(data["counts"]))]
    description = iso.Table(
        "county", names, count="homicides", upper=int(data["upper"]), unit=iso.Unit(name="victim")
    )
    rows = pa.table({"county": names, "homicides": data["counts"]})
    return _charged(description, rows, data)


def curve_charged(data: Data) -> Release:
    description = iso.Curve(x="x", y="y", bounds=(0, 1), y_values=(0, 1), unit="person")
    rows = pa.table({"person": range(len(data["x"])), "x": data["x"], "y": data["y"]})
    return _charged(description, rows, data)


if __name__ == "__main__":
    own = {"counts": counts, "table": table, "curve": curve}
    charged = {
        "counts_charged": counts_charged,
        "table_charged": table_charged,
        "curve_charged": curve_charged,
    }
    serve(own | charged)
