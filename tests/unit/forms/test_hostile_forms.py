"""Forms of strangers: bombs, entities, formulas, code in conditions, text that would leave its place."""

from __future__ import annotations

import operator
import os
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.workbooks import Rows, parts_of, write_parts, write_workbook

from isotone.errors import InputError
from isotone.forms import expressions, read_form
from isotone.forms import expressions as conditions
from isotone.forms import formats as reading
from isotone.forms import formats as workbook
from isotone.forms.expressions import Field, Option, Unknown, clauses_of, parse
from isotone.release import load_spec

HEAD = ["type", "name", "label", "relevant", "choice_filter"]
YES: Rows = [["list_name", "name", "label"], ["yn", "y", "Yes"], ["yn", "n", "No"]]


def form(*rows: list[str | int | None], choices: Rows = YES) -> dict[str, Rows]:
    return {"survey": [HEAD, ["select_one yn", "a", "A?"], *rows], "choices": choices}


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: dict[str, str | bytes] = {**parts_of(form())}
    write_parts(tmp_path / "b.xlsx", {**parts, "xl/media/zero.bin": b"\0" * (workbook.MOST_UNPACKED + 1)})
    opened: list[str] = []
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda self, *a, **k: opened.append("x"))
    with pytest.raises(InputError, match="unpacks to"):
        read_form(tmp_path / "b.xlsx")
    assert not opened


def test_a_part_that_lies_about_its_size_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "MOST_UNPACKED", 200_000)
    parts: dict[str, str | bytes] = {**parts_of(form())}
    parts["xl/worksheets/sheet1.xml"] = b" " * 5_000_000
    path = write_parts(tmp_path / "l.xlsx", parts)
    raw = path.read_bytes().replace((5_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"cannot be read|can be read|says"):
        read_form(path)


@pytest.mark.parametrize(
    ("limit", "value"), [("MOST_SHEETS", 1), ("MOST_CELLS", 5), ("MOST_PARTS", 3), ("LARGEST_FILE", 100)]
)
def test_sheets_cells_parts_and_bytes_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    path = write_workbook(tmp_path / "f.xlsx", form())
    assert len(read_form(path).questions) == 1
    monkeypatch.setattr(workbook, limit, value)
    with pytest.raises(InputError):
        read_form(path)


def test_lines_and_questions_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.csv"
    path.write_text("field_name,field_type\na,yesno\nb,yesno\n")
    assert len(read_form(path).questions) == 2
    for limit in ("MOST_LINES", "MOST_FIELDS", "LARGEST_CSV"):
        with monkeypatch.context() as patch:
            patch.setattr(reading, limit, 1)
            with pytest.raises(InputError):
                read_form(path)


def test_entities_are_refused_before_they_mean_anything(tmp_path: Path) -> None:
    parts = parts_of(form())
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    outside = f'<!DOCTYPE x [<!ENTITY a SYSTEM "file://{secret}">]>'
    for name in ("xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/sharedStrings.xml"):
        for evil in (bomb, outside, '<!DOCTYPE x SYSTEM "http://localhost/x.dtd">'):
            text = parts[name].replace("?>", f"?>{evil}", 1)
            write_parts(tmp_path / "e.xlsx", {**parts, name: text})
            with pytest.raises(InputError, match="document type"):
                read_form(tmp_path / "e.xlsx")
            write_parts(
                tmp_path / "e.xlsx", {**parts, name: text.replace("UTF-8", "UTF-16").encode("utf-16")}
            )
            with pytest.raises(InputError, match="document type"):
                read_form(tmp_path / "e.xlsx")


def test_files_that_are_no_forms_are_refused(tmp_path: Path) -> None:
    for name, content in {
        "a.xlsx": b"not a zip",
        "b.xlsx": b"PK\x03\x04" + b"\0" * 40,
        "c.csv": b"x,y\n1,2\n",
        "d.csv": b"\xff\xfe\x00",
        "e.xls": b"\xd0\xcf\x11\xe0",
        "f.csv": b"",
        "g.csv": b"child,parent\na,b\nb,a\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError):
            read_form(tmp_path / name)
    with pytest.raises(InputError, match="no file"):
        read_form(tmp_path / "gone.xlsx")
    write_workbook(tmp_path / "h.xlsx", {"other": [["a"]]})
    with pytest.raises(InputError, match="no sheet 'survey'"):
        read_form(tmp_path / "h.xlsx")
    write_workbook(tmp_path / "i.xlsx", {"survey": [HEAD, ["text", "t", "T"]]})
    with pytest.raises(InputError, match="no question that can be counted"):
        read_form(tmp_path / "i.xlsx")


def test_formulas_are_listed_and_links_outside_are_not_followed(tmp_path: Path) -> None:
    found = read_form(write_workbook(tmp_path / "f.xlsx", form(["select_one yn", "b", "=HYPERLINK(1)"])))
    assert "survey: a formula in row 3, column 3 was not evaluated" in found.problems
    assert found.questions[1].label == ""
    parts = parts_of(form())
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        'Target="worksheets/sheet1.xml"', 'Target="file:///etc/passwd" TargetMode="External"'
    )
    with pytest.raises(InputError, match="has no"):
        read_form(write_parts(tmp_path / "g.xlsx", parts))
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        'Target="file:///etc/passwd" TargetMode="External"', 'Target="../../../../etc/passwd"'
    )
    with pytest.raises(InputError, match="has no"):
        read_form(write_parts(tmp_path / "h.xlsx", parts))


