"""One test for every release and every source: what reaches the mechanism is what plain Python computes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.backends import every_backend
from tests.support.record_rules import SALT, chosen

from isotone.counts.mechanism import AdditiveMechanism, LinearCounts
from isotone.curves import PrivateIsotonicRegression
from isotone.order import Poset
from isotone.reading import contributions
from isotone.release import Ledger
from isotone.tables import TwoStageMechanism

P = Poset(["hyp", "twice", "meds", "year"], [("twice", "hyp"), ("meds", "hyp"), ("year", "twice")])
COUNTIES = ("Ada", "Bex", "Ulm")
YES = {"1", "true", "t", "yes", "y"}
NUMBER = re.compile(r"^[-+]?([0-9]{1,30}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,2})?$")

Row = dict[str, Any]


def messy() -> pd.DataFrame:
    """People with several rows or without a name, words of all kinds, numbers that are none."""
    rng = np.random.default_rng(11)

    def column(*values: str | None) -> list[str | None]:
        return [values[i] for i in rng.integers(0, len(values), 180)]

    people = column(None, *(f"p{i}" for i in range(50)))
    answers = {x: column("yes", " YES", "1", "no", "0", "", "maybe", "TRUE ", None) for x in P.elements}
    return pd.DataFrame(
        {
            "person": people,
            **answers,
            "item": column("hyp", " twice", "meds ", "year", "Hyp", "unheard of", "", None),
            "county": column("Ada", " Bex ", "Ulm", "Atlantis", "ada", "", None),
            "age": column("0", "34", " 35.0", "35", "99.9", "-4", "1e3", "old", "nan", "inf", "", None),
            "risk": column("0", "0.5", ".25", "1", "7", "-1", "1e-3", "high", "1,5", None),
        }
    )


def by_person(rows: list[Row]) -> dict[str, list[Row]]:
    people: dict[str, list[Row]] = {}
    for row in rows:
        if row["person"] is not None:
            people.setdefault(row["person"], []).append(row)
    return people


def closed_and_cut(record: set[Any], size: int) -> list[Any]:
    closed = {x for x in P.elements if any(P.leq(a, x) for a in record)}
    return [x for x in reversed(list(P.canonical.order)) if x in closed][:size]


def wide_by_hand(rows: list[Row]) -> list[int]:
    found = Counter[Any]()
    for group in by_person(rows).values():
        said = {x for x in P.elements for row in group if (row[str(x)] or "").strip().lower() in YES}
        found.update(closed_and_cut(said, 2))
    return [found[x] for x in P.elements]


def long_by_hand(rows: list[Row]) -> list[int]:
    found = Counter[Any]()
    for group in by_person(rows).values():
        found.update(closed_and_cut({(row["item"] or "").strip() for row in group} & set(P.elements), 4))
    return [found[x] for x in P.elements]


def table_by_hand(rows: list[Row]) -> list[int]:
    found = Counter[str]()
    for person, group in by_person(rows).items():
        named = {(row["county"] or "").strip() for row in group} & set(COUNTIES)
        found.update(chosen(person, named, 2, lambda name: [name]))
    return [found[name] for name in COUNTIES]


def real(text: str | None) -> float | None:
    if text is None:
        return None
    return float(text) if NUMBER.match(text := text.strip()) or text == "inf" else None


def snapped(value: float, high: float, steps: int) -> int:
    return math.floor(min(max(value, 0.0), high) / high * steps + 0.5)


def curve_by_hand(rows: list[Row]) -> list[tuple[float, float]]:
    points: list[tuple[int, int]] = []
    for person, group in by_person(rows).items():
        pairs = [(real(row["age"]), real(row["risk"])) for row in group]
        grid = [
            (snapped(x, 100, 20), snapped(y, 1, 1 << 16)) for x, y in pairs if x is not None and y is not None
        ]
        points += chosen(person, grid, 2, lambda point: [str(point[0]), str(point[1])])
    return sorted((x * 5.0, y / (1 << 16)) for x, y in points)


def spy(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[Any]:
    """What a mechanism is given, the data last (a trial run on nothing may come before); it goes on as ever."""
    seen: list[Any] = []
    original = getattr(kind, name)

    def watched(self: Any, *statistic: Any, **other: Any) -> Any:
        seen.append(statistic)
        return original(self, *statistic, **other)

    monkeypatch.setattr(kind, name, watched)
    return seen


def wide(data: Any, ledger: Ledger, patch: pytest.MonkeyPatch) -> Any:
    seen = spy(patch, LinearCounts, "release")
    flat.counts(
        data, P, epsilon=1, ledger=ledger, unit="person", max_size=2, mechanism="DiscreteLaplaceMechanism"
    )
    return seen[-1][0].tolist()


def long(data: Any, ledger: Ledger, patch: pytest.MonkeyPatch) -> Any:
    seen = spy(patch, AdditiveMechanism, "release")
    flat.counts(data, P, epsilon=1, ledger=ledger, unit="person", element="item", mechanism="PosetMechanism")
    return seen[-1][0].tolist()


def table(data: Any, ledger: Ledger, patch: pytest.MonkeyPatch) -> Any:
    seen = spy(patch, TwoStageMechanism, "release_in_full")
    settings: dict[str, Any] = {"category": "county", "categories": COUNTIES, "upper": 60}
    flat.table(data, epsilon=1, ledger=ledger, unit="person", contributions=2, **settings)
    return seen[-1][0].tolist()


def curve(data: Any, ledger: Ledger, patch: pytest.MonkeyPatch) -> Any:
    seen = spy(patch, PrivateIsotonicRegression, "fit_counted")
    ranges: dict[str, Any] = {"x": "age", "y": "risk", "bounds": (0, 100), "y_range": (0, 1), "x_grid": 21}
    flat.curve(data, epsilon=1, ledger=ledger, unit="person", contributions=2, **ranges)
    _, places, levels, count = seen[-1]
    points = zip(places.tolist(), levels.tolist(), count.tolist(), strict=True)
    return sorted((x * 5.0, y / (1 << 16)) for x, y, number in points for _ in range(number))


@pytest.mark.parametrize(
    ("release", "by_hand"),
    [
        pytest.param(wide, wide_by_hand, id="counts-wide"),
        pytest.param(long, long_by_hand, id="counts-long"),
        pytest.param(table, table_by_hand, id="table"),
        pytest.param(curve, curve_by_hand, id="curve"),
    ],
)
@every_backend
def test_every_release_computes_its_statistic_from_every_source_as_plain_python_does(
    backend: Any, release: Callable[..., Any], by_hand: Callable[..., Any], tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(contributions, "random_salt", lambda: SALT)
    rows = messy()
    plain = [
        {key: None if value is None or value != value else value for key, value in row.items()}
        for row in rows.to_dict("records")
    ]
    data = backend(rows, tmp_path)
    with Ledger(tmp_path / "one.ledger", epsilon=1, unit="person") as ledger:
        found = release(data, ledger, monkeypatch)
    expected = by_hand(plain)
    assert found == expected
    assert np.sum(expected) > 0
