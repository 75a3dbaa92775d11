"""Every source gives the same numbers, and those numbers follow the declared rules record by record."""

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.support.backends import every_backend
from tests.support.record_rules import SALT, chosen

from isotone.errors import InputError
from isotone.order import Poset
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.grids import PointSource, count_points
from isotone.reading.questions import Answers
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records
from isotone.reading.sources import SourceError, open_source

SURVEY = Poset(["hyp", "twice", "meds", "year"], [("twice", "hyp"), ("meds", "hyp"), ("year", "twice")])
WORDS = ["yes", "no", "YES ", "1", "0", "", None, "garbage"]


def wide_table(rows: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "person": pd.array(rng.integers(0, 80, rows), dtype="Int64"),
            "region": rng.choice(["n", "s", "zz"], rows),
        }
    )
    table.loc[::17, "person"] = pd.NA
    for name in SURVEY.elements:
        table[name] = [WORDS[i] for i in rng.integers(0, len(WORDS), rows)]
    return table


def by_hand(table: pd.DataFrame, rules: RecordRules) -> tuple[list[int], int]:
    """The same counts, one record at a time, in plain Python."""
    rows = [
        (
            getattr(row, "person"),  # noqa: B009 (pandas types no fields)
            [str(getattr(row, str(x))).strip().lower() in ("1", "yes") for x in SURVEY.elements],
        )
        for row in table.itertuples()
    ]
    records = [answers for _, answers in rows]
    if rules.unit is not None:
        units: dict[Any, list[list[bool]]] = {}
        for person, answers in rows:
            if not pd.isna(person):
                units.setdefault(person, []).append(answers)
        if rules.contributions == 1:
            records = [[any(column) for column in zip(*group, strict=True)] for group in units.values()]
        else:
            records = [
                answers
                for person, group in units.items()
                for answers in chosen(str(person), group, rules.contributions, _said)
            ]
    counts, total = np.zeros(len(SURVEY), dtype=int), 0
    for answers in records:
        record = {x for x, yes in zip(SURVEY.elements, answers, strict=True) if yes}
        closed = SURVEY.close(record)
        if rules.on_violation == "drop" and closed != record:
            continue
        walk = [x for x in reversed(list(SURVEY.canonical.order)) if x in closed][: rules.max_size]
        total += 1
        for x in walk:
            counts[SURVEY.index(x)] += 1
    return counts.tolist(), total


def _said(answers: list[bool]) -> list[str]:
    return ["".join("1" if yes else "0" for yes in answers)]


def count(data, rules, groups=None, **where):
    source = RecordSource(data, **where)
    return count_records(source, source.open(SURVEY, rules, groups), SURVEY, rules, groups, SALT)


RULES = [
    RecordRules(),
    RecordRules(on_violation="drop"),
    RecordRules(max_size=2),
    RecordRules(unit="person"),
    RecordRules(unit="person", contributions=2),
    RecordRules(unit="person", contributions=2, on_violation="drop", max_size=1),
]


@every_backend
def test_every_source_counts_what_plain_python_counts(backend, tmp_path):
    table = wide_table()
    data = backend(table, tmp_path)
    for rules in RULES:
        counts, total = count(data, rules)
        assert (counts[0].tolist(), total[0]) == by_hand(table, rules), rules


@every_backend
def test_a_unit_in_two_groups_is_counted_in_the_first_of_the_public_list(backend, tmp_path):
    table = pd.DataFrame(
        {
            "person": ["a", "a", "b", "c", None],
            "region": ["north", "south", "south", "atlantis", "north"],
            **{x: ["yes"] * 5 for x in SURVEY.elements},
        }
    )
    groups = Groups((("region", ("south", "north", "east")),))
    counts, total = count(backend(table, tmp_path), RecordRules(unit="person"), groups)
    assert total.tolist() == [2, 0, 0]
    assert counts.tolist() == [[2, 2, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0]]


