"""Forged tables: what the strata, the whole table, the values and the noisy counts say must fit together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.forgeries import Columns, Entries, forged

import isotone as iso
from isotone.release import verify
from isotone.tables.thresholds import Thresholds
from isotone.tables.two_stage import GaussianMeasurement

SIZE = 60
NAMES = [f"c{i}" for i in range(2 * SIZE)]
COUNTS = np.arange(2 * SIZE) % 5  # every count occurs, so that at ε = 9 values and readings are spread


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    ledger = iso.Ledger(folder / "a.ledger", rho=900, final_delta="1e-6", composition="zcdp filter")
    data = pd.DataFrame({"place": NAMES, "a": COUNTS, "b": COUNTS[::-1]})
    common: dict[str, Any] = {"category": "place", "upper": 4, "contributions": 1, "ledger": ledger}
    classes = ["x"] * SIZE + ["y"] * SIZE
    flat.table(
        data,
        categories=NAMES,
        count="a",
        epsilon=9,
        emphasis="0.2",
        strata=classes,
        folder=folder / "strata",
        **common,
    )
    flat.table(data, categories=NAMES, counts=["a", "b"], rho=9, folder=folder / "pair", **common)
    flat.table(data, categories=NAMES[:9], counts=["a", "b"], epsilon=9, folder=folder / "few", **common)
    heaped: Any = common | {"upper": 20, "emphasis": "0.2", "folder": folder / "heaped"}
    flat.table(data.assign(a=7), categories=NAMES, count="a", epsilon="0.9", **heaped)
    return folder


def reversed_distribution(entries: Entries, columns: Columns) -> None:
    entries["distribution"] = [0.9, 0.1, 0.0, 0.0, 0.0]


def other_method(entries: Entries, columns: Columns) -> None:
    entries["method"] = "noise"


def exchanged_values(entries: Entries, columns: Columns) -> None:
    """The distribution stays, and the categories of one stratum with the least and the most exchange their values."""
    values = columns["value"]
    least, most = int(np.argmin(values[:SIZE])), int(np.argmax(values[:SIZE]))
    values[least], values[most] = values[most], values[least]


def two_values_that_moved(entries: Entries, columns: Columns) -> None:
    """Two categories of one stratum say one more: the distribution does not say so, and roundings explain one alone."""
    values = columns["value"]
    for at in [at for at in range(SIZE) if values[at] == 2][:2]:
        values[at] = 3


def exchanged_pairs(entries: Entries, columns: Columns) -> None:
    """The joint distribution stays, and two categories exchange both of their values."""
    first, second = (np.array(columns["estimate"]).reshape(2, -1)).tolist()
    along = [one - other for one, other in zip(first, second, strict=True)]
    low, high = int(np.argmin(along)), int(np.argmax(along))
    for start in (0, 2 * SIZE):
        values = columns["value"]
        values[start + low], values[start + high] = values[start + high], values[start + low]


def free_estimates(entries: Entries, columns: Columns) -> None:
    entries["method"] = "noise"
    columns["estimate"] = [0.5] * len(columns["estimate"])


def other_joint(entries: Entries, columns: Columns) -> None:
    entries["joint"] = np.diag([0.2] * 5).tolist()


def wider_interval(entries: Entries, columns: Columns) -> None:
    at = columns["high"].index(min(columns["high"]))
    columns["high"][at] += 1


def moved_interval(entries: Entries, columns: Columns) -> None:
    wider_interval(entries, columns)
    columns["low"] = columns["high"]


def no_thresholds_measured_last(entries: Entries, columns: Columns) -> None:
    assert {5, 6, 7} <= set(entries["finer"])  # the others are chance
    entries["finer"] = []


def part_of_a_gap(entries: Entries, columns: Columns) -> None:
    entries["finer"].remove(6)


def thresholds_of_no_stratum(entries: Entries, columns: Columns) -> None:
    entries["finer"] = []


@pytest.mark.parametrize("name", ["strata", "pair", "few", "heaped"])
def test_honest_ones_hold_whatever_a_reader_says_of_floats(shelf: Path, name: str) -> None:
    with np.errstate(all="raise"):
        assert verify(shelf / name).holds
        assert iso.load_release(shelf / name).sum(None).low >= 0


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("heaped", no_thresholds_measured_last, "an error is not that of the noise"),
        ("heaped", part_of_a_gap, "do not fill gaps"),
        ("strata", thresholds_of_no_stratum, "not those that are described"),
        ("strata", reversed_distribution, "of the whole table"),
        ("strata", other_method, "of the whole table"),
        ("pair", reversed_distribution, "of the whole table"),
        ("strata", exchanged_values, "order of the noisy counts"),
        ("strata", two_values_that_moved, "do not have the private distribution"),
        ("pair", exchanged_pairs, "as near to the estimates"),
        ("pair", free_estimates, "of the whole table"),
        ("few", other_joint, "two columns apart"),
        ("strata", wider_interval, "an interval"),
        ("strata", moved_interval, "an interval"),
        ("few", wider_interval, "an interval"),
    ],
)
def test_what_does_not_fit_is_found_out(
    shelf: Path, tmp_path: Path, name: str, change: Any, words: str
) -> None:
    folder = Path(shutil.copytree(shelf / name, tmp_path / name))
    verdict = verify(forged(folder, change))
    assert verdict["content"].holds  # sealed anew
    assert not verdict.holds
    assert words in str(verdict["error"])


def test_classes_of_one_name_and_places_without_people_are_refused_before_the_charge(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=9)
    given: Any = {"category": "place", "categories": ["a", "b"], "upper": 4, "epsilon": 1, "ledger": ledger}
    data, twice = pd.DataFrame({"place": ["a"]}), cast(Any, {1: ["a"], "1": ["b"]})
    with pytest.raises(iso.InputError, match="the class '1' twice"):
        flat.table(data, **given, strata=twice)
    with pytest.raises(iso.InputError, match="no rate without people"):
        flat.table(data, population=[0, 5], **given)
    assert ledger.charges() == []


def thin_tail(made: Any, cumulative: Any, noisy: Any) -> tuple[Any, str]:
    """Nearly all categories on 0, and next to none on each other count."""
    share = np.full(made.upper + 1, 1e-9)
    share[0] += 1 - share.sum()
    return len(noisy) * share, "a thin tail"


@pytest.mark.parametrize(
    "given",
    [
        {"count": "a", "epsilon": 40},
        {"count": "a", "rho": 40, "strata": ["x"] * SIZE + ["y"] * SIZE},
        {"counts": ["a", "b"], "epsilon": 40},
    ],
)
def test_distributions_are_published_as_they_were_computed_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: Any
) -> None:
    """Rounded to eight places, the tail is empty, and every posterior is another one."""
    for measurement in (Thresholds, GaussianMeasurement):
        monkeypatch.setattr(measurement, "histogram", thin_tail)
    ledger = iso.Ledger(tmp_path / "a.ledger", rho=9000, final_delta="1e-6", composition="zcdp filter")
    data = pd.DataFrame({"place": NAMES, "a": [4] * len(NAMES), "b": [4] * len(NAMES)})
    common: Any = {"category": "place", "categories": NAMES, "upper": 4, "contributions": 1}
    release = flat.table(data, **common, **given, ledger=ledger, folder=tmp_path / "r")
    assert verify(tmp_path / "r").holds
    # noise takes none of the 240 counts from 4 to 1 or 0 but with a probability below 1e-20
    assert min(release.frame()["estimate"]) > 1


def test_what_was_not_computed_again_is_not_said_to_have_been(tmp_path: Path) -> None:
    """Posteriors over more counts than 1,500 are left out, and the words of the check say so."""
    data = pd.DataFrame({"c": ["x", "y"], "a": [3, 4]})
    asked: Any = {"category": "c", "categories": ["x", "y"], "count": "a", "contributions": 1, "epsilon": 1}
    ledger = iso.Ledger(tmp_path / "ledger", epsilon=9)
    for upper, left_out in ((1500, False), (1501, True)):
        flat.table(data, upper=upper, ledger=ledger, folder=tmp_path / str(upper), **asked)
        check = verify(tmp_path / str(upper))["error"]
        assert check.holds
        assert ("were not computed again" in check.words) == left_out
