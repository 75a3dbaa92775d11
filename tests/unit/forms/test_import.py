"""Questionnaires become questions and an order: compared with orders made by hand, and with people who answer them."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.doc_blocks import run
from tests.support.workbooks import Rows, write_workbook

import isotone as iso
from isotone import Answers, Poset
from isotone.forms import Questionnaire, read_form
from isotone.reading.questions import book_of, says
from isotone.release import load_order, load_spec
from isotone.release.order_files import order_labels

HEAD = ["type", "name", "label::English (en)", "label::Deutsch (de)", "relevant", "required"]
YESNO: Rows = [
    ["list_name", "name", "label"],
    ["yn", 1, "Yes"],
    ["yn", 2, "No"],
    ["yn", 7, "Refused"],
    ["yn", 9, "Don’t know"],
]
HEALTH: dict[str, Rows] = {
    "survey": [
        HEAD,
        ["start", "begun"],
        ["text", "who", "Your name"],
        ["select_one yn", "hyp", "Told you have **high** blood pressure?", "Bluthochdruck?", None, "yes"],
        ["select_one yn", "twice", "On two visits?", None, "${hyp} = '1'"],
        ["begin group", "care", "Care", None, "${hyp}=1"],
        ["select_one yn", "meds", "Medication?"],
        ["select_multiple drugs", "which", "Which drugs?", None, '${meds} = "1" and not(${twice}=2)'],
        ["begin_group", "more", None, None, "${twice} = 1"],
        ["select_one yn", "home", "Measures at home?"],
        ["end_group"],
        ["end group"],
        ["integer", "sys", "Systolic pressure"],
        ["select_one yn", "er", "Emergency?", None, "160 <= ${sys} or selected(${which}, 'b')"],
        ["select_one yn", "er2", "Again?", None, "(${sys} > 180 and ${er} = 1) or ${home} = 1"],
        ["note", "thanks", "Thank you"],
    ],
    "choices": [*YESNO, ["drugs", "a", "Drug A"], ["drugs", "b", "Drug B"]],
    "Settings": [["form_title"], ["Health"]],
}
TRAVEL: dict[str, Rows] = {
    "survey": [
        HEAD,
        ["select_one modes", "mode", "Travels by", None, None, "yes"],
        ["select_one yn", "helmet", "Helmet?", None, "${mode}='bike'"],
        ["select_one yn", "ticket", "Ticket?", None, "selected(${mode}, 'bus') or ${mode}='train'"],
        ["select_one yn", "moves", "Enough exercise?", None, "${mode} != 'bus'"],
        ["select_one yn", "asked", "Asked?", None, "${ticket} != 1"],
        ["select_one grade", "grade", "How good?", None, "string-length(${mode}) > 0"],
        ["select_one yn", "bad", "Complained?", None, "${grade} >= 3"],
        ["calculate", "km", None],
        ["select_one yn", "far", "Alone?", None, "${km} > 10.5"],
    ],
    "choices": [
        *YESNO,
        *(["modes", code, code.title()] for code in ("bike", "bus", "train", "foot")),
        *(["grade", i, f"Grade {i}"] for i in (1, 2, 3, 4)),
    ],
}


def imported(folder: Path, sheets: dict[str, Rows], **options: Any) -> Questionnaire:
    return read_form(write_workbook(folder / "form.xlsx", sheets), **options)


def test_a_health_survey_gives_the_order_made_by_hand(tmp_path: Path) -> None:
    form = imported(tmp_path, HEALTH)
    hand = Poset(
        [q.name for q in form.questions],
        [
            ("twice", "hyp"),
            ("meds", "hyp"),
            ("which", "meds"),
            ("which_a", "which"),
            ("which_b", "which"),
            ("home", "twice"),  # nested groups: and so hyp
            ("sys_ge_160", "sys"),
            ("sys_gt_180", "sys_ge_160"),
            ("sys_ge_160", "sys_ge_160_or_which_b"),
            ("which_b", "sys_ge_160_or_which_b"),
            ("er", "sys_ge_160_or_which_b"),
            # (sys > 180 and er) or home  =  (sys > 180 or home) and (er or home)
            ("home", "home_or_sys_gt_180"),
            ("sys_gt_180", "home_or_sys_gt_180"),
            ("home", "er_or_home"),
            ("er", "er_or_home"),
            ("er2", "home_or_sys_gt_180"),
            ("er2", "er_or_home"),
        ],
    )
    assert form.order() == hand
    assert form.title == "Health"
    found = book_of(form.questions)
    assert found["hyp"].label == "Told you have high blood pressure?"
    assert (found["hyp"].yes, found["hyp"].no, found["hyp"].refused) == (("1",), ("2",), ("7", "9"))
    assert (found["which_b"].word, found["which_b"].column) == ("b", "which")
    assert found["er_or_home"].any_of == ("er", "home")
    assert form.problems == ("which: its condition is used in part; an order cannot say: not(${twice}=2)",)
    assert any("left out" in note and note.startswith("who") for note in form.notes)
    assert any("refusals, which count as a no: 7 (Refused) and 9 (Don’t know)" in note for note in form.notes)


def test_options_exclude_each_other_and_conditions_on_them_are_sets_of_codes(tmp_path: Path) -> None:
    form = imported(tmp_path, TRAVEL)
    found, P = book_of(form.questions), form.order()
    assert found["mode"].yes == ("bike", "bus", "train", "foot")
    assert found["mode_bike_or_train_or_foot"].yes == (
        "bike",
        "train",
        "foot",
    )  # not the bus, of all who must answer
    below = {name: {str(x) for x in P.down_set(name)} - {name} for name in found}
    assert below["mode_bike"] == {"helmet"}
    assert below["mode_bus_or_train"] == {"mode_bus", "mode_train", "ticket"}
    assert below["mode_bike_or_train_or_foot"] == {"mode_bike", "mode_train", "mode_foot", "helmet", "moves"}
    assert below["grade_3_or_4"] == {"grade_3", "grade_4", "bad"}
    assert {"grade", "bad"} <= below["mode"]  # an answer at all
    assert below["km_gt_10.5"] == {"far"}
    assert form.problems[0] == "asked: its condition is not used; an order cannot say: ${ticket} != 1"
    assert {(c.kind, c.options) for c in P.choices if "grade_1" in c.options} == {
        ("partition", ("grade_1", "grade_2", "grade_3_or_4"))
    }
    few = imported(tmp_path, TRAVEL, most_options=3)
    assert "mode_foot" not in book_of(few.questions)
    assert "mode_bike" in book_of(few.questions)  # a condition names it
    assert any("more than 3 options" in note for note in few.notes)


def answer(rng: np.random.Generator, sheets: dict[str, Rows]) -> dict[str, str]:
    """A person who fills the form in by its logic, written out by hand."""

    def one(*values: str) -> str:
        return str(rng.choice(values))

    a: dict[str, str] = {}
    if sheets is HEALTH:
        a["hyp"] = one("1", "1", "2", "7")
        hyp = a["hyp"] == "1"
        a["twice"] = one("1", "2", "9", "") if hyp else ""
        a["meds"] = one("1", "2") if hyp else ""
        a["which"] = one("", "a", "b", "b a") if a["meds"] == "1" and a["twice"] != "2" else ""
        a["home"] = one("1", "2") if hyp and a["twice"] == "1" else ""
        a["sys"] = one("", "120", "159", "160", "180", "181")
        high = a["sys"] != "" and int(a["sys"]) >= 160
        a["er"] = one("1", "2", "9") if high or "b" in a["which"].split() else ""
        very = a["sys"] != "" and int(a["sys"]) > 180
        a["er2"] = one("1", "2") if (very and a["er"] == "1") or a["home"] == "1" else ""
        return a
    a["mode"] = one("bike", "bus", "train", "foot")
    a["helmet"] = one("1", "2") if a["mode"] == "bike" else ""
    a["ticket"] = one("1", "2", "7", "") if a["mode"] in ("bus", "train") else ""
    a["moves"] = one("1", "2") if a["mode"] != "bus" else ""
    a["asked"] = one("1", "2") if a["ticket"] != "1" else ""
    a["grade"] = one("1", "2", "3", "4", "")
    a["bad"] = one("1", "2") if a["grade"] in ("3", "4") else ""
    a["km"] = one("", "3", "10.5", "11")
    a["far"] = one("1", "2") if a["km"] == "11" else ""
    return a


@pytest.mark.parametrize("sheets", [HEALTH, TRAVEL], ids=["health", "travel"])
def test_nobody_who_follows_the_form_breaks_the_imported_order(
    tmp_path: Path, sheets: dict[str, Rows]
) -> None:
    form = imported(tmp_path, sheets)
    book, P, rng = book_of(form.questions), form.order(), np.random.default_rng(1)
    seen: dict[str, set[bool]] = {name: set() for name in book}
    for _ in range(400):
        a = answer(rng, sheets)

        def said(name: str, a: dict[str, str] = a) -> bool:
            question = book[name]
            if question.any_of:
                return any(said(part) for part in question.any_of)
            return says(question, a[question.column or name], book, Answers())  # pyright: ignore

        record = {name: said(name) for name in book}
        for lower, upper in P.covers:
            assert record[str(upper)] or not record[str(lower)], (lower, upper, a)
        for choice in P.choices:
            assert sum(record[str(x)] for x in choice.options) <= 1
        for name, yes in record.items():
            seen[name].add(yes)
    assert all(True in both for both in seen.values())  # every element occurs


def test_the_spec_that_is_written_asks_for_the_same(tmp_path: Path) -> None:
    for sheets in (HEALTH, TRAVEL):
        form = imported(tmp_path, sheets)
        path = tmp_path / "s.toml"
        path.write_text(form.spec(data="d.csv", unit="person", epsilon="0.5"), encoding="utf-8")
        spec = load_spec(path)
        assert list(spec.book.values()) == list(form.questions)
        assert load_order(path) == form.order()
        assert load_order(path).choices == form.order().choices
        assert (spec.data.unit, spec.privacy.epsilon, spec.data.path) == ("person", 0.5, "d.csv")  # pyright: ignore


def redcap(path: Path, rows: list[tuple[str, ...]], short: bool) -> Path:
    long = ["Variable / Field Name", "Form Name", "Field Type", "Field Label"]
    long += ["Choices, Calculations, OR Slider Labels", "Text Validation Type OR Show Slider Number"]
    long += ["Branching Logic (Show field only if...)"]
    names = ["field_name", "form_name", "field_type", "field_label", "select_choices_or_calculations"]
    names += ["text_validation_type_or_show_slider_number", "branching_logic"]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names if short else long, *rows])
    return path


CLINIC = [
    ("record_id", "f", "text", "ID", "", "", ""),
    ("smoke", "f", "yesno", "Smokes?", "", "", ""),
    ("years", "f", "text", "Since when?", "", "integer", '[smoke] = "1"'),
    ("sex", "f", "radio", "<b>Sex</b>", "1, Female | 2, Male | 9, Prefer not to say", "", ""),
    ("preg", "f", "yesno", "Pregnant?", "", "", "[sex] = '1'"),
    ("week", "f", "text", "Week", "", "number", "[sex]='1' and [preg]='1'"),
    (
        "drugs",
        "f",
        "checkbox",
        "Drugs",
        "1, Aspirin | 2, Statin | -9, Refused",
        "",
        "[smoke]=1 or [years] > 10",
    ),
    ("muscle", "f", "truefalse", "Muscle pain?", "", "", "[drugs(2)] = '1'"),
    ("late", "f", "yesno", "Late?", "", "", "datediff([a],[b],'d') > 3 and [preg] = 1"),
    ("other", "f", "yesno", "Other?", "", "", "[visit_1][smoke] = '1'"),
    ("none", "f", "yesno", "None?", "", "", "[drugs(2)] = '0'"),
    ("score", "f", "calc", "Score", "[years]*2", "", ""),
    ("list", "f", "sql", "List", "select * from x", "", ""),
    ("text", "f", "descriptive", "Thanks", "", "", ""),
]


def test_options_that_are_not_all_there_make_up_no_answer(tmp_path: Path) -> None:
    """Of five options the conditions name two. Who gave another answer must stay in the count of those who answered."""
    five = [["five", code, code.upper()] for code in "vwxyz"]
    survey: list[Any] = [
        HEAD,
        ["select_one five", "q", "Which?"],
        ["select_one yn", "a", "Of v?", "", "${q} = 'v'"],
        ["select_one yn", "b", "Of w?", "", "${q} = 'w'"],
    ]
    form = imported(tmp_path, {"survey": survey, "choices": [*YESNO, *five]}, most_options=3)
    assert {(c.kind, c.options) for c in form.order().choices} == {("exclusive", ("q_v", "q_w"))}


@pytest.mark.parametrize("short", [False, True], ids=["site", "interface"])
def test_a_data_dictionary_gives_the_order_made_by_hand(tmp_path: Path, short: bool) -> None:
    form = read_form(redcap(tmp_path / "dictionary.csv", CLINIC, short))
    hand = Poset(
        [q.name for q in form.questions],
        [
            ("years", "smoke"),
            ("years_gt_10", "years"),
            ("sex_1", "sex"),
            ("sex_2", "sex"),
            ("preg", "sex_1"),
            ("week", "preg"),
            ("drugs_1", "drugs"),
            ("drugs_2", "drugs"),
            # smokes or more than ten years; the second implies the first
            ("smoke", "smoke_or_years_gt_10"),
            ("drugs", "smoke_or_years_gt_10"),
            ("muscle", "drugs_2"),
            ("late", "preg"),
        ],
        [("partition", ["sex_1", "sex_2"])],
    )
    assert form.order() == hand
    found = book_of(form.questions)
    assert (found["drugs_2"].column, found["drugs_2"].yes) == ("drugs___2", ("1",))
    assert found["drugs"].any_of == ("drugs_1", "drugs_2")
    assert (found["sex"].label, found["sex"].refused) == ("Sex", ("9",))
    assert [text.split(":")[0] for text in form.problems] == ["list", "late", "other", "none"]
    assert "datediff([a],[b],'d') > 3" in form.problems[1]


def test_the_first_column_of_a_data_dictionary_has_the_names_whatever_its_head(tmp_path: Path) -> None:
    """As published forms have it. REDCap itself goes by places."""
    path = redcap(tmp_path / "dictionary.csv", CLINIC, False)
    right = read_form(path)
    path.write_text(path.read_text("utf-8").replace("Variable / Field Name", "1", 1), "utf-8")
    found = read_form(path)
    assert (found.questions, found.order()) == (right.questions, right.order())
    said = "The first column is headed '1'; it was taken for the names of fields"
    assert found.problems == (said, *right.problems)


def test_texts_in_typographic_quotes_and_those_who_decline(tmp_path: Path) -> None:
    form = imported(
        tmp_path,
        {
            "survey": [
                ["type", "name", "label", "relevant"],
                ["select_one modes", "mode", "How?"],
                ["integer", "km", "How far?", "${mode} = ’bike’ or ${mode} = ‘foot’"],
                ["integer", "ticket", "Price?", "${mode} = “bus”"],
            ],
            "choices": [
                ["list_name", "name", "label"],
                *(["modes", code, code.title()] for code in ("bike", "bus", "foot")),
                ["modes", "777", "Decline to answer"],
            ],
        },
    )
    assert {*form.relations} == {
        ("km", "mode_bike_or_foot"),
        ("ticket", "mode_bus"),
        ("mode_bike", "mode_bike_or_foot"),
        ("mode_foot", "mode_bike_or_foot"),
        ("mode_bike_or_foot", "mode"),
        ("mode_bus", "mode"),
    }
    assert form.questions[0].refused == ("777",)
    assert form.problems == ()


def test_a_list_of_relations_is_read_with_labels_columns_and_codes(tmp_path: Path) -> None:
    path = tmp_path / "relations.csv"
    path.write_text("child,parent,label,column,yes\ntwice,hyp,Two visits?,q2,1|3\nhyp,,Hypertension?,,>= 140\nmeds,hyp,,,\n")  # fmt: skip
    form = read_form(path)
    assert form.order() == Poset(["twice", "hyp", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    assert form.questions[0] == iso.Question("twice", ["1", "3"], "q2", "Two visits?")
    assert form.questions[1].yes == ">= 140"


def test_names_of_groups_may_stand_in_the_columns(tmp_path: Path) -> None:
    found = book_of(imported(tmp_path, HEALTH, separator="-").questions)
    assert found["home"].column == "care-more-home"
    assert found["hyp"].column is None
    assert (
        tomllib.loads(imported(tmp_path, HEALTH, separator="-").spec())["questions"]["meds"]["column"]
        == "care-meds"
    )


def test_the_command_writes_a_spec_that_plans_and_overwrites_nothing(tmp_path: Path) -> None:
    form = write_workbook(tmp_path / "form.xlsx", HEALTH)
    spec = tmp_path / "s.toml"
    said = run(["order", "import", str(form), "--out", str(spec), "--unit", "person"])
    assert "15 questions" in said
    assert "which: its condition is used in part" in said
    assert order_labels(spec)["twice"] == "On two visits?"
    before = spec.read_bytes()
    assert "exists" in run(["order", "import", str(form), "--out", str(spec)])
    assert spec.read_bytes() == before
    assert "elements       15" in run(["order", "check", str(spec)])
    told = json.loads(run(["order", "import", str(form), "--out", str(tmp_path / "t.toml"), "--json"]))
    assert told["questions"]["hyp"]["yes"] == ["1"]
    assert run(["order", "plot", str(spec), "--out", str(tmp_path / "p.svg")]).startswith("The diagram of 15")
    assert (tmp_path / "p.svg").exists()


def test_any_of_two_questions_implies_what_both_imply(tmp_path: Path) -> None:
    rows: Rows = [
        HEAD,
        ["select_one yn", "root", "Root?"],
        ["select_one yn", "a", "A?", None, "${root} = 1"],
        ["select_one yn", "b", "B?", None, "${root} = 1"],
        ["select_one yn", "c", "C?", None, "${a} = 1 or ${b} = 1"],
    ]
    P = imported(tmp_path, {"survey": rows, "choices": YESNO}).order()
    assert set(P.covers) == {("a", "a_or_b"), ("b", "a_or_b"), ("c", "a_or_b"), ("a_or_b", "root")}
