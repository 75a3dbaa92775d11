"""Options that exclude each other: every engine gives a record the one that plain Python gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support.andxor import all_forests, records_of
from tests.support.backends import Backend, every_backend

from isotone.errors import InputError
from isotone.order import Poset
from isotone.order.building import is_hierarchy
from isotone.reading import records
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records

FORESTS = [P.rename(lambda x: f"e{x}") for n in (3, 4) for P in all_forests(n) if P.choices]
CODES = Poset.from_mapping(
    {"111": "11", "112": "11", "11": None, "21": None, "211": "21", "2111": "211", "2112": "211"},
    children="partition",
)
ROWS = pd.DataFrame(
    {
        "id": [1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 7, 8],
        "code": ["112", "111", "2112", "21", "112", "211", "nobody", "2112", "2111", "211", "111", None],
    }
)


def by_hand(P: Poset, record: dict[Any, bool], rule: str) -> dict[Any, bool] | None:
    """The record with one option of each choice, or None if it is left out."""
    parent = dict(P.covers)
    closed = P.close(record)
    allowed = tuple(int(closed[x]) for x in P.elements) in set(records_of(P))
    if rule == "drop":
        return closed if allowed else None
    changed = True
    while changed:
        changed = False
        for choice in P.choices:
            top = parent.get(choice.options[0])
            if choice.kind == "partition" and closed[top] and not any(closed[x] for x in choice.options):
                changed = True
                closed |= dict.fromkeys(P.down_set(top), False)
    for choice in P.choices:
        kept = next((x for x in choice.options if closed[x]), None)
        for option in choice.options:
            if option != kept:
                closed |= dict.fromkeys(P.down_set(option), False)
    return closed


def counted(data: Any, P: Poset, element: str | None = None, **rules: Any) -> list[int]:
    declared, source = RecordRules(**rules), RecordSource(data, element)
    counts, records = count_records(source, source.open(P, declared, None), P, declared)
    return [*counts[0].tolist(), int(records[0])]


@pytest.mark.parametrize("rule", ["first", "drop"])
def test_every_record_of_small_trees_is_given_what_plain_python_gives_it(rule: Any) -> None:
    for P in FORESTS[::5]:
        n = len(P)
        rows = [[bool(k >> i & 1) for i in range(n)] for k in range(2**n)]
        kept = [by_hand(P, dict(zip(P.elements, row, strict=True)), rule) for row in rows]
        possible = set(records_of(P))
        assert all(tuple(int(record[x]) for x in P.elements) in possible for record in kept if record)
        expected = [sum(record[x] for record in kept if record) for x in P.elements]
        number = sum(record is not None for record in kept)
        found = counted(pd.DataFrame(rows, columns=[*map(str, P.elements)]), P, on_conflict=rule)
        assert found == [*expected, number], P


@every_backend
def test_all_engines_agree(backend: Backend, tmp_path: Path) -> None:
    data = backend(ROWS, tmp_path)
    # unit 1 keeps 111, 3 its only whole code, 4 has none, 6 keeps 2111, 7 keeps 111
    expected = {"111": 2, "112": 1, "11": 3, "21": 2, "211": 2, "2111": 1, "2112": 1}
    assert counted(data, CODES, "code", unit="id") == [*(expected[str(x)] for x in CODES.elements), 8]
    dropped = {"111": 0, "112": 0, "11": 0, "21": 1, "211": 1, "2111": 0, "2112": 1}
    assert counted(data, CODES, "code", unit="id", on_conflict="drop") == [
        *(dropped[str(x)] for x in CODES.elements),
        3,
    ]


@pytest.mark.parametrize("rule", ["first", "drop"])
def test_counting_ends_gives_what_counting_records_gives(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    hierarchies = [P for P in FORESTS if is_hierarchy(P)]
    assert len(hierarchies) > 10
    for P in [*hierarchies[::6], CODES]:
        names = [*map(str, P.elements), "nobody", None]
        rows = pd.DataFrame({"id": rng.integers(0, 25, 50), "code": rng.choice(np.array(names, object), 50)})
        rows["g"] = rng.choice(["x", "y", "z"], 50)
        source, groups = RecordSource(rows, "code"), Groups((("g", ("y", "x")),))
        rules = RecordRules("id", on_conflict=rule)
        for public in (groups,):
            found = []
            for known in (True, False):
                monkeypatch.setattr(records, "is_hierarchy", lambda _, known=known: known)
                frame = source.open(P, rules, public)
                found.append([x.tolist() for x in count_records(source, frame, P, rules, public)])
            assert found[0] == found[1], P


def test_the_rule_comes_after_the_rows_of_a_unit_are_combined() -> None:
    # row by row both options would count, and the unit would move the counts twice as far
    wide = pd.DataFrame({"id": [1, 1], "a": [1, 0], "b": [0, 1]})
    P = Poset("ab", (), [("exclusive", ["a", "b"])])
    assert counted(wide, P, unit="id") == [1, 0, 1]
    assert counted(wide, P, unit="id", on_conflict="drop") == [0, 0, 0]


def test_the_first_option_is_that_of_the_public_list() -> None:
    wide = pd.DataFrame({"a": [1], "b": [1]})
    assert counted(wide, Poset("ab", (), [("exclusive", ["b", "a"])])) == [1, 0, 1]
    assert counted(wide, Poset("ba", (), [("exclusive", ["a", "b"])])) == [1, 0, 1]


def test_who_lacks_the_one_option_of_a_partition_is_dropped() -> None:
    P = Poset("ab", [("b", "a")], [("partition", ["b"])])
    wide = pd.DataFrame({"a": [1, 1, 0], "b": [1, 0, 0]})
    assert counted(wide, P, on_conflict="drop") == [1, 1, 2]


def test_a_hundred_options_are_no_obstacle() -> None:
    names = [f"c{i}" for i in range(100)]
    P = Poset.from_mapping(dict.fromkeys(names, "all"), children="partition")
    rows = pd.DataFrame({"id": np.arange(200) // 2, "code": [names[i % 100] for i in range(200)]})
    *counts, records = counted(rows, P, "code", unit="id")
    assert records == counts[-1] == sum(counts[:-1]) == 100


def test_other_rules_are_refused() -> None:
    with pytest.raises(InputError, match="on_conflict"):
        RecordRules(on_conflict="last")  # pyright: ignore[reportArgumentType]
