"""Distributions from rows to readers: Python and specs, groups, questions, what verify notices, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.forgeries import forged

import isotone as iso
from isotone.errors import InputError
from isotone.release import load_release, load_spec, verify
from isotone.release.kinds.distribution.report import open_bands
from isotone.release.report import report_html

RNG = np.random.default_rng(0)
INCOME = np.round(RNG.lognormal(10, 0.8, 3000))
DATA = pd.DataFrame({"income": INCOME, "sex": RNG.choice(["f", "m", "x"], 3000), "who": np.arange(3000)})
DESCRIBED = iso.Distribution("income", bounds=(0, 200_000), unit="who")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory) -> iso.Ledger:
    return iso.Ledger(tmp_path_factory.mktemp("ledger") / "l", epsilon=1_000, unit="who")


@pytest.fixture(scope="module")
def shelf(ledger, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shelf")
    groups = iso.Distribution("income", bounds=(100, 200_000), unit="who", by={"sex": ["f", "m"]}, grid="log")
    for name, one in {"plain": DESCRIBED, "groups": groups}.items():
        one.release(DATA, ledger=ledger, epsilon=2, folder=folder / name)
    return {name: folder / name for name in ("plain", "groups")}


def test_a_release_has_a_band_around_the_truth_and_verifies(shelf) -> None:
    for name, folder in shelf.items():
        release = load_release(folder)
        assert verify(folder).holds, name
        frame = release.frame()
        rows = DATA if name == "plain" else DATA[DATA.sex == "f"]
        frame = frame if name == "plain" else frame[frame["group"] == "f"]
        true = [np.mean(np.minimum(rows.income, 200_000) <= x + 1e-6) for x in frame.x]
        assert np.all(frame.low <= frame.value)
        assert np.all(frame.value <= frame.high)
        assert np.abs(frame.value - true).max() < 0.05  # a band fails once in twenty times; this never does


@pytest.mark.parametrize("grid", ["even", "integers", (0, 7, 50)])
def test_ends_of_bins_are_of_the_public_grid_whatever_the_data_hold(ledger, grid) -> None:
    described = iso.Distribution("income", bounds=(0, 50), grid=grid, unit="who")
    ends = set(np.round(described.line.ends()[1], 12).tolist())
    for values in ([3.3] * 300, np.linspace(-900, 1_000, 300), []):
        rows = pd.DataFrame({"income": np.array(values, float), "who": range(len(values))})
        found = described.release(rows, ledger=ledger, epsilon=5).columns["x"]
        assert set(found) <= ends
        assert found[-1] == 50


def test_readers_ask_for_quantiles_shares_and_inequality(shelf) -> None:
    release: Any = load_release(shelf["plain"])
    middle, (low, high) = release.quantile(0.5), release.quantiles([0.1, 0.9])
    assert middle.low <= middle.value <= middle.high
    assert low.value < middle.value < high.value
    assert abs(middle.value - np.median(INCOME)) < 4_000
    share, below = release.share(10_000, 50_000), release.cdf(10_000)
    assert abs(share.value + below.value - release.cdf(50_000).value) < 1e-9
    assert abs(share.value - np.mean((INCOME > 10_000) & (INCOME <= 50_000))) < 0.05
    assert release.cdf(-1).high == 0
    assert release.cdf(10**9).low == 1
    half = release.lorenz([0.5])[0]
    assert 0.1 < half.low <= half.value <= half.high <= 0.5
    assert 0.2 < release.gini().value < 0.6
    wide = release.quantile(0.5, band="population")
    assert (wide.about, middle.about) == ("population", "records")
    assert wide.low <= middle.low
    assert wide.high >= middle.high
    assert release.quantile(0.5, confidence=0.5).high <= middle.high


def test_groups_and_releases_are_compared_with_half_of_the_error_each(shelf) -> None:
    release: Any = load_release(shelf["groups"])
    one, other = (release.quantile(0.5, group=sex, confidence=0.975) for sex in "fm")
    apart = release.difference("f", "m", 0.5)
    assert apart.confidence == pytest.approx(0.95)
    assert (apart.low, apart.high) == (other.low - one.high, other.high - one.low)
    plain: Any = load_release(shelf["plain"])
    same, half = plain.change(plain, 0.5, confidence=0.5), plain.quantile(0.5, confidence=0.75)
    assert same.value == 0
    assert same.confidence == 0.5
    assert (same.low, same.high) == (half.low - half.high, half.high - half.low)
    for ask in (
        lambda: release.quantile(0.5),
        lambda: release.quantile(0.5, group="x"),
        lambda: plain.quantile(0.5, group="f"),
        lambda: plain.quantile(0),
        lambda: plain.quantile("half"),
        lambda: plain.quantile(0.5, confidence=0.999),
        lambda: plain.quantile(0.5, confidence=0.985, band="population"),
        lambda: plain.quantile(0.5, band="both"),
        lambda: plain.share(5),
        lambda: plain.share(9, 5),
        lambda: plain.rank(),
        lambda: release.difference("f", "m"),
    ):
        with pytest.raises(InputError):
            ask()


def test_a_gini_coefficient_of_values_below_0_is_refused(ledger) -> None:
    described = iso.Distribution("income", bounds=(-5, 200_000), unit="who")
    with pytest.raises(InputError, match="not negative"):
        described.release(DATA, ledger=ledger, epsilon=1).gini()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bounds": (5, 5)}, "low below high"),
        ({"bounds": (0, 9), "grid": "log"}, "above 0"),
        ({"bounds": (0, 9), "grid": "integers", "cells": 5}, "cells of their own"),
        ({"bounds": (0, 9), "grid": (1, 2), "cells": 5}, "has its own"),
        ({"bounds": (0, 9), "by": {"a": ["x"], "b": ["y"]}}, "one column"),
        ({"bounds": (0, 9), "by": {"a": []}}, "at least one"),
        ({"bounds": (0, 9), "by": {"a": ["x"]}, "public_n": 5}, "one group"),
        (
            {"bounds": (0, 9), "unit": iso.Unit("who", contributions=2), "band": "population"},
            "several records",
        ),
        ({"bounds": (0, 9), "unit": iso.Unit(contributions=2)}, "unit"),
        ({"bounds": (0, 9), "confidence": 0.999}, r"0\.99"),
        ({"bounds": (0, 10**400)}, "read as infinite"),
        ({"bounds": (10**18, 10**18 + 5), "grid": "integers"}, "is told from the next"),
        ({"bounds": (0, 9), "public_n": 2**53}, "public_n must be"),  # verify could not tell it from the next
        ({"bounds": (0, 9), "quantiles": [0.5]}, "all quantiles come from one release"),
        ({"bounds": (0, 9), "cells": 900, "by": {"a": [str(k) for k in range(2_000)]}}, "is the limit"),
    ],
)
def test_descriptions_that_mean_nothing_are_refused(given, message) -> None:
    with pytest.raises(InputError, match=message):
        iso.Distribution("income", **given)


def test_a_guess_of_no_records_is_refused_and_is_no_missing_guess() -> None:
    described = iso.Distribution("income", bounds=(0, 9), unit="who", public_n=100)
    with pytest.raises(InputError, match="at least 1"):
        described.plan(epsilon=1, guess=0)


def test_a_release_may_have_as_many_bins_as_cells_and_is_refused_before_that_is_too_much(ledger) -> None:
    many = {"who": np.arange(40_000), "income": np.arange(40_000) % 200}
    whole = iso.Distribution("income", bounds=(0, 199), grid="integers", unit="who")
    release = whole.release(pd.DataFrame(many), ledger=ledger, epsilon=20)
    assert len(release.columns["x"]) == 200
    names = [f"{'long' * 200}{k}" for k in range(50)]
    spent = ledger.spent()
    with pytest.raises(InputError, match="MiB"):
        iso.Distribution("income", bounds=(0, 10**6), unit="who", by={"sex": names}).release(
            DATA, ledger=ledger, epsilon=1
        )
    assert ledger.spent() == spent
    few = iso.Distribution("income", bounds=(0, 10**6), unit="who", by={"sex": [str(k) for k in range(100)]})
    assert few.line.cells == 10_000


def test_contents_never_raise_and_types_of_a_schema_do(ledger, tmp_path) -> None:
    odd = pd.DataFrame({"income": ["1", "x", None, "inf", "true", "1e999"], "who": list("abcdef")})
    release = DESCRIBED.release(odd, ledger=ledger, epsilon=1)
    assert len(release.columns["x"]) >= 1
    nobody = DESCRIBED.release(odd.iloc[:0], ledger=ledger, epsilon="0.01")
    assert nobody.quantile(0.5).low == 0
    dates = pd.DataFrame({"income": pd.to_datetime(["2020-01-01"]), "who": ["a"]})
    dates.to_parquet(tmp_path / "dates.parquet")
    spent = ledger.spent()
    with pytest.raises(InputError, match="income"):
        DESCRIBED.release(tmp_path / "dates.parquet", ledger=ledger, epsilon=1)
    assert ledger.spent() == spent


SPEC = """
[data]
path = "data.csv"
unit = "who"
[privacy]
rho = "1/8"
ledger = "a.ledger"
[distribution]
column = "income"
bounds = [0, 200000]
public_n = 3000
by = BY
[output]
folder = "out"
"""


def test_a_spec_makes_the_same_description_and_a_report(tmp_path) -> None:
    DATA.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "spec.toml").write_text(SPEC.replace("by = BY\n", ""))
    spec = load_spec(tmp_path / "spec.toml")
    assert spec.description == iso.Distribution("income", bounds=(0, 200_000), unit="who", public_n=3000)
    assert "distance" in str(spec.plan())
    iso.Ledger(tmp_path / "a.ledger", rho=1, unit="who").create()
    release = flat.with_spec(spec)[0]
    assert verify(tmp_path / "out").holds
    page = report_html(release)
    assert "income up to" in page
    assert "95 % band for the records" in page
    assert release.manifest["lines"][0]["number"] == 3000


@pytest.mark.parametrize(("error", "most"), [(0.02, 100), (0.3, 100), (0.004, 1)])
def test_the_budget_for_an_error_has_three_digits_and_keeps_it(error, most) -> None:
    described = iso.Distribution("income", bounds=(0, 200_000), unit="who")
    budget, _ = described.least_budget(iso.Guarantee.pure(1), error, 3_000, 0.95)
    assert 0 < budget < most or error < 0.01
    assert budget == float(f"{budget:.2e}")
    assert described.plan(epsilon=str(budget), guess=3_000).rows[0].distance <= error


def test_a_report_says_whether_bins_were_found_privately(ledger) -> None:
    """The released number of records and the grid tell it, as they told the mechanism."""
    few, steps = "The records had no say in them", "each step of the public grid"
    for cells, found in ((8, f"{few}: they are {steps}"), (4_096, "found privately: narrow where")):
        described = iso.Distribution("income", bounds=(0, 200_000), cells=cells, unit="who")
        page = report_html(described.release(DATA, epsilon=1, ledger=ledger))
        assert found in page
        assert (few in page) == (cells == 8)


def test_a_report_says_why_a_band_says_nothing() -> None:
    why = "is from 0 to 1: beside the noise there are too few records to say anything about shares, or none."
    columns: dict[str, Any] = {"x": (1, 2, 1, 2), "low": (0, 0, 0, 1), "high": (1, 1, 0.9, 1)}

    def said(**more: Any) -> list[str]:
        return open_bands(cast("Any", SimpleNamespace(columns=columns | more)))

    assert said(group=("a", "a", "b", "b")) == [f"The band of a {why}"]
    assert said(low=(0, 1, 0, 1), high=(1, 1, 1, 1)) == [f"The band {why}"]
    assert said() == []
    assert open_bands(cast("Any", SimpleNamespace(columns={"x": (1, 2), "value": (0, 1)}))) == []


@pytest.mark.parametrize("name", ["plain", "groups"])
def test_forged_numbers_are_found_out(shelf, tmp_path, name) -> None:
    import shutil

    def line(manifest: Any, columns: Any) -> Any:
        return manifest["lines"][0]

    forgeries = [
        lambda m, c: c.update(value=(*c["value"][:-2], 0.5, 1.0)),
        lambda m, c: c.update(high=tuple(x / 2 for x in c["high"])),
        lambda m, c: c.update(x=tuple(x + 1 for x in c["x"])),
        lambda m, c: line(m, c)["counts"][0].__setitem__(0, line(m, c)["counts"][0][0] + 900),
        lambda m, c: line(m, c).update(edges=[0, 7, *line(m, c)["edges"][1:]]),
        lambda m, c: line(m, c).update(seed=line(m, c)["seed"] + 1),
        lambda m, c: line(m, c).update(number=10**9),
        lambda m, c: line(m, c).update(group="other"),
        lambda m, c: m["mechanism"].update(cells=12),
    ]
    for place, forge in enumerate(forgeries):
        folder = Path(shutil.copytree(shelf[name], tmp_path / f"forged{place}"))
        forged(folder, forge)
        assert not verify(folder).holds, place


def test_a_manifest_holds_nothing_but_what_was_measured(shelf) -> None:
    written = json.loads((shelf["groups"] / "manifest.json").read_text())
    assert [entry["group"] for entry in written["lines"]] == ["f", "m"]
    assert all(set(entry) == {"group", "number", "edges", "counts", "seed"} for entry in written["lines"])


def test_an_attack_finds_no_more_than_was_claimed() -> None:
    for neighbours in ("add-remove", "replace"):
        described = iso.Distribution(
            "x", bounds=(0, 31), grid="integers", unit=iso.Unit("who", contributions=2, neighbours=neighbours)
        )
        report = described.audit(epsilon=1, trials=1_500)
        assert not report.broken
