"""A series from its opening to its folder: closing from real tables, reading, and verifying."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from isotone.errors import InputError, LedgerError
from isotone.ledger import Ledger
from isotone.order import Poset
from isotone.reading.records import Groups
from isotone.release.series import LATE, Histories, Series, load_series, verify_series
from isotone.series.register import HistoryRules
from isotone.series.state import canonical

STAGES = Poset.chain(["second dose", "first dose"])
WEEKS = ("week 1", "week 2", "week 3")


def cascade(**more: Any) -> Series:
    rules = HistoryRules(unit="id", **more.pop("rules", {}))
    return Series(Histories(STAGES, rules, element="stage", **more), WEEKS)


def rows(*pairs: tuple[str | None, str]) -> pl.DataFrame:
    return pl.DataFrame(list(pairs), schema={"id": pl.String, "stage": pl.String}, orient="row")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "a.ledger", epsilon=2_000_000)


EXACT: dict[str, Any] = {"epsilon": 1_000_000}  # so little noise that counts are themselves


def test_a_cascade_is_opened_closed_read_and_verified(ledger: Ledger, tmp_path: Path) -> None:
    series, secrets, folder = cascade(), tmp_path / "secrets", tmp_path / "out"
    series.open(ledger, secrets, title="Doses", **EXACT)
    assert str(ledger.spent().epsilon) == "1000000"
    weeks = [
        rows(("a", "first dose"), ("b", "second dose"), (None, "first dose"), ("x", "no stage")),
        rows(("c", "first dose")),
        rows(("a", "second dose"), ("d", "first dose")),
    ]
    for week, table in zip(WEEKS, weeks, strict=True):
        series.close(table, week, ledger, secrets, folder=folder)
        assert verify_series(folder) == []
        assert series.close(rows(), week, ledger, secrets, folder=folder).fresh is False
    assert str(ledger.spent().epsilon) == "1000000"
    published = load_series(folder)
    assert {t: v.tolist() for t, v in published.shown.items()} == {0: [[1, 2]], 1: [[1, 3]], 2: [[2, 4]]}
    assert published.new("first dose", "week 1", "week 3").value == 2
    assert published.share("second dose", "first dose", "week 3").value == 0.5
    assert published.count("first dose", "week 2").value == 3
    assert LATE in (folder / "report.html").read_text()
    assert not (secrets / "secret.json").exists()


def test_a_person_who_comes_and_goes_is_counted_once(ledger: Ledger, tmp_path: Path) -> None:
    series, secrets = cascade(), tmp_path / "secrets"
    series.open(ledger, secrets, **EXACT)
    shown = [
        series.close(table, week, ledger, secrets).values.tolist()
        for week, table in zip(
            WEEKS, [rows(("a", "first dose")), rows(), rows(("a", "first dose"))], strict=True
        )
    ]
    assert shown == [[[0, 1]]] * 3


def test_groups_have_noise_of_their_own(ledger: Ledger, tmp_path: Path) -> None:
    groups = Groups((("region", ("north", "south")),))
    series = cascade(groups=groups)
    series.open(ledger, tmp_path / "s", epsilon=1)
    secret = json.loads((tmp_path / "s" / "secret.json").read_bytes())
    noise = np.array([part["noise"] for part in secret["periods"]])
    assert noise.shape == (3, 2, 2)
    table = rows(("a", "first dose")).with_columns(region=pl.lit("south"))
    series.close(table, "week 1", ledger, tmp_path / "s", folder=tmp_path / "out")
    published = load_series(tmp_path / "out")
    assert published.groups == ["north", "south"]
    assert (published.shown[0] - noise[0]).tolist() == [[0, 0], [0, 1]]
    assert verify_series(tmp_path / "out") == []
    with pytest.raises(InputError, match="not proved"):
        series.plan(rho=1, neighbours="replace")


def test_a_series_of_the_past_counts_rows_from_their_day_on(ledger: Ledger, tmp_path: Path) -> None:
    survey = Histories(STAGES, HistoryRules(unit="id", date="day"), element="stage")
    series = Series(survey, ("2024-01-07", "2024-01-14", "2024-01-21"))
    table = pl.DataFrame(
        {
            "id": ["a", "a", "b", "c", "d"],
            "stage": ["first dose", "second dose", "second dose", "first dose", "first dose"],
            "day": ["2024-01-03", "2024-01-15T08:00", "2024-01-14", None, "not a day"],
        }
    )
    published = series.release(table, ledger, folder=tmp_path / "out", **EXACT)
    assert {t: v.tolist() for t, v in published.shown.items()} == {0: [[0, 1]], 1: [[1, 2]], 2: [[2, 2]]}
    assert verify_series(tmp_path / "out") == []


def opened(ledger: Ledger, tmp_path: Path) -> tuple[Series, Path, Path]:
    series, secrets, folder = cascade(), tmp_path / "secrets", tmp_path / "out"
    series.open(ledger, secrets, epsilon=1)
    series.close(rows(("a", "first dose")), "week 1", ledger, secrets, folder=folder)
    series.close(rows(("b", "first dose")), "week 3", ledger, secrets, folder=folder)
    return series, secrets, folder


@pytest.mark.parametrize(
    "entry", ["sd", "half_width", "gain", "epsilon", "previous", "values", "number", "missing", "csv"]
)
def test_what_was_changed_is_found(ledger: Ledger, tmp_path: Path, entry: str) -> None:
    _, _, folder = opened(ledger, tmp_path)
    assert verify_series(folder) == []
    opening = json.loads((folder / "opening.json").read_bytes())
    second = json.loads((folder / "period-0002.json").read_bytes())
    if entry in ("sd", "half_width"):
        opening[entry][1][0] *= 0.5
    elif entry == "gain":
        opening["mechanism"] = {**opening["mechanism"], "gain": [[1]], "name": "two scales"}
    elif entry == "epsilon":
        opening["guarantee"]["epsilon"] = "1/2"
    elif entry == "previous":
        second["previous"] = "0" * 64
    elif entry == "values":
        second["values"][0][0] += 1
    elif entry == "number":
        second["number"] = 1
    (folder / "opening.json").write_bytes(canonical(opening))
    (folder / "period-0002.json").write_bytes(canonical(second))
    if entry == "missing":
        (folder / "period-0000.json").unlink()
    if entry == "csv":
        (folder / "series.csv").write_text("period\n")
    assert verify_series(folder)


def test_the_ledger_confirms_opening_and_values(ledger: Ledger, tmp_path: Path) -> None:
    _, _, folder = opened(ledger, tmp_path)
    (charge,) = ledger.charges()
    published = load_series(folder)
    told = {"release": charge.release, "periods": {str(t): v.tolist() for t, v in published.shown.items()}}
    assert verify_series(folder, told) == []
    assert verify_series(folder, {"release": "0"})
    assert verify_series(folder, {**told, "periods": {}})


def test_another_series_is_a_new_charge(ledger: Ledger, tmp_path: Path) -> None:
    series, secrets, _ = opened(ledger, tmp_path)
    for other in (Series(series.survey, (*WEEKS, "week 4")), Series(series.survey, WEEKS[:2])):
        with pytest.raises(InputError, match="new charge"):
            other.close(rows(), "week 2", ledger, secrets)
    with pytest.raises(InputError, match="no period"):
        series.close(rows(), "week 9", ledger, secrets)
    with pytest.raises(LedgerError, match="gone"):
        series.close(rows(), "week 2", ledger, secrets)
    with pytest.raises(InputError, match="published"):
        series.close(rows(), "week 3", ledger, secrets, folder=tmp_path)
    with pytest.raises(LedgerError):
        series.close(rows(), "week 3", Ledger(tmp_path / "other.ledger", epsilon=1), secrets)


def test_a_table_that_lost_its_unit_column_is_refused_and_nothing_is_shown(
    ledger: Ledger, tmp_path: Path
) -> None:
    series, secrets = cascade(), tmp_path / "secrets"
    series.open(ledger, secrets, epsilon=1)
    with pytest.raises(InputError, match="no column 'id'"):
        series.close(rows(("a", "first dose")).drop("id"), "week 1", ledger, secrets, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert series.close(rows(), "week 1", ledger, secrets).fresh


@pytest.mark.parametrize(
    ("periods", "words"),
    [
        ((), "at least one"),
        (("a", "a"), "each once"),
        (("2024-02-01", "2024-01-01"), "out of order"),
        ("abc", "list"),
    ],
)
def test_periods_that_mean_nothing_are_refused(periods: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Series(Histories(STAGES, HistoryRules(unit="id")), periods)


def test_the_true_counts_stand_in_no_error_and_in_no_public_file(ledger: Ledger, tmp_path: Path) -> None:
    series, secrets, folder = cascade(), tmp_path / "secrets", tmp_path / "out"
    series.open(ledger, secrets, epsilon="0.001")
    crowd = rows(*[(str(i), "first dose") for i in range(4321)])
    series.close(crowd, "week 1", ledger, secrets, folder=folder)
    for file in folder.iterdir():
        assert "4321" not in file.read_text()
