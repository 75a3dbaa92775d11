"""Surfaces: two columns from a spec, cells, monotone values, a heat map, and what verify notices."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.cli.release import release_table
from isotone.curves.losses import Huber, Loss, Pinball, parse_loss
from isotone.errors import InputError
from isotone.privacy.checks import exact
from isotone.reading.grids import CellSource, count_cells
from isotone.release.kinds.kind import kind_named
from isotone.release.report import report_html
from isotone.release.result import Release, load_release, seal
from isotone.release.spec import load_spec
from isotone.release.verify import verify

RNG = np.random.default_rng(0)
A, B = RNG.uniform(0, 10, 600), RNG.uniform(-1, 1, 600)
DATA = pd.DataFrame({"a": A, "b": B, "y": (A / 10 + (1 - B) / 2) / 2, "who": np.arange(600) // 3})
COMMON: dict[str, Any] = {
    "x": ("a", "b"),
    "y": "y",
    "bounds": ((0, 10), (-1, 1)),
    "y_range": (0, 1),
    "bins": (4, 3),
    "increasing": (True, False),
}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory) -> iso.Ledger:
    return iso.Ledger(tmp_path_factory.mktemp("ledger") / "l", epsilon=1_000, unit="record")


@pytest.fixture(scope="module")
def shelf(ledger, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    flat.surface(DATA, epsilon=20, ledger=ledger, **COMMON).save(folder)
    return folder


def test_cells_are_counted_where_their_rows_fall() -> None:
    rows = pd.DataFrame(
        {
            "a": [0, 2.5, 2.4999, 10, 99, -5, None, 5, 5],
            "b": [-1, 1, 0, 0.5, 9, -9, 0, float("nan"), "0.9"],
            "y": [0, 1, 0.5, 0.25, 2, -1, 1, 1, "high"],
        }
    )
    limits = exact(0, ""), exact(10, "")
    source = CellSource(
        rows,
        ("a", "b"),
        "y",
        (limits, (-limits[1] / 10, limits[1] / 10)),
        (4, 2),
        (limits[0], limits[1] / 10),
        4,
    )
    found = count_cells(source, source.open())
    seen = [(*bins, y, n) for bins, y, n in zip(found.bins.tolist(), found.y, found.count, strict=True)]
    assert seen == [(0, 0, 0, 2), (0, 1, 2, 1), (1, 1, 4, 1), (3, 1, 1, 1), (3, 1, 4, 1)]


def test_a_unit_has_as_many_rows_as_declared() -> None:
    ten = exact(10, "")
    source = CellSource(
        DATA,
        ("a", "b"),
        "y",
        ((0 * ten, ten), (-ten / 10, ten / 10)),
        (4, 3),
        (0 * ten, ten / 10),
        16,
        "who",
        2,
    )
    assert count_cells(source, source.open()).count.sum() == 400


def test_a_surface_is_monotone_as_declared_and_near_the_data(shelf: Path) -> None:
    found = load_release(shelf)
    assert list(found.columns) == ["x1", "x2", "value"]
    value = found.value.reshape(4, 3)
    assert np.all(np.diff(value, axis=0) >= 0)
    assert np.all(np.diff(value, axis=1) <= 0)
    assert found.columns["x1"][:4] == (1.25, 1.25, 1.25, 3.75)
    assert verify(shelf).holds
    page = report_html(found)
    assert page.count("<rect") >= 12
    assert "no intervals are stated" in page
    with pytest.raises(InputError, match="depends on the data"):
        found.at(3)


def test_a_screen_shows_few_cells_of_a_surface_from_all_over_it(ledger) -> None:
    made = flat.surface(DATA, epsilon=20, ledger=ledger, **{**COMMON, "bins": (12, 12)})
    rows, which = made.on_screen()
    assert which == "25 of 144 rows, in equal steps"
    ends = (made.columns["x1"][0], made.columns["x1"][-1], made.columns["x2"][0], made.columns["x2"][-1])
    assert (rows[0][0], rows[-1][0], rows[0][1], rows[-1][1]) == ends
    assert set(rows) < {*zip(*made.columns.values(), strict=True)}
    assert str(made).splitlines()[-1] == f"{which}; frame() has all"
    assert f"<p>{which}; frame() has all</p>" in made._repr_html_()
    printed = release_table(made)
    assert printed.row_count == 25
    assert printed.caption == f"{which}; all are in release.csv"


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": ((0, 10), (1, -1))},
        {"bounds": ((0, 10),)},
        {"x": ("a",)},
        {"x": ("a", "a")},
        {"bins": 65},
        {"bins": 0},
        {"bins": (4, 3, 2)},
        {"increasing": "auto"},
        {"loss": "cubic"},
        {"y_range": (1, 0)},
        {"public_n": 0},
        {"contributions": 2},
        {"y": "none"},
    ],
)
def test_what_is_wrong_is_refused_before_the_charge(ledger, given: dict[str, Any]) -> None:
    spent = ledger.spent()
    with pytest.raises(iso.IsotoneError):
        flat.surface(DATA, epsilon=1, ledger=ledger, **{**COMMON, **given})
    assert ledger.spent() == spent


def forged(shelf: Path, folder: Path, change: Any) -> Release:
    honest = load_release(shelf)
    columns = {key: list(part) for key, part in honest.columns.items()}
    entries = json.loads(json.dumps(honest.manifest.plain()))
    change(columns, entries)
    for key in ("content_hash", "files"):
        entries.pop(key)
    found = seal({key: tuple(part) for key, part in columns.items()}, entries)
    found.save(folder, report=False)
    return found


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda c, m: c["value"].__setitem__(0, 1.5), "error"),
        (lambda c, m: c["value"].reverse(), "error"),
        (lambda c, m: c["x1"].__setitem__(0, 0.0), "error"),
        (lambda c, m: c.update(low=c["value"]), "error"),
        (lambda c, m: m["mechanism"].update(directions=[False, False]), "error"),
        (lambda c, m: m["mechanism"].update(bins=[12, 1]), "error"),
        (lambda c, m: m["mechanism"].update(bins=[10**9, 1]), "error"),
        (lambda c, m: m["guarantee"].update(epsilon="1"), "guarantee"),
        (lambda c, m: m["guarantee"].update(neighbours="replace"), "guarantee"),
        (lambda c, m: m["description"]["unit"].update(contributions=2), "guarantee"),
        (lambda c, m: m["mechanism"].update(ledger="x"), "guarantee"),
        (lambda c, m: m["mechanism"].update(name="Other"), "guarantee"),
    ],
)
def test_a_forged_surface_is_noticed(shelf: Path, tmp_path: Path, change: Any, check: str) -> None:
    forged(shelf, tmp_path / "forged", change)
    assert not verify(tmp_path / "forged")[check].holds


SPEC = """
[data]
path = "d.csv"
[privacy]
epsilon = "1"
ledger = "l"
unit = "record"
budget = { epsilon = "3" }
[curve]
x = ["a", "b"]
y = "y"
bounds = [[0, 10], [-1, 1]]
y_range = [0, 1]
x_grid = [4, 3]
increasing = [true, false]
[output]
folder = "out"
"""


def test_a_spec_asks_for_a_surface(tmp_path: Path) -> None:
    DATA.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "spec.toml").write_text(SPEC)
    spec = load_spec(tmp_path / "spec.toml")
    assert spec.description.words == "surface of y over a and b"
    plan = spec.plan()
    assert "4 × 3 cells" in str(plan)
    flat.with_spec(spec)
    assert verify(tmp_path / "out").holds
    assert any("a: numbers from" in line for line in spec.check().findings)


def test_a_manifest_of_a_surface_guarantees_no_less_rho_than_was_spent(tmp_path: Path) -> None:
    book = iso.Ledger(tmp_path / "l", rho=9, unit="record")
    found = flat.surface(DATA, rho=1, ledger=book, **COMMON)
    assert "ρ = 1" in report_html(found)
    found.save(tmp_path / "honest", report=False)
    assert verify(tmp_path / "honest").holds
    for change in (
        lambda c, m: m["guarantee"].update(rho="1/2"),
        lambda c, m: m["guarantee"].update(kind="pure", epsilon="1", rho="0"),
        lambda c, m: m["mechanism"].update(epsilon="1/2"),
        lambda c, m: m["mechanism"].update(rho="-1"),
    ):
        forged(tmp_path / "honest", tmp_path / "forged", change)
        assert not verify(tmp_path / "forged")["guarantee"].holds
    for both in ({"epsilon": 1, "rho": 1}, {"rho": 1, "delta": "1e-6"}, {}, {"rho": "1e-40"}):
        with pytest.raises(iso.IsotoneError):
            flat.surface(DATA, ledger=book, **both, **COMMON)
    assert book.spent().rho == 1


def test_an_audit_finds_no_more_than_was_guaranteed() -> None:
    def progress(share: float, words: str) -> None: ...

    found = kind_named("curve").audit_named("PrivatePosetRegression", 1, 300, progress)
    assert len(found.findings) == 1


@pytest.mark.parametrize(
    ("loss", "parsed"),
    [
        ("huber", Huber()),
        (("pinball", Fraction(9, 10)), Pinball(Fraction(9, 10))),
        (["huber", 2], Huber(Fraction(2))),
    ],
)
def test_a_surface_is_built_again_with_every_loss_of_a_curve(loss: Any, parsed: Loss) -> None:
    given: dict[str, Any] = {"y": "y", "bounds": ((0, 1), (0, 1)), "y_range": (0, 1), "x_grid": 2}
    described = iso.Curve(("a", "b"), loss=loss, **given)
    again = iso.Curve(**json.loads(json.dumps(described.plain())))
    assert again == described
    estimator: Any = again.mechanism(again.guarantee(1)).estimator()
    assert parse_loss(estimator.loss) == parsed
    estimator.check()


@pytest.mark.parametrize("value", [9.0, 21.0])
def test_a_surface_beyond_a_range_that_does_not_begin_at_0_is_noticed(
    ledger, tmp_path: Path, value: float
) -> None:
    data = DATA.assign(y=10 + 10 * DATA["y"])
    flat.surface(data, epsilon=20, ledger=ledger, **{**COMMON, "y_range": (10, 20)}).save(tmp_path / "honest")
    assert verify(tmp_path / "honest").holds

    def all_alike(columns: Any, _: Any) -> None:
        columns["value"] = [value] * len(columns["value"])

    forged(tmp_path / "honest", tmp_path / "forged", all_alike)
    assert not verify(tmp_path / "forged")["error"].holds
