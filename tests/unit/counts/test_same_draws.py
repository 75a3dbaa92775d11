"""On a fixed tape of bits mechanisms release the integers that are stored, and state the errors that are stored.

What a strategy, a noise or a solver computes may be written anew; what it releases must not change.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.draw_cases import CASES, released

STORED = Path(__file__).parents[2] / "fixtures" / "count_draws.json"
PORTABLE = [name for name in CASES if "OrderGaussian" not in name and not name.endswith(" order")]
"""Shapes of ellipses are found by descent, whose last digits differ from machine to machine."""


@pytest.fixture(scope="module")
def stored() -> dict[str, dict[str, list[list[int]] | float]]:
    return json.loads(STORED.read_text())


def test_every_case_is_stored(stored: dict[str, object]) -> None:
    assert list(stored) == PORTABLE


@pytest.mark.parametrize("name", PORTABLE)
def test_the_same_integers_are_drawn(name: str, stored: dict[str, dict[str, object]]) -> None:
    mechanism = CASES[name]()
    assert released(mechanism, name, 2) == stored[name]["released"]
    assert mechanism.error().total == pytest.approx(stored[name]["error"], rel=1e-12)


def write() -> None:
    """Store what is drawn today."""
    found = {name: CASES[name]() for name in PORTABLE}
    lines = [
        f"{json.dumps(name)}: {json.dumps({'error': m.error().total, 'released': released(m, name, 2)})}"
        for name, m in found.items()
    ]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
