"""Reports say what is known without the data, once, and nothing that a stranger could misuse."""

import re
from typing import Any

import pyarrow as pa
import pytest
from tests.support import flat

import isotone as iso
from isotone.release.report import report_html

P = iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
PEOPLE = pa.table({"person": range(30), "hyp": [1] * 30, "twice": [0] * 30, "meds": [0] * 30})


@pytest.fixture
def ledger(tmp_path):
    return iso.Ledger(tmp_path / "ledger", epsilon=100)


def page_of_counts(ledger, **options):
    settings: dict[str, Any] = {"epsilon": 1, "mechanism": "PosetMechanism", **options}
    return report_html(flat.counts(PEOPLE, P, ledger=ledger, unit="person", **settings))


def test_a_report_states_one_typical_error_and_installs_nothing(ledger):
    page = page_of_counts(ledger)
    assert page.count("typical error of a value") == 1
    assert "errors of one release go together" in page
    assert "pip install" not in page
    assert "known exactly" not in page
    assert "times as large" in page


@pytest.mark.parametrize(("mechanism", "so"), [("TreeFieldMechanism", True), ("LaplaceMechanism", False)])
def test_a_report_says_that_errors_go_together_where_they_do(ledger, mechanism, so):
    tree = iso.Poset.from_mapping({"twice": "hyp", "meds": "hyp"}, children="partition")
    survey = iso.Counts(tree, unit="person", mechanism=mechanism)
    page = report_html(survey.release(PEOPLE, epsilon=1, ledger=ledger))
    assert ("errors of one release go together" in page) == so


def test_a_report_of_a_table_claims_nothing_about_distances_to_the_truth(ledger):
    made = flat.table(
        PEOPLE, category="hyp", categories=["0", "1"], upper=40, epsilon=1, ledger=ledger, unit="person"
    )
    page = report_html(made)
    assert "bent the distribution" not in page
    assert "away from it" not in page
    assert "typical error of a noisy count, at most" in page


def test_a_report_says_how_a_table_is_read_by_its_size(ledger):
    for number, small in ((49, True), (50, False)):
        names = [str(at) for at in range(number)]
        page = report_html(
            iso.Table("hyp", names, upper=40, unit="person").release(PEOPLE, epsilon=1, ledger=ledger)
        )
        assert ("With fewer than 50 categories nothing is spent on their distribution" in page) == small
        assert ("It comes from the noise alone." in page) == small
        assert ("Each category has three numbers" in page) != small


def test_a_report_of_a_curve_names_its_columns_where_it_says_how_they_were_read(ledger):
    labels = iso.Labels((0, 1), yes=("ill",), no=("well",))
    curve = iso.Curve("person", y="hyp", bounds=(0, 30), y_values=labels)
    page = report_html(curve.release(PEOPLE, epsilon=1, ledger=ledger))
    assert (
        "Values of person below 0 or above 30 count as 0 or 30; rows that lack person or hyp are left out."
        in page
    )
    assert "hyp has the higher of its two values where the data says ill" in page


def test_negative_values_beside_intervals_that_start_at_zero_are_explained(ledger):
    made = flat.counts(PEOPLE, P, ledger=ledger, unit="person", epsilon=1, mechanism="LaplaceMechanism")
    columns = {**made.columns, "value": (-5, 3, 4)}
    assert "can make a released value negative" in report_html(type(made)(columns, made.manifest))
    columns = {**made.columns, "value": (5, 3, 4)}
    assert "can make a released value negative" not in report_html(type(made)(columns, made.manifest))


def test_everything_in_a_report_is_escaped(ledger, tmp_path):
    evil = '<script>alert("x")</script>'
    Q = iso.Poset([evil, "b"], [(evil, "b")])
    data = pa.table({"who": [1, 2], evil: [1, 0], "b": [1, 1], "by": [evil, "y"]})
    made = flat.counts(
        data, Q, epsilon=1, ledger=iso.Ledger(tmp_path / evil.replace("/", ""), epsilon=9, unit=evil), unit="who",
        unit_name=evil, title=evil, by="by", groups=[evil, "y"],
    )  # fmt: skip
    page = report_html(made)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(("rule", "words"), [("first", "keeps the first of them"), ("drop", "is left out")])
def test_the_report_says_what_happens_to_records_with_several_options(tmp_path, rule, words):
    T = iso.Poset.from_mapping({"a": "all", "b": "all"}, children="partition")
    ledger = iso.Ledger(tmp_path / "codes.ledger", epsilon=1, unit="person")
    data = pa.table({"person": [1, 2], "code": ["a", "b"]})
    asked: dict[str, Any] = {"epsilon": 1, "unit": "person", "element": "code", "on_conflict": rule}
    page = report_html(flat.counts(data, T, ledger=ledger, **asked))
    assert words in page
    assert "a record with the one above has exactly one of these" in page
    assert "so that they add up" in page


def test_tables_name_their_columns_and_show_the_digits_that_errors_leave(ledger):
    """The name of x, the place of a breakdown in one column, whole numbers beside errors above one."""
    from isotone.release.report import numbers_table

    people = pa.table({"sex": ["f", "m"] * 40, "ill": [1, 1, 0, 1] * 20, "age": range(80)})
    setting: dict[str, Any] = {"by": ["sex"], "groups": {"sex": ["f", "m"]}, "margins": ["", "sex"]}
    page = numbers_table(flat.counts(people, iso.Poset(["ill"]), epsilon="1/9", ledger=ledger, **setting))
    assert re.findall(r">(where|margin|sex)</th>", page) == ["where"]
    shown = [re.findall(r"<td.*?>(.*?)</td>", row) for row in page.split("<tr")[2:]]
    assert [row[:2] for row in shown] == [["all", "ill"], ["f", "ill"], ["m", "ill"]]
    assert not [cell for row in shown for cell in (row[2], *row[4:]) if "." in cell]
    curve = flat.curve(people, x="age", y="ill", epsilon=1, ledger=ledger, bounds=(0, 90), y_range=(0, 1))
    assert ">age</th>" in numbers_table(curve)
