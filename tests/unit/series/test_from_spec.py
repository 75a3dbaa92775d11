"""A series from its spec to a verified chain, through the command line, and what stands against each mistake."""
# pyright: reportArgumentType=false, reportConstantRedefinition=false, reportOperatorIssue=false, reportOptionalOperand=false

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.kills import Killed, every_kill
from typer.testing import CliRunner

import isotone as iso
from isotone.cli import app
from isotone.errors import InputError, IsotoneError, LedgerError, SpecError
from isotone.ledger import BusyError, extract_charge
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.kind import kind_named
from isotone.release.kinds.series.description import SeriesManifest, Shown, chain_of, opening_of
from isotone.release.kinds.series.reader import values_of
from isotone.release.kinds.series.report import LATE
from isotone.release.manifest import Manifest
from isotone.release.over_time import Vault, closed
from isotone.release.result import seal
from isotone.series.state import OpenSeries

SPEC = """
[order]
parents = {{ "second dose" = "first dose" }}

[series]
periods = {periods}
secrets = "secrets"

[data]
path = "rows.csv"
unit = "id"
element = "stage"

[privacy]
epsilon = {epsilon}
ledger = "a.ledger"
budget = {{ epsilon = 2000000 }}

[output]
folder = "out"
"""
WEEKS = ("week 1", "week 2", "week 3")
STAGES = iso.Poset.chain(["second dose", "first dose"])
EXACT = 1_000_000  # so little noise that counts are themselves
Rows = Sequence[tuple[str, str]]


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Path]:
    """Write a spec and its data."""

    def write(rows: Rows, epsilon: int = EXACT, periods: Sequence[str] = WEEKS) -> Path:
        lines = "".join(f"{unit},{stage}\n" for unit, stage in rows)
        (tmp_path / "rows.csv").write_text("id,stage\n" + lines)
        spec = tmp_path / "doses.toml"
        spec.write_text(SPEC.format(periods=json.dumps(list(periods)), epsilon=epsilon))
        return spec

    return write


def isotone(*words: Any, fails: bool = False) -> str:
    """What the command line prints."""
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)
    if fails:
        assert isinstance(done.exception, IsotoneError) or done.exit_code == 1, done.output
        return f"{done.output}{done.exception}"
    assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    return done.output


FIRST: Rows = [("a", "first dose"), ("b", "second dose"), ("", "first dose"), ("x", "no stage")]
SECOND: Rows = [("c", "first dose")]
THIRD: Rows = [("a", "second dose"), ("d", "first dose")]


def test_from_a_spec_to_a_verified_chain(place: Callable[..., Path], tmp_path: Path) -> None:
    spec = place(FIRST)
    assert "product" in isotone("plan", spec)
    assert "3 periods" in isotone("series", "open", spec)
    assert "opened before, under charge 1" in isotone("series", "open", spec, fails=True)
    assert "0 of 3 planned" in isotone("series", "show", spec)
    values: list[list[int]] = []
    for week, rows in zip(WEEKS, (FIRST, SECOND, THIRD), strict=True):
        place(rows)
        printed = json.loads(isotone("series", "close", spec, "--period", week, "--json"))
        assert printed["new"] is True
        values.append(printed["columns"]["value"])
        place([("z", "second dose")] * 9)  # whatever the data shows now, nothing is read again
        again = json.loads(isotone("series", "close", spec, "--period", week, "--json"))
        assert (again["new"], again["columns"]) == (False, printed["columns"])
        isotone("verify", tmp_path / "out", "--ledger", tmp_path / "a.ledger")
    assert values == [[1, 2], [1, 2, 1, 3], [1, 2, 1, 3, 2, 4]]
    assert "Its secrets are destroyed" in isotone("series", "show", spec)
    assert sorted(file.name for file in (tmp_path / "secrets").iterdir()) == ["opening.json"]
    shown = isotone("series", "show", tmp_path / "out", "--period", "week 2")
    assert "3 of 3 planned periods" in shown
    assert re.search(r"first dose\s+3\s", shown)
    share = json.loads(isotone("share", tmp_path / "out", "second dose", "--of", "first dose", "--json"))
    assert share["value"] == 0.5
    assert json.loads(isotone("ledger", "export", tmp_path / "a.ledger"))["charges"][0]["state"] == "sealed"
    assert LATE in (tmp_path / "out" / "report.html").read_text()


def test_the_extract_of_the_charge_knows_every_period(place: Callable[..., Path], tmp_path: Path) -> None:
    spec = place(FIRST)
    isotone("series", "open", spec)
    isotone("series", "close", spec, "--period", "week 2")
    extract = tmp_path / "charge.json"
    content = extract_charge(iso.Ledger(tmp_path / "a.ledger"), 1)
    extract.write_bytes(content)
    assert iso.verify(tmp_path / "out", ledger=extract)["ledger"].holds
    for wrong in (b'"1":"sha256:0', b'"2":"sha256:'):
        extract.write_bytes(content.replace(b'"1":"sha256:', wrong))
        assert not iso.verify(tmp_path / "out", ledger=extract)["ledger"].holds


