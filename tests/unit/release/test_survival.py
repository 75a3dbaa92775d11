"""Survival from rows to readers: Python, specs and the command line, arms of a trial, what verify notices, and what is refused."""
# pyright: reportArgumentType=false

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.forgeries import forged

import isotone as iso
from isotone.cli import main
from isotone.errors import InputError
from isotone.release import load_release, load_spec, verify
from isotone.release.kinds.distribution.description import lines_of
from isotone.release.report import report_html

RNG = np.random.default_rng(4)
N = 1_500
ARM = RNG.choice(["old", "new", "other"], N)
LIVED = RNG.exponential(np.where(ARM == "new", 40, 20), N)
SEEN = np.minimum(LIVED, RNG.uniform(10, 90, N))
DATA = pd.DataFrame({"months": SEEN, "died": (LIVED <= SEEN).astype(int), "arm": ARM, "patient": range(N)})
DESCRIBED = iso.Survival("months", event="died", horizon=48, unit="patient")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory) -> iso.Ledger:
    return iso.Ledger(tmp_path_factory.mktemp("ledger") / "l", epsilon=1_000, unit="patient")


@pytest.fixture(scope="module")
def shelf(ledger, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shelf")
    arms = iso.Survival("months", event="died", horizon=48, unit="patient", by={"arm": ["old", "new"]})
    for name, one in {"plain": DESCRIBED, "arms": arms}.items():
        one.release(DATA, ledger=ledger, epsilon=4, folder=folder / name)
    return {name: folder / name for name in ("plain", "arms")}


def truth(rows: pd.DataFrame, time: float) -> float:
    """Kaplan and Meier's estimator of all rows at a time, each of its own time."""
    order = np.argsort(rows.months.to_numpy())
    ended = (rows.months.to_numpy()[order] <= time) & (rows.died.to_numpy()[order] == 1)
    return float(np.prod(1 - ended / np.arange(len(rows), 0, -1)))


def test_a_release_has_a_band_around_the_curve_of_the_records_and_verifies(shelf) -> None:
    for name, folder in shelf.items():
        release = load_release(folder)
        assert verify(folder).holds, name
        frame = release.frame()
        rows: Any = DATA if name == "plain" else DATA[ARM == "old"]
        frame = frame if name == "plain" else frame[frame["group"] == "old"]
        assert frame.x.iloc[-1] == 48
        assert np.all((frame.low <= frame.value) & (frame.value <= frame.high))
        assert np.all(np.diff(frame.at_risk) <= 0)
        for at in frame.index[:: len(frame) // 4]:
            assert abs(frame.value[at] - truth(rows, frame.x[at])) < 0.06
            assert abs(frame.at_risk[at] - (rows.months > frame.x[at]).sum()) < 60


def test_readers_ask_at_public_times(shelf) -> None:
    release: Any = load_release(shelf["plain"])
    year = release.survival(12)
    assert year.low <= year.value <= year.high
    assert abs(year.value - truth(DATA, 12)) < 0.05
    assert release.hazard(12).value == pytest.approx(-math.log(year.value), rel=0.01)
    assert release.hazard(12).low == pytest.approx(-math.log(year.high))
    assert abs(release.at_risk(12).value - (DATA.months > 12).sum()) < 60
    middle = release.quantile(0.5)
    assert middle.low < middle.value < middle.high
    assert release.survival(middle.high).low <= 0.5 <= release.survival(middle.low).high
    assert middle.value / 1.3 < np.median(LIVED) < middle.value * 1.3
    mean = release.restricted_mean()
    assert mean.low < mean.value < mean.high
    assert release.restricted_mean(12).value < min(mean.value, 12)
    late = release.quantile(0.999)
    assert late.value is None
    assert late.plain()["high"] is None
    assert release.survival(12, confidence=0.5).low > year.low
    for ask in (
        lambda: release.survival(49),
        lambda: release.survival(-1),
        lambda: release.survival("soon"),
        lambda: release.survival(1, group="old"),
        lambda: release.quantile(0.5, band="population"),
        lambda: release.gini(),
        lambda: release.cdf(5),
        lambda: release.share(1, 5),
        lambda: iso.load_release(shelf["arms"]).survival(12),
    ):
        with pytest.raises(InputError):
            ask()


def test_arms_and_releases_are_compared_with_half_of_the_error_each(shelf) -> None:
    release: Any = load_release(shelf["arms"])
    plain: Any = load_release(shelf["plain"])
    one, other = (release.survival(24, group=arm, confidence=0.975) for arm in ("old", "new"))
    apart = release.difference("old", "new", 24)
    assert apart.confidence == pytest.approx(0.95)
    assert (apart.low, apart.high) == (other.low - one.high, other.high - one.low)
    assert apart.low > 0  # survival is twice as long
    same = plain.change(plain, 24)
    assert same.value == 0
    assert same.low < 0 < same.high
    for ask in (lambda: release.difference("old", "new"), lambda: plain.change(release, 24)):
        with pytest.raises(InputError):
            ask()
    assert plain.change(plain, 24, confidence=0.98).confidence == pytest.approx(0.98)
    with pytest.raises(InputError, match=r"A difference has a confidence of 0\.98 at most, not 0\.99"):
        plain.change(plain, 24, confidence=0.99)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"horizon": 0}, r"^horizon must be above 0, not 0\.$"),
        ({"horizon": -5}, "horizon"),
        ({"horizon": "soon"}, "horizon"),
        ({"event": "months"}, "two columns"),
        ({"no": ["alive"]}, "goes with yes"),
        ({"yes": ["died"], "no": ["died"]}, "both yes and no"),
        ({"unit": iso.Unit("patient", contributions=2)}, "one time and one event"),
        ({"entry": "enrolled"}, "followed from time 0"),
        ({"start": "enrolled"}, "followed from time 0"),
        ({"bounds": (0, 5)}, "give horizon"),
        ({"confidence": 0.999}, r"0\.99"),
        ({"by": {"arm": ["a"]}, "public_n": 7}, "one group"),
        ({"cells": 600_000}, "is the limit"),
    ],
)
def test_descriptions_that_mean_nothing_are_refused(given, message) -> None:
    with pytest.raises(InputError, match=message):
        iso.Survival("months", **dict[str, Any]({"event": "died", "horizon": 48, **given}))


