"""Questions to a breakdown: shares, contrasts, sums, changes and comparisons of cells, from the folder alone."""

import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import isotone as iso
from isotone.cli import app
from isotone.counts import OrderGaussianMechanism, PosetMechanism
from isotone.counts.breakdown import read_breakdown
from isotone.counts.margins import MarginsMechanism, margins_law
from isotone.errors import InputError
from isotone.release import load_release

P = iso.Poset(["hyp", "meds"], [("meds", "hyp")])
BY: dict[str, Any] = {
    "by": ["state", "county", "sex"],
    "groups": {"state": ["A", "B"], "county": {"a1": "A", "a2": "A", "b1": "B"}, "sex": ["f", "m"]},
    "margins": ["", "state", ("state", "sex"), "*"],
}
BREAKDOWN = read_breakdown(BY["by"], BY["groups"], BY["margins"])
SHARES = ["1/5", "1/5", "1/5", "2/5"]
PLACES = [(margin, k) for margin, size in enumerate([1, 2, 4, 6]) for k in range(size)]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """About 10,000 draws of a law are enough for a test."""
    monkeypatch.setattr("isotone.counts.margins._NUMBERS", 300_000)


def mechanism(base: Any = None) -> MarginsMechanism:
    return MarginsMechanism(base or PosetMechanism(P, 1), BREAKDOWN, shares=SHARES)