def series(**more: Any) -> iso.Series:
    counts = {name: more.pop(name) for name in ("by", "confidence") if name in more}
    survey = iso.Counts(STAGES, unit=more.pop("unit", "id"), answers=iso.Answers(element="stage"), **counts)
    return iso.Series(survey, **{"periods": WEEKS, **more})


def table(*pairs: tuple[str | None, str]) -> pl.DataFrame:
    return pl.DataFrame(list(pairs), schema={"id": pl.String, "stage": pl.String}, orient="row")


class Office:
    """A series in Python with its ledger and its folders."""

    def __init__(self, folder: Path, described: iso.Series, **budget: Any) -> None:
        self.ledger = iso.Ledger(folder / "a.ledger", epsilon=2_000_000)
        self.described, self.secrets, self.out = described, folder / "secrets", folder / "out"
        described.open(ledger=self.ledger, secrets=self.secrets, **{"epsilon": EXACT, **budget})

    def close(self, data: Any, week: str, described: iso.Series | None = None, **more: Any) -> iso.Release:
        where = {"ledger": self.ledger, "secrets": self.secrets, "folder": self.out, **more}
        return (described or self.described).close(data, week, **where)


def test_a_series_with_slow_noise_is_opened_closed_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where few draws are kept those of the law are part of what is published."""
    from tests.unit.series.test_series_mechanisms import slow_series

    from isotone.release.kinds.series import description

    class Planned:
        best = slow_series(iso.Poset.chain("abc"), 5)

    monkeypatch.setattr(description, "plan_series", lambda *_, **__: Planned)
    described = iso.Series(iso.Counts(iso.Poset.chain("abc"), unit="id"), periods=list("12345"))
    office = Office(tmp_path, described, epsilon=1)
    rows = pl.DataFrame({"id": ["1"], "a": ["no"], "b": ["yes"], "c": ["yes"]})
    for period in "14":
        office.close(rows, period)
    assert iso.load_release(office.out).manifest["mechanism"]["relaxations"][0]["draws"]
    for _ in range(2):
        assert iso.verify(office.out, ledger=office.ledger.address).holds


def test_readers_ask_about_any_two_periods(tmp_path: Path) -> None:
    office = Office(tmp_path, series(), epsilon=1)
    office.close(table(*[(str(i), "first dose") for i in range(900)]), "week 1")
    early = iso.load_release(office.out)
    made = office.close(table(*[(str(i), "second dose") for i in range(600, 1500)]), "week 3")
    mechanism_sd = made.columns["new_sd"]
    new = made.difference("week 1", "week 3", "first dose")
    last = made.columns["value"]
    assert new.value == last[3] - last[1] == made.columns["new"][3]
    assert abs(new.value - 600) < 60
    assert new.high - new.low < 2 * 4 * mechanism_sd[3]
    assert early.change(made, "first dose") == new  # the same draw, not two independent ones
    share = made.share("second dose", "first dose")
    assert share.low < share.value < share.high
    assert abs(share.value - 0.6) < 0.03  # ten standard deviations
    assert made.share(("week 3", "second dose"), ("week 3", "first dose")) == share
    wide = made.share("second dose", "first dose", population=True)
    assert wide.low < share.low
    assert wide.high > share.high
    shares = made.shares()
    assert list(shares) == [("second dose", "first dose")]
    assert made.contrast({"week 3: first dose": 1, "week 1: first dose": -1}) == new
    assert set(made.difference("week 1", "week 3")) == {"first dose", "second dose"}
    for question, words in (
        (lambda: made.difference("week 2", "week 3"), "shows no period"),
        (lambda: made.difference("week 3", "week 1"), "earlier period"),
        (lambda: made.share("third dose", "first dose"), "no stage"),
        (lambda: made.share("first dose"), "of="),
        (lambda: made.sum("first dose"), "contain each other"),
        (lambda: iso.combine([made, early]), "belong|depend|combination"),
        (lambda: made.change(early), "continues|same"),
    ):
        with pytest.raises(InputError, match=words):
            question()


def test_intervals_of_what_is_new_hold_as_often_as_stated() -> None:
    """Binomial at 95 % with 400 series: below 365 with a probability of 1e-3; two counts as if independent are far wider."""
    described = series()
    mechanism = described.mechanism(Guarantee.pure(1))
    known = described.known(mechanism)
    held = 0
    law = mechanism.law()
    half = law.half_width(np.array([0, -1, 0, 0, 0, 1.0]), 0.95)
    for _ in range(400):
        drawn = Shown((0, 1, 2), np.array([mechanism.draw()]).transpose(1, 0, 2))
        columns = described.columns(mechanism, drawn, known)
        held += abs(columns["value"][5] - columns["value"][1]) <= half
    assert 365 <= held <= 399


def test_columns_say_what_the_law_of_the_noise_says(tmp_path: Path) -> None:
    """Intervals and errors of each row, and those of what is new since a period that is not the one before."""
    office = Office(tmp_path, series(), epsilon="1/10")
    rows = table(*[(str(i), "second dose") for i in range(4000)])
    office.close(rows, "week 1")
    made = office.close(rows, "week 3")
    mechanism = office.described.mechanism(Guarantee.pure("1/10"))
    half, sd = mechanism.half_widths(0.95).reshape(3, 2), mechanism.error().sd.reshape(3, 2)
    covariance = mechanism.covariance()
    for row, (t, x) in enumerate([(0, 0), (0, 1), (2, 0), (2, 1)]):
        value, low, high = (made.columns[name][row] for name in ("value", "low", "high"))
        assert (value - low, high - value) == (half[t, x], half[t, x])
        assert made.columns["sd"][row] == pytest.approx(sd[t, x], abs=1e-4)
        square = (
            covariance[4 + x, 4 + x] + covariance[x, x] - 2 * covariance[4 + x, x] if t else sd[0, x] ** 2
        )
        assert made.columns["new_sd"][row] == pytest.approx(np.sqrt(square), abs=1e-4)


def test_two_series_are_compared_with_independent_noise(tmp_path: Path) -> None:
    found: list[iso.Release] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        office = Office(tmp_path / name, series(), epsilon=1)
        found.append(office.close(table(*[(str(i), "first dose") for i in range(400)]), "week 1"))
    change = found[0].change(found[1], "first dose")
    assert abs(change.value) < 60
    alone = found[0].high[1] - found[0].value[1]
    assert change.high - change.value > alone  # two draws


def test_groups_have_noise_of_their_own(tmp_path: Path) -> None:
    described = series(by={"region": ["north", "south"]})
    office = Office(tmp_path, described, epsilon="0.0001")
    secret = json.loads((office.secrets / "secret.json").read_bytes())
    noise = np.array([part["noise"] for part in secret["periods"]])
    assert noise.shape == (3, 2, 2)
    assert not np.array_equal(noise[:, 0], noise[:, 1])
    data = table(("a", "first dose")).with_columns(region=pl.lit("south"))
    made = office.close(data, "week 1")
    assert made.columns["group"] == ("north", "north", "south", "south")
    assert (np.array(made.columns["value"]) - noise[0].ravel()).tolist() == [0, 0, 0, 1]
    office.close(data, "week 3")
    assert iso.verify(office.out).holds
    later = iso.load_release(office.out)
    assert later.difference(("week 1", "south"), ("week 3", "south"), "first dose").confidence == 0.95
    replaced = series(by={"region": ["north", "south"]}, unit=iso.Unit("id", neighbours="replace"))
    with pytest.raises(InputError, match="not proved"):
        replaced.plan(rho=1)


@pytest.mark.parametrize("budget", [{"epsilon": EXACT}, {"rho": EXACT}, {"epsilon": 10, "delta": "1e-6"}])
def test_a_series_of_the_past_counts_rows_from_their_day_on(tmp_path: Path, budget: dict[str, Any]) -> None:
    described = series(date="day", periods=("2024-01-07", "2024-01-14", "2024-01-21"))
    data = pl.DataFrame(
        {
            "id": ["a", "a", "b", "c", "d", "e", "f"],
            "stage": ["first dose", "second dose", "second dose", *["first dose"] * 4],
            "day": ["2024-01-03", "2024-01-15T08:00", "2024-01-14", None, "not a day", "", "1"],
        }
    )
    ledger = iso.Ledger(tmp_path / "a.ledger", **{name: 2 * float(x) for name, x in budget.items()})
    made = described.release(data, ledger=ledger, folder=tmp_path / "out", **budget)
    if EXACT in budget.values():
        assert made.columns["value"] == (0, 1, 1, 2, 2, 2)
    assert iso.verify(tmp_path / "out", ledger=tmp_path / "a.ledger").holds
    with pytest.raises(InputError, match="of the past"):
        described.open(ledger=ledger, secrets=tmp_path / "s", **budget)
    with pytest.raises(InputError, match="no date column"):
        series().release(data, ledger=ledger, **budget)


def forged(
    folder: Path,
    change: Callable[[dict[str, Any], dict[str, list[Any]]], None],
    *,
    chained: bool = False,
) -> bool:
    """Whether a folder that was changed, and sealed again by the forger, with a chain of its own if asked for, still verifies."""
    made = iso.load_release(folder)
    plain = json.loads(made.manifest.text())
    columns = {name: list(column) for name, column in made.columns.items()}
    change(plain, columns)
    plain = {key: value for key, value in plain.items() if key not in ("content_hash", "files")}
    manifest = Manifest.from_plain(plain)
    if chained:
        assert isinstance(manifest, SeriesManifest)
        opening = opening_of(manifest).manifest.content_hash or ""
        manifest = replace(manifest, chain=chain_of(opening, Shown(tuple(manifest.shown), values_of(made))))
    seal({k: tuple(v) for k, v in columns.items()}, manifest).save(folder)
    return iso.verify(folder).holds


def _entry(name: str) -> Callable[[dict[str, Any], dict[str, list[Any]]], None]:
    def change(plain: dict[str, Any], columns: dict[str, list[Any]]) -> None:
        errors, chain = plain["errors"], plain["chain"]
        if name in errors:
            errors[name][1][0] *= 0.5
        elif name == "epsilon":
            plain["guarantee"]["epsilon"] = "1/2"
        elif name == "opening":
            chain[0] = "sha256:" + "0" * 64
        elif name == "link":
            chain[1] = "sha256:" + "0" * 64
        elif name == "shortened":
            chain.pop()
        elif name == "values":
            columns["value"][0] += 1
        elif name == "value and all that follows":
            for column in ("value", "low", "high", "new"):
                columns[column][0] += 1
            columns["new"][2] -= 1
        elif name == "number":
            plain["shown"] = [0, 1]
        elif name == "twice":
            plain["shown"] = [0, 0]
        elif name == "past":
            plain["chain"] = plain["noise"] = None
        elif name == "missing":
            plain["shown"] = [2]
            plain["chain"] = [chain[0], chain[2]]
            for column in columns.values():
                del column[:2]
        elif name == "new":
            columns["new"][2] += 1
        elif name == "periods":
            plain["description"]["periods"].append("week 4")
        elif name == "noise":
            plain["noise"] = "1" * 64
        elif name == "no noise":
            plain["noise"] = None
        elif name == "floats":
            columns["value"] = [float(x) for x in columns["value"]]
        elif name == "law":
            plain["law"]["rank"] = plain["law"]["rank"] + 1
        elif name == "contributions":
            plain["description"]["unit"]["contributions"] = 2
            plain["description"]["record"] = "case"
        elif name == "mechanism":
            plain["mechanism"]["epsilon"] = "1.0"
        elif name == "neighbours":
            plain["guarantee"]["neighbours"] = "replace"
        elif name == "unit":
            plain["guarantee"]["unit"] = "household"
        elif name == "column":
            columns["more"] = columns["value"]
        elif name == "order":
            plain["description"]["order"]["covers"] = []

    return change


FORGERIES = [
    "sd",
    "half_width",
    "new_sd",
    "epsilon",
    "opening",
    "link",
    "shortened",
    "values",
    "value and all that follows",
]
FORGERIES += ["column"]
MECHANISM = [
    "sd",
    "half_width",
    "new_sd",
    "epsilon",
    "law",
    "contributions",
    "mechanism",
    "neighbours",
    "order",
]
MECHANISM += ["no noise", "floats", "unit"]
FORGERIES += ["number", "twice", "past", "missing", "new", "periods", "noise"]


@pytest.mark.parametrize("entry", FORGERIES)
def test_what_was_changed_is_found(tmp_path: Path, entry: str) -> None:
    office = Office(tmp_path, series(), epsilon=1)
    office.close(table(("a", "first dose")), "week 1")
    assert "passed over" not in (office.out / "report.html").read_text()
    office.close(table(("b", "first dose")), "week 3")
    page = (office.out / "report.html").read_text()
    assert "Of periods that were passed over nothing is known" in page
    assert "new since the last one shown" in page
    sd = iso.load_release(office.out).columns["new_sd"][2]
    assert f">{sd:.1f}<" in page
    assert f">{sd}<" not in page
    assert forged(office.out, lambda plain, columns: None)
    assert not forged(office.out, _entry(entry))


@pytest.mark.parametrize("entry", MECHANISM)
def test_what_the_mechanism_does_not_say_is_found_in_a_chain_that_was_made_anew(
    tmp_path: Path, entry: str
) -> None:
    """Without the ledger, too: these entries are those of the mechanism, whatever the hashes say."""
    office = Office(tmp_path, series(), epsilon=1)
    office.close(table(("a", "first dose")), "week 1")
    office.close(table(("b", "first dose")), "week 3")
    assert forged(office.out, lambda plain, columns: None, chained=True)
    assert not forged(office.out, _entry(entry), chained=True)


def test_noise_for_fewer_histories_than_a_unit_may_have_guarantees_nothing(tmp_path: Path) -> None:
    """Also where the opening says so, and chain and ledger go with it: the guarantee follows from noise and rules alone."""
    office = Office(tmp_path, series(record="case", unit=iso.Unit("id", contributions=2)), epsilon=1)
    rows = table(("a", "first dose")).with_columns(case=pl.lit("1"))
    made = office.close(rows, "week 1")
    kind, plain = kind_named("series"), json.loads(made.manifest.text())
    assert kind.derived_guarantee(made).epsilon == 1
    plain["mechanism"]["contributions"] = 1
    with pytest.raises(InputError, match="fewer histories"):
        kind.derived_guarantee(replace(made, manifest=Manifest.from_plain(plain)))


@pytest.mark.parametrize("places", [(2, 0), (0, 0)])
def test_periods_twice_or_out_of_the_sequence_of_time_are_found(
    tmp_path: Path, places: tuple[int, int]
) -> None:
    """Whatever columns and chain a forger makes for them."""
    office = Office(tmp_path, series(), epsilon=1)
    office.close(table(("a", "first dose")), "week 1")
    made = office.close(table(("b", "first dose")), "week 3")
    assert isinstance(made.manifest, SeriesManifest)
    assert made.manifest.chain is not None
    forgery = Shown(places, values_of(made))
    chain = chain_of(made.manifest.chain[0], forgery)
    manifest = replace(made.manifest, shown=list(places), chain=chain, content_hash=None, files=None)
    mechanism = office.described.mechanism(Guarantee.pure(1))
    seal(office.described.columns(lambda: mechanism, forgery, manifest.errors), manifest).save(office.out)
    verdict = iso.verify(office.out)
    assert "sequence of time" in str(verdict["error"])


def test_a_chain_that_a_forger_makes_anew_is_not_that_of_the_ledger(tmp_path: Path) -> None:
    """Whoever makes all hashes again passes without the ledger, and not with it."""
    from isotone.release.kinds.series.description import release_of

    office = Office(tmp_path, series(), epsilon=1)
    made = office.close(table(("a", "first dose")), "week 1")
    assert isinstance(made.manifest, SeriesManifest)
    for other in (made.manifest, replace(made.manifest, noise="1" * 64)):
        release_of(other, {0: np.array([[7, 9]])}).save(office.out)
        assert iso.verify(office.out).holds
        assert not iso.verify(office.out, ledger=tmp_path / "a.ledger").holds


def test_another_series_is_a_new_charge(tmp_path: Path) -> None:
    office = Office(tmp_path, series(), epsilon=1)
    office.close(table(("a", "first dose")), "week 1")
    others = (
        series(periods=(*WEEKS, "week 4")),
        series(periods=WEEKS[:2]),
        series(matters="last"),
        series(confidence=0.9),
        series(unit=iso.Unit("id", neighbours="replace")),
        iso.Series(iso.Counts(iso.Poset.antichain(STAGES.elements), unit="id"), periods=WEEKS),
    )
    for other in others:
        with pytest.raises(InputError, match="new charge"):
            office.close(table(), "week 2", other)
    with pytest.raises(InputError, match="no period"):
        office.close(table(), "week 9")
    with pytest.raises(InputError, match="lie apart"):
        office.close(table(), "week 2", folder=tmp_path)
    with pytest.raises(InputError, match="lie apart"):
        office.close(table(), "week 2", folder=office.secrets / "out")
    with pytest.raises(LedgerError):
        office.close(table(), "week 2", ledger=iso.Ledger(tmp_path / "other.ledger", epsilon=1))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="something else"):
        office.close(table(), "week 2", folder=tmp_path / "elsewhere")
    assert str(office.ledger.spent().epsilon) == "1"
    assert office.close(table(), "week 2").manifest["shown"] == [0, 1]


def test_a_table_that_lost_its_unit_column_is_refused_and_nothing_is_shown(tmp_path: Path) -> None:
    office = Office(tmp_path, series())
    for lost in ("id", "stage"):
        with pytest.raises(InputError, match=f"no column '{lost}'"):
            office.close(table(("a", "first dose")).drop(lost), "week 1")
    assert not list(office.out.glob("*.json"))
    assert office.close(table(("a", "first dose")), "week 1").columns["value"] == (0, 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"periods": ()}, "empty"),
        ({"periods": ("a", "a")}, "twice"),
        ({"periods": ("2024-02-01", "2024-01-01")}, "out of order"),
        ({"periods": "abc"}, "list"),
        ({"periods": ("a\tb",)}, "control"),
        ({"periods": ("a",), "date": "day"}, "last day"),
        ({"unit": None}, "needs unit="),
        ({"unit": iso.Unit("id", contributions=2)}, "record="),
        ({"record": "case"}, "record="),
        ({"matters": "most"}, "matters"),
        ({"by": {"a": ["x"], "b": ["y"]}}, "one column of groups"),
        ({"horizon": 3}, "no parameter"),
    ],
)
def test_what_means_nothing_is_refused_without_data(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        series(**given)


@pytest.mark.parametrize(
    "more",
    [{"max_size": 1}, {"total": True}, {"waves": 2}, {"mechanism": "LaplaceMechanism"}, {"care": "levels"}],
)
def test_what_counts_have_and_a_series_has_not_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="series has"):
        iso.Series(iso.Counts(STAGES, unit="id", **more), periods=WEEKS)


def test_days_that_are_none_and_secrets_of_the_past_are_refused(
    place: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="is no day"):
        series(periods=["2024-13-45"], date="day")
    spec = place(FIRST, periods=["2024-01-31"])
    spec.write_text(spec.read_text().replace('secrets = "secrets"', 'secrets = "secrets"\ndate = "day"'))
    assert "date and secrets" in isotone("plan", spec, fails=True)


def test_specs_that_mean_nothing_are_refused(place: Callable[..., Path], tmp_path: Path) -> None:
    spec = place(FIRST)
    text = spec.read_text()
    for old, new, words in (
        ('[order]\nparents = { "second dose" = "first dose" }', "", "order"),
        ('unit = "id"', "", "needs unit="),
        ('periods = ["week 1", "week 2", "week 3"]', "periods = []", "empty"),
        ('periods = ["week 1", "week 2", "week 3"]', "", "periods"),
        ('secrets = "secrets"', "", "secrets"),
        ("[series]", "[serie]", "series"),
    ):
        spec.write_text(text.replace(old, new))
        assert words in isotone("series", "open", spec, fails=True)
        assert not (tmp_path / "a.ledger").exists()
    spec.write_text(text)
    with pytest.raises(InputError, match="no date column"):
        iso.load_spec(spec).release()
    spec.write_text(text + '\n[table]\ncolumn = "stage"\n')
    with pytest.raises(SpecError, match="exactly one"):
        iso.load_spec(spec)


def test_the_true_counts_stand_in_no_error_and_in_no_public_file(tmp_path: Path) -> None:
    office = Office(tmp_path, series(), epsilon="0.001")
    office.close(table(*[(str(i), "first dose") for i in range(4321)]), "week 1")
    for file in office.out.iterdir():
        assert "4321" not in file.read_text()


def test_stages_that_differ_in_their_choices_alone_have_errors_of_their_own() -> None:
    """What was computed for one order is not taken for another one with the same relations."""
    told = {"mail": "met", "phone": "met", "met": None}
    errors: list[Any] = []
    for children in (None, {"met": "exclusive"}, {"met": "partition"}):
        P = iso.Poset.from_mapping(told, **({} if children is None else {"children": children}))
        survey = iso.Counts(P, unit="id", answers=iso.Answers(element="stage"))
        described = iso.Series(survey, periods=WEEKS[:2])
        mechanism = described.mechanism(Guarantee.pure(1))
        assert mechanism.stages.choices == P.choices
        errors.append(described.known(mechanism)["sd"])
        assert errors[-1][1] == [round(x, 4) for x in mechanism.error().sd[3:].tolist()]
    assert errors[0] != errors[1]


def test_values_that_stay_as_they_were_drawn_are_not_called_consistent(tmp_path: Path) -> None:
    office = Office(tmp_path, series(), epsilon=1)
    made = office.close(table(("a", "first dose")), "week 1")
    with pytest.raises(InputError, match="stay as they were drawn"):
        made.consistent()


def test_what_is_new_since_any_earlier_period_is_shown_with_its_interval(
    place: Callable[..., Path], tmp_path: Path
) -> None:
    spec = place(FIRST)
    isotone("series", "open", spec)
    for week, rows in zip(WEEKS, (FIRST, SECOND, THIRD), strict=True):
        place(rows)
        isotone("series", "close", spec, "--period", week)
    told = json.loads(isotone("series", "show", tmp_path / "out", "--since", "week 1", "--json"))
    columns = told["columns"]
    assert columns["value"] == [2, 4]
    assert columns["new"] == columns["new_low"] == columns["new_high"] == [1, 2]
    assert "new_high" in isotone("series", "show", spec, "--since", "week 2")
    for since in ("week 3", "week 9"):
        isotone("series", "show", spec, "--since", since, fails=True)


def test_the_opening_needs_no_data_and_knows_none(place: Callable[..., Path], tmp_path: Path) -> None:
    """Mechanism, shares and gain are the same whatever the data holds: there is none when they are fixed."""
    spec = place(FIRST)
    (tmp_path / "rows.csv").unlink()
    isotone("series", "open", spec)
    opening = json.loads((tmp_path / "secrets" / "opening.json").read_bytes())["manifest"]
    recipe = iso.load_spec(spec).description.mechanism(Guarantee.pure(EXACT)).recipe()
    assert opening["mechanism"] == json.loads(json.dumps(recipe))


def test_a_series_never_tells_the_number_of_records() -> None:
    mechanism = series().mechanism(Guarantee.pure(1))
    assert not hasattr(mechanism, "release_with_total")
    assert not getattr(mechanism, "has_total", False)


def test_what_a_spec_says_of_its_output_stands_in_the_manifest(
    place: Callable[..., Path], tmp_path: Path
) -> None:
    spec = place(FIRST)
    spec.write_text(spec.read_text() + 'title = "Doses"\npublisher = "An office"\nregion = "An island"\n')
    isotone("series", "open", spec)
    isotone("series", "close", spec, "--period", "week 1")
    manifest = iso.load_release(tmp_path / "out").manifest
    stated = manifest.stated
    assert (stated.title, stated.publisher, stated.region) == ("Doses", "An office", "An island")


def test_no_error_after_a_look_tells_what_was_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails once rows were read: neither counts nor contents nor the noise stand in its words or in what it came from."""
    from isotone.series.register import Register

    office = Office(tmp_path, series(), epsilon="0.001")
    secret = json.loads((office.secrets / "secret.json").read_bytes())
    rows = table(*[(f"person {i}", "first dose") for i in range(4321)])
    words: list[str] = []

    def tried() -> None:
        with pytest.raises(IsotoneError) as caught:
            office.close(rows, "week 1")
        error: BaseException | None = caught.value
        while error is not None:
            words.append("".join([str(error), *getattr(error, "__notes__", [])]))
            error = error.__cause__ or error.__context__

    def fails(*_: Any) -> Any:
        raise ValueError("the counts are 4321, of person 17")

    for owner, name in ((Register, "_counts"), (Register, "_query")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, fails)
            tried()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", _full)
        tried()
    with monkeypatch.context() as patched:
        patched.setattr("isotone.release.result.write_file", _full)
        tried()
    noise = {str(abs(number)) for number in np.array([p["noise"] for p in secret["periods"]]).ravel()}
    text = " ".join(words)
    assert len(words) >= 4
    assert "4321" not in text
    assert "person 1" not in text
    assert not any(re.search(rf"(?<!\d){number}(?!\d)", text) for number in noise if len(number) > 2)