@every_backend
def test_long_data_closes_each_units_set_and_counts_units_once(backend, tmp_path):
    table = pd.DataFrame(
        {
            "person": ["a", "a", "a", "b", "b", None, "c", "d"],
            "item": ["year", "year", "meds", "unheard of", " twice", "hyp", None, "hyp"],
        }
    )
    data = backend(table, tmp_path)
    counts, total = count(data, RecordRules(unit="person"), element="item")
    assert dict(zip(SURVEY.elements, counts[0].tolist(), strict=True)) == {
        "hyp": 3,
        "twice": 2,
        "meds": 1,
        "year": 1,
    }
    assert total.tolist() == [4]
    counts, _ = count(data, RecordRules(unit="person", max_size=1), element="item")
    assert counts[0].tolist() == [3, 0, 0, 0]
    counts, total = count(data, RecordRules(unit="person", on_violation="drop"), element="item")
    assert (counts[0].tolist(), total.tolist()) == ([1, 0, 0, 0], [2])  # d, and c who has nothing


@every_backend
def test_categories_are_counted_once_per_unit_and_only_those_of_the_list(backend, tmp_path):
    table = pd.DataFrame(
        {
            "person": ["a", "a", "a", "b", "c", None, "d"],
            "county": ["x", "x", "y", "y", "atlantis", "x", None],
        }
    )
    data = backend(table, tmp_path)

    def counts(**rules):
        source = CategorySource(data, "county", ("y", "x", "z"), upper=9, **rules)
        return count_categories(source, source.open(), SALT).tolist()

    (kept,) = chosen("a", ["x", "y"], 1, lambda county: [county])
    assert counts() == [2, 3, 0]
    assert counts(unit="person") == ([1, 1, 0] if kept == "x" else [2, 0, 0])
    assert counts(unit="person", contributions=2) == [2, 1, 0]
    assert counts(unit="person", contributions=3) == [2, 1, 0]  # two rows of a in x are one


ODD = [
    "it's",
    'a"b',
    "x,y",
    "ü",
    "u\u0308",
    "A",
    "a",
    "NaN",
    "None",
    "null",
    "1",
    "%s",
    "{0}",
    "\\",
    "😀",
    "a  b",
]


@every_backend
def test_names_of_any_letters_are_found_in_the_order_of_the_list(backend, tmp_path):
    table = pd.DataFrame({"county": [name for i, name in enumerate(ODD) for _ in range(i)] + ["b", None]})
    names = ("Null", *reversed(ODD))
    source = CategorySource(backend(table, tmp_path), "county", names, upper=99)
    assert count_categories(source, source.open()).tolist() == [0, *reversed(range(len(ODD)))]


def test_a_list_may_hold_every_letter_that_could_separate_its_names():
    names = [f"a{chr(code)}b" for code in range(50)]
    for some in (names, names[:0]):
        source = CategorySource(pd.DataFrame({"v": [*names, "", "a", "b"]}), "v", tuple(some), upper=9)
        assert count_categories(source, source.open()).tolist() == [1] * len(some)


