"""Pairs of counts: two columns for each category, released with their joint distribution."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.forgeries import forged

import isotone as iso
from isotone.reading.categories import PairSource, count_pairs
from isotone.release import load_spec, verify

CATEGORIES = [f"c{i}" for i in range(80)]
OPTIONS: dict[str, Any] = {"category": "place", "categories": CATEGORIES, "upper": 6, "unit_name": "person"}


def aggregated() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    first = rng.poisson(2, 80)
    return pd.DataFrame({"place": CATEGORIES, "theft": first, "arson": np.minimum(first, rng.poisson(2, 80))})


@pytest.fixture
def ledger(tmp_path) -> iso.Ledger:
    return iso.Ledger(tmp_path / "a.ledger", epsilon=50, unit="person")


def test_two_columns_are_released_with_their_joint_distribution(tmp_path, ledger):
    made = flat.table(
        aggregated(),
        **OPTIONS,
        counts=["theft", "arson"],
        epsilon=1,
        contributions=1,
        ledger=ledger,
        folder=tmp_path / "out",
    )
    assert set(made.columns) == {"category", "stratum", "value", "estimate", "low", "high", "noisy", "sd"}
    assert made.columns["category"][80] == "c0 | arson"
    joint = np.array(made.manifest["joint"])
    values = np.array(made.columns["value"]).reshape(2, 80)
    found = np.zeros((7, 7))
    np.add.at(found, tuple(values), 1 / 80)
    assert joint.shape == (7, 7)
    assert np.abs((found - joint).cumsum(axis=0).cumsum(axis=1)).max() <= 8 / 80
    assert ledger.spent().epsilon == 1
    assert verify(tmp_path / "out").holds


def test_contributions_of_two_columns_of_counts_have_no_default(ledger):
    with pytest.raises(iso.InputError, match="contributions must be declared"):
        flat.table(aggregated(), **OPTIONS, counts=["theft", "arson"], epsilon=1, ledger=ledger)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"counts": ["theft"]}, "two columns"),
        ({"counts": ["theft", "theft"]}, "must be distinct"),
        ({"counts": ["theft", "arson"], "upper": 64}, "at most 63"),
        ({"counts": ["theft", "arson"], "count": "theft"}, "take no count"),
        ({"kind": "theft"}, "goes with counts"),
        ({"counts": ["x", "b | x"], "categories": ["a", "a | b"]}, "one name"),
    ],
)
def test_what_is_no_pair_is_refused_before_the_charge(ledger, given, words):
    options: dict[str, Any] = {**OPTIONS, "contributions": 1, "epsilon": 1, **given}
    with pytest.raises(iso.InputError, match=words):
        flat.table(aggregated(), **options, ledger=ledger)
    assert ledger.charges() == []


def test_a_unit_counts_in_so_many_of_both_columns_together():
    """However its rows are spread over the columns, it moves the counts by no more than declared, and each of them by one."""
    rows = [("p", place, kind) for place in ("a", "b", "c") for kind in ("x", "y")] * 2
    rows += [("q", "a", "x"), ("q", "a", "other"), (None, "a", "x"), ("r", "zzz", "x")]
    data = pd.DataFrame(rows, columns=["who", "place", "kind"])
    for k in (1, 3, 6):
        source = PairSource(data, "place", ("a", "b", "c"), 9, ("x", "y"), "kind", "who", k)
        for salt in (b"1",):
            counts = count_pairs(source, source.open(), salt)
            alone = counts - np.array([1, 0, 0, 0, 0, 0])  # without q
            assert alone.sum() == min(k, 6)
            assert alone.max() <= 1


def test_rows_that_say_the_same_of_a_unit_count_once():
    data = pd.DataFrame([("p", "a", "x")] * 4, columns=["who", "place", "kind"])
    source = PairSource(data, "place", ("a",), 9, ("x", "y"), "kind", "who", 3)
    assert count_pairs(source, source.open(), b"1").tolist() == [1, 0]


def test_rows_that_are_counts_are_added_up_and_clamped():
    data = pd.DataFrame({"place": ["a", "a", "b", "?"], "x": [1, 2, "no", 5], "y": [100, -3, None, 5]})
    source = PairSource(data, "place", ("a", "b", "c"), 9, ("x", "y"))
    assert count_pairs(source, source.open()).tolist() == [3, 0, 0, 9, 0, 0]


def against_each_other(manifest, columns):
    """Both margins stay, and large counts of one column meet small ones of the other."""
    values = columns["value"]
    values[:80], values[80:] = sorted(values[:80]), sorted(values[80:], reverse=True)
    del manifest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m, c: c["estimate"].__setitem__(3, c["estimate"][3] + 0.5), "an estimate does not follow"),
        (lambda m, c: m["joint"].__setitem__(0, [0.9] * 7), "the joint distribution is not one"),
        (against_each_other, "do not have the joint"),
        (lambda m, c: c["category"].__setitem__(0, "d | theft"), "not those that are described"),
    ],
)
def test_a_forged_pair_is_found_out(tmp_path, ledger, change, words):
    flat.table(
        aggregated(),
        **OPTIONS,
        counts=["theft", "arson"],
        epsilon=30,
        contributions=1,
        ledger=ledger,
        folder=tmp_path / "out",
    )
    forged(tmp_path / "out", change)
    verdict = verify(tmp_path / "out")
    assert not verdict.holds
    assert words in str(verdict)


def test_a_spec_may_ask_for_a_pair(tmp_path: Path):
    iso.Ledger(tmp_path / "a.ledger", rho=9).create()
    data = aggregated()
    rows = [
        (place, kind)
        for kind in ("theft", "arson")
        for place, n in zip(CATEGORIES, data[kind], strict=True)
        for _ in range(n)
    ]
    pd.DataFrame(rows, columns=["place", "offence"]).assign(person=range(len(rows))).to_csv(
        tmp_path / "data.csv", index=False
    )
    text = "[data]\npath = 'data.csv'\nunit = 'person'\ncontributions = 2\n[privacy]\nrho = '1/2'\nledger = 'a.ledger'\n"
    text += f"[table]\ncategory = 'place'\ncategories = {CATEGORIES}\ncounts = ['theft', 'arson']\nkind = 'offence'\nupper = 6\n"
    (tmp_path / "spec.toml").write_text(text + "[output]\nfolder = 'out'\n")
    made, folder, _ = flat.with_spec(load_spec(tmp_path / "spec.toml"))
    assert made.guarantee.rho == Fraction(1, 2)
    assert made.manifest.mechanism["contributions"] == 2
    assert verify(folder).holds


def test_a_spec_of_two_columns_of_counts_must_declare_contributions(tmp_path: Path):
    aggregated().to_csv(tmp_path / "data.csv", index=False)
    rest = "[privacy]\nrho = '1/2'\nledger = 'a.ledger'\nunit = 'person'\n[output]\nfolder = 'out'\n"
    rest += (
        f"[table]\ncategory = 'place'\ncategories = {CATEGORIES}\ncounts = ['theft', 'arson']\nupper = 6\n"
    )
    for declared, words in (("", "contributions must be declared"), ("contributions = 3\n", None)):
        (tmp_path / "spec.toml").write_text(f"[data]\npath = 'data.csv'\n{declared}{rest}")
        spec: Any = load_spec(tmp_path / "spec.toml")
        if words is None:
            mechanism = spec.job.mechanism
            assert (mechanism.unit.contributions, mechanism.once) == (3, False)
        else:
            with pytest.raises(iso.InputError, match=words):
                spec.job


def test_names_of_columns_may_have_a_bar_in_them(tmp_path, ledger):
    data = aggregated().rename(columns={"arson": "fire | arson"})
    options: dict[str, Any] = {**OPTIONS, "categories": CATEGORIES[:9], "contributions": 1, "epsilon": 1}
    flat.table(data, **options, counts=["theft", "fire | arson"], ledger=ledger, folder=tmp_path / "out")
    assert verify(tmp_path / "out").holds
