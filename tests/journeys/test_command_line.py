"""The command line as a steward uses it: plan, release, look, verify; and every kind of mistake."""

import importlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from isotone import cli
from isotone.release import Ledger

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SURVEY = """
[data]
path = "adults.csv"
unit = "person"
[privacy]
epsilon = "1"
ledger = "survey.ledger"
budget = { epsilon = "2.5" }
[order.parents]
twice = "hyp"
meds = "hyp"
[output]
folder = "out"
title = "A small survey"
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a spec and its data, where the steward sits."""
    rows = [f"{i},{'yes' if i % 2 else ''},{'yes' if i % 4 == 1 else 'no'}," for i in range(200)]
    (tmp_path / "adults.csv").write_text("\n".join(["person,hyp,twice,meds", *rows]) + "\n")
    (tmp_path / "spec.toml").write_text(SURVEY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch, capsys, *arguments):
    """What the shell would see: exit code, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["isotone", *map(str, arguments)])
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.fixture
def isotone(monkeypatch, capsys):
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def test_a_steward_plans_releases_looks_and_verifies(desk, isotone):
    code, out, _ = isotone("plan", "spec.toml")
    assert code == 0
    assert "PosetMechanism" in out
    assert not (desk / "survey.ledger").exists()

    code, out, _ = isotone("release", "spec.toml")
    assert code == 0
    assert "report.html" in out
    assert {path.name for path in (desk / "out").iterdir()} == {"release.csv", "manifest.json", "report.html"}

    code, out, _ = isotone("ledger", "show", "survey.ledger")
    assert code == 0
    assert "ε = 1.5 left of ε = 2.5" in out

    code, out, _ = isotone("verify", "out")
    assert code == 0
    assert "FAILED" not in out


def test_a_release_is_safe_to_repeat(desk, isotone):
    isotone("release", "spec.toml")
    first = (desk / "out" / "release.csv").read_text()
    code, out, _ = isotone("release", "spec.toml")
    assert code == 0
    assert "nothing was charged" in out
    assert (desk / "out" / "release.csv").read_text() == first
    assert len(Ledger("survey.ledger").charges()) == 1

    isotone("release", "spec.toml", "--again", "--quiet")
    assert len(Ledger("survey.ledger").charges()) == 2
    code, _, err = isotone("release", "spec.toml", "--again")
    assert code == 1
    assert "ε = 0.5 of ε = 2.5 is left" in err


def test_a_lost_release_is_not_paid_for_again_by_accident(desk, isotone):
    isotone("release", "spec.toml")
    shutil.rmtree(desk / "out")
    code, _, err = isotone("release", "spec.toml")
    assert code == 1
    assert "--again" in err
    assert len(Ledger("survey.ledger").charges()) == 1


def test_programs_get_json(desk, isotone):
    _, out, _ = isotone("plan", "spec.toml", "--json")
    assert json.loads(out)["best"] == "PosetMechanism"
    _, out, _ = isotone("release", "spec.toml", "--json")
    assert json.loads(out)["columns"]["element"] == ["twice", "meds", "hyp"]
    _, out, _ = isotone("verify", "out", "--json")
    assert json.loads(out)["holds"] is True
    _, out, _ = isotone("ledger", "export", "survey.ledger")
    assert json.loads(out)["spent"]["epsilon"] == "1"
    _, out, _ = isotone("ledger", "show", "survey.ledger", "--json")
    assert json.loads(out)["dataset"] == "survey"
    _, out, _ = isotone("order", "check", "spec.toml", "--json")
    assert json.loads(out)["height"] == 2


def test_a_changed_release_fails_to_verify(desk, isotone):
    isotone("release", "spec.toml", "--quiet")
    path = desk / "out" / "release.csv"
    path.write_text(path.read_text().replace("hyp,", "hyp,9"))
    code, out, _ = isotone("verify", "out")
    assert code == 1
    assert "FAILED" in out


def test_an_order_is_described_and_drawn(desk, isotone):
    (desk / "order.csv").write_text("package,requires\na,b\nb,c\n")
    code, out, _ = isotone("order", "check", "order.csv", "--lower", "package", "--upper", "requires")
    assert code == 0
    assert "forest" in out
    code, _, _ = isotone("order", "plot", "spec.toml", "--out", "order.svg")
    assert code == 0
    assert "<svg" in (desk / "order.svg").read_text()
    code, _, err = isotone("order", "plot", "spec.toml", "--out", "nowhere/order.svg")
    assert code == 1
    assert "could not be written" in err


def test_a_ledger_is_created_once(desk, isotone):
    code, out, _ = isotone("ledger", "create", "a.ledger", "--epsilon", "3", "--unit", "person")
    assert code == 0
    assert "ε = 3" in out
    code, _, err = isotone("ledger", "create", "a.ledger", "--epsilon", "4")
    assert code == 1
    assert "cannot be changed" in err
    code, _, err = isotone("ledger", "create", "b.ledger")
    assert code == 1
    assert "--epsilon" in err
    code, _, _ = isotone("ledger", "create", "b.ledger", "--epsilon", "1", "--neighbours", "swap")
    assert code == 2


def test_the_desk_tool_looks_and_says_that_it_must_not_be_published(desk, isotone):
    (desk / "adults.csv").write_text("person,hyp,twice,meds\n1,no,yes,maybe\n2,,,\n,yes,,\n")
    code, out, _ = isotone("check", "spec.toml")
    assert code == 0
    assert out.startswith("NOT PRIVATE")
    assert "1 of them break the order" in out
    assert "'maybe' (1)" in out
    assert not (desk / "survey.ledger").exists()


def test_declared_types_change_how_values_are_read_and_the_desk_tool_counts_what_they_lose(desk, isotone):
    (desk / "adults.csv").write_text("person,hyp\n" + "".join(f"{i},007\n" for i in range(2000)) + "x,x7\n")
    table = (
        SURVEY.replace(
            '[order.parents]\ntwice = "hyp"\nmeds = "hyp"\n',
            '[table]\ncategory = "hyp"\nupper = 5000\ncategories = ["7", "007"]\n',
        )
        .replace('epsilon = "1"', 'epsilon = "100"')
        .replace('"2.5"', '"250"')
    )
    for types, expected in (("", [0, 2000]), ('types = { hyp = "integer" }', [2000, 0])):
        folder = f"out{len(types)}"
        spec = table.replace('unit = "person"', f'unit = "person"\n{types}').replace('"out"', f'"{folder}"')
        (desk / "spec.toml").write_text(spec)
        assert isotone("release", "spec.toml", "--quiet")[0] == 0
        lines = (desk / folder / "release.csv").read_text().split()[1:]
        assert [round(int(line.split(",")[1]), -2) for line in lines] == expected
    code, out, _ = isotone("check", "spec.toml")
    assert code == 0
    assert "hyp: 1 values cannot be read as integer" in " ".join(out.split())


def test_odd_contents_are_released_without_a_word(desk, isotone):
    (desk / "adults.csv").write_bytes(b'person,hyp,twice,meds\n\xff,\x00,yes,maybe\n,,,,,,\n"\n')
    code, out, err = isotone("release", "spec.toml")
    assert (code, err) == (0, "")
    assert "maybe" not in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"adults.csv"', '"adlts.csv"'), "did you mean 'adults.csv'"),
        (('unit = "person"', 'unit = "persn"'), "has no column 'persn'"),
        (('twice = "hyp"', 'twice = "hyp"\nhyp = "meds"'), "hyp"),
        (('epsilon = "1"', 'epsilon = "one"'), "epsilon"),
        (('epsilon = "1"', 'epsilon = "3"'), "too short"),
        (('folder = "out"', 'folder = "adults.csv/out"'), "cannot be written"),
        (('unit = "person"', 'unit = "person"\ntypes = { hyp = "numbr" }'), "'text', 'number' or 'integer'"),
        (('unit = "person"', 'unit = "person"\ntypes = { hpy = "number" }'), "has no column 'hpy'"),
        (('title = "A small survey"', 'titel = "x"'), "did you mean 'title'"),
        (('ledger = "survey.ledger"', 'ledger = "adults.csv"'), "not a"),
    ],
)
def test_a_mistake_in_a_spec_is_explained_and_charges_nothing(desk, isotone, change, message):
    (desk / "spec.toml").write_text(SURVEY.replace(*change))
    code, _, err = isotone("release", "spec.toml")
    assert code == 1
    assert message in err
    assert not (desk / "survey.ledger").exists()  # a mistake leaves nothing behind
    assert not (desk / "survey.ledger.lock").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "none.toml"),
        ("verify", "nowhere"),
        ("ledger", "show", "none.ledger"),
        ("reproduce", "nothing"),
    ],
)
def test_what_is_not_there_is_named(desk, isotone, arguments):
    code, out, err = isotone(*arguments)
    assert (code, out) == (1, "")
    assert arguments[-1].split(".")[0] in err


def test_what_is_stored_of_an_experiment_is_checked(isotone, monkeypatch):
    code, out, err = isotone("reproduce", "survey_table", "--check")
    assert (code, err) == (0, "")
    assert "as stored" in out
    assert "not compared: times" in isotone("reproduce", "curves-speed", "--check")[1]
    checks = importlib.import_module("_check")
    numbers = itertools.count(1)
    monkeypatch.setattr(checks, "_number", lambda text: next(numbers))  # no two numbers agree
    code, out, _ = isotone("reproduce", "survey-table", "--check")
    assert code == 1
    assert "the code gives" in out


def test_a_read_that_fails_says_what_became_of_the_charge(desk, monkeypatch, isotone):
    from isotone.errors import InputError
    from isotone.release.kinds.counts import description as count_query

    count = count_query.count_records

    def fail(*given):
        if Path("survey.ledger").exists():  # not in the rehearsal
            raise InputError("No more data.")
        return count(*given)

    monkeypatch.setattr(count_query, "count_records", fail)
    code, _, err = isotone("release", "spec.toml")
    assert code == 1
    assert (
        "Charge 1 failed while the data was read. Nothing was drawn or released, and it stays spent."
        in " ".join(err.split())
    )
    assert "No more data" not in err


def test_an_interrupted_run_leaves_the_charge_spent(desk, monkeypatch, isotone):
    from isotone.release.kinds.counts import description as count_query

    count = count_query.count_records

    def interrupt(*given):
        if Path("survey.ledger").exists():  # not in the rehearsal
            os.kill(os.getpid(), signal.SIGINT)
        return count(*given)

    monkeypatch.setattr(count_query, "count_records", interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which tests in the background ignore
    code, _, err = isotone("release", "spec.toml")
    assert code == 130
    assert "stays spent" in err
    assert Ledger("survey.ledger").remaining().epsilon == Ledger("survey.ledger").total.epsilon - 1


def test_help_teaches_every_command(isotone):
    code, out, _ = isotone("--help")
    assert code == 0
    for command in ("plan", "release", "report", "verify", "ledger", "order", "reproduce", "check"):
        assert command in out


def test_the_program_runs_as_a_module_and_talks_plainly_in_a_pipe(desk):
    done = subprocess.run(
        [sys.executable, "-m", "isotone", "release", "spec.toml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b[" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["homicides", "calibration"])
def test_the_examples_can_be_released_and_verified(tmp_path, isotone, monkeypatch, name):
    text = (EXAMPLES / name / "spec.toml").read_text().replace('"../../', f'"{EXAMPLES.parent}/')
    (tmp_path / "spec.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert isotone("plan", "spec.toml")[0] == 0
    code, _, err = isotone("release", "spec.toml")
    assert (code, err) == (0, "")
    assert isotone("verify", "out")[0] == 0


def test_an_audit_never_opens_the_data(desk, isotone):
    (desk / "adults.csv").unlink()
    code, out, _ = isotone("audit", "spec.toml", "--trials", "400")
    assert code == 0
    assert "claims ε = 1; kept" in out
    assert "claims ε = 1; no evidence above 1 (lower bound " in out
    _, out, _ = isotone("audit", "LaplaceMechanism", "--trials", "400", "--json")
    assert json.loads(out)["broken"] is False
    code, _, err = isotone("audit", "LaplaceMechanim")
    assert code == 1
    assert "did you mean 'LaplaceMechanism'" in err


@pytest.mark.parametrize("name", ["[/b]x", "[red]x[/red]", "=1+1", "a[1]"])
def test_names_that_look_like_markup_are_shown_as_they_are(desk, isotone, name):
    lines = (desk / "adults.csv").read_text().replace("twice", name)
    (desk / "adults.csv").write_text(lines)
    (desk / "spec.toml").write_text(SURVEY.replace("twice", f'"{name}"'))
    code, out, err = isotone("release", "spec.toml")
    assert (code, err) == (0, "")
    assert name in out
    assert f"\n{name}," in (desk / "out" / "release.csv").read_text()


def test_control_codes_in_public_names_are_refused_before_the_charge(desk, isotone):
    (desk / "spec.toml").write_text(SURVEY.replace("twice", '"tw\\u001b[31mice"'))
    code, out, err = isotone("release", "spec.toml")
    assert (code, out) == (1, "")
    assert "control characters" in err
    assert "\x1b" not in err
    assert not (desk / "survey.ledger").exists() or Ledger("survey.ledger").charges() == []


def test_a_report_is_drawn_again_on_demand(desk, isotone):
    isotone("release", "spec.toml", "--quiet")
    first = (desk / "out" / "report.html").read_text()
    (desk / "out" / "report.html").unlink()
    assert isotone("report", "out")[0] == 0
    assert (desk / "out" / "report.html").read_text() == first
    assert isotone("report", "nowhere")[0] == 1


def test_a_new_title_alone_charges_nothing_and_is_explained(desk, isotone):
    isotone("release", "spec.toml", "--quiet")
    (desk / "spec.toml").write_text(SURVEY.replace("A small survey", "A better title"))
    code, out, _ = isotone("release", "spec.toml")
    assert code == 0
    assert "nothing was charged" in out
    assert "a title is sealed with its release" in out
    assert len(Ledger("survey.ledger").charges()) == 1
