"""Labels of a released curve are declared: rows with any other y are left out, before a unit's rows are bounded.

And what a release of a bounded slope holds.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.reading.grids import PointSource, count_points

ONE = (Fraction(0), Fraction(1))


@pytest.mark.parametrize(
    "y", [[0, 1, 2, None, 1], [0.0, 1.0, 0.5, float("nan"), 1.0], ["0", "1", "x", "0.25", "1"]]
)
def test_rows_with_another_y_are_left_out(y: list[Any]) -> None:
    data = pd.DataFrame({"x": [0.0, 1.0, 1.0, 1.0, 0.0], "y": y})
    source = PointSource(data, "x", "y", ONE, ONE, 1, 4, labels=True)
    found = count_points(source, source.open())
    assert list(zip(found.x.tolist(), found.y.tolist(), found.count.tolist(), strict=True)) == [
        (0, 0, 1),
        (0, 4, 1),
        (1, 4, 1),
    ]


def test_a_row_without_a_label_does_not_use_up_a_contribution() -> None:
    data = pd.DataFrame({"x": [0.0] * 20, "y": [0.5, 1.0] * 10, "u": [f"u{i // 2}" for i in range(20)]})
    source = PointSource(data, "x", "y", ONE, ONE, 1, 4, "u", 1, labels=True)
    found = count_points(source, source.open())
    assert (found.y.tolist(), found.count.tolist()) == ([4], [10])


def test_a_release_of_labels_can_be_verified(tmp_path: Path) -> None:
    data = pd.DataFrame({"x": [i / 40 for i in range(40)] * 5, "y": [int(i >= 20) for i in range(40)] * 5})
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=9, unit="row")
    release = flat.curve(
        data, x="x", y="y", bounds=(0, 1), y_values=(0, 1), epsilon=9, ledger=ledger, unit_name="row",
        x_grid=40, public_n=200, output="records", folder=tmp_path / "out",
    )  # fmt: skip
    values = release.columns["value"]
    assert values[0] < 0.3 < 0.7 < values[-1]
    assert release.manifest["mechanism"]["y_values"] == ["0", "1"]
    assert release.manifest["description"]["y_range"] is None
    assert iso.verify(tmp_path / "out").holds


def test_a_release_of_bounded_slope_keeps_it_exactly_and_can_be_verified(tmp_path: Path) -> None:
    data = pd.DataFrame({"x": [i % 40 for i in range(200)], "y": [5.3 * (i % 40 >= 20) for i in range(200)]})
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=900, unit="row")
    release = flat.curve(
        data, x="x", y="y", bounds=(0, 40), y_range=("-0.1", "5.3"), epsilon=900, ledger=ledger, unit_name="row",
        x_grid=21, shape=["lipschitz", "1/3"], folder=tmp_path / "out",
    )  # fmt: skip
    points = list(
        zip(*([Fraction(v) for v in release.columns[name]] for name in ("x", "value")), strict=True)
    )
    assert all(0 <= up - low <= Fraction(1, 3) * (b - a) for (a, low), (b, up) in pairwise(points))
    assert iso.verify(tmp_path / "out").holds


def test_a_release_takes_no_second_budget(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=9, unit="row")
    data = pd.DataFrame({"x": [0.5], "y": [1]})
    with pytest.raises(iso.InputError, match="not both"):
        flat.curve(
            data, x="x", y="y", bounds=(0, 1), y_values=(0, 1), epsilon=1, rho=5, ledger=ledger, unit_name="row"
        )  # fmt: skip


def test_a_curve_needs_a_range_or_two_values() -> None:
    entries: dict[str, Any] = {"x": "x", "y": "y", "bounds": [0, 1]}
    with pytest.raises(iso.InputError, match="y_range is missing"):
        iso.Curve(**entries)
    with pytest.raises(iso.InputError, match="x and y are the same column, 'y'"):
        iso.Curve(x=("x", "y"), y="y", bounds=((0, 1), (0, 1)), y_range=(0, 1))
    assert iso.Curve(**entries, y_values=[0, 1]).y_ends == (0, 1)  # pyright: ignore
    assert iso.Curve(**entries, y_range=[0, 2]).y_ends == (0, 2)  # pyright: ignore
