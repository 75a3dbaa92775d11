"""Without numba small problems are released by the plain code, and larger ones are refused before the charge."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support import flat

import isotone as iso
from isotone import kernels
from isotone.counts import sampler
from isotone.errors import MissingExtraError
from isotone.kernels import MOST_PLAIN_STEPS, PLAIN_STEPS, committed, kernel

CURVE: dict[str, Any] = {"x": "x", "y": "y", "bounds": (0, 1), "y_range": (0, 1), "epsilon": 1, "x_grid": 64}
POINTS = pa.table({"x": np.linspace(0, 1, 20), "y": np.linspace(0, 1, 20)})


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kernels, sampler):
        monkeypatch.setattr(module, "has_compiler", lambda: False)


def twice(size: int) -> int:
    return 2 * size


SIZED, UNSIZED = kernel(steps=lambda size: size)(twice), kernel(twice)


def test_the_plain_code_runs_up_to_a_stated_number_of_steps(without: None) -> None:
    assert MOST_PLAIN_STEPS > PLAIN_STEPS
    assert SIZED(MOST_PLAIN_STEPS) == 2 * MOST_PLAIN_STEPS
    with pytest.raises(MissingExtraError, match=r"pip install .numba"):
        SIZED(MOST_PLAIN_STEPS + 1)
    with pytest.raises(MissingExtraError, match=r"pip install .numba"):
        UNSIZED(1)


def test_after_the_charge_nothing_is_refused(without: None) -> None:
    with committed():
        assert SIZED(MOST_PLAIN_STEPS + 1) == UNSIZED(MOST_PLAIN_STEPS + 1)
    with pytest.raises(MissingExtraError):
        UNSIZED(1)


def test_a_compiler_that_cannot_be_imported_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As numba for another numpy: refused before the charge, and plain after it."""
    monkeypatch.setattr(kernels, "has_compiler", lambda: True)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r"pip install .numba"):
        UNSIZED(1)
    with committed():
        assert UNSIZED(21) == 42


def test_a_release_that_needs_compiled_code_is_refused_before_the_charge(
    without: None, tmp_path: Path
) -> None:
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=1)
    with pytest.raises(MissingExtraError, match="Nothing was charged"):
        flat.curve(POINTS, ledger=ledger, shape=("linear", 8), **CURVE)
    assert ledger.spent().epsilon == 0
    assert ledger.charges() == []


def test_a_small_breakdown_needs_no_compiler(without: None, tmp_path: Path) -> None:
    """A row of noise for each cell is drawn as one row is, as long as there are few."""
    order, cells = iso.Poset.from_mapping({"hyp": None, "meds": "hyp"}), [str(k) for k in range(12)]
    rows = pa.table({"cell": cells, "hyp": [1] * 12, "meds": [1] * 12})
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=60)
    release = iso.Counts(order, by={"cell": cells}, margins=["", "*"]).release(
        rows, epsilon=60, ledger=ledger
    )
    assert abs(release.columns["value"][0] - 12) <= 4
    many = iso.Counts(
        order, by={"cell": [str(k) for k in range(50_000)]}, margins=["*"], mechanism="PosetMechanism"
    )
    with pytest.raises(MissingExtraError, match="Nothing was charged"):
        many.release(rows, epsilon=1, ledger=ledger, again=True)


def test_a_release_is_drawn_where_nothing_is_refused(without: None, tmp_path: Path, monkeypatch: Any) -> None:
    """The rehearsal refuses; reading and drawing do not, whatever the data asks for."""
    seen: list[bool] = []
    draw = iso.Curve.draw

    def watched(self: iso.Curve, mechanism: Any, statistic: Any) -> Any:
        try:
            UNSIZED(1)
            seen.append(True)
        except MissingExtraError:
            seen.append(False)
        return draw(self, mechanism, statistic)

    monkeypatch.setattr(iso.Curve, "draw", watched)
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=1)
    flat.curve(POINTS, ledger=ledger, **CURVE)
    assert seen == [False, True]


def test_verify_says_that_it_cannot_look_and_not_that_a_release_is_wrong(
    without: None, tmp_path: Path, monkeypatch: Any
) -> None:
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=1)
    flat.curve(POINTS, ledger=ledger, **CURVE).save(tmp_path / "out", report=False)
    assert iso.verify(tmp_path / "out").holds

    def faults(*_: Any) -> list[str]:
        return [str(UNSIZED(1))]

    monkeypatch.setattr("isotone.release.kinds.curve.kind.CurveKind.faults", faults)
    with pytest.raises(MissingExtraError):
        iso.verify(tmp_path / "out")


def test_a_table_of_counts_that_are_large_is_planned(without: None) -> None:
    """The plan of what a release without a compiler can do needs none either."""
    described = iso.Table("county", ["A", "B", "C"], upper=1000, unit="person")
    assert described.plan(epsilon=1).best is not None
    assert "within ±" in str(described.plan(epsilon=1))
