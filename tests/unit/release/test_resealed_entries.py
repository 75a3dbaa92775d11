"""Entries that a forger changes and seals again, and that only a look at each of them notices."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.support.forgeries import forged

import isotone as iso
from isotone.release import verify

DATA = pd.DataFrame(
    {"person": range(60), "hyp": 1, "twice": [0, 1] * 30, "g": ["a", "b"] * 30, "sex": ["f", "f", "m"] * 20}
)
P = iso.Poset.chain(["twice", "hyp"])


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    ledger = iso.Ledger(folder / "a.ledger", epsilon=900)
    given: dict[str, Any] = {"ledger": ledger, "unit": "person"}
    counts = iso.release_counts(DATA, P, epsilon=1, **given)
    counts.consistent().save(folder / "whole", report=False)
    counts.consistent(integers=False).save(folder / "real", report=False)
    cells = {"by": ["g", "sex"], "groups": {"g": ["a", "b"], "sex": ["f", "m"]}}
    iso.release_counts(DATA, P, epsilon=9, margins=["", "g", "*"], **cells, **given).consistent().save(
        folder / "cells", report=False
    )
    table = {"category": "g", "categories": ["a", "b"], "upper": 50, "epsilon": 1}
    iso.release_table(DATA, folder=folder / "table", **table, **given)
    return folder


def change(*path: str, to: Any) -> Any:
    def forge(entries: Any, columns: Any) -> None:
        for name in path[:-1]:
            entries = entries[name]
        assert entries[path[-1]] != to
        entries[path[-1]] = to

    return forge


FORGERIES = {
    "weights of no kind": ("whole", change("derived", "weights", to="none")),
    "integers of no kind": ("whole", change("derived", "integers", to=1.5)),
    "whole numbers that are said to be none": ("whole", change("derived", "integers", to=False)),
    "none that are said to be whole": ("real", change("derived", "integers", to=True)),
    "integers of cells": ("cells", change("derived", "integers", to="yes")),
    "importance": ("cells", change("mechanism", "importance", to=[1.0, 50.0, 1.0])),
    "form": ("table", change("rules", "form", to="anything")),
    "a share for no percentile": ("table", change("mechanism", "upper_share", to="1/2")),
}


@pytest.mark.parametrize("name", ["whole", "real", "cells", "table"])
def test_what_was_not_changed_holds(shelf, name):
    assert verify(shelf / name).holds, str(verify(shelf / name))


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_changed_entry_that_was_sealed_again_is_refused(shelf, tmp_path, forgery):
    name, forge = FORGERIES[forgery]
    shutil.copytree(shelf / name, tmp_path / "forged")
    forged(tmp_path / "forged", forge)
    verdict = verify(tmp_path / "forged")
    assert verdict["content"].holds, "it is sealed again"
    assert not verdict.holds
