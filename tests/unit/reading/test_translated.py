"""Rules that are translated once say for every column what the common language says."""

import duckdb
import narwhals as nw
import polars as pl
import pytest

from isotone.reading.columns import ColumnRule, _known, as_real, as_text, as_unit, read_columns
from isotone.reading.questions import Answers, Codes, read_answer
from isotone.reading.values import unit_of

NAMES = ["a", 'a"b', "b'; --", "isotone mark 0", "isotone_0", "%s {0} ?"]
TEXTS = ["1", " Yes", "no", "", "nan", "7.0", "-inf", "JA", 'isotone mark 2"', None, "1e400", "N/A\u2028"]
RULES = [
    ColumnRule(read_answer, "", (Answers(),)),
    ColumnRule(read_answer, "", (Answers(missing="yes"),)),
    ColumnRule(read_answer, "", (Answers(yes=("ja", "7"), no=("1",)),)),
    ColumnRule(as_unit, ""),
    ColumnRule(as_text, ""),
    ColumnRule(as_real, ""),
]
TABLES = {
    "texts": pl.DataFrame({name: TEXTS[i:] + TEXTS[:i] for i, name in enumerate(NAMES)}),
    "numbers": pl.DataFrame(
        {name: [float(i), 1.0, None, 2.5, float("nan"), float("inf"), -0.0] for i, name in enumerate(NAMES)}
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_column_is_read_as_without_translation(kind):
    frame = nw.from_native(duckdb.connect().from_arrow(TABLES[kind].to_arrow()))
    schema = frame.collect_schema()
    rules = {
        f"{name} {i}": ColumnRule(rule.function, name, rule.settings)
        for i, rule in enumerate(RULES)
        for name in NAMES
    }
    _known.clear()
    plain = [rule.of(rule.column, schema[rule.column]).alias(name) for name, rule in rules.items()]
    expected = frame.select(*plain).collect().to_dict(as_series=False)
    for _ in range(2):  # translated, and remembered
        assert read_columns(frame, rules).collect().to_dict(as_series=False) == expected
    assert len(_known) == len(RULES)
    assert None not in _known.values()


def test_a_word_that_looks_like_a_mark_is_a_word():
    word = '"isotone mark 0"'
    frame = nw.from_native(duckdb.connect().query(f"SELECT unnest(['{word}', 'a', '\"a\"']) AS a"))
    rule = ColumnRule(read_answer, "a", (Answers(yes=(word,)),))
    assert read_columns(frame, {"yes": rule}).collect().to_dict(as_series=False) == {
        "yes": [True, False, False]
    }


def test_expressions_of_several_columns_stand_beside_rules():
    frame = nw.from_native(duckdb.connect().query("SELECT unnest(['1', '0']) AS a, unnest(['x', 'y']) AS b"))
    rules = {
        "both": nw.concat_str(nw.col("a"), nw.col("b")),
        "yes": ColumnRule(read_answer, "a", (Answers(),)),
    }
    assert read_columns(frame, rules).collect().to_dict(as_series=False) == {
        "both": ["1x", "0y"],
        "yes": [True, False],
    }


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr("isotone.reading.columns._MOST", 3)
    _known.clear()
    frame = nw.from_native(duckdb.connect().query("SELECT 'w4' AS a"))
    for i in range(5):
        rule = ColumnRule(read_answer, "a", (Answers(yes=(f"w{i}",)),))
        assert read_columns(frame, {"yes": rule}).collect().to_dict(as_series=False) == {"yes": [i == 4]}
        assert len(_known) <= 3


@pytest.mark.parametrize("mark", ["isotone mark 1", "isotone mark 2"])
def test_marks_in_the_data_spoil_no_rule_of_this_or_other_data(mark):
    """What a query says of its columns stands before and after what is asked of them."""
    _known.clear()
    for names in ([mark, "a", "b"], ["a", mark, "b"], ["a", "b", mark], ["c", "a", "b"]):
        said = ", ".join(f"'7.0' AS \"{name}\"" for name in names)
        frame = nw.from_native(duckdb.connect().query(f"SELECT {said}"))
        rules = {name: ColumnRule(as_text, name) for name in names}
        assert read_columns(frame, rules).collect().to_dict(as_series=False) == {
            name: ["7"] for name in names
        }
    assert len(_known) == 1


@pytest.mark.parametrize("word", ["\u0130NF", "\u0130nfinity", "inf\0", "nan\0"])
def test_words_for_nobody_are_the_same_in_every_engine(word):
    """Engines write different small letters for a capital i with a dot."""
    table = pl.DataFrame({"a": [word, "INF", "nAn\n"]})
    frames = [nw.from_native(duckdb.connect().from_arrow(table.to_arrow())), nw.from_native(table.lazy())]
    for frame in frames:
        found = read_columns(frame, {"unit": ColumnRule(as_unit, "a")}).collect().to_dict(as_series=False)
        assert found == {"unit": [unit_of(word), None, None]}
        assert unit_of(word) == word


def test_a_column_of_json_is_read_as_its_text():
    """A comparison with a word that is no JSON would fail, and only after the charge: rehearsals have texts."""
    frame = nw.from_native(
        duckdb.connect().query("""SELECT unnest(['1', '"yes"', '[1]', 'true']::JSON[]) AS a""")
    )
    for answers in (Answers(), Answers(missing="yes")):
        rules = {"yes": ColumnRule(read_answer, "a", (answers,))}
        found = read_columns(frame, rules).collect().to_dict(as_series=False)
        assert found == {"yes": [answers.says(text) for text in ("1", '"yes"', "[1]", "true")]}


def test_answers_and_codes_of_the_same_words_are_remembered_apart():
    """Codes take a boolean for an answer only if it is listed."""
    frame = nw.from_native(duckdb.connect().query("SELECT true AS a"))
    said = ("ja", "true"), ("nein", "false")
    _known.clear()
    for answers in (Answers(*said), Codes(*said), Codes(yes=("ja",), no=("nein",))):
        rules = {"yes": ColumnRule(read_answer, "a", (answers,))}
        expected = {"yes": ["true" in answers.yes]}
        assert read_columns(frame, rules).collect().to_dict(as_series=False) == expected
    assert len(_known) == 3


@pytest.mark.parametrize("kind", ["DOUBLE", "BIGINT"])
def test_a_number_that_is_a_yes_is_found_by_one_operation(kind):
    """Twice as fast as a comparison whose missing values are filled."""
    table = duckdb.connect().sql(f"SELECT CAST(x AS {kind}) AS a FROM (VALUES (1), (0), (NULL), (2)) t(x)")
    rows = read_columns(nw.from_native(table), {"x": ColumnRule(read_answer, "a", (Answers(),))}).to_native()
    assert "IS NOT DISTINCT FROM" in rows.sql_query()
    assert "COALESCE" not in rows.sql_query()
    assert rows.fetchall() == [(True,), (False,), (False,), (False,)]
