"""``isotone reproduce --check``: what is stored against what the code gives."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import _check
from common import write_table
from isotone.cli.reproduction import experiments

TABLE = {"d": [2, 10], "exact": [0.75, 0.25], "error()": [0.75, 0.25], "hierarchical": [1.3, 0.36]}


def experiment(**changes: list[float]) -> Any:
    """An experiment that gives the table above, changed."""

    def run(out: Path, quick: bool, progress: object) -> None:
        assert quick
        write_table(out, "path_posets", {**TABLE, **changes})

    return SimpleNamespace(run=run)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    write_table(tmp_path, "path_posets", TABLE)
    return tmp_path


def test_the_same_numbers_are_as_stored(stored: Path) -> None:
    outcome = _check.compare("path-posets", experiment(), stored)
    assert (outcome.numbers, outcome.off) == (6, ())


def test_a_number_that_changed_is_named(stored: Path) -> None:
    outcome = _check.compare("path-posets", experiment(exact=[0.75, 0.26]), stored)
    assert outcome.off == ("10: exact is stored as 0.25, the code gives 0.26",)


def test_a_number_that_is_missing_is_off(stored: Path) -> None:
    assert len(_check.compare("path-posets", experiment(exact=[0.75, float("nan")]), stored).off) == 1


def test_few_cases_of_a_full_run_are_compared_in_place_of_a_quick_run(stored: Path) -> None:
    def few(out: Path) -> None:
        write_table(out, "path_posets", {name: column[1:] for name, column in TABLE.items()})

    known = experiment()
    known.few = few
    outcome = _check.compare("path-posets", known, stored)
    assert (outcome.numbers, outcome.off) == (3, ())


def test_nothing_in_common_or_nothing_stored_is_off(stored: Path, tmp_path: Path) -> None:
    other = _check.compare("path-posets", experiment(d=[3, 4]), stored)
    assert other.numbers == 0
    assert len(other.off) == 1
    assert len(_check.compare("path-posets", experiment(), tmp_path / "nowhere").off) == 1


def test_every_experiment_is_compared_or_says_why_not() -> None:
    names = set(experiments())
    assert set(_check.RULES) | set(_check.UNCOMPARED) == names
    assert not set(_check.RULES) & set(_check.UNCOMPARED)
    for name in names:
        assert _check.stored_folder(name).is_dir(), name
        for file in _check.RULES.get(name, {}):
            assert (_check.stored_folder(name) / f"{file}.csv").exists(), file