def test_a_row_is_in_one_category_where_a_table_calls_two_of_them_equal():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (v VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO t VALUES ('a'), ('a'), ('A'), ('B')")
    source = CategorySource(connection.table("t"), "v", ("A", "a", "b"), upper=9)
    assert count_categories(source, source.open()).tolist() == [1, 2, 0]


@every_backend
def test_counts_that_are_already_made_are_read_as_whole_numbers_in_range(backend, tmp_path):
    table = pd.DataFrame(
        {
            "county": ["a", "b", "c", "d", "e", "f", "g"],
            "cases": ["3", "-4", "many", None, "99", "2.5", " 7 "],
        }
    )
    source = CategorySource(backend(table, tmp_path), "county", tuple("abcdefgh"), upper=50, count="cases")
    assert count_categories(source, source.open()).tolist() == [3, 0, 0, 0, 50, 0, 7, 0]


@every_backend
def test_points_are_clamped_snapped_and_dropped_record_by_record(backend, tmp_path):
    table = pd.DataFrame(
        {
            "person": ["a", "a", "b", "c", "d", "e", None],
            "age": ["10", "9.9", "-5", "1e9", "old", "nan", "10"],
            "risk": ["0.5", "0.24", "0.5", "inf", "1", "1", "1"],
        }
    )
    data = backend(table, tmp_path)

    def points(**rules):
        unit = Fraction(0), Fraction(1)
        source = PointSource(data, "age", "risk", (Fraction(0), Fraction(20)), unit, 20, 4, **rules)
        found = count_points(source, source.open(), SALT)
        return [tuple(map(int, row)) for row in zip(found.x, found.y, found.count, strict=True)]

    (kept,) = chosen("a", [(10, 1), (10, 2)], 1, lambda point: [str(place) for place in point])
    far = (20, 4, 1)  # infinite, and so at the end of its range
    assert points() == [(0, 2, 1), (10, 1, 1), (10, 2, 1), (10, 4, 1), far]
    assert points(unit="person") == [(0, 2, 1), (*kept, 1), far]
    assert points(unit="person", contributions=2) == [(0, 2, 1), (10, 1, 1), (10, 2, 1), far]


def risks(data: Any) -> list[int]:
    """The y of the points of a table whose x is the row's number."""
    limits = (Fraction(0), Fraction(10)), (Fraction(0), Fraction(1))
    source = PointSource(data, "row", "risk", *limits, 10, 4)
    found = count_points(source, source.open())
    assert found.count.tolist() == [1] * len(found.x)
    return found.y.tolist()


@every_backend
def test_the_words_of_booleans_are_the_numbers_that_booleans_are(backend, tmp_path):
    table = pd.DataFrame(
        {"row": ["0", "1", "2", "3", "4"], "risk": ["true", " FALSE", "0.25", "True", "truth"]}
    )
    assert risks(backend(table, tmp_path)) == [4, 0, 1, 4]


@every_backend
def test_infinite_numbers_are_clamped_and_missing_ones_dropped(backend, tmp_path):
    far = ["0.25", "inf", "-Infinity", "nan", "+inf", "1e400", "0.5"]
    assert risks(backend(pd.DataFrame({"row": range(7), "risk": far}), tmp_path)) == [1, 4, 0, 4, 2]


def test_infinite_floats_are_clamped():
    far = [0.25, float("inf"), -float("inf"), float("nan"), 1e301, -1e301, 0.5]
    tables = [
        pd.DataFrame({"row": range(7), "risk": pd.Series(far, dtype=kind)})
        for kind in (float, object, "Float64")
    ]
    frames = [
        *tables,
        pl.from_pandas(tables[0]),
        pl.from_pandas(tables[0]).lazy(),
        pa.Table.from_pandas(tables[0], preserve_index=False),
    ]
    assert [risks(frame) for frame in frames] == [[1, 4, 0, 4, 0, 2]] * 6


@pytest.mark.parametrize("intruder", ["?", None, 2.5, ["list"], b"x"])
def test_one_odd_value_does_not_change_how_booleans_are_read(intruder):
    """It changes the type of the column in pandas, and so it would change everybody."""
    alone = pd.DataFrame({"row": range(3), "risk": [True, False, True]})
    beside = pd.DataFrame({"row": range(4), "risk": pd.Series([True, False, True, intruder], dtype=object)})
    assert risks(beside)[:3] == risks(alone) == [4, 0, 4]
    counts = [
        count_categories(source, source.open()).tolist()
        for table in (alone, beside)
        for source in [CategorySource(table, "row", ("0", "1", "2"), upper=5, count="risk")]
    ]
    assert counts == [[1, 0, 1]] * 2


@pytest.mark.parametrize("dtype", ["bool", "int64", "float64", "Int64"])
def test_booleans_and_numbers_need_no_words(dtype):
    table = pd.DataFrame({x: pd.array([1, 0, 1], dtype=dtype) for x in SURVEY.elements})
    counts, _ = count(table, RecordRules())
    assert counts[0].tolist() == [2, 2, 2, 2]


def test_declared_words_replace_the_usual_ones():
    table = pd.DataFrame({x: ["ja", "nein", "yes", None] for x in SURVEY.elements})
    yes = RecordRules(answers=Answers(yes=("ja",), no=("nein",)))
    assert count(table, yes)[0][0].tolist() == [1, 1, 1, 1]
    unless_no = RecordRules(answers=Answers(yes=("ja",), no=("nein",), missing="yes"))
    assert count(table, unless_no)[0][0].tolist() == [3, 3, 3, 3]


def test_mixed_objects_in_a_pandas_column_are_read_one_by_one():
    odd = [1, "yes", 2.5, None, ["list"], float("nan"), True, b"\xff", object()]
    counts, total = count(
        pd.DataFrame({x: pd.Series(odd, dtype=object) for x in SURVEY.elements}), RecordRules()
    )
    assert (counts[0].tolist(), total.tolist()) == ([3, 3, 3, 3], [9])


def test_an_empty_table_counts_nothing():
    counts, total = count(
        pd.DataFrame({x: pd.Series([], dtype=object) for x in SURVEY.elements}), RecordRules()
    )
    assert (counts.tolist(), total.tolist()) == ([[0, 0, 0, 0]], [0])


@pytest.mark.parametrize(
    "content",
    [
        b"hyp,twice,meds,year\n",
        b'hyp,twice,meds,year\n1\n1,2,3,4,5,6\n\xff\xfe,1,1,1\n"unclosed,1,1,1\n',
        b"\xef\xbb\xbfhyp,twice,meds,year\r\n1,0,0,0\r\n",
        b"hyp,twice,meds,year\n\x00,\x00,1,1\n",
    ],
)
def test_no_content_of_a_csv_makes_counting_fail(tmp_path, content):
    (tmp_path / "odd.csv").write_bytes(content)
    counts, total = count(tmp_path / "odd.csv", RecordRules())
    assert 0 <= counts.max() <= total[0] <= 4


def test_a_deep_order_is_closed_as_well():
    chain = Poset.chain([f"q{i}" for i in range(60)])
    table = pd.DataFrame({x: [int(x == "q10"), 0] for x in chain.elements})
    source, rules = RecordSource(table), RecordRules()
    counts, _ = count_records(source, source.open(chain, rules, None), chain, rules)
    assert counts[0].tolist() == [0] * 10 + [1] * 50


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: open_source(p / "none.csv", {"answer": ["a"]}), "There is no file"),
        (lambda p: open_source(p / "dta.csv", {"answer": ["a"]}), "did you mean 'data.csv'"),
        (lambda p: open_source(p / "data.xlsx", {"answer": ["a"]}), "ending '.xlsx'"),
        (lambda p: open_source(p / "nowhere" / "x.csv", {"answer": ["a"]}), "no folder"),
        (lambda p: open_source(p / "bad.parquet", {"answer": ["a"]}), "could not be opened as parquet"),
        (lambda p: open_source(p / "empty.csv", {"answer": ["a"]}), "is empty, or begins with an empty line"),
        (lambda p: open_source(p / "twice.csv", {"answer": ["a"]}), "names the column 'a' twice"),
        (lambda p: open_source(3, {"answer": ["a"]}), "not a int"),
    ],
)
def test_a_source_that_cannot_be_opened_is_explained(tmp_path, make, message):
    for name, content in {
        "data.csv": "a,b\n1,2\n",
        "data.xlsx": "x",
        "bad.parquet": "this is not parquet",
        "empty.csv": "",
        "twice.csv": "a,b,a\n",
    }.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(SourceError, match=message):
        make(tmp_path)


