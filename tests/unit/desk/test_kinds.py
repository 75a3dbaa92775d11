"""Tables and curves at the desk, and the budget for an error of one count."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

import pytest
from tests.support.desk import Client
from tests.support.desk_survey import PAGES, draft, released, saved, write_answers

import isotone as iso
from isotone.curves.problem import FINE
from isotone.desk.screens import simulated_release
from isotone.desk.sheets import sheet_named
from isotone.release import load_spec
from isotone.release.pipeline import Job

TABLE = {"table.category": "region", "table.categories": "A\nB\nC\nD", "table.upper": "200"}
CURVE = {"curve.x": "age", "curve.y": "risk", "curve.bounds": "0, 90", "curve.y_range": "0, 1"}


SURFACE = {
    "curve.x": "age, dose",
    "curve.y": "risk",
    "curve.bounds": "0, 90\n0, 9",
    "curve.y_range": "0, 1",
    "curve.increasing": "yes, no",
}
DISTRIBUTION = {"distribution.column": "age", "distribution.bounds": "0, 90"}
"""A kind without a sheet of its own: its form follows from the model, and there is no preview."""
SURVIVAL = {"survival.time": "age", "survival.event": "treated", "survival.horizon": "80"}
GROUPS = {"outline": "ill\n  treated\n", "order.by": "sex: f, m"}
BREAKDOWN = {
    "outline": "ill\n  treated\n",
    "order.by": "state: N, S\nregion: A = N, B = N, C = S\nsex: f, m",
    "order.margins": "total\nstate\nstate, sex\nall\n",
}


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("table", TABLE),
        ("curve", CURVE),
        ("curve", SURFACE),
        ("order", GROUPS),
        ("order", BREAKDOWN),
        ("distribution", DISTRIBUTION),
        ("survival", SURVIVAL),
    ],
    ids=["table", "curve", "surface", "groups", "breakdown", "distribution", "survival"],
)
def test_from_the_first_screen_to_a_verified_release(tmp_path, kind, what):
    rows = [f"{i},{'ABC'[i % 3]},{i % 90},{(i % 90) / 90},{i % 9},{'fm'[i % 2]},1,{i % 2}" for i in range(90)]
    head = "person,region,age,risk,dose,sex,ill,treated"
    (tmp_path / "answers.csv").write_text("\n".join([head, *rows]) + "\n")
    client = Client(tmp_path).open()
    here = client.begin(kind)
    for name, fields in {**PAGES, "what": what}.items():
        answer = client.post(f"{here}/{name}", **fields)
        assert answer.status == 303, answer.problems
    linked = "/preview" in client.get(f"{here}/review").text
    assert (
        linked
        == ("SIMULATED" in client.get(f"{here}/preview").text)
        == (kind not in ("distribution", "survival"))
    )
    again = client.get(f"{here}/what")
    assert again.problems == ""
    assert all(escape(line) in again.text for said in what.values() for line in said.split("\n"))
    _require_both_ways(client, here, kind)
    assert client.post(f"{here}/review").status == 303
    assert "Verified: every check holds" in released(client, here).text
    assert iso.load_release(tmp_path / "survey-release").kind == {"order": "counts"}.get(kind, kind)


def test_the_preview_of_a_surface_falls_where_it_is_said_to(monkeypatch, tmp_path):
    client = Client(tmp_path).open()
    client.begin("curve")
    (kept,) = client.desk.drafts.values()
    kept.change("data", path="answers.csv")
    sheet_named("curve").change(kept, SURFACE)
    monkeypatch.setattr(Job, "draw", lambda self, cells: cells)
    monkeypatch.setattr(Job, "publish", lambda self, drawn, stamp: drawn)
    cells: Any = sheet_named("curve").preview(kept.spec(client.desk.root), {})
    y = cells.y.reshape(16, 16)
    assert (y[0, 15], y[15, 15], y[15, 0]) == (0, FINE // 2, FINE)


FIXED = """[data]
path = "rows.csv"
element = "code"
[privacy]
epsilon = "1"
neighbours = "replace"
ledger = "book"
[order]
parents = { a = "all", b = "all" }
children = "partition"
root = { records = 180, catch_all = "b" }
[output]
folder = "out"
"""


def test_the_preview_of_a_fixed_root_adds_up_to_its_number(tmp_path):
    (tmp_path / "s.toml").write_text(FIXED)
    made = sheet_named("order").preview(load_spec(tmp_path / "s.toml"), {"a": 30})
    a, b, root = made.columns["value"]
    assert a + b == root == 180


def test_the_screen_of_a_release_says_what_was_refused_before_it(tmp_path):
    (tmp_path / "s.toml").write_text(FIXED.replace('"replace"', '"add-remove"'))
    client = Client(tmp_path).open()
    here = client.post("/begin", open="s.toml").headers["location"].rpartition("/")[0]
    shown = client.get(f"{here}/release").problems
    assert "cannot be fixed to a public number of records" in shown
    assert "not completed" not in shown


def test_pairs_of_counts_have_a_preview(tmp_path):
    (tmp_path / "pairs.toml").write_text(
        '[data]\npath = "a.csv"\ncontributions = 2\n[privacy]\nepsilon = 1\nledger = "l"\n[output]\nfolder = "out"\n'
        '[table]\ncategory = "region"\ncategories = ["A", "B", "C"]\ncounts = ["sick", "well"]\nupper = 20\n'
    )
    release = simulated_release(load_spec(tmp_path / "pairs.toml"), {})
    assert release.columns["stratum"] == ("sick",) * 3 + ("well",) * 3


def _require_both_ways(client, here, kind):
    """The budget for an error gives that error or less, and much less of it does not: widths are whole numbers, nearly."""

    def typed(**fields):
        return json.loads(client.post(f"{here}/accuracy/look", **fields).text)

    first = typed(amount="1", ask="error")
    if kind in ("curve", "distribution", "survival"):
        assert (first["error"], first["answer"] != "") == ("", True)
        assert typed(amount="1", ask="budget", error="3")["problems"]
        return
    found = typed(amount="7", ask="budget", error=first["error"])
    assert float(found["error"]) <= float(first["error"])
    assert float(typed(amount=f"{0.7 * float(found['amount']):.4g}", ask="error")["error"]) > float(
        first["error"]
    )
    for wrong in ("0", "x", "nan", "-1"):
        assert typed(amount="1", ask="budget", error=wrong)["problems"]


def test_both_numbers_are_shown_while_one_types_and_nothing_is_kept(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = draft(client)
    before = client.get(f"{here}/review").text

    def typed(**fields):
        return json.loads(client.post(f"{here}/accuracy/look", **fields).text)

    found = typed(amount="0.5", ask="error", which="worst")
    page = client.post(f"{here}/accuracy", amount="0.5", ask="error", which="worst").text
    assert f'name="error" inputmode="decimal" autocomplete="off" value="{found["error"]}"' in page
    assert found["answer"].strip() in page
    assert found["numbers"].strip() in page
    client.post(f"{here}/accuracy", amount="1", ask="error")
    back = typed(amount="7", ask="budget", error="20")
    assert (back["error"], float(back["amount"]) < 7) == ("20", True)
    for wrong in (
        {"amount": "x"},
        {"amount": "1e-30"},
        {"amount": "1", "confidence": "0"},
        {"amount": "1", "earlier": "none"},
    ):
        assert list(typed(**wrong)) == ["problems"]
    assert client.get(f"{here}/review").text == before


def test_the_budget_for_an_error_is_the_plan_s_own(tmp_path):
    """For all, for the worst and for one: the least ε of the mechanism that releases."""
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = draft(client)
    P = iso.Poset(["hyp", "twice", "meds", "chol"], [("twice", "hyp"), ("meds", "hyp"), ("meds", "chol")])
    plan = iso.Counts(P).plan(epsilon=1)
    wanted = {
        "all": plan.epsilon_for(20),  # pyright: ignore
        "worst": plan.epsilon_for(20, simultaneous=False),  # pyright: ignore
        "element": plan.epsilon_for(20, element="twice"),  # pyright: ignore
    }
    assert wanted["element"] < wanted["worst"] < wanted["all"]
    for which, epsilon in wanted.items():
        answer = client.post(
            f"{here}/accuracy", amount="1", ask="budget", which=which, element="twice", error="20"
        )
        shown = re.search(r"With ε = (\S+),.*?± (\d+)", answer.text, re.DOTALL)
        assert shown, answer.text
        assert (float(shown[1]), int(shown[2])) == (epsilon, 20)
    assert (
        client.post(f"{here}/accuracy", amount="1", ask="budget", which="element", error="20").status == 422
    )
    for wrong in ("0", "-1", "x", "nan", "1e99"):
        assert client.post(f"{here}/accuracy", amount="1", ask="budget", error=wrong).status == 422


def test_many_numbers_are_folded_beneath_a_few_from_all_over(tmp_path):
    rows = [f"{i},{i % 90},{(i % 90) / 90},{i % 9}" for i in range(90)]
    (tmp_path / "answers.csv").write_text("\n".join(["person,age,risk,dose", *rows]) + "\n")
    client = Client(tmp_path).open()
    here = client.begin("curve")
    for name, fields in {**PAGES, "what": SURFACE}.items():
        assert client.post(f"{here}/{name}", **fields).status == 303
    assert client.post(f"{here}/review").status == 303
    released(client, here)
    page = client.get("/releases/one?folder=survey-release").text
    release = iso.load_release(tmp_path / "survey-release")
    number = len(release.value)
    before, _, after = page.partition("<details>")
    assert f"25 of {number} rows, in equal steps." in before
    assert before.count('data-label="released value"') == 25
    assert f"All {number} rows" in after
    assert after.count('data-label="released value"') == number


def test_a_column_of_notes_is_there_where_a_mechanism_has_one(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    counted = client.get(f"{draft(client)}/accuracy").text
    here = client.begin("table", name="table")
    for name in ("data", "what"):
        fields = {"what": TABLE}.get(name, PAGES[name])
        fields = {**fields, "data.header": "no"}
        assert client.post(f"{here}/{name}", **fields).status == 303
    listed = client.get(f"{here}/accuracy").text
    for text, noted in ((counted, True), (listed, False)):
        assert "Other mechanisms with the same guarantee" in text
        assert ('data-label="note"' in text) == noted == ("note</th>" in text)


def test_the_desk_speaks_of_the_release_and_not_of_its_own_page(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = saved(client)
    for page in ("data", "release"):
        text = client.get(f"{here}/{page}").text
        assert "nobody can be sure of it from the release. Every number in it" in text
        assert "from this page" not in text


def test_a_number_of_records_is_asked_for_where_a_plan_can_use_it(tmp_path):
    (tmp_path / "answers.csv").write_text("person,age,risk,dose\n1,2,0.5,3\n")
    client = Client(tmp_path).open()
    for name, what in (("curve", CURVE), ("surface", SURFACE)):
        here = client.begin("curve", name=name)
        for page, fields in (("data", PAGES["data"]), ("what", what)):
            assert client.post(f"{here}/{page}", **fields).status == 303
        text = client.get(f"{here}/accuracy").text
        assert ('name="records"' in text) == (name == "curve")
        assert ("so no plan can tell it" in text) == (name == "surface")