def test_contents_never_raise_and_text_without_words_does_where_formats_have_types(ledger, tmp_path) -> None:
    odd = pd.DataFrame(
        {
            "months": ["1", "x", None, "inf", "-3", "nan", "7", "8"],
            "died": ["1", "1", "1", "1", "true", "0", "maybe", None],
            "patient": list("abcdefgh"),
        }
    )
    release = DESCRIBED.release(odd, ledger=ledger, epsilon=50)
    found = release.at_risk("0.5")  # 1 and inf last longer, -3 ends at 0, maybe in one bin with 1
    assert found.low <= 2 <= found.high <= 3
    assert found.value == pytest.approx(2, abs=0.9)
    assert release.at_risk(48).value == pytest.approx(1, abs=0.6)
    nobody = DESCRIBED.release(odd.iloc[:0], ledger=ledger, epsilon="0.01")
    assert (nobody.survival(12).low, nobody.survival(12).high) == (0, 1)
    odd.to_parquet(tmp_path / "odd.parquet")
    odd.to_csv(tmp_path / "odd.csv", index=False)
    assert DESCRIBED.release(tmp_path / "odd.csv", ledger=ledger, epsilon=1).kind == "survival"
    spent = ledger.spent()
    with pytest.raises(InputError, match="died"):
        DESCRIBED.release(tmp_path / "odd.parquet", ledger=ledger, epsilon=1)
    assert ledger.spent() == spent
    declared = DESCRIBED.changed(yes=["1", "true"], no=["0"])
    assert declared.release(tmp_path / "odd.parquet", ledger=ledger, epsilon=1).kind == "survival"