def test_a_series_of_the_past_is_the_same_mechanism_without_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the noise of the secret file the offline case publishes what the open series does, if rows arrive on their day."""
    periods = ("2024-01-07", "2024-01-14", "2024-01-21")
    rng = np.random.default_rng(5)
    rows = pl.DataFrame(
        {
            "id": [f"p{i}" for i in rng.integers(0, 60, 200)],
            "stage": [STAGES.elements[i] for i in rng.integers(0, 2, 200)],
            "day": [f"2024-01-{day:02d}" for day in rng.integers(1, 25, 200)],
        }
    )
    office = Office(tmp_path, series(periods=periods), epsilon=1)
    secret = json.loads((office.secrets / "secret.json").read_bytes())
    noise = np.array([part["noise"] for part in secret["periods"]])
    made = None
    for period in periods:
        made = office.close(rows.filter(pl.col("day") <= period), period)
    past = series(periods=periods, date="day")
    monkeypatch.setattr(iso.Series, "noise", lambda *_: noise)
    same = past.release(rows, epsilon=1, ledger=office.ledger)
    assert made is not None
    assert dict(same.columns) == dict(made.columns)
    assert same.manifest["mechanism"] == made.manifest["mechanism"]
    assert same.manifest["guarantee"] == made.manifest["guarantee"]


def test_who_asks_to_be_forgotten_stays_counted_and_is_not_found_again(
    place: Callable[..., Path], tmp_path: Path
) -> None:
    spec = place([("a", "first dose"), ("b", "second dose")])
    isotone("series", "open", spec)
    isotone("series", "close", spec, "--period", "week 1")
    isotone("series", "erase", spec, "--unit", "a")
    (register,) = (tmp_path / "secrets").glob("register-*")
    assert register.stat().st_mode & 0o777 == 0o600  # also where the folder was moved
    place([("b", "second dose")])
    isotone("series", "close", spec, "--period", "week 2")
    assert list(iso.load_release(tmp_path / "out").columns["value"]) == [1, 2, 1, 2]
    assert len(list((tmp_path / "secrets").glob("register-*"))) == 1
    place([("a", "first dose")])  # who comes back is somebody else
    isotone("series", "close", spec, "--period", "week 3")
    assert list(iso.load_release(tmp_path / "out").columns["value"]) == [1, 2, 1, 2, 1, 3]


@pytest.mark.parametrize("harm", ["older", "lost"])
def test_to_forget_a_unit_does_not_accept_an_older_register(tmp_path: Path, harm: str) -> None:
    office = Office(tmp_path, series())
    office.close(table(("a", "first dose")), "week 1")
    (file,) = office.secrets.glob("register-*")
    before = file.read_bytes()
    office.close(table(("b", "first dose")), "week 2")
    (file,) = office.secrets.glob("register-*")
    if harm == "older":
        file.write_bytes(before)
    else:
        file.unlink()
    for step in (
        lambda: office.described.erase("a", ledger=office.ledger, secrets=office.secrets),
        lambda: office.close(table(), "week 3"),
    ):
        with pytest.raises(LedgerError, match="could shrink"):
            step()


def test_to_forget_a_unit_leaves_no_file_that_knows_it(tmp_path: Path) -> None:
    """Of a close that was killed, too."""
    office = Office(tmp_path, series())
    described, where = office.described, {"ledger": office.ledger, "secrets": office.secrets}
    described.erase("a", **where)  # before the first period there is nothing
    office.close(table(("a", "first dose")), "week 1")
    (file,) = office.secrets.glob("register-*")
    (office.secrets / "register-2-killed.parquet").write_bytes(file.read_bytes())
    with pytest.raises(IsotoneError, match="Nobody was forgotten"):
        described.erase("\ud800", **where)
    described.erase("a", **where)
    assert len(list(office.secrets.glob("register-*"))) == 1
    assert office.close(table(("a", "first dose")), "week 2").columns["value"] == (0, 1, 0, 2)


def test_a_period_that_is_closed_is_shown_again_without_its_data(
    place: Callable[..., Path], tmp_path: Path
) -> None:
    spec = place(FIRST)
    isotone("series", "open", spec)
    isotone("series", "close", spec, "--period", "week 1")
    (tmp_path / "rows.csv").unlink()
    again = json.loads(isotone("series", "close", spec, "--period", "week 1", "--json"))
    assert (again["new"], again["columns"]["value"]) == (False, [1, 2])
    assert "no file" in isotone("series", "close", spec, "--period", "week 2", fails=True)
    place(SECOND)
    isotone("series", "close", spec, "--period", "week 2")


def test_contents_never_raise(tmp_path: Path) -> None:
    """Numbers, nulls, nothing and other types in every column that may hold them."""
    described = series(by={"region": ["north"]}, record="case", unit=iso.Unit("id", contributions=2))
    office = Office(tmp_path, described)
    odd = [None, "", "NaN", "first dose", "FIRST DOSE", " first dose", "\x00", "𝔘", "0", "a" * 5000]
    for week, column in zip(WEEKS, ("id", "stage", "region"), strict=True):
        rows = {
            name: odd if name == column else ["first dose" if name == "stage" else "north"] * len(odd)
            for name in ("id", "stage", "region", "case")
        }
        office.close(pl.DataFrame(rows), week)
    assert iso.verify(office.out).holds


def test_a_kill_at_any_step_publishes_nothing_that_the_ledger_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data change between the tries. What is in the folder is in the ledger, and is never anything else afterwards."""
    (tmp_path / "begun").mkdir()
    office = Office(tmp_path / "begun", series(), epsilon=1)
    office.close(table(("a", "first dose")), "week 1")
    first = office.out.joinpath("release.csv").read_text()
    tries = 0

    def copied(number: int) -> Path:
        """The office as it was after the first week."""
        return shutil.copytree(tmp_path / "begun", tmp_path / f"killed {number}")

    def work() -> None:
        nonlocal tries
        tries += 1
        rows = table(*[(str(i), "first dose") for i in range(100 * tries)])
        vault = Vault(iso.Ledger(here / "a.ledger"), here / office.secrets.name)
        try:
            closed(office.described, rows, "week 2", vault, here / office.out.name, report=False)
        except LedgerError:  # an exception while rows are read, in which no process died
            raise Killed from None

    here = copied(0)
    for killed in every_kill(monkeypatch, work):
        seen = set[str]()
        for _ in range(1 + killed):
            rows = iso.Ledger(here / "a.ledger").store.transact(
                lambda execute: execute("SELECT period, shown FROM isotone_period")
            )
            told = {period: json.loads(shown)[0] for period, shown in rows}
            text = (here / office.out.name / "release.csv").read_text()
            if text != first:
                assert [int(line.split(",")[2]) for line in text.splitlines()[3:]] == told[1]
                seen.add(text)
            if killed:
                with suppress(InputError):  # the period stays empty
                    work()
        assert len(seen) <= 1
        if killed:
            here = copied(tries)
    assert tries > 40
    assert iso.verify(here / office.out.name, ledger=here / "a.ledger").holds