def test_a_missing_column_is_named_and_no_other():
    with pytest.raises(InputError, match="no column 'twice'") as caught:
        count(pd.DataFrame({"hyp": [1], "twcie": [1], "meds": [1], "year": [1]}), RecordRules())
    assert "twcie" not in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "where", "message"),
    [
        (RecordRules(), {"element": "item"}, "needs unit="),
        (RecordRules(unit="person", contributions=2), {"element": "item"}, "no meaning"),
        (RecordRules(), {"columns": {"nobody": "x"}}, "not in the order"),
    ],
)
def test_rules_that_do_not_fit_the_data_are_refused(rules, where, message):
    with pytest.raises(InputError, match=message):
        count(wide_table(3), rules, **where)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RecordRules(contributions=0),
        lambda: RecordRules(contributions=2),
        lambda: RecordRules(on_violation="ignore"),  # type: ignore[arg-type]
        lambda: RecordRules(max_size=0),
        lambda: Answers(missing="maybe"),  # type: ignore[arg-type]
        lambda: Answers(yes="yes"),  # type: ignore[arg-type]
        lambda: Answers(yes=("a",), no=("a",)),
        lambda: Groups((("region", ()),)),
        lambda: Groups((("region", ("a", "a")),)),
        lambda: CategorySource(None, "c", ("a", "a"), upper=3),
        lambda: CategorySource(None, "c", ("a",), upper=3, count="n", unit="person"),
        lambda: PointSource(None, "x", "y", (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)), 4, 4),
    ],
)
def test_rules_that_make_no_sense_are_refused(make):
    with pytest.raises(InputError):
        make()
