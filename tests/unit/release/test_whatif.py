"""Plans side by side, from an error to ε, and whether a difference would be seen."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from tests.support.count_plans import plan
from tests.support.doc_blocks import run

from isotone.errors import InputError, SpecError
from isotone.order import Poset
from isotone.release import load_spec
from isotone.release.whatif import epsilon_for, percent, side_by_side, variants, visible

SPEC = """
[data]
path = "nowhere.csv"
[privacy]
epsilon = "1"
ledger = "l.ledger"
[order]
relations = [["b", "a"], ["c", "b"]]
elements = ["a", "b", "c", "d"]
[output]
folder = "out"
"""
P = Poset(["a", "b", "c", "d"], [("b", "a"), ("c", "b")])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "s.toml"
    found.write_text(SPEC, encoding="utf-8")
    return found


def test_plans_stand_side_by_side_as_they_are_alone(path: Path) -> None:
    spec = load_spec(path)
    rows = side_by_side(variants(spec, epsilon=["0.5", "1/3"]), guess=200)
    for row, epsilon in zip(rows, ("0.5", "1/3"), strict=True):
        alone = plan(P, epsilon=Fraction(epsilon)).rows[0]
        assert row["plan"] == f"ε = {epsilon}"
        assert (row["mechanism"], row["rms error"]) == (alone.name, alone.rmse)
        assert row["rms error of 200"] == alone.rmse / 200
    sizes = side_by_side(variants(spec, max_size=[1, 2]))
    for row, size in zip(sizes, (1, 2), strict=True):
        assert row["rms error"] == plan(P, epsilon=1, max_size=size).rows[0].rmse


def test_relations_are_added_and_left_out_one_at_a_time(path: Path) -> None:
    found = variants(load_spec(path), add=[("d", "a")], drop=[("b", "a")])
    rows = side_by_side(found)
    assert [row["plan"] for row in rows] == ["as it is", "with d implies a", "without b implies a"]
    more = Poset(P.elements, [*P.covers, ("d", "a")])
    fewer = Poset(P.elements, [("c", "b"), ("c", "a")])  # c implies both all the same
    for row, order in zip(rows, (P, more, fewer), strict=True):
        assert row["rms error"] == plan(order, epsilon=1).rows[0].rmse


def test_an_error_gives_the_least_epsilon(path: Path) -> None:
    spec = load_spec(path)
    answer = epsilon_for(spec, 20, 0.9)
    assert answer["epsilon"] == plan(P, epsilon=1).epsilon_for(20, 0.9)
    assert answer["of"] == "all counts at once"
    each = epsilon_for(spec, 20, 0.9, each=True)
    assert each["epsilon"] == plan(P, epsilon=1).epsilon_for(20, 0.9, simultaneous=False) < answer["epsilon"]
    path.write_text(SPEC.replace('epsilon = "1"', 'rho = "0.5"'), encoding="utf-8")
    assert "rho" in epsilon_for(load_spec(path), 20)
    with pytest.raises(SpecError, match="spends rho"):
        variants(load_spec(path), epsilon=[1])


def test_waves_of_a_breakdown_are_refused_as_what_they_are(path: Path) -> None:
    asked = '[order]\nby = { x = ["1", "2"] }\nmargins = ["", "x"]'
    path.write_text(SPEC.replace("[order]", asked), encoding="utf-8")
    said = run(["plan", str(path), "--waves", "3"])
    assert "A plan of waves is not for counts of 4 elements in 2 margins" in said
    assert "in 2 margins" in said


def test_power_is_that_of_the_binomial_without_noise_and_none_in_much_noise(path: Path) -> None:
    path.write_text(SPEC.replace('epsilon = "1"', 'epsilon = "500"'), encoding="utf-8")
    seen = visible(load_spec(path), (percent("3%"), percent("0.04")), 800)
    known, population, two, populations = seen.chances.values()
    assert (known, two) == (1.0, 1.0)  # eight people more are seen as soon as there is no noise
    law = stats.binom(800, 0.03)
    edge = next(c for c in range(800) if law.cdf(24 + c) - law.cdf(24 - c - 1) >= 0.95)
    other = stats.binom(800, 0.04)
    exact = 1 - other.cdf(24 + edge) + other.cdf(24 - edge - 1)
    assert math.isclose(
        population, exact, abs_tol=0.02
    )  # eight standard errors of 40,000 draws, with one fixed seed
    assert 0.05 < populations < population
    path.write_text(SPEC.replace('epsilon = "1"', 'epsilon = "0.001"'), encoding="utf-8")
    blind = visible(load_spec(path), ("0.03", "0.04"), 800, element="d")
    assert blind.element == "d"
    assert all(0.04 < chance < 0.06 for chance in blind.chances.values())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--compare", "3%,4%"], "needs --records"),
        (["--compare", "3%", "--records", "8"], "two shares"),
        (["--compare", "3%,400%", "--records", "8"], "not '400%'"),
        (["--compare", "3,4", "--records", "8"], "such as 3%"),
        (["--epsilon", "0.1,,1"], "no empty places"),
        (["--epsilon", ""], "no empty places"),
        (["--error", "5", "--epsilon", "1"], "no meaning beside --error"),
        (["--error", "5", "--compare", "3%,4%"], "--compare has no meaning beside --error"),
        (["--waves", "3", "--guess", "5"], "no meaning beside --waves"),
        (["--epsilon", "1", "--element", "a"], "no meaning beside --epsilon"),
        (["--guess", "5", "--found", "f.json"], "no meaning beside --guess"),
        (["--element", "a"], "no meaning by itself"),
        (["--each"], "no meaning by itself"),
        (["--compare", "3%,4%", "--records", "8", "--element", "x"], "no element"),
        (["--epsilon", "0.1,-1"], "epsilon must be"),
        (["--max-size", "two"], "whole numbers"),
        (["--add", "a"], "LOWER,UPPER"),
        (["--add", "a,x"], "no element"),
        (["--add", "a,c"], "cycle"),
        (["--drop", "c,a"], "not directly below"),
        (["--error", "-1"], "above 0"),
        (["--error", "10,5"], "'10,5' is no number. A decimal number"),
        (["--error", "ten"], "'ten' is no number."),
        (["--epsilon", ",".join(["1"] * 60)], "At most 50"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused_in_a_sentence(
    path: Path, arguments: list[str], reason: str
) -> None:
    said = run(["plan", str(path), *arguments])
    assert reason in said
    assert "Traceback" not in said


def test_the_command_line_prints_what_the_functions_find(path: Path) -> None:
    def told(*arguments: str) -> Any:
        return json.loads(run(["plan", str(path), *arguments, "--json"]))

    spec = load_spec(path)
    assert told("--error", "20")["epsilon"] == epsilon_for(spec, 20)["epsilon"]
    assert told("--epsilon", "0.5, 1") == side_by_side(variants(spec, epsilon=["0.5", "1"]))
    assert told("--drop", "b,a") == side_by_side(variants(spec, drop=[("b", "a")]))
    chances = told("--compare", "3%,4%", "--records", "800", "--epsilon", "0.5")["ε = 0.5"]["chances"]
    assert all(0 <= chance <= 1 for chance in chances.values())
    assert "keeps all counts at once within ± 20, 95 % of the time" in run(
        ["plan", str(path), "--error", "20"]
    )


def test_a_table_of_a_guessed_shape_has_a_least_epsilon(tmp_path: Path) -> None:
    text = SPEC.replace('[order]\nrelations = [["b", "a"], ["c", "b"]]\nelements = ["a", "b", "c", "d"]', '[table]\ncategory = "x"\ncategories = ["a", "b"]\nupper = 15')  # fmt: skip
    (tmp_path / "t.toml").write_text(text, encoding="utf-8")
    spec = load_spec(tmp_path / "t.toml")
    answer = epsilon_for(spec, 4)
    privacy = spec.privacy.model_copy(update={"epsilon": str(answer["epsilon"])})
    view: Any = spec.model_copy(update={"privacy": privacy}).plan().view
    assert view.rows[0].within <= 4
    said = run(["plan", str(tmp_path / "t.toml"), "--error", "4"])
    assert "is expected to keep 95 % of the counts within ± 4 if the table is skewed." in said
    questions: list[tuple[dict[str, Any], str]] = [({"each": True}, "--each"), ({"records": 9}, "--records")]
    for question, why in questions:
        with pytest.raises(InputError, match=why):
            epsilon_for(spec, 4, **question)


def test_other_releases_have_no_epsilon_for_an_error(tmp_path: Path) -> None:
    text = SPEC.replace('[order]\nrelations = [["b", "a"], ["c", "b"]]\nelements = ["a", "b", "c", "d"]', '[table]\ncategory = "x"\ncategories = ["a", "b"]\nupper = 5')  # fmt: skip
    (tmp_path / "t.toml").write_text(text, encoding="utf-8")
    curve = text.replace(
        '[table]\ncategory = "x"\ncategories = ["a", "b"]\nupper = 5',
        '[curve]\nx = "x"\ny = "y"\nbounds = [0, 1]\ny_range = [0, 1]',
    )
    (tmp_path / "c.toml").write_text(curve, encoding="utf-8")
    said = run(["plan", str(tmp_path / "c.toml"), "--error", "0.1"])
    assert "not for a curve of y over x" in said
    assert "Plans for several budgets say what to expect: --epsilon 0.5,1,2." in said
    with pytest.raises(InputError, match=r"no \[order\]|has no \[order\]"):
        variants(load_spec(tmp_path / "t.toml"), max_size=[2])
