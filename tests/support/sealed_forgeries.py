"""Honest releases of each sort, and one line for each forgery that is made of them and sealed anew."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import isotone as iso
from tests.support import flat

N_ORDER = [("a", "c"), ("b", "c"), ("b", "d")]
ONE_OF_TWO = iso.Poset("abcd", [("a", "c"), ("b", "c")], [("exclusive", ["a", "b"])])
ONE_MUST_BE = iso.Poset("abcd", [("a", "c"), ("b", "c")], [("partition", ["a", "b"])])


def survey(size=60):
    rng = np.random.default_rng(1)
    answers = {name: rng.integers(0, 2, size) for name in "abcd"}
    return pa.table({"person": range(size), "region": ["north", "south"] * (size // 2), **answers})


def honest(folder: Path) -> None:
    """One saved release of each sort; ``simulated`` has errors that no formula gives."""
    ledger = iso.Ledger(folder / "ledger", epsilon=100)
    swapping = iso.Ledger(folder / "swapping", epsilon=100, neighbours="replace")
    P = iso.Poset("abcd", N_ORDER)
    common: dict[str, Any] = {"epsilon": 1, "unit": "person", "title": "Four <questions>"}
    named: dict[str, Any] = {"mechanism": "PosetMechanism", **common}
    groups: dict[str, Any] = {"by": "region", "groups": ["north", "south"]}
    data = survey()
    points = pa.table({"person": range(50), "x": np.linspace(0, 10, 50), "y": np.linspace(0, 1, 50)})
    line: dict[str, Any] = {"x": "x", "y": "y", "bounds": (0, 10), "y_range": (0, 1), "contributions": 2}
    line |= {"epsilon": 1, "unit": "person"}
    released = {
        "counts": flat.counts(data, P, ledger=ledger, total=True, contributions=2, **named),
        "laplace": flat.counts(data, P, ledger=ledger, **common, mechanism="LaplaceMechanism", max_size=2),
        "groups": flat.counts(data, P, ledger=ledger, total=True, **named, **groups),
        "swapped": flat.counts(data, P, ledger=swapping, neighbours="replace", **named, **groups),
        "gaussian": flat.counts(data, P, ledger=iso.Ledger(folder / "rho", rho=9), rho=1, unit="person"),
        "exclusive": flat.counts(data, ONE_OF_TWO, ledger=ledger, **common),
        "cut": flat.counts(data, ONE_OF_TWO, ledger=ledger, **common, mechanism="LaplaceMechanism", max_size=2),
        "partition": flat.counts(data, ONE_MUST_BE, ledger=ledger, **common),
        "table": flat.table(
            data, category="region", categories=["north", "south", "east", "west"], upper=20, epsilon=1, unit="person",
            ledger=ledger, contributions=2,
        ),
        "curve": flat.curve(points, ledger=ledger, **line),
        "bare": flat.curve(points, ledger=ledger, band="none", **line),
    }  # fmt: skip
    released["consistent"] = released["counts"].consistent()
    for name, release in released.items():
        release.save(folder / name)


HONEST = [
    "counts",
    "laplace",
    "groups",
    "swapped",
    "gaussian",
    "exclusive",
    "cut",
    "partition",
    "table",
    "curve",
    "bare",
    "consistent",
]


def put(*path, to):
    """A change of one entry of the manifest."""

    def change(m, c):
        for key in path[:-1]:
            m = m[key]
        m[path[-1]] = to(m[path[-1]]) if callable(to) else to

    return change


def column(name, to, rows=None):
    """A change of a column: of all rows, or of some."""

    def change(m, c):
        c[name] = [to(x) if rows is None or k in rows else x for k, x in enumerate(c[name])]

    return change


def both(*changes):
    def change(m, c):
        for part in changes:
            part(m, c)

    return change


def swap(name):
    def change(m, c):
        c[name] = [c[name][1], c[name][0], *c[name][2:]]

    return change


def renamed_elements(m, c):
    new = {"a": "x", "b": "b", "c": "c", "d": "d"}
    c["element"] = [new[x] for x in c["element"]]


def narrower(m, c):
    for name in ("low", "low_all"):
        c[name] = [min(x + 1, v) for x, v in zip(c[name], c["value"], strict=True)]


FORGERIES = [
    # forgery, the release it is made of, the change, and the check that must fail
    ("epsilon is halved", "counts", put("guarantee", "epsilon", to="1/2"), "guarantee"),
    ("epsilon of a table is halved", "table", put("guarantee", "epsilon", to="1/2"), "guarantee"),
    ("epsilon of a curve is halved", "curve", put("guarantee", "epsilon", to="1/2"), "guarantee"),
    ("rho is halved", "gaussian", put("guarantee", "rho", to="1/2"), "guarantee"),
    ("pure for zCDP", "gaussian", put("guarantee", "kind", to="pure"), "guarantee"),
    ("delta is denied", "gaussian", put("guarantee", to={"kind": "approximate", "epsilon": "9", "delta": "1/9",
        "rho": "0", "neighbours": "add-remove", "unit": "person"}), "guarantee"),
    ("replace for add-remove", "counts", put("guarantee", "neighbours", to="replace"), "guarantee"),
    ("replace for add-remove, table", "table", put("guarantee", "neighbours", to="replace"), "guarantee"),
    ("replace for add-remove, curve", "curve", put("guarantee", "neighbours", to="replace"), "guarantee"),
    ("rules let more records through", "counts", put("description", "unit", "contributions", to=3), "guarantee"),
    ("rules let more rows through, table", "table", put("description", "unit", "contributions", to=1000), "guarantee"),
    ("rules let more rows through, curve", "curve", put("description", "unit", "contributions", to=3), "guarantee"),
    ("noise for fewer records", "counts", put("mechanism", "contributions", to=1), "guarantee"),
    ("noise for fewer records, table", "table", put("mechanism", "contributions", to=1), "guarantee"),
    ("noise for fewer records, curve", "curve", put("mechanism", "contributions", to=1), "guarantee"),
    ("rules of another unit", "counts", put("description", "unit", "name", to="household"), "guarantee"),
    ("rules of another unit, table", "table", put("description", "unit", "name", to="household"), "guarantee"),
    ("rules of another unit, curve", "curve", put("description", "unit", "name", to="household"), "guarantee"),
    ("rules ask for another mechanism", "counts", put("description", "mechanism", to="LaplaceMechanism"), "guarantee"),
    ("rules let longer records through", "laplace", put("description", "max_size", to=3), "guarantee"),
    ("rules do not cut", "laplace", put("description", "max_size", to=None), "guarantee"),
    ("rules leave broken records as they are", "counts", put("description", "answers", "on_violation", to="keep"), "guarantee"),
    ("rules count half a missing answer", "counts", put("description", "answers", "missing", to="1/2"), "guarantee"),
    ("rules without a yes", "counts", put("description", "answers", "yes", to=[]), "guarantee"),
    ("rules of another form", "counts", put("description", "answers", "element", to=3), "guarantee"),
    ("rules keep several options", "exclusive", put("description", "answers", "on_conflict", to="keep"), "guarantee"),
    ("rules forget the options", "exclusive", lambda m, c: m["description"]["answers"].pop("on_conflict"), "error"),
    ("groups under replace at full epsilon", "swapped", put("mechanism", "epsilon", to="1"), "guarantee"),
    ("groups under replace with noise for replacing", "swapped",
        both(put("mechanism", "epsilon", to="1"), put("mechanism", "neighbours", to="replace")), "guarantee"),
    ("a total without noise for it", "laplace", both(put("description", "answers", "on_violation", to="close"),
        lambda m, c: m.update(total=60, total_sd=1.0)), "guarantee"),
    ("the mechanism is unknown", "counts", put("mechanism", "name", to="NoMechanism"), "guarantee"),
    ("the mechanism has odd arguments", "counts", lambda m, c: m["mechanism"].update(ledger="x"), "guarantee"),
    ("a ledger in the recipe of a curve", "curve", lambda m, c: m["mechanism"].update(ledger="x"), "guarantee"),
    ("sd a tenth larger", "counts", column("sd", lambda x: round(x * 1.1, 4)), "error"),
    ("sd a tenth smaller", "counts", column("sd", lambda x: round(x * 0.9, 4)), "error"),
    ("one sd a tenth smaller", "groups", column("sd", lambda x: round(x * 0.9, 4), {5}), "error"),
    ("sd of a Gaussian a hundredth smaller", "gaussian", column("sd", lambda x: round(x * 0.99, 4)), "error"),
    ("sd of a table a tenth smaller", "table", column("sd", lambda x: round(x * 0.9, 4)), "error"),
    ("sd and total_sd of another guarantee", "counts", put("total_sd", to=lambda x: x * 0.9), "error"),
    ("total_sd is forgotten", "counts", lambda m, c: m.pop("total_sd"), "error"),
    ("a total for each of three groups", "groups", put("total", to=[1, 2, 3]), "error"),
    ("low nearer", "counts", column("low", lambda x: x + 2, {1}), "error"),
    ("high nearer", "counts", column("high", lambda x: x - 2, {1}), "error"),
    ("low_all nearer", "groups", column("low_all", lambda x: x + 3, {6}), "error"),
    ("high_all nearer", "groups", column("high_all", lambda x: x - 3, {6}), "error"),
    ("all ends one nearer", "laplace", narrower, "error"),
    ("high of the Gaussian nearer", "gaussian", column("high", lambda x: x - 1, {2}), "error"),
    ("high of consistent values nearer", "consistent", column("high", lambda x: x - 1, {2}), "error"),
    ("low of a table nearer", "table", column("low", lambda x: 19 if x < 19 else 18, {0}), "error"),
    ("high of a table nearer", "table", column("high", lambda x: 0 if x > 0 else 1, {1}), "error"),
    ("another confidence", "counts", put("description", "confidence", to=0.5), "error"),
    ("a confidence of 2", "counts", put("description", "confidence", to=2.0), "error"),
    ("two labels swapped", "counts", swap("element"), "error"),
    ("two groups swapped", "groups", lambda m, c: c.update(group=c["group"][::-1]), "error"),
    ("an element renamed", "counts", renamed_elements, "error"),
    ("a row left out", "counts", lambda m, c: [part.pop() for part in c.values()], "error"),
    ("a group left out", "groups", lambda m, c: c.update({k: v[:4] for k, v in c.items()}), "error"),
    ("a column more", "counts", lambda m, c: c.update(truth=[1, 2, 3, 4]), "error"),
    ("a column less", "counts", lambda m, c: c.pop("high_all"), "error"),
    ("a category twice", "table", lambda m, c: c["category"].__setitem__(1, c["category"][0]), "error"),
    ("values are no counts", "counts", column("value", lambda x: x + 0.5), "error"),
    ("consistent values that break the order", "consistent",
        lambda m, c: c.update(value=[9, 0, 0, 0]), "error"),
    ("nonsense for the largest count", "table", put("description", "upper", to=10**6), "error"),
    ("another largest count in the rules", "table", put("description", "upper", to=19), "error"),
    ("another largest count in the mechanism", "table", put("mechanism", "upper", to=30), "error"),
    ("a negative largest count", "table", put("description", "upper", to=-1), "error"),
    ("a distribution that is none", "table", put("distribution", to=lambda z: [x * 2 for x in z]), "error"),
    ("a distribution cut off", "table", put("distribution", to=lambda z: z[:-1]), "error"),
    ("a value above the largest count", "table", column("value", lambda x: 21, {0}), "error"),
    ("another method", "table", put("method", to="other"), "error"),
    ("another range of x", "curve", put("description", "bounds", to=["0", "100"]), "error"),
    ("another range of y", "curve", put("description", "y_range", to=["0", "2"]), "error"),
    ("a curve upside down", "bare", lambda m, c: c.update(value=[0.9, *([0.5] * (len(c["value"]) - 2)), 0.1]), "error"),
    ("a curve said to fall", "curve", put("increasing", to=False), "error"),
    ("a value outside its range", "bare", column("value", lambda y: y + 2), "error"),
    ("another sum of a curve without a band", "bare", lambda m, c: m["sums"]["ones"].__setitem__(0, m["sums"]["ones"][0] + 10**8), "error"),
    ("another sum of a curve", "curve", lambda m, c: m["sums"]["zeros"].__setitem__(0, m["sums"]["zeros"][0] + 10**8), "error"),
    ("bins of sums that begin one point later", "curve", put("sums", "starts", to=lambda at: [*at[:-1], at[-1] + 1]), "error"),
    ("consistent, and said to be no whole numbers", "consistent", put("derived", "integers", to=lambda whole: not whole), "error"),
    ("x outside its bounds", "curve", column("x", lambda x: x + 100), "error"),
    ("x not ascending", "curve", lambda m, c: c.update(x=c["x"][::-1]) if len(c["x"]) > 1 else None, "error"),
]  # fmt: skip
