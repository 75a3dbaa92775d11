"""What one record says must not change how others are read, stop a release, or be quoted by an error."""

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.support import flat

import isotone as iso
from isotone.errors import InputError
from isotone.order import Poset
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.grids import PointSource, count_points
from isotone.reading.questions import Answers
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records
from isotone.release import verify
from isotone.release.result import load_release, seal

A = Poset(["a"], [])


def counted(
    data: Any, rules: RecordRules | None = None, groups: Groups | None = None, **source: Any
) -> list[int]:
    rules = rules or RecordRules()
    here = RecordSource(data, **source)
    return count_records(here, here.open(A, rules, groups), A, rules, groups)[0].ravel().tolist()


ODD: list[Any] = [
    "refused",
    None,
    pd.NA,
    np.nan,
    np.inf,
    [1, 2],
    np.array([1, 2]),
    {},
    b"\xff",
    object(),
    Decimal("NaN"),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "yes",
    [1, 1.0, True, "1", "1.0", Decimal("1.00"), np.int8(1), np.True_],
    ids=lambda value: type(value).__name__,
)
def test_one_odd_answer_changes_no_other(yes, odd):
    plain = pd.DataFrame({"a": [yes] * 5})
    mixed = pd.DataFrame({"a": pd.Series([*[yes] * 5, odd], dtype=object)})
    assert counted(plain) == counted(mixed) == [5]


@pytest.mark.parametrize("words", [("ja",), ("ja", "1"), ("1.5",), ("true", "2")])
@pytest.mark.parametrize("value", [1.0, 1.5, 2.0, True, False, 0.0])
def test_declared_words_mean_the_same_in_columns_of_any_type(words, value):
    rules = RecordRules(answers=Answers(yes=words))
    alone = pd.DataFrame({"a": [value] * 3})
    mixed = pd.DataFrame({"a": pd.Series([*[value] * 3, "x", None], dtype=object)})
    lazy = pl.LazyFrame({"a": [value] * 3})
    assert counted(alone, rules) == counted(mixed, rules) == counted(lazy, rules)


USUAL = ([1, 1, 2], [1.0, 1.0, 2.0], [Decimal("1.0"), Decimal(1), Decimal("2.000")])


def require_one_one_two(column: pd.Series) -> None:
    """As categories, as groups and as counts."""
    table = pd.DataFrame({"c": column, "a": 1, "u": range(len(column))})
    source = CategorySource(table, "c", ("1", "2.0"), 10)
    assert count_categories(source, source.open()).tolist() == [2, 1]
    assert counted(table, groups=Groups((("c", ("1", "2")),))) == [2, 1]
    numbers = CategorySource(table, "a", ("1",), 10, count="c")
    infinite = any(value == float("inf") for value in column if type(value) is float)
    assert count_categories(numbers, numbers.open()).tolist() == [4 + 10 * infinite]


@pytest.mark.parametrize("values", USUAL, ids=["int", "float", "Decimal"])
def test_categories_groups_and_counts_are_the_same_in_columns_of_any_type(values):
    require_one_one_two(pd.Series(values))
    require_one_one_two(pd.Series([*values, None]))


@pytest.mark.parametrize("odd", ODD, ids=lambda value: type(value).__name__)
def test_one_odd_category_group_element_or_count_changes_no_other(odd):
    for values in USUAL:
        require_one_one_two(pd.Series([*values, odd], dtype=object))
    items = pd.DataFrame({"u": [1, 2, 3], "item": pd.Series(["a", odd, "a"], dtype=object)})
    assert counted(items, RecordRules(unit="u"), element="item") == [2]


