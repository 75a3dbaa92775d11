"""Outlines and orders are two writings of one thing."""

from __future__ import annotations

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.desk.outline import can_be_written, read_outline, write_outline
from isotone.desk.toml import toml_text
from isotone.order import Poset


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
    }
    for text, wanted in lines.items():
        assert tuple(problem.line for problem in read_outline(text).problems) == wanted, text


def test_what_an_outline_cannot_hold_is_not_written():
    assert can_be_written(Poset(["a b", "c"], []))
    for name in ("a<b", "a,b", " a", "", "a\nb", 1):
        assert not can_be_written(Poset([name, "c"], []))
    assert not can_be_written(Poset.from_mapping({"x": "p", "y": "p"}, children="exclusive"))


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