def dense(m: MarginsMechanism) -> np.ndarray:
    """The covariance of all values by plain algebra: least squares of every noisy integer, times the noise of each."""
    unit = [np.eye(13)[:, start : start + size] for start, size in ((0, 1), (1, 2), (3, 4), (7, 6))]
    shapes = [BREAKDOWN.sizes(margin) for margin in BREAKDOWN.margins]
    tables = [one.T.reshape(*shape, 13) for one, shape in zip(unit, shapes, strict=True)]
    weights = np.concatenate([t.reshape(-1, 13) for t in m.fit.estimate(tables)])  # value by noisy integer
    noise = np.zeros((26, 26))
    for k, (margin, _) in enumerate(PLACES):
        part: Any = m.parts[margin]
        own = part.covariance() + np.diag(part.rounding_variance())
        noise[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = own
    mix = np.kron(weights, np.eye(2))
    return mix @ noise @ mix.T


@pytest.mark.parametrize("base", [None, OrderGaussianMechanism(P, rho="1/2")], ids=["poset", "gaussian"])
def test_the_law_of_cells_is_that_of_least_squares(base):
    """The draws are public, so this is no matter of chance; eight standard errors of a covariance are allowed."""
    m = mechanism(base)
    law = margins_law(m, PLACES)
    exact, drawn = dense(m), law.draws.T @ law.draws / law.size
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.max(np.abs(drawn - exact) / scale) < 8 * np.sqrt(3 / law.size)
    flat = np.concatenate([table.ravel() for table in m.variances()])
    assert np.diag(exact) == pytest.approx(flat, rel=1e-9)
    some = [PLACES[3], PLACES[0]]
    assert np.array_equal(margins_law(m, some).draws, law.draws[:, [6, 7, 0, 1]])
    assert not np.array_equal(margins_law(m, some, "1").draws, margins_law(m, some).draws)
    assert not np.array_equal(law.draws[:400], law.other)


def test_intervals_of_cells_hold_for_real_releases():
    """A false alarm once in a hundred million at most, and half-widths a third as long are noticed.

    The tail of symmetric log-concave noise falls at least geometrically, so that a third of the half-width holds with a
    probability of at most 1 - 0.045^(1/3) = 0.645: in 200 releases more often than the limit, 168, once in 1e9.
    """
    m = mechanism()
    law = margins_law(m, PLACES)
    # meds of hyp in the total, a difference of cells, a count of the finest margin
    contrasts = np.zeros((3, 26))
    contrasts[0, :2] = -0.7, 1
    contrasts[1, [2, 4]] = -1, 1
    contrasts[2, 14] = 1
    half = np.array([law.half_width(c, 0.95) for c in contrasts])
    hits, short = np.zeros(3, int), np.zeros(3, int)
    for _ in range(200):
        values = m.margins(m.release(np.zeros((6, 2), np.int64))).values
        off = np.abs(contrasts @ np.concatenate([table.ravel() for table in values]))
        hits += off <= half + 1e-9
        short += off <= half / 3
    assert np.all(binom.cdf(hits, 200, 0.95) > 1e-8 / 3), hits
    assert np.all(binom.cdf(short, 200, 0.95) < 1e-8), short


def rows(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    hyp = rng.random(4_000) < 0.4
    return pd.DataFrame(
        {
            "county": rng.choice(["a1", "a2", "b1"], 4_000),
            "sex": rng.choice(["f", "m"], 4_000),
            "hyp": hyp.astype(int),
            "meds": (hyp & (rng.random(4_000) < 0.7)).astype(int),
        }
    )


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("breakdowns")
    ledger = iso.Ledger(folder / "survey", epsilon=100)
    found = {}
    for k, name in enumerate(["one", "two"]):
        found[name] = iso.release_counts(
            rows(k), P, epsilon=4, ledger=ledger, mechanism="PosetMechanism", **BY
        )
        found[name].save(folder / name)
    return folder, found


CELLS: list[Any] = [None, {"state": "B", "sex": "m"}, {"county": "a2", "sex": "f"}]


def value(release, cell, element):
    frame = release.frame()
    for name in BY["by"]:
        if name != "state" or "county" not in (cell or {}):
            frame = frame[frame[name] == (cell or {}).get(name, "")]
    return frame[frame["element"] == element]["value"].item()


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_stranger_asks_about_a_cell(shelf, cell):
    folder, _ = shelf
    one, two = (load_release(folder / name) for name in ("one", "two"))
    hyp, meds = (value(one, cell, name) for name in ("hyp", "meds"))
    share = one.share("meds", of="hyp", group=cell)
    assert share.value == pytest.approx(meds / hyp, rel=1e-6)
    assert share.low < meds / hyp < share.high
    assert one.contrast({"hyp": 1, "meds": -1}, group=cell).value == pytest.approx(hyp - meds, abs=1e-3)
    together = one.shares(together=True, group=cell)["meds", "hyp"]
    assert together.low <= meds / hyp <= together.high
    assert one.rank("hyp", group=cell).value == 1
    change = one.change(two, group=cell)
    assert change["hyp"].value == pytest.approx(value(two, cell, "hyp") - hyp, abs=1e-3)
    assert change["hyp"] == one.change(two, "hyp", group=cell)
    alone = one.contrast({"hyp": 1}, group=cell)
    assert change["hyp"].high - change["hyp"].low > 1.2 * (alone.high - alone.low)
    assert one.share("hyp", records=4_000, after_rules=True, group=cell).value == pytest.approx(hyp / 4_000)
    assert one.consistent().share("meds", of="hyp", group=cell) == share
    wide = one.share("meds", of="hyp", group=cell, population=True)
    assert wide.high - wide.low > share.high - share.low


def test_sums_and_comparisons_use_the_correlation_of_cells(shelf):
    _, found = shelf
    one = found["one"]
    assert one.sum("hyp").value == pytest.approx(value(one, None, "hyp"), abs=1e-3)
    assert one.sum(["hyp", "meds"]).value == pytest.approx(
        value(one, None, "hyp") + value(one, None, "meds"), abs=1e-3
    )
    apart = one.difference({"state": "A"}, {}, "hyp")  # what is not in state A
    assert apart.value == pytest.approx(value(one, {"state": "B"}, "hyp"), abs=1e-3)
    alone = one.contrast({"hyp": 1}, group={"state": "B"})
    assert apart.high - apart.low == pytest.approx(alone.high - alone.low, rel=0.05)
    each = one.difference({"sex": "f", "state": "A"}, {"sex": "m", "state": "A"})
    assert list(each) == ["hyp", "meds"]


def test_what_has_no_answer_is_refused_with_the_reason(shelf, tmp_path):
    _, found = shelf
    one, two = found["one"], found["two"]
    ledger = iso.Ledger(tmp_path / "ledger", epsilon=99)
    lists: dict[str, Any] = {**BY, "groups": {**BY["groups"], "sex": ["f", "x"]}}
    other = iso.release_counts(rows(0), P, epsilon=1, ledger=ledger, **lists)
    counts = iso.release_counts(rows(0), P, epsilon=1, ledger=ledger)
    for ask, reason in (
        (lambda: one.share("meds", of="hyp", group="A"), "is a mapping"),
        (lambda: one.share("meds", of="hyp", group={"state": "C"}), "no value 'C'"),
        (lambda: one.share("meds", of="hyp", group={"stat": "A"}), "did you mean 'state'"),
        (lambda: one.share("meds", of="hyp", group={"county": "a1"}), "was not released"),
        (lambda: one.share("hyp"), "no number of records"),
        (lambda: one.share("hyp", records=4_000), "not listed"),
        (lambda: one.given(records=4_000), "no noisy number of records"),
        (lambda: iso.combine([one, two]), "not combined"),
        (lambda: one.change(one), "same draw twice"),
        (lambda: one.change(one.consistent()), "same draw twice"),
        (lambda: one.change(other), "different lists"),
        (lambda: one.change(counts), "to another"),
        (lambda: counts.change(one), "from one release of counts to another"),
        (lambda: one.difference({"state": "A"}, {"state": "A"}, "hyp"), "two different cells"),
        (lambda: one.sum(None), "A sum of what"),
        (lambda: counts.difference("north", "south"), "no groups to compare"),
    ):
        with pytest.raises(InputError, match=reason):
            ask()


def test_a_law_that_would_take_too_long_is_refused():
    lists = {"x": [str(k) for k in range(1_000)], "y": [str(k) for k in range(100)]}
    large = MarginsMechanism(PosetMechanism(P, 1), read_breakdown(["x", "y"], lists, ["*"]))
    with pytest.raises(InputError, match="200,000 noisy numbers"):
        margins_law(large, [(0, 0)])


def test_groups_are_compared_with_a_draw_for_each(tmp_path):
    ledger = iso.Ledger(tmp_path / "ledger", epsilon=99)
    release = iso.release_counts(
        rows(0), P, epsilon=1, ledger=ledger, by="sex", groups=["f", "m"], mechanism="PosetMechanism"
    )
    apart = release.difference("f", "m", "hyp")
    assert apart.value == release.value[2] - release.value[0]
    alone = release.contrast({"hyp": 1}, group="f")
    assert 1.2 < (apart.high - apart.low) / (alone.high - alone.low) < 1.7  # independent: about √2 as wide
    assert release.difference("f", "m")["hyp"] == apart
    with pytest.raises(InputError, match="two different groups"):
        release.difference("f", "f")


def test_cells_are_named_on_the_command_line(shelf):
    folder, found = shelf
    one = ["--group", "county=a2", "--group", "sex=f"]
    words = ["share", str(folder / "one"), "meds", "--of", "hyp", "--json"]
    shown = json.loads(CliRunner().invoke(app, [*words, *one]).output)
    assert shown["value"] == found["one"].share("meds", of="hyp", group={"county": "a2", "sex": "f"}).value
    change = ["change", str(folder / "one"), str(folder / "two"), "--json", "--group", "state=A"]
    shown = json.loads(CliRunner().invoke(app, change).output)
    assert [row["element"] for row in shown] == ["hyp", "meds"]
    for bad in (["--group", "a2"], [*one, "--group", "sex=m"]):
        result = CliRunner().invoke(app, [*words, *bad])
        assert result.exit_code != 0
        assert "NAME=VALUE" in str(result.exception)
    assert list(itertools.chain(*found["one"].shares(group={"state": "A"}))) == ["meds", "hyp"]
