"""What the steward is told about the contents of the data: the truth, by the readers that releases use."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from isotone.release import load_spec

PRIVACY = '[privacy]\nepsilon = "1"\nledger = "x.ledger"\n[output]\nfolder = "out"\n'
COUNTS = '[order]\nparents = { twice = "hyp", meds = "hyp" }\n' + PRIVACY


@pytest.fixture
def told(tmp_path: Path):
    """Check a table, or the bytes of a file, under a spec; the findings as one text."""

    def look(data: pd.DataFrame | bytes, section: str, options: str = "", name: str = "data.parquet") -> str:
        if isinstance(data, bytes):
            (tmp_path / name).write_bytes(data)
        else:
            data.to_parquet(tmp_path / name)
        (tmp_path / "spec.toml").write_text(
            f'[data]\npath = "{name}"\n{options}\n{section}', encoding="utf-8"
        )
        return str(load_spec(tmp_path / "spec.toml").check())

    return look


def answers(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"hyp": 1, "twice": 1, "meds": 0, **columns})


def test_a_float_column_with_gaps_is_no_oddity(told):
    """Every column of 0 and 1 with a missing value is a float column in pandas; a release counts 1.0 as a yes."""
    text = told(pd.DataFrame({x: [1.0, 1.0, 0.0, None] for x in ("hyp", "twice", "meds")}), COUNTS)
    assert "neither yes nor no" not in text
    assert "4 records, 0 of them break the order" in text


def test_answers_are_odd_exactly_when_they_count_as_missing(told):
    text = told(pd.DataFrame({"hyp": ["YES ", "9", "9", " ", None], "twice": "no", "meds": 0}), COUNTS)
    assert "hyp: 2 values that are neither yes nor no count as no: '9' (2)" in text
    assert "twice:" not in text
    assert 'state it in [data], such as yes = ["1"] and no = ["2"]' in text
    words = told(pd.DataFrame({"hyp": ["ja", "yes"], "twice": "0", "meds": 0}), COUNTS, 'yes = ["ja"]')
    assert "hyp: 1 values that are neither yes nor no count as no: 'yes' (1)" in words


def test_it_says_which_relation_is_broken_how_often(told):
    data = pd.DataFrame({"hyp": [0, 0, 0, 1], "twice": [1, 1, 1, 1], "meds": [0, 0, 1, 1]})
    text = told(data, COUNTS)
    assert "4 records, 3 of them break the order" in text
    assert "'twice' implies 'hyp': broken by 3 records" in text
    assert "'meds' implies 'hyp': broken by 1 records" in text


def test_groups_and_elements_outside_the_list_are_named(told):
    data = answers(region=["north", "south", "South", None], person=[1, 2, 3, 4])
    text = told(data, COUNTS.replace("[order]\n", '[order]\nby = { region = ["north", "south"] }\n'))
    assert "region: 2 rows have a group that is not in the list (ignored): 'South' (1)" in text
    assert "2 records, 0 of them" in text
    items = pd.DataFrame({"person": [1, 1, 2], "item": ["hyp", "hype", "meds"]})
    long = told(items, COUNTS, 'unit = "person"\nelement = "item"')
    assert "item: 1 row has an element that is not in the list (ignored): 'hype' (1)" in long
    assert "item: no row has 1 of the 3 names in the list: 'twice'" in long
    assert "'meds' implies 'hyp': broken by 1 records" in long


def test_a_forgotten_unit_is_mentioned_and_a_declared_one_is_counted(told, tmp_path):
    data = answers(person=["a", "a", "a", "b", None])
    assert "no unit is declared" in told(data, COUNTS)
    assert "The ledger is new" in told(data, COUNTS)
    (tmp_path / "x.ledger").touch()
    assert "The ledger is new" not in told(data, COUNTS)
    one = told(data, COUNTS, 'unit = "person"')
    assert "5 rows, 2 different values of the unit 'person', 1 row without one (dropped)" in one
    assert "combined into one record" in one
    two = told(data, COUNTS, 'unit = "person"\ncontributions = 2')
    assert "1 unit has more than 2 rows, the largest 3: contributions = 2 leaves 1 row out" in two
    assert "more than" not in told(data, COUNTS, 'unit = "person"\ncontributions = 3')


TABLE = '[table]\ncategory = "county"\ncategories = ["A", "B", "3"]\nupper = 9\n'


def test_categories_outside_the_list_and_counts_outside_the_range_are_told(told):
    data = pd.DataFrame({"county": ["A", "A", "a", "C", "C"], "cases": ["1", "12", "-1", "many", None]})
    text = told(data, TABLE + PRIVACY)
    assert "county: 3 rows have a category that is not in the list (ignored): 'C' (2), 'a' (1)" in text
    counted = told(data, TABLE + 'count = "cases"\n' + PRIVACY)
    assert "cases: 2 values are outside 0 to 9 and are moved to its ends (1 below, 1 above)" in counted
    assert "cases: 1 values are not numbers and 1 are missing (count as 0): 'many' (1)" in counted
    numbers = told(pd.DataFrame({"county": [3.0, None]}), TABLE + PRIVACY)
    assert "county: 1 row has" in numbers


CURVE = '[curve]\nx = "age"\ny = "risk"\nbounds = [0, 100]\ny_range = [0, 1]\n' + PRIVACY


def test_categories_with_more_rows_than_upper_are_counted(told):
    rows = pd.DataFrame({"person": range(14), "county": ["A"] * 10 + ["B"] * 3 + ["3"]})
    assert "1 of the 3 names in the list: more than 9 rows" in told(rows, TABLE + PRIVACY)
    assert "more than" not in told(rows, TABLE.replace("= 9", "= 10") + PRIVACY)
    text = told(rows, TABLE.replace("= 9", "= 2") + PRIVACY)
    assert "county: 2 of the 3 names in the list: more than 2 rows, which count as 2 (upper)" in text


def test_a_curve_of_percents_or_of_words_is_told(told):
    text = told(pd.DataFrame({"age": [30, 40, 130], "risk": [12.0, 50.0, 0.5]}), CURVE)
    assert "risk: numbers from 0.5 to 50" in text
    assert "risk: 2 values are outside 0 to 1 and are moved to its ends (0 below, 2 above)" in text
    assert "age: 1 values are outside 0 to 100" in text
    words = told(pd.DataFrame({"age": ["thirty", "forty", None], "risk": 0.5}), CURVE)
    assert "age: none of 3 values is a number: the release would be made from nothing" in words
    assert "age: 2 values are not numbers and 1 are missing (their rows are dropped): 'forty' (1)" in words


def test_lines_that_no_release_reads_are_counted(told):
    latin = told("hyp,twice,meds\n1,0,é\n1,1,0\n".encode("latin-1"), COUNTS, name="data.csv")
    assert "data.csv: fields with other letters are missing, in 1 lines; it is not all UTF-8" in latin
    ragged = told(b"hyp,twice,meds\n1,0\n1,1,0\n", COUNTS, name="data.csv")
    assert "data.csv: 1 lines have more or fewer fields than the header" in ragged
    lines = told(b'\xef\xbb\xbf{"hyp": 1}\n[1]\n{"hyp"\n', COUNTS, name="data.jsonl")
    assert "data.jsonl: 2 of 3 lines are no JSON object and are skipped" in lines


def test_it_says_that_looking_is_not_free(told):
    text = told(answers(person=[1]), COUNTS)
    assert text.startswith("NOT PRIVATE")
    assert "the guarantee is void" in text
    assert text.endswith("Do not publish it or act on it in public.")


SPEC = """
[data]
path = "answers.csv"
unit = "person"
[privacy]
epsilon = "1"
ledger = "x.ledger"
[order.parents]
twice = "hyp"
[output]
folder = "out"
"""


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"person;hyp;twice\n1;yes;no\n", ['separator = ";"', "header = true"]),
        (b"1,hyp,person\r\n2,no,no\r\n", ["header = false", 'newline = "\\r\\n"', "3 names"]),
        ("\ufeffperson\thyp\ttwice\n1\tyes\tno\n".encode("utf-16-le"), ['separator = "\\t"', 'encoding = "utf-16"']),
        ("né;person;hyp;twice\n1;1;yes;no\n".encode("latin-1"), ['separator = ";"', "State what your export writes"]),
    ],
)  # fmt: skip
def test_the_lines_that_say_how_a_file_is_written_are_shown(tmp_path, content, advice):
    (tmp_path / "answers.csv").write_bytes(content)
    (tmp_path / "spec.toml").write_text(SPEC)
    found = load_spec(tmp_path / "spec.toml").check()
    assert found.error is not None
    assert all(line in str(found) for line in ["person", "hyp", *advice])
    assert 'encoding = "latin-1"\n' not in str(found)  # one letter decides nothing that is public
    assert not (tmp_path / "x.ledger").exists()


def test_a_file_written_as_stated_needs_no_advice(tmp_path):
    (tmp_path / "answers.csv").write_text("person,hyp,twice\n1,yes,no\n")
    (tmp_path / "spec.toml").write_text(SPEC)
    found = load_spec(tmp_path / "spec.toml").check()
    assert found.error is None
    assert "write in [data]" not in str(found)


def test_a_quote_that_is_never_closed_is_told_with_its_record(told):
    said = 'hyp,twice,meds\n1,0,0\n1,1,"0\n1,0,0\n'
    assert "data.csv: record 2 opens a quote that is never closed" in told(
        said.encode(), COUNTS, name="data.csv"
    )
    for closed in (said.replace('"0', '"0"'), said.replace('"0', "0"), said.replace('"0', '0"')):
        assert "never closed" not in told(closed.encode(), COUNTS, name="data.csv")


def test_an_empty_file_is_called_empty(told):
    text = told(b"", COUNTS, name="data.csv")
    assert "the first line is empty" in text
    assert "header = true" not in text


def test_a_decimal_comma_is_named(told):
    section = '[curve]\nx = "age"\ny = "share"\nbounds = [0, 90]\ny_range = [0, 1]\n' + PRIVACY
    text = told(b"age;share\n20;0,5\n30;0,25\n", section, 'separator = ";"', name="data.csv")
    assert "share: a number has a decimal point, not a comma" in text
    assert "age: a number" not in text
