"""Questions in specs, releases, manifests, checks and verification."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone import InputError, Question, SpecError
from isotone.release import load_order, load_spec
from isotone.release.kinds.counts.derived import labels_of, questions_of
from isotone.release.kinds.counts.kind import CountsKind
from isotone.release.manifest import Manifest
from isotone.release.result import seal

HYP = Question("hyp", [1], "BPQ020", "Ever told <you> have high blood pressure?", no=[2], refused=[7, 9])
MEDS = Question("meds", ["1"], "BPQ050")
HIGH = Question("high", ">= 140", "sys", refused=["999"])
VERY = Question("very", ">= 160", "sys", refused=["999"])
ASKED = [HYP, MEDS, HIGH, VERY]
P = iso.order_of(ASKED, [("meds", "hyp")])
DATA = pd.DataFrame(
    {
        "BPQ020": ["1", "1", "7", "2", "8", None],
        "BPQ050": ["1", "2", None, "1", "x", ""],
        "sys": ["150", "170", "999", "120", "?", "160.0"],
    }
)
WANTED = {"hyp": 3, "meds": 2, "high": 3, "very": 2}

SPEC = """
[data]
path = "d.csv"
[privacy]
epsilon = "2000"
ledger = "d.ledger"
budget = { epsilon = "9000" }
[order]
relations = [["meds", "hyp"]]
[questions.hyp]
label = "Ever told <you> have high blood pressure?"
column = "BPQ020"
yes = [1]
no = ["2"]
refused = [7, "9"]
[questions.meds]
column = "BPQ050"
yes = ["1"]
[questions.high]
column = "sys"
yes = ">= 140"
refused = ["999"]
[questions.very]
column = "sys"
yes = ">= 160"
refused = ["999"]
[output]
folder = "out"
"""


def spec(folder: Path, text: str = SPEC) -> Any:
    DATA.to_csv(folder / "d.csv", index=False)
    (folder / "s.toml").write_text(text, encoding="utf-8")
    return load_spec(folder / "s.toml")


def entries(release: iso.Release) -> Any:
    return release.manifest.description["answers"]["questions"]


def counted(release: iso.Release) -> dict[str, int]:
    return dict(zip(release.columns["element"], release.columns["value"], strict=True))


def test_python_and_spec_count_the_same_and_verify(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "p.ledger", epsilon=9000)
    # Laplace noise of scale 4/2000: a value is off with a probability below 1e-100
    release = flat.counts(DATA, P, epsilon=2000, ledger=ledger, questions=ASKED, mechanism="LaplaceMechanism")
    assert counted(release) == WANTED
    (tmp_path / "s").mkdir()
    asked = spec(tmp_path / "s", SPEC.replace("[order]", '[order]\nmechanism = "LaplaceMechanism"'))
    other, folder, _ = flat.with_spec(asked)
    assert counted(other) == WANTED
    assert other.order == P
    assert entries(other) == entries(release)
    assert questions_of(other.manifest)["hyp"] == HYP
    assert labels_of(other.manifest)["hyp"] == HYP.label
    assert iso.verify(folder).holds
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Ever told &lt;you&gt; have high blood pressure?" in page
    assert "<you>" not in page
    assert "999" in page  # the rule of a refusal
    assert "hyp" in (folder / "release.csv").read_text()


def test_questions_are_elements_and_their_definitions_give_relations(tmp_path: Path) -> None:
    asked = spec(tmp_path)
    assert load_order(tmp_path / "s.toml") == P
    assert P.covers == (("meds", "hyp"), ("very", "high"))
    parents = SPEC.replace('relations = [["meds", "hyp"]]', 'parents = { meds = "hyp", more = "meds" }')
    assert set(load_order_of(tmp_path, parents).elements) == {"hyp", "meds", "high", "very", "more"}
    (tmp_path / "o.csv").write_text("child,parent\nmeds,hyp\nmore,meds\n")
    filed = SPEC.replace('relations = [["meds", "hyp"]]', 'file = "o.csv"')
    assert load_order_of(tmp_path, filed) == load_order_of(tmp_path, parents)
    assert "hyp (BPQ020): 1 values that are neither yes nor no count as no: '8' (1)" in str(asked.check())


def load_order_of(folder: Path, text: str) -> iso.Poset:
    spec(folder, text)
    return load_order(folder / "s.toml")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('yes = ">= 140"', 'yes = "140 or so"', "comparison such as"),
        ('yes = ">= 140"', "", "no column"),
        ("[order]", '[order]\nelements = ["hyp", "meds"]', "'high' is no element of the order"),
        ('column = "BPQ020"', 'colum = "BPQ020"', "there is no such entry; did you mean 'column'"),
        ('label = "Ever', 'label = "\\u0007Ever', "control characters"),
        ("[questions.meds]", "[questions.meds]\nany_of = ['x']", "in several ways|is no question"),
        ("[order]\nrelations", "[table]\ncategory = 'x'\ncategories=['a']\nupper=5\n#", "questions are for counts"),
        ('path = "d.csv"', 'path = "d.csv"\nunit = "u"\nelement = "e"', "a label and nothing else"),
        ('path = "d.csv"', 'path = "d.csv"\ncolumns = { hyp = "other" }', "given twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_questions_is_refused_before_the_charge(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    text = SPEC.replace(old, new, 1)
    if (
        reason == "no column"
    ):  # a question without a rule reads the column that it names, by the words for all
        text, reason = text.replace('column = "sys"', 'column = "gone"', 1), "gone"
    with pytest.raises((SpecError, InputError), match=reason):
        flat.with_spec(spec(tmp_path, text))
    ledger = tmp_path / "d.ledger"
    assert not ledger.exists() or not list(iso.Ledger(ledger).charges())


def test_labels_are_no_part_of_the_request_and_definitions_are(tmp_path: Path) -> None:
    asked = spec(tmp_path)
    release, folder, fresh = flat.with_spec(asked)
    again, _, second = flat.with_spec(spec(tmp_path, SPEC.replace("Ever told", "Told")))
    assert (fresh, second) == (True, False)
    assert again.manifest["request"] == release.manifest["request"]
    other = (
        SPEC.replace("yes = [1]", "yes = [2]").replace('no = ["2"]', 'no = ["1"]').replace('"out"', '"new"')
    )
    assert flat.with_spec(spec(tmp_path, other))[0].manifest["request"] != release.manifest["request"]
    assert folder.name == "out"


FORGED: list[Any] = [
    {"nobody": {"label": "x"}},
    {"hyp": {"label": "a\u0007b"}},
    {"hyp": {"yes": "sometimes"}},
    {"hyp": {"yes": [" YES "]}},  # not as a release writes it
    {"hyp": {"any_of": ["hyp"]}},
    {"hyp": {"label": "x" * 2000}},
]


def test_forged_questions_do_not_verify(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "p.ledger", epsilon=9000)
    release = flat.counts(DATA, P, epsilon=1, ledger=ledger, questions=ASKED, mechanism="LaplaceMechanism")
    assert CountsKind().faults(release) == []
    for questions in FORGED:
        said = release.manifest.description
        listed = [{"name": name, **entry} for name, entry in questions.items()]
        forged = {**said, "answers": {**said["answers"], "questions": listed}}
        manifest = Manifest.from_plain({**release.manifest.plain(), "description": forged})
        with suppress(InputError):
            assert CountsKind().faults(seal(release.columns, manifest)) != [], questions


def test_releases_of_different_questions_are_not_combined(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "p.ledger", epsilon=9000)

    def released(*asked: Question) -> iso.Release:
        over = iso.order_of(asked)
        return flat.counts(
            DATA, over, epsilon=1, ledger=ledger, questions=asked, mechanism="LaplaceMechanism"
        )

    first, same = released(HYP), released(replace(HYP, label="Another label"))
    whole = iso.combine([first, same])
    assert questions_of(whole.manifest)["hyp"].label == HYP.label
    whole.save(tmp_path / "c", report=False)
    assert iso.verify(tmp_path / "c").holds
    other = released(Question("hyp", ["2"], "BPQ020"))
    with pytest.raises(InputError, match="'hyp' is not the same question in both"):
        iso.combine([first, other])
