"""Which rows of a unit count: uniform over its rows, independent of other units, never more than declared."""

from __future__ import annotations

from collections import Counter
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from tests.support.backends import BACKENDS, every_backend
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.record_rules import SALT, chosen

from isotone.order import Poset
from isotone.reading import contributions
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.contributions import UNIT, at_most, rows_in_words
from isotone.reading.grids import PointSource, count_points
from isotone.reading.records import RecordRules, RecordSource, count_records
from isotone.reading.sources import open_source

A = Poset(["a"])
ROWS = 4


def people(units: int) -> pd.DataFrame:
    """Everybody has the same four rows."""
    return pd.DataFrame({"u": np.repeat(np.arange(units), ROWS), "v": np.tile(list("abcd"), units)})


def kept(data: Any, k: int, salt: bytes | None = None) -> dict[int, list[str]]:
    frame = open_source(data, {"answer": ["u", "v"]}).select(
        nw.col("u").cast(nw.Int64).alias(UNIT), nw.col("v")
    )
    rows = at_most(frame, k, [nw.col("v")], salt).collect().to_dict(as_series=False)
    found: dict[int, list[str]] = {}
    for unit, value in zip(rows[UNIT], rows["v"], strict=True):
        found.setdefault(unit, []).append(value)
    return found


@every_backend
def test_every_engine_keeps_the_rows_that_plain_python_keeps(backend, tmp_path):
    rows = people(30)
    found = kept(backend(rows, tmp_path), 2, SALT)
    assert found.keys() == set(range(30))
    for unit, values in found.items():
        assert sorted(values) == sorted(chosen(str(unit), "abcd", 2, lambda value: [value]))


def pairs_p(found: dict[int, list[str]]) -> float:
    """How likely the joint choices of units 0 and 1, 2 and 3, … are if uniform and independent: 16 equal cells."""
    joint = Counter((found[i][0], found[i + 1][0]) for i in range(0, len(found), 2))
    return chi_square_p([joint[a, b] for a in "abcd" for b in "abcd"], [1 / 16] * 16)


@every_backend
def test_the_choice_is_uniform_over_rows_and_independent_between_units(backend, tmp_path):
    """False-alarm rate 1e-8; people with equal rows would choose alike if the unit were no part of the hash."""
    assert pairs_p(kept(backend(people(1600), tmp_path), 1)) > FALSE_ALARM


@pytest.mark.parametrize("hashed", ["'0'", "sha256(substr(isotone_text, 1, 32) || v)"])
def test_a_choice_that_is_not_fair_is_seen(monkeypatch, hashed):
    """A constant hash, and one without the unit: the same test at the same rate finds both."""
    worse(monkeypatch, hashed)
    assert pairs_p(kept(people(1600), 1)) < FALSE_ALARM


def worse(monkeypatch: pytest.MonkeyPatch, hashed: str) -> None:
    def plant(frame: Any, text: str, name: str) -> Any:
        return nw.from_native(frame.to_native().project(f"*, {hashed} AS {name}"))

    monkeypatch.setattr(contributions, "with_sha256", plant)


def test_even_a_constant_hash_keeps_no_more_rows_than_declared(monkeypatch):
    worse(monkeypatch, "'0'")
    rows = pd.DataFrame({"u": [1] * 6 + [2] * 3, "v": list("aaabbb") + list("xyz")})
    assert {unit: len(values) for unit, values in kept(rows, 2).items()} == {1: 2, 2: 2}


def test_equal_rows_are_as_many_chances():
    """One yes among three rows, two of them equal: it is kept once in three times (false-alarm rate 1e-8)."""
    units = 3000
    data = pd.DataFrame({"u": np.repeat(np.arange(units), 3), "v": ["yes", "no", "no"] * units})
    yes = sum(values == ["yes"] for values in kept(data, 1).values())
    law = binom(units, 1 / 3)
    assert law.ppf(FALSE_ALARM / 2) <= yes <= law.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("engine", ["pandas", "polars-lazy", "ibis"])
def test_the_choice_of_a_unit_is_its_own(engine, tmp_path):
    """Rows and units added, taken away or changed elsewhere change nothing for the others."""
    alone = kept(BACKENDS[engine](people(6), tmp_path), 2, SALT)
    others = people(9).assign(u=lambda frame: frame["u"] + 3).iloc[::-1]
    others.loc[others["u"] > 5, "v"] = "changed"
    among = kept(BACKENDS[engine](others, tmp_path), 2, SALT)
    for unit in (3, 4, 5):
        assert sorted(among[unit]) == sorted(alone[unit])


def test_every_attempt_has_a_salt_of_its_own():
    data = people(200)
    assert kept(data, 1) != kept(data, 1)
    assert kept(data, 1, SALT) == kept(data, 1, SALT)


def test_bounding_does_not_favour_any_answer():
    """60,000 rows, 3 per person, 6 % yes, two rows count: about two thirds of the yeses, not the few that tie."""
    rng = np.random.default_rng(1)
    yes = rng.random(60_000) < 0.06
    data = pd.DataFrame({"u": np.repeat(np.arange(20_000), 3), "a": yes})
    rules, source = RecordRules("u", 2), RecordSource(data)
    counts, records = count_records(source, source.open(A, rules, None), A, rules)
    assert records.tolist() == [40_000]
    spread = 6 * np.sqrt(
        yes.sum() * 2 / 9
    )  # each yes is kept with 2/3; within a unit the choices exclude each other
    assert abs(counts[0, 0] - yes.sum() * 2 / 3) < spread


def test_tables_and_curves_choose_as_fairly():
    """Every person is in every category and at every x: each is chosen by a quarter of them (false-alarm rate 1e-8)."""
    units = 2000
    data = people(units).assign(x=np.tile(range(ROWS), units), y=0.5)
    table = CategorySource(data, "v", tuple("abcd"), units, unit="u")
    counted = count_categories(table, table.open())
    curve = PointSource(data, "x", "y", (0, ROWS - 1), (0, 1), ROWS - 1, 2, unit="u")  # pyright: ignore[reportArgumentType]
    points = count_points(curve, curve.open())
    for found in (counted, points.count):
        assert found.sum() == units
        assert chi_square_p(found, [1 / ROWS] * ROWS) > FALSE_ALARM


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"unit": None, "contributions": 1}, "Every row is one person."),
        ({"unit": "id", "contributions": 1}, "column id) count once"),
        ({"unit": "id", "contributions": 3}, "At most 3 rows of one person (column id) count."),
    ],
)
def test_it_is_said_how_many_rows_of_a_unit_count(rules, words):
    assert words in rows_in_words(rules, "person")
