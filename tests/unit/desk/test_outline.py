"""Outlines and orders are two writings of one thing."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.desk.outline import can_be_written, read_outline, write_outline
from isotone.forms.questionnaire import toml_text
from isotone.order import Poset
from isotone.release.kinds.counts.section import OrderSection


@st.composite
def orders(draw):
    size = draw(st.integers(1, 7))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
        lambda pair: pair[0] > pair[1]
    )
    names = draw(st.permutations([f"q {i}" for i in range(size)]))
    return Poset(names, [(names[a], names[b]) for a, b in draw(st.lists(pairs, max_size=9))])


@settings(max_examples=60)
@given(orders())
def test_an_order_survives_its_outline(P):
    found = read_outline(write_outline(P))
    assert found.problems == ()
    assert found.order() == P


@st.composite
def forests_with_choices(draw):
    """A forest, where the children of each are in some groups: none, exclusive or partitions."""
    size = draw(st.integers(1, 9))
    parent = [draw(st.integers(-1, i - 1)) for i in range(size)]
    group = [draw(st.integers(0, 2)) for _ in range(size)]
    kinds = draw(st.lists(st.sampled_from(["exclusive", "partition"]), min_size=2, max_size=2))
    options: dict[tuple[int, int], list[str]] = {}
    for i in range(size):
        if group[i]:
            options.setdefault((parent[i], group[i]), []).append(f"q{i}")
    choices = [("exclusive" if p < 0 else kinds[g - 1], names) for (p, g), names in options.items()]
    return Poset(
        [f"q{i}" for i in range(size)], [(f"q{i}", f"q{p}") for i, p in enumerate(parent) if p >= 0], choices
    )


@settings(max_examples=60)
@given(forests_with_choices())
def test_choices_survive_their_outline(P):
    found = read_outline(write_outline(P))
    assert found.problems == ()
    assert found.order() == P
    spec = {"elements": [*found.elements], "relations": [*found.relations], "children": found.children}
    assert OrderSection.model_validate(spec).order(Path) == P


def test_options_are_marked():
    found = read_outline("diet\n  - meat\n  - fish\n  -- hot < oven\n  -- cold < oven\noven\n")
    assert found.problems == ()
    assert found.children == {"diet": [("exclusive", ["meat", "fish"]), ("exclusive", ["hot", "cold"])]}
    assert read_outline("c\n = a\n = b\n").order() == Poset(
        "cab", [("a", "c"), ("b", "c")], [("partition", ["a", "b"])]
    )


def test_problems_stand_in_their_lines():
    lines = {
        "a\n  b\n b2\n": (),
        "  a\nb": (1,),
        "a\na": (2,),
        "a\n  b < c": (2,),
        "< a\na": (1,),
        "a < a": (1,),
        "": (0,),
        "a < b\nb < a": (0,),
        "a\n  b < a": (),
        "= a\n= b": (0,),
    }
    for text, wanted in lines.items():
        assert tuple(problem.line for problem in read_outline(text).problems) == wanted, text


def test_what_an_outline_cannot_hold_is_not_written():
    assert can_be_written(Poset(["a b", "c"], []))
    for name in ("a<b", "a,b", " a", "", "a\nb", 1):
        assert not can_be_written(Poset([name, "c"], []))
    for name in ("- a", "== a"):
        assert not can_be_written(Poset([name, "c"], []))
    assert can_be_written(Poset(["-a", "=", "c"], []))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_entries_survive_as_toml(entries):
    assert tomllib.loads(toml_text(entries)) == entries