def test_lost_secrets_end_the_series_and_keep_what_was_shown(tmp_path: Path) -> None:
    office = Office(tmp_path, series(), epsilon=1)
    office.close(table(("a", "first dose")), "week 1")
    (office.secrets / "secret.json").unlink()
    with pytest.raises(LedgerError, match="gone"):
        office.close(table(("a", "first dose")), "week 2")
    again = office.close(table(), "week 1")
    assert again.columns == iso.load_release(office.out).columns
    with pytest.raises(InputError, match="opened before"):
        Office(tmp_path, series(), epsilon=1)
    assert str(office.ledger.spent().epsilon) == "1"


def test_who_does_not_want_to_wait_is_told_that_another_closes(tmp_path: Path) -> None:
    office, busy = Office(tmp_path, series()), list[bool]()

    def other() -> None:
        with suppress(BusyError):
            office.close(table(("a", "first dose")), "week 1", wait=False)
            busy.append(False)
        busy.append(True)

    with OpenSeries(office.ledger, office.secrets).alone(wait=True):
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        thread.join(60)  # it comes back at once, and not when the lock is free
        assert busy == [True]


def test_dates_in_the_data_are_not_looked_at(tmp_path: Path) -> None:
    """A row of last year that arrives late counts now, and not before."""
    office = Office(tmp_path, series())
    office.close(table(("a", "first dose")).with_columns(date=pl.lit("2030-01-01")), "week 1")
    late = table(("a", "first dose"), ("b", "first dose")).with_columns(date=pl.lit("1999-01-01"))
    assert office.close(late, "week 2").columns["value"] == (0, 1, 0, 2)


