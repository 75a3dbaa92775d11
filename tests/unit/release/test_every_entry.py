"""Every entry of every kind of manifest, changed and sealed again: verify refuses, or the entry is one that a steward states.

Nobody lists the entries here. They are found in releases of every sort; each is changed to other values of its type, to those that
another sort has in its place, left out, or added where another sort has it.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.effort import CLOSELY
from tests.support.small_releases import SORTS, saved

from isotone.errors import InputError
from isotone.release import verify
from isotone.release.manifest import Manifest
from isotone.release.result import Release, load_release

Place = tuple[str | int, ...]
MISSING = object()
SEALS = ("content_hash", "files")
IN_SORTS = 100 if CLOSELY else 2
"""An entry of a kind is changed in so many sorts of it."""

STATED = {
    r"stated\.title": "the steward's words",
    r"versions\..*": "which software computed it, by the steward's word",
    r"time|charge|dataset|request": "the ledger has them, and is compared where a reader has it",
    r"total(\.\*)?": "noisy numbers, as those of the column value are",
    r"description\.answers\.(element|columns|yes|no|on_conflict).*": "where an answer is and how it is read: rows alone could tell",
    r"description\.unit\.(column|name|contributions)": "one row or one column for a unit, as long as the unit of the guarantee is the same",
    r"description\.(x|y|category|count|column|date|record|time|event)(\.\*)?|description\.by\.\*\.\*": "the name of a column of the data",
    r"description\.order\.(covers|choices).*": "what implies what, where noise does not depend on it",
    r"description\.max_size": "how records were cut, where the noise covers longer ones too: rows alone could tell",
    r"description\.mechanism": "whether the mechanism was named, or left to the plan",
    r"description\.(band|confidence)": "what nothing published depends on: the usual band by its name, or no band at all",
    r"lines\.\*\.number": "a noisy number that nothing else follows from",
    r"description\.bounds\.\*": "the ends of a grid that is listed",
    r"mechanism\.relaxation.*": "how draws of one law are made faster",
    r"derived\.follows_order": "what the steward knows of the data",
    r"derived\.of|strata": "the sequence of parts that stand beside each other",
}
"""The entries that verify need not notice, some of them in some sorts only, each with the reason."""

SHOWN = [name for name in SORTS if CLOSELY or "relaxed" not in name]
"""The sorts that are looked at: the law of one takes long to verify, and differs in one entry."""

STEPS = {"sums.ones.*": 1 << 16, "sums.zeros.*": 1 << 16}
"""What is one, for whole numbers of finer parts: a record. Less moves a curve by less than computers differ."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sorts")
    return {name: saved(name, folder) for name in SHOWN}


@pytest.fixture(scope="module")
def plains(shelf: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """The manifest of each sort without its seals."""
    found = {name: json.loads((folder / "manifest.json").read_text()) for name, folder in shelf.items()}
    return {name: {key: kept for key, kept in m.items() if key not in SEALS} for name, m in found.items()}


Pool = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def pool(plains: dict[str, dict[str, Any]]) -> Pool:
    """What stands in an entry in all sorts of its kind."""
    found: Pool = defaultdict(dict)
    for plain in plains.values():
        for place, value in entries(plain):
            found[plain["kind"], pattern(place)][json.dumps(value)] = value
    return found


@pytest.fixture(scope="module")
def looked_at(plains: dict[str, dict[str, Any]]) -> dict[str, list[tuple[Place, Any]]]:
    """The entries that are changed in each sort."""
    times: Counter[tuple[str, str]] = Counter()
    found: dict[str, list[tuple[Place, Any]]] = {}
    for name, plain in plains.items():
        new = {(plain["kind"], pattern(place)) for place, _ in entries(plain)}
        times.update(new)
        few = {key for key in new if times[key] <= IN_SORTS}
        found[name] = [pair for pair in entries(plain) if (plain["kind"], pattern(pair[0])) in few]
    return found


def entries(plain: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every entry and every part of one. Of long lists the first and the last."""
    yield place, plain
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from entries(value, (*place, key))
    elif isinstance(plain, list):
        for at in range(len(plain)) if len(plain) <= 3 else (0, len(plain) - 1):
            yield from entries(plain[at], (*place, at))


def pattern(place: Place) -> str:
    """The name of an entry, whatever its places in lists are."""
    return ".".join("*" if isinstance(part, int) else part for part in place)


def others(value: Any, step: int = 1) -> list[Any]:
    """Other values of the same type, as near as they come."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + step, *([value - step] if value < 0 or value >= step else [])]
    if isinstance(value, float):
        return [value / 2 + 0.001]
    if isinstance(value, str):
        number = re.fullmatch(r"\d+(/\d+)?", value)
        return [value + "1", "1/3"] if number else [value + "x"]
    return [value[:-1], [*value, *value[-1:]], value[::-1]] if isinstance(value, list) else []


def changes(plain: dict[str, Any], place: Place, value: Any, pool: Pool) -> Iterator[tuple[Place, Any]]:
    """Other values for an entry and the parts it lacks, each with its place."""
    kind, name = plain["kind"], pattern(place)
    if place:
        yield place, MISSING
        yield from ((place, to) for to in others(value, STEPS.get(name, 1)))
    if not isinstance(value, dict):
        yield from (
            (place, to) for to in itertools.islice(pool[kind, name].values(), 4) if not _near(to, value)
        )
        return
    start = f"{name}." if name else ""
    for (its_kind, other), values in pool.items():
        part = other.removeprefix(start)
        if (
            its_kind == kind
            and other.startswith(start)
            and part not in value
            and part
            and not set(part) & set(".*")
        ):
            yield from (((*place, part), to) for to in itertools.islice(values.values(), 2))


def _near(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and abs(one - other) < 1e-6


def changed(plain: dict[str, Any], place: Place, to: Any) -> dict[str, Any]:
    """A copy with another entry."""
    found = copy.deepcopy(plain)
    inner: Any = found
    for part in place[:-1]:
        inner = inner[part]
    if to is MISSING:
        del inner[place[-1]]
    else:
        inner[place[-1]] = copy.deepcopy(to)
    return found


def holds(plain: dict[str, Any], columns: Any, folder: Path) -> bool:
    """Whether verify takes these entries, sealed with these columns, for a release."""
    try:
        forged = Release(columns, Manifest.from_plain(plain).sealed(columns))
        forged.save(folder, report=False)
    except (InputError, KeyError, TypeError, ValueError, AttributeError):
        return False  # it cannot even be written
    try:
        return verify(folder).holds
    except InputError:
        return False  # it cannot be read


@pytest.mark.parametrize("name", SHOWN)
def test_a_changed_entry_that_was_sealed_again_is_refused(shelf, plains, pool, looked_at, tmp_path, name):
    plain, columns = plains[name], load_release(shelf[name]).columns
    assert holds(plain, columns, tmp_path / "same"), str(verify(shelf[name]))
    taken: list[str] = []
    tried = 0
    for place, value in looked_at[name]:
        for where, to in changes(plain, place, value, pool):
            forged = changed(plain, where, to)
            if forged == plain:
                continue
            tried += 1
            if holds(forged, columns, tmp_path / "forged"):
                taken.append(f"{pattern(where)} = {'left out' if to is MISSING else json.dumps(to)[:80]}")
    unknown = [
        line for line in taken if not any(re.fullmatch(stated, line.partition(" = ")[0]) for stated in STATED)
    ]
    assert unknown == []
    assert len(taken) < tried or not tried
