"""What is impossible is refused before the charge; many groups are not."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.errors import InputError, IsotoneError

P = iso.Poset(["hyp", "twice"], [("twice", "hyp")])


@pytest.fixture
def ledger(tmp_path):
    with iso.Ledger(tmp_path / "survey.ledger", epsilon=10) as opened:
        yield opened


@pytest.mark.parametrize("number", [250, 2_500])
def test_many_public_groups_are_released(ledger, number):
    names = [f"g{i}" for i in range(number)]
    rows = 2 * number
    people = pd.DataFrame(
        {"person": range(rows), "county": names * 2, "hyp": [1] * rows, "twice": [1] * number + [0] * number}
    )
    made = flat.counts(
        people, P, epsilon=8, ledger=ledger, unit="person", by="county", groups=names, title="many groups"
    )
    assert len(made.value) == 2 * number
    values = np.asarray(made.value).reshape(number, 2)
    # the noise of one group has a standard deviation below 1: its mean over the groups is within eight of its own
    slack = 8 * float(np.max(made.columns["sd"])) / number**0.5
    assert np.all(np.abs(values.mean(axis=0) - [2, 1]) < slack)
    assert len(ledger.charges()) == 1


@pytest.mark.parametrize("method", ["auto", "additive", "bins", "threshold", "baseline"])
@pytest.mark.parametrize("margin", [0.4999, "0.4999", np.float64(0.4999)])
def test_a_margin_that_leaves_no_room_is_refused_before_the_charge(ledger, method, margin):
    data = pd.DataFrame({"x": np.arange(20.0), "y": [0, 1] * 10, "u": range(20)})
    given: dict[str, Any] = {"x": "x", "y": "y", "bounds": (0, 20), "y_range": (0, 1), "unit": "u"}
    with pytest.raises(InputError, match="all predictions are the same"):
        flat.curve(data, ledger=ledger, epsilon=1, loss=("logistic", margin), method=method, **given)
    assert not ledger.charges()


@pytest.mark.parametrize("long", ["element", "column", "title", "unit", "group"])
def test_names_that_are_too_long_are_refused_before_the_charge(ledger, long):
    name = "x" * 100_001
    order = iso.Poset([name if long == "element" else "hyp", "twice"], [])
    data = pd.DataFrame(0, index=range(3), columns=["u", "county", "hyp", "twice", name])
    options: dict[str, Any] = {"unit": name if long == "unit" else "u"}
    if long in ("column", "group"):
        options |= {"by": name if long == "column" else "county", "groups": [name, "b"]}
    if long == "title":
        options["title"] = name
    with pytest.raises(IsotoneError) as raised:
        flat.counts(data, order, epsilon=1, ledger=ledger, **options)
    assert len(str(raised.value)) < 1_000
    assert "Nothing was charged" in str(raised.value) or long == "title"
    assert not ledger.charges()
