"""Bands in releases of curves: columns, manifest, report, verify, and what readers ask."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.curves import PrivateIsotonicRegression
from isotone.curves.regression import sums_for
from isotone.errors import InputError
from isotone.release.kinds.curve.description import measured_from
from isotone.release.kinds.curve.kind import curve_faults
from isotone.release.manifest import rebuild_curve_mechanism
from isotone.release.result import Release, load_release, seal
from isotone.release.verify import verify

X = np.arange(1_000) % 20
DATA = pd.DataFrame(
    {"x": X, "y": (np.arange(1_000) // 20 * 7 % 50 < X * 2.5) * 1, "who": np.arange(1_000) // 2}
)
COMMON: dict[str, Any] = {"x": "x", "y": "y", "bounds": (0, 19), "epsilon": 2, "x_grid": "integers"}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory) -> iso.Ledger:
    return iso.Ledger(tmp_path_factory.mktemp("ledger") / "l", epsilon=1_000, unit="record")


def release(ledger: iso.Ledger, **given: Any) -> Release:
    y: dict[str, Any] = {} if "y_range" in given else {"y_values": (0, 1)}
    return flat.curve(DATA, ledger=ledger, again=True, **{**COMMON, **y, **given})


@pytest.mark.parametrize("kind", ["population", "records", "credible"])
def test_low_and_high_are_the_band_of_the_published_sums(ledger, kind: str) -> None:
    found = release(ledger, band=kind, confidence=0.9)
    assert list(found.columns) == ["x", "value", "low", "high"]
    assert found.columns["x"] == tuple(range(20))
    assert (found.manifest["band"], found.manifest["description"]["confidence"]) == (kind, 0.9)
    problem = rebuild_curve_mechanism(found.manifest["mechanism"])
    measured = measured_from(found.manifest, problem)
    assert (measured.sums.rate, measured.sums.variance) in sums_for(problem)
    low, high = measured.band(0.9, kind).at(np.arange(20))
    np.testing.assert_allclose(found.low, low, atol=1e-12)
    np.testing.assert_allclose(found.high, high, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, "population"),
        ({"output": "records"}, "records"),
        ({"contributions": 2, "unit": "who", "unit_name": "record"}, "records"),
        ({"increasing": "auto"}, "records"),
        ({"band": "none"}, None),
        ({"loss": "absolute", "y_range": (0, 1)}, None),
    ],
)
def test_the_usual_band_is_one_that_holds(ledger, given: dict[str, Any], kind: str | None) -> None:
    found = release(ledger, **given)
    assert found.manifest.get("band") == kind
    assert ("low" in found.columns) == (kind is not None)
    assert ("sums" in found.manifest) == (given.get("loss") is None)
    assert ("polygon" in _page(found)) == (kind is not None)


def _page(found: Release) -> str:
    from isotone.release.report import report_html

    return report_html(found)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"band": "population", "contributions": 2, "unit": "who", "unit_name": "record"}, "not independent"),
        ({"band": "population", "increasing": "auto"}, "direction is found"),
        ({"band": "records", "method": "bins"}, "has no band"),
        ({"band": "wide"}, "band"),
        ({"confidence": 1}, "confidence"),
    ],
)
def test_a_band_that_does_not_hold_is_refused_before_the_charge(
    ledger, given: dict[str, Any], reason: str
) -> None:
    spent = ledger.spent()
    with pytest.raises(InputError, match=reason):
        release(ledger, **given)
    assert ledger.spent() == spent


def test_the_report_says_which_band_it_shows(ledger) -> None:
    assert "credible: what a model believes" in _page(release(ledger, band="credible"))
    page = _page(release(ledger))
    assert "95 % band, for the mean in the population, at all points at once" in page
    assert "credible" not in page


@pytest.mark.parametrize(("increasing", "goes"), [(True, "rises"), (False, "falls")])
def test_the_report_says_that_it_cannot_tell_whether_the_mean_is_monotone(ledger, increasing, goes) -> None:
    page = _page(release(ledger, increasing=increasing))
    assert (
        f"the mean really {goes} with x, all the way: where it does not, it may lie far outside the band"
        in page
    )
    assert f"The curve {goes} whatever the data says." in page
    assert "all the way" not in _page(release(ledger, increasing=increasing, band="records"))


@pytest.fixture(scope="module")
def shelf(ledger, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    release(ledger).save(folder)
    return folder


def test_an_honest_band_is_verified(shelf: Path) -> None:
    verdict = verify(shelf)
    assert verdict.holds
    assert "curve and band are those of the published sums" in verdict["error"].words


@pytest.mark.parametrize(
    "given",
    [
        {"increasing": False},
        {"output": "records"},
        {"loss": ["logistic", "1/8"]},
        {"y_range": (-1, 3)},
        {"x_grid": [0, 2, 3, 11, 19]},
    ],
)
def test_the_curve_itself_is_what_the_published_sums_give(
    ledger, tmp_path: Path, given: dict[str, Any]
) -> None:
    release(ledger, **given).save(tmp_path)
    assert verify(tmp_path).holds


def _forged(shelf: Path, folder: Path, change: Any) -> Path:
    """A folder whose hashes are right again after the change."""
    honest = load_release(shelf)
    columns, entries = {key: list(part) for key, part in honest.columns.items()}, honest.manifest.plain()
    entries = json.loads(json.dumps(entries))
    change(columns, entries)
    for key in ("content_hash", "files"):
        entries.pop(key, None)
    seal({key: tuple(part) for key, part in columns.items()}, entries).save(folder, report=False)
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c, m: c["low"].__setitem__(5, c["low"][5] + 0.01), "low is not"),
        (lambda c, m: c["high"].__setitem__(5, float("inf")), ""),
        (lambda c, m: c["value"].__setitem__(19, c["value"][19] + 0.003), "value is not"),
        (lambda c, m: c.update(value=[max(0.0, value - 0.003) for value in c["value"]]), "value is not"),
        (lambda c, m: m["mechanism"].update(output="records"), ""),
        (lambda c, m: m["sums"]["ones"].__setitem__(10, m["sums"]["ones"][10] + 5_000), "is not what"),
        (lambda c, m: m["sums"].update(rate="3"), "rate"),
        (lambda c, m: m["sums"].update(values=10**9), "values"),
        (lambda c, m: m["sums"]["starts"].__setitem__(0, 1), "bins"),
        (lambda c, m: m["sums"]["zeros"].pop(), "bins"),
        (lambda c, m: m.pop("sums"), "noisy sums are not there"),
        (lambda c, m: m["description"].update(confidence=0.5), "is not what"),
        (lambda c, m: m["description"].update(confidence=2), "confidence"),
        (lambda c, m: m.update(band="records"), "band"),
        (lambda c, m: m.update(band="sure"), "band"),
        (lambda c, m: m.pop("band"), "band"),
        (lambda c, m: [part.pop(7) for part in c.values()], "corner"),
        (lambda c, m: c["x"].__setitem__(7, 7.4), "point of the grid"),
        (lambda c, m: c.update(x=[0.0, *(x - 0.4 for x in c["x"][1:])]), "point of the grid"),
    ],
)
def test_a_forged_band_is_noticed(shelf: Path, tmp_path: Path, change: Any, words: str) -> None:
    try:
        folder = _forged(shelf, tmp_path / "forged", change)
        verdict = verify(folder)
    except (InputError, ValueError, iso.IsotoneError):
        return  # not even a release
    assert not verdict.holds
    assert words in verdict["error"].words


FEW, EVEN = 20, [0, 2, 5, 7, 10, 12, 15, 17]
"""So few records that there is no coarse look, and the bins that their sums are then measured in."""


@pytest.mark.parametrize(
    ("public_n", "starts", "rate", "values", "refused"),
    [
        (1_000, [0, 9], "9/5", 101, ""),
        (1_000, [0, 9], "2", 101, "rate"),
        (1_000, EVEN, "2", 101, "rate"),
        (1_000, [0, 9], "9/5", 201, "values"),
        (FEW, EVEN, "2", 101, ""),
        (FEW, EVEN, "9/5", 101, "rate"),
        (FEW, [0, 9], "2", 101, "bins"),
        (None, [0, 9], "441/250", 201, ""),
        (None, [0, 9], "441/250", 100, "values"),
        (None, EVEN, "49/25", 101, ""),
        (None, EVEN, "49/25", 201, "values"),
        (None, [0, 9], "49/25", 101, "bins"),
    ],
)
def test_noise_without_a_look_is_believed_of_few_records_in_even_bins(
    public_n: int | None, starts: list[int], rate: str, values: int, refused: str
) -> None:
    sums = {"starts": starts, "ones": starts, "zeros": starts, "values": values, "rate": rate}
    entries = {
        "sums": sums,
        "increasing": True,
        "mechanism": {},
        "description": {"unit": {"contributions": 1}},
    }
    problem = PrivateIsotonicRegression(
        2, (0, 19), y_values=(0, 1), x_grid="integers", public_n=public_n
    ).check()
    with pytest.raises(InputError, match=refused) if refused else nullcontext():
        measured_from(entries, problem)


def test_a_falling_curve_of_few_records_is_verified(ledger) -> None:
    """Its bins are even from the right, and not from the left."""
    found = release(ledger, increasing=False, public_n=FEW)
    assert found.manifest["sums"]["starts"] != EVEN
    assert (
        curve_faults(found.columns, found.manifest, rebuild_curve_mechanism(found.manifest["mechanism"]))
        == []
    )


def test_a_corner_of_the_curve_that_is_left_out_is_noticed(ledger) -> None:
    """The band is constant over wide steps: between its corners the curve could be bent by leaving rows out."""
    entries = json.loads(json.dumps(release(ledger, band="population", x_grid=200).manifest.plain()))
    entries["sums"].update(starts=[0, 100], ones=[50, 450], zeros=[450, 50])
    problem = rebuild_curve_mechanism(entries["mechanism"])
    measured = measured_from(entries, problem)
    curve, band = (
        measured.curve("population", problem.ends, True),
        measured.band(entries["description"]["confidence"], "population"),
    )
    for left_out, at in ((False, np.union1d(curve.knots, band.corners)), (True, band.corners)):
        columns: Any = {"x": problem.grid.positions(at), "value": curve.at(at), **band.at(at)._asdict()}
        assert (
            curve_faults(columns, entries, problem)
            == ["value is not what the published sums give"] * left_out
        )


def test_readers_get_values_and_differences_with_their_intervals(shelf: Path) -> None:
    found = load_release(shelf)
    at = found.at(10)
    published = found.value[10], found.low[10], found.high[10]
    assert (at.value, at.low, at.high) == pytest.approx(published, abs=1e-11)
    assert (at.confidence, at.about, at.note) == (0.95, "population", "")
    assert found.at(10.2).low == at.low  # the nearest point of the grid
    assert found.at(10, confidence=0.5).confidence == 0.5
    apart = found.difference(2, 18)
    assert apart.value == pytest.approx(found.value[18] - found.value[2])
    assert apart.low == pytest.approx(max(0.0, found.low[18] - found.high[2]), abs=1e-9)
    assert apart.high == pytest.approx(found.high[18] - found.low[2], abs=1e-9)
    back = found.difference(18, 2)
    assert (back.value, back.low, back.high) == pytest.approx((-apart.value, -apart.high, -apart.low))  # pyright: ignore[reportOptionalOperand]
    same = found.difference(3, 3)
    assert (same.value, same.low) == (0, 0)
    for wrong in (-1, 20, "much", None, float("nan")):
        with pytest.raises(InputError, match="x must"):
            found.at(wrong)


def test_questions_without_a_law_are_refused_with_the_reason(ledger) -> None:
    credible = release(ledger, band="credible")
    assert credible.at(4).note.startswith("credible")
    with pytest.raises(InputError, match="point by point"):
        credible.difference(1, 2)
    without = release(ledger, loss="absolute", y_range=(0, 1))
    for ask in (lambda: without.at(4), lambda: without.difference(1, 2)):
        with pytest.raises(InputError, match="depends on the data"):
            ask()


def test_a_curve_with_gaussian_noise_has_its_band(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "l", rho=3, unit="record")
    given: dict[str, Any] = {**COMMON, "epsilon": None, "rho": 1, "y_values": (0, 1)}
    found = flat.curve(DATA, ledger=ledger, **given)
    assert found.manifest["band"] == "population"
    assert "rate" not in found.manifest["sums"]
    found.save(tmp_path / "out", report=False)
    assert verify(tmp_path / "out")["error"].holds
    assert found.at(3).about == "population"


def test_falling_curves_have_differences_that_fall(ledger) -> None:
    data = DATA.assign(y=1 - DATA["y"])
    found = flat.curve(data, ledger=ledger, again=True, y_values=(0, 1), increasing=False, **COMMON)
    apart = found.difference(2, 18)
    assert apart.high <= 0
    assert np.all(np.diff(found.low) <= 0)
    assert np.all(np.diff(found.high) <= 0)


def test_a_spec_names_the_band(tmp_path: Path) -> None:
    DATA.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "spec.toml").write_text(
        """
[data]
path = "d.csv"
[privacy]
epsilon = "1"
ledger = "l"
unit = "record"
budget = { epsilon = "3" }
[curve]
x = "x"
y = "y"
bounds = [0, 19]
y_values = [0, 1]
x_grid = "integers"
band = "records"
[output]
folder = "out"
confidence = 0.8
"""
    )

    from isotone.release.spec import load_spec

    spec = load_spec(tmp_path / "spec.toml")
    described: Any = spec.description
    assert (described.band, described.confidence) == ("records", 0.8)


@pytest.mark.parametrize(("place", "by"), [(0, -1.0), (-1, 1.0)])
def test_a_curve_that_leaves_its_bounds_at_one_end_is_noticed(ledger, place: int, by: float) -> None:
    made = release(ledger, band="population", x_grid=200)
    entries = json.loads(json.dumps(made.manifest.plain()))
    columns: Any = {name: list(column) for name, column in made.columns.items()}
    columns["x"][place] += by
    problem = rebuild_curve_mechanism(entries["mechanism"])
    assert "x leaves its bounds or is not ascending" in curve_faults(columns, entries, problem)