def test_choices_in_other_files_are_listed_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "towns.csv")  # whoever opens it waits for ever
    rows: list[list[str | int | None]] = [
        ["select_one_from_file towns.csv", "town", "Town"],
        ["select_multiple_from_file towns.csv", "towns", "Towns"],
        ["select_one_external towns", "other", "Town"],
        ["select_one gone", "gone", "Gone?"],
        ["select_one yn", "b", "B?", "${town} = 'x'", "a=${a}"],
    ]
    found = read_form(write_workbook(tmp_path / "f.xlsx", form(*rows)))
    listed = "\n".join(found.problems)
    for name in ("town", "towns", "other"):
        assert f"{name}: its choices are elsewhere, and not opened" in listed
    assert "gone: there is no list of choices 'gone'" in listed
    assert "b: its choice_filter is not used: a=${a}" in listed
    assert {q.name: q.yes for q in found.questions}["town"] == "answered"
    assert ("b", "town_x") in found.relations


@pytest.mark.parametrize(
    "condition",
    [
        "__import__('os').system('touch pwned')",
        "${a} = 'y') or (1=1",
        "((((${a} = 'y'",
        "(" * 500 + "${a} = 'y'" + ")" * 500,
        "not(" * 200 + "${a}='y'" + ")" * 200,
        "${a} = 'y' and " * 5000 + "${a} = 'y'",
        "x" * 100_000,
        "${nobody} = 'y'",
        "${a}",
        "'y'",
        "${a} = ${b}",
        "${a} = ''",
        "not(selected(${a}, 'y'))",
        "${a} + 1 > 2",
        "${a} > 3 > 2",
        "if(${a} = 'y', 1, 0) = 1",
        "pulldata('f.csv', 'x', 'y', ${a}) = 'y'",
        "${a} = 'y' or ${nobody} = 1",
        "false()",
        "",
        " =",
        "/data/a = 'y'",
        ". > 3",
        " or ".join(f"(${{a}} = '{i}' and ${{b}} = '{i}')" for i in range(20)),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_listed_and_gives_no_relation(tmp_path: Path, condition: str) -> None:
    rows: list[list[str | int | None]] = [
        ["select_one yn", "b", "B?"],
        ["select_one yn", "c", "C?", condition],
    ]
    if len(condition) > 30_000:  # longer than a cell may be
        assert isinstance(parse(condition, "odk"), Unknown)
        return
    found = read_form(write_workbook(tmp_path / "f.xlsx", form(*rows)))
    assert not [pair for pair in found.relations if pair[0] == "c"]
    assert bool(found.problems) == bool(condition)
    assert all(text.startswith("c: its condition is not used") for text in found.problems)
    assert not Path("pwned").exists()


def test_conditions_that_go_round_in_circles_are_listed(tmp_path: Path) -> None:
    rows: list[list[str | int | None]] = [
        ["select_one yn", "b", "B?", "${c} = 'y'"],
        ["select_one yn", "c", "C?", "${b} = 'y'"],
        ["select_one yn", "d", "D?", "${d} = 'y'"],
    ]
    found = read_form(write_workbook(tmp_path / "f.xlsx", form(*rows)))
    assert found.order().covers == (("b", "c"),)
    assert [text.split(":")[0] for text in found.problems] == ["c", "d"]


def test_texts_of_a_form_stay_texts_in_the_spec(tmp_path: Path) -> None:
    evil = 'x"\n[privacy]\nepsilon = "9"\n# \\ \u0085 \u2028 \U0001f600'
    rows: list[list[str | int | None]] = [
        ["select_one evil", "b", evil],
        ["select_one yn", "c", "C?", f"fn('{evil}')"],
        ["select_one yn", 'd"]\n[output]', "D?"],
    ]
    choices: Rows = [*YES, ["evil", 'c"]\n#', evil], ["evil", "d", "D"]]
    path = tmp_path / "s.toml"
    path.write_text(read_form(write_workbook(tmp_path / "f.xlsx", form(*rows, choices=choices))).spec())
    spec = load_spec(path)
    assert spec.privacy.epsilon == 1
    assert set(tomllib.loads(path.read_text())) == {"data", "privacy", "order", "questions", "output"}
    assert spec.book["b"].label == 'x" [privacy] epsilon = "9" # \\ 😀'
    assert spec.book["b"].yes == ('c"]\n#', "d")


def test_limits_are_what_the_page_says() -> None:
    assert (workbook.LARGEST_FILE, workbook.MOST_UNPACKED) == (20_000_000, 40_000_000)
    assert (workbook.MOST_SHEETS, workbook.MOST_CELLS) == (30, 300_000)
    assert (expressions.LONGEST, expressions.DEEPEST, conditions.MOST_CLAUSES) == (20_000, 60, 64)


NUMBERS = {
    "age": Field("age", "number"),
    "step": Field("step", "one", options=tuple(Option(str(k), str(k)) for k in range(5))),
    "many": Field("many", "many", options=(Option("a", "A"), Option("b", "B"))),
}


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "=", "!="])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("bound", range(5))
def test_codes_that_are_compared_are_those_that_compare_so(sign: str, turned: bool, bound: int) -> None:
    """Every sign, either way round, at every code: the codes that are kept are those that arithmetic keeps."""
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
    text = f"{bound} {sign} ${{step}}" if turned else f"${{step}} {sign} {bound}"
    found = clauses_of(parse(text, "odk"), NUMBERS)
    if sign == "!=":  # those who gave no answer pass, too
        assert not found.clauses
        return
    kept = {str(k) for k in range(5) if compare[sign](*((bound, k) if turned else (k, bound)))}
    if not kept:
        assert not found.clauses
        return
    (clause,) = found.clauses
    (atom,) = clause
    assert set(atom.codes) == kept


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_a_comparison_that_is_denied_is_not_read_as_an_equation(sign: str) -> None:
    for name in ("age", "step"):
        found = clauses_of(parse(f"not(${{{name}}} {sign} 3)", "odk"), NUMBERS)
        assert not found.clauses
        assert found.unknown


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "=", "!="])
@pytest.mark.parametrize("bound", ["0", "1", "2"])
@pytest.mark.parametrize("call", ["count-selected", "string-length"])
def test_only_numbers_that_need_an_answer_say_that_there_is_one(call: str, sign: str, bound: str) -> None:
    """An answer follows where 0 does not pass: of these the ones that are read are listed, and no other is."""
    found = clauses_of(parse(f"{call}(${{many}}) {sign} {bound}", "odk"), NUMBERS)
    assert bool(found.clauses) == ((sign, bound) in ((">", "0"), (">=", "1"), ("!=", "0")))


@pytest.mark.parametrize("word", ["and", "or"])
def test_arithmetic_ends_where_its_part_of_a_condition_ends(word: str) -> None:
    """At a word that joins, not at a text of the same letters, and not inside brackets."""
    for arithmetic in (f"${{age}} + '{word}' = 3", f"${{age}} - (1 {word} 2) > 0", "${age} + 1 = 3"):
        found: Any = parse(f"{arithmetic} {word} ${{step}} = 2", "odk")
        parts = getattr(found, "parts", ())
        assert len(parts) == 2
        assert isinstance(parts[0], Unknown)
        assert parts[1] == parse("${step} = 2", "odk")
