"""Every kind of release keeps every kind of guarantee: from a spec to a folder that verifies."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.support import flat
from tests.support.forgeries import forged

import isotone as iso
from isotone.release import Ledger, load_spec, verify
from isotone.release.kinds.kind import all_kinds

CATEGORIES = [f"c{i}" for i in range(60)]
ORDER = "elements = ['low', 'high']\nrelations = [['high', 'low']]\n"
KINDS = {
    "series": """[series]
periods = ["2024-01-07", "2024-01-14"]
date = "sort"
[order]
parents = { high = "low" }
""",
    "table": f"[table]\ncategory = 'place'\ncategories = {CATEGORIES}\nupper = 9\n",
    "curve": "[curve]\nx = 'x'\ny = 'y'\nbounds = [0, 9]\ny_range = [0, 1]\nx_grid = 10\n",
    "surface": "[curve]\nx = ['x', 'z']\ny = 'y'\nbounds = [[0, 9], [0, 59]]\ny_range = [0, 1]\nx_grid = 3\nloss = 'absolute'\n",
    "pairs": "[table]\ncategory = 'place'\ncategories = ['c0', 'c1']\ncounts = ['p', 'q']\nkind = 'sort'\nupper = 9\n",
    "counts": "[order]\n" + ORDER,
    "distribution": "[distribution]\ncolumn = 'z'\nbounds = [0, 59]\nby = { sort = ['p', 'q'] }\n",
    "survival": "[survival]\ntime = 'z'\nevent = 'high'\nhorizon = 50\nby = { sort = ['p', 'q'] }\n",
    "breakdown": "[order]\nby = { sort = ['p', 'q'] }\nmargins = ['', 'sort']\n" + ORDER,
}
GUARANTEES = {"rho": "rho = '1/2'", "delta": "epsilon = 1\ndelta = '1e-6'", "epsilon": "epsilon = 1"}
FILTER: dict[str, Any] = {"rho": 9, "delta": "1e-3", "composition": "zcdp filter", "final_delta": "1e-6"}


def written(folder: Path, kind: str, guarantee: str, contributions: int = 1) -> Path:
    rows = [
        {
            "person": i // 3,
            "place": CATEGORIES[(i * i) % 60],
            "z": (i * i) % 60,
            "sort": "pq"[i // 3 % 2],
            "x": i % 10,
            "y": (i % 10) / 9,
            "low": 1,
            "high": i % 2,
        }
        for i in range(300)
    ]
    pd.DataFrame(rows).to_csv(folder / "data.csv", index=False)
    text = f"[data]\npath = 'data.csv'\nunit = 'person'\ncontributions = {contributions}\n"
    text += f"[privacy]\n{guarantee}\nledger = 'a.ledger'\n{KINDS[kind]}[output]\nfolder = 'out'\nreport = false\n"
    (folder / "spec.toml").write_text(text)
    return folder / "spec.toml"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_spec_may_ask_for_every_guarantee(tmp_path, kind, guarantee):
    ledger = Ledger(tmp_path / "a.ledger", **FILTER).create()
    spec = load_spec(written(tmp_path, kind, GUARANTEES[guarantee]))
    if kind != "table":  # pairs are planned as tables are, and these are smaller
        assert ("ρ = " if guarantee == "rho" else "ε = 1") in str(spec.plan())
    made, folder, _ = flat.with_spec(spec)
    assert verify(folder).holds
    # with one contribution δ buys nothing: what is guaranteed, and charged, is ε
    assert made.guarantee.kind == ("zcdp" if guarantee == "rho" else "pure")
    assert ledger.spent().rho == Fraction(1, 2)
    assert ledger.spent().delta == 0


def test_every_kind_is_asked():
    assert set(KINDS) - {"pairs", "surface", "breakdown"} == {kind.name for kind in all_kinds()}


def test_many_contributions_make_use_of_delta(tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", **FILTER).create()
    made, folder, _ = flat.with_spec(load_spec(written(tmp_path, "table", GUARANTEES["delta"], 20)))
    assert made.manifest.mechanism["name"] == "GaussianTableMechanism"
    assert made.guarantee.kind == "approximate"
    assert ledger.spent().delta == Fraction(1, 10**6)
    assert verify(folder).holds


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    Ledger(folder / "a.ledger", **FILTER).create()
    return flat.with_spec(load_spec(written(folder, "table", GUARANTEES["rho"], 2)))[1]


@pytest.mark.parametrize(
    ("part", "entry", "value", "words"),
    [
        ("mechanism", "rho", "1/100", "an error is not that of the noise"),
        ("mechanism", "contributions", 1, "fewer categories"),
        ("description", "count", "y", "once in a category"),
        ("guarantee", "rho", "1/100", "not the one that the description has"),
    ],
)
def test_a_manifest_that_guarantees_too_much_is_found_out(honest, tmp_path, part, entry, value, words):
    folder = Path(shutil.copytree(honest, tmp_path / "forged"))
    forged(folder, lambda manifest, columns: manifest[part].__setitem__(entry, value))
    verdict = verify(folder)
    assert not verdict.holds
    assert words in str(verdict)


def test_a_plan_compares_gaussian_with_geometric_noise(tmp_path, monkeypatch):
    # The words need the rows, not exact errors.
    monkeypatch.setattr("isotone.tables.plan._LEAST_DRAWS", 1)
    monkeypatch.setattr("isotone.tables.plan._MOST_DRAWS", 1)
    for contributions, says in ((1, True), (20, False)):
        folder = tmp_path / str(contributions)
        folder.mkdir()
        made = load_spec(written(folder, "table", GUARANTEES["delta"], contributions)).plan()
        assert ("δ buys nothing" in str(made)) == says
        assert {row["mechanism"] for row in made.plain()["rows"]} >= {"counts", "counts, Gaussian"}
    assert "δ is not used" in str(load_spec(written(tmp_path, "curve", GUARANTEES["delta"])).plan())


def test_aggregated_rows_may_hold_a_person_twice_in_a_category(tmp_path):
    ledger = iso.Ledger(tmp_path / "a.ledger", **FILTER, unit="person")
    data = pd.DataFrame({"place": CATEGORIES, "n": 3})
    options: dict[str, Any] = {
        "category": "place",
        "categories": CATEGORIES,
        "upper": 9,
        "unit_name": "person",
    }
    made = flat.table(data, **options, count="n", rho="1/2", contributions=3, ledger=ledger)
    assert made.manifest.mechanism["once"] is False
    with pytest.raises(iso.InputError, match="not both"):
        flat.table(data, **options, count="n", rho="1/2", epsilon=1, ledger=ledger)