SPEC = """
[data]
path = "data.csv"
unit = "patient"
[privacy]
epsilon = 4
ledger = "a.ledger"
[survival]
time = "months"
event = "status"
yes = ["dead"]
no = ["alive"]
horizon = 48
[output]
folder = "out"
"""


def test_a_spec_and_the_command_line_do_the_same(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    DATA.assign(status=np.where(DATA.died == 1, "Dead", "alive")).to_csv("data.csv", index=False)
    Path("spec.toml").write_text(SPEC)
    spec = load_spec("spec.toml")
    words: dict[str, Any] = {"yes": ["dead"], "no": ["alive"]}
    assert spec.description == iso.Survival("months", event="status", horizon=48, unit="patient", **words)
    assert "lasts longer than a time" in str(spec.description.plan(epsilon=1, guess=100))
    assert "of no use" in str(spec.description.plan(epsilon="0.1", guess=100))
    least, of = spec.description.least_budget(iso.Guarantee.pure(1), 0.2, 100, 0.95)
    assert least < 5
    assert of["of"] == "every share that lasts longer than a time"
    iso.Ledger("a.ledger", epsilon=4, unit="patient").create()
    release: Any = flat.with_spec(spec)[0]
    assert verify("out").holds
    assert abs(release.survival(12).value - truth(DATA, 12)) < 0.05
    monkeypatch.setattr(sys, "argv", ["isotone", "survival", "out", "12", "24", "--json"])
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main()
    told = json.loads(capsys.readouterr().out)
    assert [row["asked"] for row in told] == [
        "survival at 12",
        "survival at 24",
        "at risk after 12",
        "at risk after 24",
        "median",
        "restricted mean",
    ]
    assert told[0]["value"] == release.survival(12).value
    assert "status says dead" in report_html(release)


def test_the_picture_has_steps_a_band_and_numbers_at_risk_below(shelf) -> None:
    for name, groups in (("plain", ["at risk"]), ("arms", ["old", "new"])):
        release = load_release(shelf[name])
        picture = report_html(release)
        assert all(f">{group}</text>" in picture for group in groups)
        assert "95 % band for the curve of these records" in picture
        if name == "arms":
            found = re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>new</text>', picture)
            legend, below_it = sorted(map(float, found))
            assert legend < 90 < below_it, "names of falling lines stand above them"
        ax = release.plot()
        (xs, ys), shaded = ax.lines[0].get_data(), ax.collections
        assert np.all(np.diff(ys) <= 0)
        assert np.all((np.diff(xs) == 0) | (np.diff(ys) == 0))  # steps, no slopes
        assert len(shaded) == len(groups)
        below = [text.get_text() for text in ax.texts]
        assert len(below) == 5 * len(groups) or len(below) == len(ax.get_xticks()) * len(groups)
        first = [release.at_risk(0, group=group if name == "arms" else None).value for group in groups]
        marks = len(below) // len(groups)
        assert below[::marks] == [
            f"{round(number):,}" for number in first
        ]  # all of them, not the noisier number
        at_48 = [int(text.replace(",", "")) for text in below][-1]
        rows: Any = DATA if name == "plain" else DATA[ARM == "new"]
        last = ax.get_xticks()[-1]
        assert abs(at_48 - (rows.months > last).sum()) < 60


@pytest.mark.parametrize("name", ["plain", "arms"])
def test_forged_numbers_are_found_out(shelf, tmp_path, name) -> None:
    forgeries: list[Any] = [
        lambda m, c: c.update(value=(*c["value"][:-1], 0.5)),
        lambda m, c: c.update(low=tuple(1 - (1 - x) / 2 for x in c["low"])),
        lambda m, c: c.update(at_risk=tuple(x + 40 for x in c["at_risk"])),
        lambda m, c: m["lines"][0]["counts"][0].__setitem__(0, m["lines"][0]["counts"][0][0] + 900),
        lambda m, c: m["lines"][0]["counts"].reverse(),
        lambda m, c: m["lines"][0].update(edges=[*m["lines"][0]["edges"][:-2], m["lines"][0]["edges"][-1]]),
        lambda m, c: m["lines"][0].update(seed=m["lines"][0]["seed"] + 1),
        lambda m, c: m["mechanism"].update(apart=0),
        lambda m, c: m["mechanism"].update(statuses=1),
        lambda m, c: m["description"].update(horizon="60"),
    ]
    for place, forge in enumerate(forgeries):
        folder = Path(shutil.copytree(shelf[name], tmp_path / f"forged{place}"))
        forged(folder, forge)
        assert not verify(folder).holds, place


def test_bins_of_so_few_records_are_the_public_ones(ledger, tmp_path) -> None:
    """With 20 records at ε = 1 nothing is halved. Bins that halving could give, with all that follows from them, are found out."""
    described = iso.Survival("months", event="died", horizon=48, unit="patient", public_n=20)
    release: Any = described.release(DATA[:20], ledger=ledger, epsilon=1, folder=tmp_path / "few")
    assert verify(tmp_path / "few").holds
    (line,) = release.manifest["lines"]
    assert len(line["edges"]) == 10
    assert line["edges"][-1] == line["edges"][-2] + 1

    def halve(manifest: Any, columns: Any) -> None:
        (entry,) = manifest["lines"]
        edges = entry["edges"]
        entry["edges"] = [edges[0], (edges[0] + edges[1]) // 2, *edges[1:]]
        for row in entry["counts"]:
            row.insert(0, 1)
        columns.update(described.columns(described.mechanism(release.guarantee), lines_of([entry])))

    forged(tmp_path / "few", halve)
    assert "the bins or the counts are not those of the mechanism" in str(verify(tmp_path / "few"))


def test_an_attack_finds_no_more_than_was_claimed() -> None:
    for neighbours in ("add-remove", "replace"):
        described = iso.Survival(
            "x", event="e", horizon=31, cells=31, unit=iso.Unit("who", neighbours=neighbours)
        )
        assert not described.audit(epsilon=1, trials=600).broken


def test_words_of_an_event_that_nobody_declared_are_said_and_found(tmp_path, capsys, monkeypatch) -> None:
    rows = DATA.assign(died=np.where(DATA.died == 1, "Yes", "No"))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    text = (
        '[data]\npath = "rows.csv"\nunit = "patient"\n[privacy]\nepsilon = 1\nledger = "a.ledger"\nbudget = { epsilon = 1 }\n'
        '[survival]\ntime = "months"\nevent = "died"\nhorizon = 48\n[output]\nfolder = "out"\n'
    )
    (tmp_path / "spec.toml").write_text(text)
    spec = load_spec(tmp_path / "spec.toml")
    assert "died is read as 1 or 0, true or false; rows with anything else are left out, words too" in str(
        spec.plan()
    )
    assert "died: 0 rows say yes, 0 no, 1,500 neither (they are left out)" in str(spec.check())
    (tmp_path / "spec.toml").write_text(text.replace("horizon", 'yes = ["Yes"]\nno = ["No"]\nhorizon'))
    spec = load_spec(tmp_path / "spec.toml")
    assert "There is an event where died says yes, and none where it says no" in str(spec.plan())
    assert "0 neither" in str(spec.check())


def test_the_command_line_says_that_a_median_is_not_known(ledger, tmp_path, capsys, monkeypatch) -> None:
    rows = DATA.assign(died=0)
    DESCRIBED.release(rows, ledger=ledger, epsilon=4, folder=tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["isotone", "survival", str(tmp_path / "out")])
    with pytest.raises(SystemExit):
        main()
    median = next(line for line in capsys.readouterr().out.splitlines() if "median" in line)
    assert median.rstrip().endswith("not known")
