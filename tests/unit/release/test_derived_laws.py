"""Laws of derived releases, each from data and a ledger of its own."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.derived import ROWS, SIZE, P, made, refused

import isotone as iso
from isotone.counts import PosetMechanism
from isotone.errors import InputError


def test_the_adjusted_noise_has_the_law_that_is_stated(tmp_path, monkeypatch):
    """Coverage over 400 releases: at least 95 of 100, up to chance once in a hundred million."""
    from scipy.stats import binom

    m, hits, near = PosetMechanism(P, 1), np.zeros(3), np.zeros(3)
    base = made(iso.Ledger(tmp_path / "ledger", epsilon=9))
    true = np.array([200, 120, 160])
    from isotone.release.result import seal

    for _ in range(400):
        values, total = m.release_with_total(true, SIZE)
        columns = {**base.columns, "value": tuple(values.tolist())}
        release = seal(columns, {**base.manifest, "total": total}).given(records=SIZE)
        hits += (release.low <= true) & (true <= release.high)
        near += np.abs(release.value - true) <= (release.high - release.low) / 8
    assert np.all(binom.cdf(hits, 400, 0.95) > 1e-8)
    # a quarter of the width holds about half of them, ten standard deviations below that limit
    assert np.all(binom.cdf(near, 400, 0.95) < 1e-8)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_root_of_a_hierarchy_is_never_fixed(tmp_path, neighbours):
    """Leaves that add up to a public number would show a record that is dropped."""
    T = iso.Poset.from_mapping({"a": "all", "b": "all"}, children="partition")
    ledger = iso.Ledger(tmp_path / "codes", epsilon=1, neighbours=neighbours, unit="person")
    codes = pd.DataFrame({"person": range(4), "code": ["a", "b", "moon", None]})
    options = {"element": "code", "unit": "person", "total": False, "mechanism": "TreeFieldMechanism"}
    release = made(ledger, codes, order=T, neighbours=neighbours, **options)
    assert min(release.columns["sd"]) > 0.5
    with pytest.raises(InputError, match="The root of a hierarchy is not fixed"):
        release.given(records=4)


def test_the_error_of_covariances_that_are_not_exact_stands_in_the_manifest(tmp_path):
    ledger, names = iso.Ledger(tmp_path / "ledger", epsilon=9), ["a", "b", "hyp", "twice"]
    prime = iso.Poset(names, [("a", "hyp"), ("b", "hyp"), ("b", "twice")])
    data = ROWS.assign(a=ROWS["meds"], b=ROWS["meds"])
    parts = [
        made(ledger, data, order=prime),
        made(ledger, data, order=prime, mechanism="LaplaceMechanism", total=False),
    ]
    assert 0 < iso.combine(parts).manifest["derived"]["covariance_error"] < 0.02
    assert 0 < parts[0].given(records=SIZE).manifest["derived"]["covariance_error"] < 0.02


def test_options_of_a_partition_add_up_in_whole_numbers(tmp_path):
    from isotone.release.result import seal

    names = ["q", "x", "y", "z", "s"]
    Q = iso.Poset(
        names, [("x", "q"), ("y", "q"), ("z", "q"), ("s", "x")], choices=[("partition", ["x", "y", "z"])]
    )
    ledger, data = iso.Ledger(tmp_path / "ledger", epsilon=9), pd.DataFrame(0, index=[0], columns=names)
    base = made(ledger, data, order=Q, mechanism="LaplaceMechanism", total=False)
    loose = seal({**base.columns, "value": (80, 43, 33, 11, 8)}, base.manifest)
    mended = loose.consistent().value  # each rounded by itself: 82, 41, 31, 9
    assert mended[1:4].sum() == mended[0]
    refused("options would not add up", loose.consistent, weights="covariance")
    strict = made(ledger, data, order=Q, on_conflict="drop")
    refused("several options are dropped", strict.given, records=0)
    given = strict.given(records=3, after_rules=True)
    assert given.value[1:4].sum() == pytest.approx(given.value[0], abs=1e-3)
    whole = given.consistent().value
    assert whole[1:4].sum() == whole[0]
    assert strict.contrast({"q": 1, "x": -1, "y": -1, "z": -1}).high == 0  # known without noise


def test_other_kinds_say_why_there_is_no_answer(tmp_path):
    ledger = iso.Ledger(tmp_path / "ledger", epsilon=99)
    x = np.arange(300) % 10
    data = pd.DataFrame({"x": x, "y": x / 10})
    options: dict[str, Any] = {
        "x": "x",
        "y": "y",
        "bounds": (0, 10),
        "y_range": (0, 1),
        "epsilon": 1,
        "ledger": ledger,
    }
    curve = flat.curve(data, loss="absolute", **options)
    refused("curve has no shares", curve.share, "x", of="y")
    refused("curve has no ranks", curve.rank, "x")
    for ask_for, values in ((curve.at, [3]), (curve.difference, [3, 4]), (curve.sum, [[3]])):
        refused("law of the error of other curves, and of surfaces, depends on the data", ask_for, *values)