def test_a_full_disk_of_the_public_folder_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(tmp_path, series())
    with monkeypatch.context() as patched:
        patched.setattr("isotone.release.result.write_file", _full)
        with pytest.raises(IsotoneError, match="could not be written"):
            office.close(table(("a", "first dose")), "week 1")
    again = office.close(table(("z", "second dose")), "week 1")
    assert again.columns["value"] == (0, 1)
    assert iso.verify(office.out).holds


def _full(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_of_the_secrets_refuses_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotone.series.state._write", _full)
    with pytest.raises(InputError, match="Nothing was charged"):
        Office(tmp_path, series())
    monkeypatch.undo()
    assert str(iso.Ledger(tmp_path / "a.ledger", epsilon=2_000_000).spent().epsilon) == "0"
    assert Office(tmp_path, series()).ledger.spent().epsilon == EXACT


def test_what_libraries_print_while_rows_are_read_is_not_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import os

    from isotone.series.register import Register

    office, grown = Office(tmp_path, series()), Register.grown

    def talks(self: Register, *args: Any) -> Any:
        os.write(1, b"the value of row 7")
        print("and of row 8")
        return grown(self, *args)

    monkeypatch.setattr(Register, "grown", talks)
    capfd.readouterr()
    office.close(table(("a", "first dose")), "week 1")
    assert capfd.readouterr().out.count("row") == 2  # of the rehearsal, which has no rows


@pytest.mark.parametrize("type_", [pa.int64(), pa.uuid(), pa.bool_()])
def test_a_day_that_is_no_date_is_refused_before_the_charge(tmp_path: Path, type_: pa.DataType) -> None:
    """20240131 as a number is no day: everybody would be dropped."""
    rows = pa.table({"id": ["a"], "stage": ["first dose"], "day": pa.nulls(1, type_)})
    pq.write_table(rows, tmp_path / "rows.parquet")
    described = series(date="day", periods=("2024-01-31",))
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=1)
    with pytest.raises(InputError, match=r"'day' of type .* is not read as a date"):
        described.release(tmp_path / "rows.parquet", epsilon=1, ledger=ledger)
    assert not (tmp_path / "a.ledger").exists()
