"""Exclusive options: what may be declared, and the order that they are recoded as."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.support.andxor import all_forests, records_of
from tests.support.filters import filters
from tests.support.posets import all_orders

from isotone.errors import OrderError
from isotone.order import Poset
from isotone.order.closure import Choice, codings, read_children

FORESTS = [P for n in range(1, 7) for P in all_forests(n) if P.choices]
QUESTION = {"yes": None, "red": "yes", "blue": "yes", "dark": "blue", "pale": "blue"}


def test_the_records_of_every_small_tree_become_the_filters_of_its_code() -> None:
    assert len(FORESTS) > 2000
    for P in FORESTS:
        records = np.array(records_of(P))
        totals = P.coding.encode(records)
        assert {tuple(row) for row in totals.tolist()} == {tuple(f.tolist()) for f in filters(P.coding.order)}
        assert np.array_equal(P.coding.decode(totals), records)


def test_modules_of_general_orders_may_exclude_each_other() -> None:
    tried = refused = 0
    for n in (3, 4, 5):
        for order in all_orders(n):
            plain = Poset(range(n), sorted(order))
            for i in range(n):
                for j in range(i):
                    try:
                        P = Poset(range(n), plain.covers, [("exclusive", [i, j])])
                    except OrderError:
                        refused += 1
                        continue
                    tried += 1
                    totals = P.coding.encode(np.array(records_of(P)))
                    assert {tuple(row) for row in totals.tolist()} == {
                        tuple(f.tolist()) for f in filters(P.coding.order)
                    }
    assert tried > 80
    assert refused > 100


def test_each_element_is_its_own_running_total_in_one_of_the_codings() -> None:
    for P in [P for P in FORESTS if len(P) <= 5]:
        seen: set[Any] = set()
        for coding in codings(P):
            own = [x for x, before in zip(P.elements, coding.before.tolist(), strict=True) if before < 0]
            records = np.array(records_of(P))
            assert np.array_equal(coding.decode(coding.encode(records)), records)
            assert set(own) - seen
            seen |= set(own)
        assert seen == set(P.elements)


def test_the_code_does_not_depend_on_how_the_order_was_described() -> None:
    P = Poset.from_mapping(QUESTION, children="exclusive")
    other = Poset(reversed(P.elements), P.covers, reversed(P.choices))
    assert other == P
    assert hash(other) == hash(P)
    assert other.coding.order == P.coding.order
    assert other.choices[0].options == tuple(reversed(P.choices[-1].options))


def test_a_partition_means_one_root_for_a_record_too() -> None:
    P = Poset.from_mapping({"111": "11", "112": "11", "21": None}, children="partition")
    assert P.choices == (Choice("partition", ("111", "112")), Choice("exclusive", ("21", "11")))
    assert Poset.from_mapping({"a": "q", "b": "q", "c": "r"}, children="exclusive").choices == (
        Choice("exclusive", ("a", "b")),
    )


def test_groups_below_one_element_combine_freely() -> None:
    children: Any = {"q": [("exclusive", ["a", "b"]), ("partition", ["c", "d"])]}
    P = Poset.from_mapping({"a": "q", "b": "q", "c": "q", "d": "q", "e": "q"}, children=children)
    assert [choice.kind for choice in P.choices] == ["exclusive", "partition"]
    assert len(records_of(P)) == 1 + 3 * 2 * 2


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ([("exclusive", ["a", "b"]), ("exclusive", ["b", "c"])], "two choices"),
        ([("partition", ["r", "s"])], "nothing is above"),
        ([("exclusive", ["a", "r"])], "not the same elements"),
        ([("exclusive", ["a", "nobody"])], "not an element"),
        ([("exclusive", ["a", "a"])], "twice"),
        ([("sometimes", ["a", "b"])], "'any', 'exclusive' or 'partition'"),
        (["exclusive"], "pair"),
        ([("exclusive", "ab")], "pair"),
        ([("exclusive", [])], "at least one option"),
    ],
)
def test_what_cannot_be_recoded_is_refused_with_the_reason(choices: Any, reason: str) -> None:
    with pytest.raises(OrderError, match=reason):
        Poset("abcrs", [("a", "r"), ("b", "r"), ("c", "r")], choices)


def test_an_option_with_a_way_around_it_is_refused() -> None:
    with pytest.raises(OrderError, match=r"'x' below it also implies 'c'"):
        Poset(
            "abcxt", [("a", "t"), ("b", "t"), ("c", "t"), ("x", "a"), ("x", "c")], [("exclusive", ["a", "b"])]
        )
    with pytest.raises(OrderError, match="several elements"):
        Poset("abst", [(x, y) for x in "ab" for y in "st"], [("partition", ["a", "b"])])


@pytest.mark.parametrize(
    ("children", "reason"),
    [
        ({"nobody": "exclusive"}, "not an element"),
        ({"red": "exclusive"}, "no children"),
        ({None: "partition"}, "needs a parent"),
        ({"yes": 3}, "a kind, or a list"),
        ({"yes": [("exclusive", ["red", "dark"])]}, "not a child"),
        ("some", "'any', 'exclusive' or 'partition'"),
        (1, "'any', 'exclusive' or 'partition'"),
    ],
)
def test_children_that_mean_nothing_are_refused(children: Any, reason: str) -> None:
    with pytest.raises(OrderError, match=reason):
        Poset.from_mapping(QUESTION, children=children)


def test_choices_survive_what_an_order_goes_through() -> None:
    P = Poset.from_mapping(QUESTION, children="exclusive")
    assert pickle.loads(pickle.dumps(P)) == P
    assert P.canonical.order == P
    assert P.rename({"red": "rot"}).choices[0].options == ("rot", "blue")
    assert "exclusive" in repr(P)
    assert P.forget_choices() != P
    assert P.forget_choices().choices == ()
    other = P.rename(lambda x: f"{x}2")
    assert len(Poset.disjoint_union(P, other).choices) == 4
    assert Poset.series(P, other).choices == P.induced(P.elements).choices == P.dual().choices == ()


def test_relations_that_repeat_say_no_more_about_children() -> None:
    relations = [("a", "top"), ("b", "top"), ("a", "top"), ("top", "top")]
    assert read_children("exclusive", ["a", "b", "top"], relations) == [("exclusive", ["a", "b"])]
    assert (
        Poset(["a", "b", "top"], relations, read_children("any", ["a", "b", "top"], relations)).choices == ()
    )
