"""Attacks on what readers compute: bounds that rounding moves, other counts under one name, words that are not heard."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from typer.testing import CliRunner

import isotone as iso
from isotone.cli import app
from isotone.counts import PosetMechanism
from isotone.errors import InputError
from isotone.inference import Measured, given_records

P = iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
DATA = pd.DataFrame(
    {
        "region": ["north", "south"] * 50,
        "hyp": [1] * 60 + [0] * 40,
        "twice": [1] * 30 + [0] * 70,
        "meds": [0] * 20 + [1] * 30 + [0] * 50,
    }
)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    ledger = iso.Ledger(folder / "survey", epsilon=99)

    def make(order=P, **options: Any):
        settings: dict[str, Any] = {"epsilon": 1, "mechanism": "LaplaceMechanism", **options}
        return flat.counts(settings.pop("data", DATA), order, ledger=ledger, **settings)

    one = make(mechanism="PosetMechanism", total=True)
    one.save(folder / "one")
    return folder, make, one


def refused(match, ask, *values, **named):
    with pytest.raises(InputError, match=match):
        ask(*values, **named)


@pytest.mark.parametrize("size", [1, 10**8])
def test_a_figure_that_just_meets_its_bound_is_not_lost_by_rounding(size):
    """Adjusted noise has atoms at fractions too. The noise here is from a public stream, so nothing is left to chance."""
    noise = PosetMechanism(P, epsilon=2)
    truth = np.array([40.0, 20.0, 33.0, 101.0]) * size
    slope = noise.total_covariance().variance / noise.total_variance()
    variance = np.append(noise.error().variance, noise.total_variance())

    def unknown():
        raise AssertionError

    law = noise.law(total=True, draws=5_000)
    found = Measured(P, truth, law, variance, covariance=unknown, slope=lambda: slope, has_total=True)
    given = given_records(found, int(truth[3]))
    step, true = {"hyp": 1, "meds": -1}, truth[0] - truth[2]
    drawn = given.law.along([1, 0, -1])
    bound = given.law.half_width([1, 0, -1], 0.95)
    meeting = np.flatnonzero(np.abs(np.abs(drawn) - bound) < 1e-9)[:40]
    assert len(meeting) == 40
    for row in law.draws[meeting]:
        figure = replace(given, values=(truth + row)[:3] - slope * row[3]).contrast(step, 0.95)
        assert figure.low <= true <= figure.high


def test_numbers_that_arithmetic_cannot_hold_are_refused(released):
    _, _, one = released
    for huge in (10**13, 10**30, 10**400):
        refused("at most 1,000,000,000,000", one.given, records=huge)
        refused("at most 1,000,000,000,000", one.share, "hyp", records=huge)
    refused("coefficient of 'hyp'", one.contrast, {"hyp": 1e308, "meds": 1e308})
    refused("of 100 records", one.given(records=100).share, "hyp", records=99)
    assert one.given(records=100).share("hyp", records=100) == one.given(records=100).share("hyp")


def test_one_name_in_two_orders_may_be_two_counts(released):
    _, make, one = released
    apart = make(iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp")]))
    refused("differ about 'hyp'", one.change, apart)
    assert one.change(apart, "twice").value == apart.value[1] - one.value[1]
    fewer = make(iso.Poset(["hyp", "twice"], [("twice", "hyp")]))
    refused("follows_order=True", one.change, fewer, "hyp")
    assert one.change(fewer, follows_order=True).keys() == {"hyp", "twice"}


def test_records_that_are_dropped_are_missing_from_every_count(released):
    """A record that breaks one order and not the other is missing from all counts of the one, whatever is below them."""
    _, make, _ = released
    every, alone = (make(order, on_violation="drop") for order in (P, iso.Poset(["twice"], [])))
    refused("'twice' is among other elements", iso.combine, [every, alone])
    refused("'twice' is among other elements", every.change, alone, "twice")
    assert iso.combine([every, alone], follows_order=True).kind == "counts"


def test_records_cut_to_size_are_cut_by_their_order(released):
    _, make, _ = released
    first, second = make(max_size=1), make(iso.Poset(["twice", "meds"], []), max_size=1)
    refused("shorten records", first.change, second, "twice")
    refused("shorten records", iso.combine, [first, second], follows_order=True)


def test_tables_that_were_put_together_are_read(released):
    """Their text comes in chunks."""
    _, make, _ = released
    both = pd.concat([DATA, DATA], ignore_index=True)
    both["region"] = pd.concat([DATA["region"].astype("string[pyarrow]")] * 2, ignore_index=True)
    assert len(make(data=both, by="region", groups=["north", "south"]).value) == 6


def test_groups_of_another_column_are_other_groups(released):
    _, make, _ = released
    listed = ["north", "south"]
    first = make(by="region", groups=listed)
    second = make(data=DATA.rename(columns={"region": "birthplace"}), by="birthplace", groups=listed)
    refused("different groups", iso.combine, [first, second])
    refused("different groups", first.change, second, group="north")


def test_words_that_would_not_be_heard_are_refused(released):
    _, _, one = released
    refused("population=True", one.share, "hyp", deff=2)
    refused("each element once", one.sum, ["hyp", "hyp"])
    for what in ([], {"hyp"}, {"hyp": 2}, None):
        refused("A sum of what", one.sum, what)
    refused("two or more releases", iso.combine, None)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--population"], "name PART"),
        (["--records", "100"], "name PART"),
        (["--of", "hyp"], "name PART"),
        (["meds", "--of", "hyp", "--together"], "leave PART out"),
        (["meds", "--of", "hyp", "--deff", "2"], "population=True"),
    ],
)
def test_options_that_would_not_be_heard_are_refused(released, words, reason):
    folder, _, _ = released
    found = CliRunner().invoke(app, ["share", str(folder / "one"), *words, "--json"])
    assert found.exit_code == 1
    assert reason in str(found.exception)
    assert json.loads(CliRunner().invoke(app, ["share", str(folder / "one"), "--json"]).stdout)
