"""A root fixed to a public number: each condition is refused by itself before the charge, and verified afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.support import flat
from tests.support.forgeries import forged
from typer.testing import CliRunner

import isotone as iso
from isotone.cli import app
from isotone.counts import FixedRootMechanism
from isotone.errors import InputError
from isotone.release import Release, load_release, verify
from isotone.release.kinds.counts.derived import measured

P = iso.Poset.from_mapping(
    {"a": "all", "b": "all", "other": "all", "a1": "a", "a2": "a"}, children="partition"
)
ROWS = pl.DataFrame(
    {
        "id": [str(i) for i in range(9)],
        "code": ["a1", "a1", "a2", "b", "nowhere", None, "", "a", "other"],
        "place": ["n", "s"] * 4 + ["n"],
    }
)
FIXED: dict[str, Any] = {
    "records": 9,
    "catch_all": "other",
    "neighbours": "replace",
    "element": "code",
    "epsilon": 99,
}


def merged(given: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {**given, **more}


def values(release: Release) -> dict[str, int]:
    return dict(zip(release.columns["element"], release.columns["value"], strict=True))


@pytest.mark.parametrize("kind", ["polars", "Arrow"])
def test_every_row_has_a_place(tmp_path: Path, kind: str) -> None:
    """What is not listed, missing, empty or coded at an inner node of a partition goes to the leaf for the rest."""
    rows: Any = ROWS if kind == "polars" else ROWS.to_arrow()
    ledger = iso.Ledger(tmp_path / "book", epsilon=99, neighbours="replace")
    release = flat.counts(rows, P, ledger=ledger, folder=tmp_path / "out", **FIXED)
    assert values(release) == {"a": 3, "b": 1, "other": 5, "a1": 2, "a2": 1, "all": 9}
    assert release.manifest.mechanism["records"] == 9
    assert verify(tmp_path / "out", ledger=tmp_path / "book").holds
    noisy = flat.counts(
        rows,
        P,
        ledger=iso.Ledger(tmp_path / "two", epsilon=1, neighbours="replace"),
        **merged(FIXED, {"epsilon": 1}),
    )
    again = values(noisy.consistent())
    assert again["all"] == pytest.approx(9, abs=1e-3) == again["a"] + again["b"] + again["other"]


@pytest.mark.parametrize("number", [0, 4, 10**6])
def test_the_number_is_what_is_stated_and_not_what_the_data_say(tmp_path: Path, number: int) -> None:
    ledger = iso.Ledger(tmp_path / "book", epsilon=99, neighbours="replace")
    found = values(flat.counts(ROWS, P, ledger=ledger, **merged(FIXED, {"records": number})))
    assert found["all"] == number
    assert found["other"] == number - 4
    assert (found["a1"], found["a2"], found["b"]) == (2, 1, 1)


CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"neighbours": "add-remove"}, "neighbours='replace'"),
    ({"unit": "id"}, "say unit=None"),
    ({"element": None, "columns": dict.fromkeys(P.elements, "code")}, "element="),
    ({"on_conflict": "drop"}, "are dropped"),
    ({"on_violation": "drop"}, "are dropped"),
    ({"by": "place", "groups": ["n", "s"]}, "may change groups"),
    ({"by": ["place"], "groups": {"place": ["n", "s"]}}, "may change groups"),
    ({"total": True}, "leave out total"),
    ({"max_size": 2}, "cut"),
    ({"unit": "id", "contributions": 2}, "say unit=None"),
    ({"records": None}, "go together"),
    ({"catch_all": None}, "go together"),
    ({"catch_all": "a1"}, "directly below the root"),
    ({"mechanism": "TreeFieldMechanism"}, "FixedRootMechanism and no other"),
]


@pytest.mark.parametrize(("said", "why"), CONDITIONS)
def test_each_condition_is_refused_by_itself_before_the_charge(
    tmp_path: Path, said: dict[str, Any], why: str
) -> None:
    ledger = iso.Ledger(tmp_path / "book", epsilon=99, neighbours="replace")
    with pytest.raises(InputError, match=why):
        flat.counts(ROWS, P, ledger=ledger, **merged(FIXED, said))
    assert ledger.spent().epsilon == 0


def test_a_mechanism_that_is_passed_does_not_get_round_the_conditions(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "book", epsilon=99, neighbours="replace")
    noise = FixedRootMechanism(P, 99, records=9, catch_all="other")
    given: dict[str, Any] = {"neighbours": "replace", "epsilon": 99, "mechanism": noise}
    for more in ({"unit": "id", "element": "code"}, {}):
        with pytest.raises(InputError, match="cannot be fixed"):
            flat.counts(ROWS, P, ledger=ledger, **merged(given, more))
    assert ledger.spent().epsilon == 0
    assert values(flat.counts(ROWS, P, ledger=ledger, element="code", **given))["all"] == 9


SPEC = """
[data]
path = "rows.csv"
element = "code"
[privacy]
epsilon = "99"
neighbours = "replace"
ledger = "book"
budget = { epsilon = "99" }
[order]
parents = { a = "all", b = "all", other = "all", a1 = "a", a2 = "a" }
children = "partition"
root = { records = 9, catch_all = "other" }
[output]
folder = "out"
"""


def test_specs_plans_checks_and_forged_manifests(tmp_path: Path) -> None:
    ROWS.write_csv(tmp_path / "rows.csv")
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    run = CliRunner().invoke
    assert "root fixed to 9, other takes the rest" in run(app, ["plan", str(spec)]).output
    checked = run(app, ["check", str(spec)]).output
    assert "9 records, a row each" in checked
    assert "not in the list (counted in the catch-all)" in checked
    assert run(app, ["release", str(spec), "--quiet"]).exit_code == 0
    assert values(load_release(tmp_path / "out"))["other"] == 5
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Every number in it that comes from the data was changed at random" in page
    assert "There are 9 records, as the publisher states" in page
    assert run(app, ["verify", str(tmp_path / "out")]).exit_code == 0
    for part, rule, other in (
        ("unit", "column", "id"),
        ("answers", "element", None),
        ("answers", "on_conflict", "drop"),
        ("unit", "contributions", 2),
    ):
        bad = shutil.copytree(tmp_path / "out", tmp_path / f"bad-{rule}")

        def lie(m, _, p=part, r=rule, o=other):
            m["description"][p].update({r: o})

        assert not verify(forged(bad, lie)).holds
    more = spec.with_name("more.toml")
    more.write_text(SPEC.replace("records = 9", "records = 10").replace('"out"', '"more"'))
    assert "another number" in run(app, ["check", str(more)]).output
    more.write_text(SPEC.replace("[data]", '[data]\nunit = "id"'))
    assert "unit=None" in str(run(app, ["plan", str(more)]).exception)


def test_consistent_values_keep_the_public_number(tmp_path: Path) -> None:
    book = iso.Ledger(tmp_path / "book", epsilon=99, neighbours="replace")
    for run in range(2):
        release = flat.counts(
            ROWS, P, ledger=book, folder=tmp_path / f"{run}", **merged(FIXED, {"epsilon": "0.1"})
        )
        place = release.columns["element"].index("all")
        assert release.columns["low_all"][place] == release.columns["high_all"][place] == 9
        found = values(release.consistent())
        assert found["all"] == 9
        assert min(found.values()) >= 0


def test_values_that_do_not_add_up_are_not_verified(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "book", epsilon=99, neighbours="replace")
    flat.counts(ROWS, P, ledger=ledger, folder=tmp_path / "out", **FIXED)
    assert verify(tmp_path / "out").holds

    def one_more(_: Any, columns: dict[str, list[Any]]) -> None:
        for name in ("value", "low", "high", "low_all", "high_all"):
            columns[name][0] += 1

    verdict = verify(forged(tmp_path / "out", one_more))
    assert not verdict.holds
    assert "do not add up" in str(verdict)


def test_rows_are_units_for_hierarchies_alone(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "book", epsilon=990)
    plain = flat.counts(ROWS, P, ledger=ledger, element="code", epsilon=99)
    assert values(plain)["all"] == 5  # what is in no leaf counts nowhere
    dropped = flat.counts(ROWS, P, ledger=ledger, element="code", epsilon=99, on_violation="drop")
    assert values(dropped)["all"] == 0  # a code alone breaks the order: nothing above it is a yes
    with pytest.raises(InputError, match="needs unit="):
        flat.counts(ROWS, P.forget_choices(), ledger=ledger, element="code", epsilon=99)


def test_shares_of_all_are_shares_of_the_fixed_root(tmp_path: Path) -> None:
    release = _made(tmp_path, "book", records=10_000, catch_all="other")
    stated, whole = release.share("a1"), values(release)["a1"]
    assert stated.value == pytest.approx(max(whole / 10_000, 0))
    assert release.share("a1", records=10_000) == stated
    with pytest.raises(InputError, match="of 10,000 records, as was stated, not of 9"):
        release.share("a1", records=9)
    with pytest.raises(InputError, match="fixed to 10,000 records already"):
        release.given(records=10_000)


def _made(tmp_path: Path, name: str, **said: Any) -> Release:
    ledger = iso.Ledger(tmp_path / f"{name}.ledger", epsilon=9, neighbours="replace", dataset=name)
    return flat.counts(ROWS, P, ledger=ledger, neighbours="replace", element="code", epsilon=1, **said)


def test_only_counts_of_the_same_records_are_combined_or_compared(tmp_path: Path) -> None:
    """Where the root has noise, a row in no leaf counts nowhere; where it is fixed, in the catch-all."""
    fixed: dict[str, Any] = {"records": 9, "catch_all": "other"}
    first, same = _made(tmp_path, "first", **fixed), _made(tmp_path, "same", **fixed)
    noisy, more = _made(tmp_path, "noisy"), _made(tmp_path, "more", **fixed | {"records": 10})
    both = iso.combine([first, same])
    assert values(both)["all"] == 9
    for ask in (lambda: iso.combine([first, noisy]), lambda: both.change(noisy)):
        with pytest.raises(InputError, match="in the catch-all of one of them only"):
            ask()
    with pytest.raises(InputError, match="different numbers of records"):
        iso.combine([first, more])
    assert first.change(more, "all").value == 1  # one more a year later


def test_a_combination_of_hierarchies_has_the_errors_it_states(tmp_path: Path) -> None:
    """Two shapes of noise: weights rest on covariances, in which counts must add up. The streams are public."""
    parts = [_made(tmp_path, name, care=name) for name in ("nodes", "worst")]
    together = iso.combine(parts)
    (found,) = measured(together.manifest, ())
    drawn = np.std(found.law.draws, axis=0)
    assert np.allclose(np.sqrt(found.variance), drawn, rtol=0.05)
    got = values(together)
    assert got["a"] == pytest.approx(got["a1"] + got["a2"], abs=1e-3)
    assert got["all"] == pytest.approx(got["a"] + got["b"] + got["other"], abs=1e-3)
    assert all(np.all(drawn < 0.9 * part.sd) for part in parts)


def test_arrays_of_attributes_are_refused_like_lists(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "book", epsilon=99, neighbours="replace")
    arrays: list[Any] = [np.array([]), np.array(["place", "id"])]
    for by in arrays:
        with pytest.raises(InputError, match="by"):
            flat.counts(ROWS, P, ledger=ledger, by=by, **FIXED)
