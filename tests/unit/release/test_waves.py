"""Several releases from one budget: planned without data, stated in every manifest, refused if the ledger cannot pay."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.forgeries import forged
from typer.testing import CliRunner

import isotone as iso
from isotone.cli import app
from isotone.errors import InputError, SpecError
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.release import load_spec, verify

P = Poset(["hyp", "meds"], [("meds", "hyp")])
DATA = pd.DataFrame(
    {"person": range(200), "region": ["n", "s"] * 100, "hyp": [1, 1, 0, 0] * 50, "meds": [1, 0, 0, 0] * 50}
)
SPEC = """
[data]
path = "data.csv"
[privacy]
epsilon = "1/2"
ledger = "survey.ledger"
budget = {{ epsilon = "3/2" }}
[order]
elements = ["hyp", "meds"]
relations = [["meds", "hyp"]]
waves = {waves}
[output]
folder = "year1"
"""


def test_a_budget_is_shared_among_waves_and_changes_have_the_noise_of_two():
    plan = iso.plan_waves(iso.Counts(P, mechanism="PosetMechanism"), 5, epsilon=5)
    assert plan.together == Guarantee.pure(5)
    assert plan.each == Guarantee.pure(1)
    assert plan.each.times(5) == plan.together
    noise = plan.mechanism
    assert plan.count == pytest.approx(noise.half_widths(0.95))
    off = np.abs(np.asarray(noise.law("a").draws, float) - np.asarray(noise.law("b").draws, float))
    held = np.mean(off <= plan.change, axis=0)  # draws are public, so this is no matter of chance
    assert np.all(held >= 0.95)
    assert np.all(np.mean(off <= plan.change - 1, axis=0) < 0.95)
    assert np.mean(np.max(off, axis=1) <= plan.all_changes) >= 0.95
    assert plan.plain()["elements"][0]["change"] == plan.change[0]
    assert "5 waves with ε-DP with ε = 1" in str(plan)
    assert "hyp" in str(plan)


def test_waves_of_other_people_have_the_whole_budget_each():
    plan = iso.plan_waves(iso.Counts(P), 4, rho="1/2", same_units=False)
    assert plan.each == plan.together == Guarantee.zcdp("1/2")
    assert iso.plan_waves(iso.Counts(P), 4, rho="1/2").each == Guarantee.zcdp("1/8")
    assert iso.plan_waves(iso.Counts(P), 2, epsilon=1, delta="1e-6").each == Guarantee.approximate(
        "1/2", "5e-7"
    )
    odd: list[Any] = [0, -1, 1.5, "2", True, None, 10**6]
    for bad in odd:
        with pytest.raises(InputError, match="waves"):
            iso.plan_waves(iso.Counts(P), bad, epsilon=1)
    wrong: list[dict[str, Any]] = [{}, {"epsilon": 1, "rho": 1}, {"epsilon": -1}]
    for parameters in wrong:
        with pytest.raises(InputError):
            iso.plan_waves(iso.Counts(P), 2, **parameters)


@pytest.mark.parametrize(
    "by", [{}, {"by": ["region"], "groups": {"region": ["n", "s"]}}], ids=["counts", "cells"]
)
def test_the_total_stands_in_every_manifest_and_is_checked(tmp_path, by: dict[str, Any]):
    ledger = iso.Ledger(tmp_path / "ledger", epsilon=3)
    first, second = (
        flat.counts(DATA, P, epsilon=1, ledger=ledger, waves=3, mechanism="PosetMechanism", **by)
        for _ in range(2)
    )
    said = first.manifest["waves"]
    assert said["planned"] == 3
    assert said["together"]["epsilon"] == "3"
    assert first.guarantee.epsilon == 1
    folder = Path(first.save(tmp_path / "first"))
    assert "one of 3 releases" in (folder / "report.html").read_text()
    assert verify(folder).holds
    (folder / "report.html").unlink()
    for change_of in (
        lambda m, c: m["waves"]["together"].update(epsilon="1"),
        lambda m, c: m["waves"].update(planned=2),
        lambda m, c: m["waves"].update(planned=1),
    ):
        copy = Path(first.save(tmp_path / "copy", report=False))
        assert not verify(forged(copy, change_of)).holds
    alone = flat.counts(DATA, P, epsilon="1/10", ledger=ledger, mechanism="PosetMechanism", **by)
    assert alone.manifest.get("waves") is None
    if not by:
        change = first.change(second, "hyp")
        assert change.low <= change.high
        first.consistent().save(tmp_path / "mended", report=False)
        assert verify(tmp_path / "mended").holds
        assert iso.combine([first, second]).manifest.get("waves") is None
        assert iso.combine([first, second]).guarantee.epsilon == 2


def test_a_plan_that_the_ledger_cannot_pay_is_refused_before_the_charge(tmp_path):
    cases: list[tuple[dict[str, Any], dict[str, Any], int]] = [
        ({"epsilon": 3}, {"epsilon": 1}, 3),
        ({"rho": 2}, {"rho": "1/2"}, 4),
        ({"rho": 2}, {"epsilon": 1}, 4),  # ε counts as ε²/2 each
        ({"rho": 2, "composition": "zcdp filter", "final_delta": "1e-6"}, {"epsilon": 1}, 4),
    ]
    for budget, guarantee, most in cases:
        ledger = iso.Ledger(tmp_path / f"{most}{len(list(tmp_path.iterdir()))}", **budget)
        options: dict[str, Any] = {**guarantee, "ledger": ledger, "unit": "person"}
        with pytest.raises(InputError, match="waves at this price cost"):
            flat.counts(DATA, P, waves=most + 1, **options)
        assert ledger.charges() == []
        assert flat.counts(DATA, P, waves=most, **options).manifest["waves"]["planned"] == most


def test_specs_and_the_command_line_plan_waves(tmp_path):
    DATA.to_csv(tmp_path / "data.csv", index=False)
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC.format(waves=3))
    made, _, _ = flat.with_spec(load_spec(spec))
    assert made.manifest["waves"]["together"]["epsilon"] == "3/2"
    shown = json.loads(CliRunner().invoke(app, ["plan", str(spec), "--waves", "4", "--json"]).output)
    assert (shown["waves"], shown["each"]["epsilon"], shown["together"]["epsilon"]) == (4, "1/2", "2")
    assert "a change within" in CliRunner().invoke(app, ["plan", str(spec), "--waves", "4"]).output
    spec.write_text(SPEC.format(waves=4).replace("year1", "year2"))
    with pytest.raises(InputError, match="4 waves at this price"):
        flat.with_spec(load_spec(spec))
    order = '[order]\nelements = ["hyp", "meds"]\nrelations = [["meds", "hyp"]]\n'
    curve = '[curve]\nx = "a"\ny = "b"\nbounds = [0, 1]\ny_range = [0, 1]\n'
    spec.write_text(SPEC.format(waves=2).replace(order, curve))
    with pytest.raises(SpecError, match=r"curve\.waves: there is no such entry"):
        load_spec(spec)