def test_equal_units_are_one_unit_in_columns_of_any_type():
    units = pd.Series([1, 1.0, Decimal("1.00"), True, "1"], dtype=object)
    table = pd.DataFrame({"a": 1, "u": units})
    assert counted(table, RecordRules(unit="u")) == [2]  # one, and the boolean


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table], ids=["pandas", "polars", "lazy", "arrow"]
)
def test_units_that_are_not_a_number_belong_to_nobody(frame):
    """Otherwise all people without a number would be one unit, and one of them could change several answers of another."""
    data = {
        "u": [1.0, float("nan"), float("nan")],
        "a": [1, 1, 0],
        "c": ["x", "x", "x"],
        "y": [0.5, 0.5, 0.5],
    }
    assert counted(frame(data), RecordRules(unit="u")) == [1]
    categories = CategorySource(frame(data), "c", ("x",), 10, unit="u")
    assert count_categories(categories, categories.open()).tolist() == [1]
    points = PointSource(frame(data), "a", "y", (0, 1), (0, 1), 4, 4, unit="u")  # pyright: ignore[reportArgumentType]
    assert count_points(points, points.open()).count.tolist() == [1]


def test_bytes_and_nested_values_are_missing_and_stop_nothing():
    for values in ([b"0", b"\xff"], [[1], [2]], [{"k": 1}, {"k": 2}]):
        for frame in (pl.LazyFrame({"a": values}), pa.table({"a": values})):
            assert counted(frame) == [0]


def test_floats_in_a_lazy_frame_are_read_as_elsewhere():
    assert counted(pl.LazyFrame({"a": [1.0, 0.0, None]})) == [1]


def test_the_keys_of_a_record_are_contents(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({"hiv_positive": 1}) + "\n" + json.dumps({"a": 1}) + "\n")
    assert counted(str(path)) == [1]
    path.write_text(json.dumps({"hiv_positive": 1}) + "\n")
    assert counted(str(path)) == [0]


def test_an_error_of_the_engine_is_not_kept_in_the_chain_of_errors(monkeypatch):
    from isotone.reading import sources

    class Broken:
        def collect(self):
            raise ValueError("Could not convert 'secret'")

    with pytest.raises(sources.SourceError) as caught:
        sources.collect(Broken())  # pyright: ignore[reportArgumentType]
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "release",
    [
        lambda ledger: flat.table(
            pd.DataFrame({"c": ["x"]}),
            category="c",
            categories=["x"],
            upper=5,
            epsilon="1e-14",
            ledger=ledger,
        ),
        lambda ledger: flat.counts(
            pd.DataFrame({"A": [1], "a": [1]}), Poset(["A", "a"], []), epsilon=1, ledger=ledger
        ),
        lambda ledger: flat.curve(
            pd.DataFrame({"x": [1], "y": [1]}),
            x="x",
            y="y",
            bounds=(0, 2000),
            y_range=(0, 1),
            x_grid=[*range(2001)],
            epsilon=1,
            ledger=ledger,
        ),
    ],
)
def test_what_is_publicly_impossible_is_refused_before_the_charge(tmp_path, release):
    with iso.Ledger(tmp_path / "some.ledger", epsilon=10) as ledger:
        with pytest.raises(InputError):
            release(ledger)
        assert ledger.charges() == []


def test_a_listed_grid_takes_each_record_to_its_nearest_point():
    table = pd.DataFrame({"x": [60.0] * 3 + [0.0, 0.4, 0.6, 50.4, 50.6, -5.0, 500.0, None], "y": 1.0})
    marks = (0.0, 1.0, 100.0)
    source = PointSource(table, "x", "y", (0, 100), (0, 1), 2, 1, marks=marks)  # pyright: ignore[reportArgumentType]
    points = count_points(source, source.open())
    assert dict(zip(points.x.tolist(), points.count.tolist(), strict=True)) == {0: 3, 1: 2, 2: 5}


def test_a_release_whose_records_do_not_fit_its_mechanism_is_found_by_a_stranger(tmp_path):
    with iso.Ledger(tmp_path / "some.ledger", epsilon=1) as ledger:
        honest = flat.counts(pd.DataFrame({"a": [1]}), A, epsilon=1, ledger=ledger)
    manifest = {key: value for key, value in honest.manifest.items() if key != "content_hash"}
    unit = {**manifest["description"]["unit"], "column": "who", "contributions": 3}
    said = {**manifest["description"], "unit": unit}
    seal(honest.columns, {**manifest, "description": said}).save(tmp_path / "out", report=False)
    assert "records of another kind" in str(verify(tmp_path / "out"))
    assert load_release(tmp_path / "out").manifest.rows["contributions"] == 3
