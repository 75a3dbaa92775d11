"""Descriptions of orders: what is read, and what is refused with the value, the reason and the repair."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from isotone.errors import OrderError
from isotone.order import building as description
from isotone.order.building import find, read_elements, read_mapping, read_matrix, read_relations

INDEX: dict[Hashable, int] = {"hyp": 0, "twice": 1, ("a", 1): 2}


def test_elements_have_positions_in_the_sequence_given():
    assert read_elements(["b", "a", 3]) == {"b": 0, "a": 1, 3: 2}
    assert read_elements(iter("ab")) == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ([], "at least one element"),
        (["a", "b", "a"], r"'a' is given twice \(positions 0 and 2\)"),
        ([1, True], r"True is given twice \(positions 0 and 1\)"),
        ([["a"]], "not hashable"),
    ],
)
def test_elements_that_cannot_be_names_are_refused(elements: Any, reason: str):
    with pytest.raises(OrderError, match=reason):
        read_elements(elements)


def test_a_name_is_found_or_the_nearest_is_proposed():
    assert find(INDEX, ("a", 1)) == 2
    with pytest.raises(OrderError, match=r"'hip' is not an element of this order\. Did you mean 'hyp'"):
        find(INDEX, "hip")
    with pytest.raises(OrderError, match=r"'zzz' is not an element of this order\. Correct"):
        find(INDEX, "zzz")
    with pytest.raises(OrderError, match="not hashable"):
        find(INDEX, [])


def test_relations_are_said_once_and_never_of_a_name_with_itself():
    pairs = [("twice", "hyp"), ["twice", "hyp"], ("hyp", "hyp"), (("a", 1), "hyp")]
    assert read_relations(pairs, INDEX).tolist() == [[1, 0], [2, 0]]
    none = read_relations([], INDEX)
    assert none.shape == (0, 2)
    assert none.dtype == np.int64


@pytest.mark.parametrize(
    "relation",
    ["ab", b"ab", {"hyp", "twice"}, {"hyp": 1, "twice": 2}, ("hyp",), ("hyp", "twice", 1), 7, None],
)
def test_what_is_no_pair_is_refused(relation: Any):
    with pytest.raises(OrderError, match="must be a pair"):
        read_relations([relation], INDEX)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[1, 0]], r"square.*\(1, 2\)"),
        (np.zeros((0, 0)), "at least one element"),
        ([[1, 2], [0, 1]], "only 0 and 1"),
        ([[1, float("nan")], [0, 1]], "only 0 and 1"),
        ([["1", "0"], ["0", "1"]], "only 0 and 1"),
    ],
)
def test_matrices_that_describe_nothing_are_refused(matrix: Any, reason: str):
    with pytest.raises(OrderError, match=reason):
        read_matrix(matrix)


def test_matrices_of_any_numbers_are_booleans():
    for kind in (bool, np.int8, np.uint64, np.float32):
        assert read_matrix(np.eye(2, dtype=kind)).tolist() == [[True, False], [False, True]]


def test_a_gap_in_the_diagonal_or_two_elements_below_each_other_are_named():
    check = description.check_reflexive_antisymmetric
    check(np.array([[True, True], [False, True]]), "ab")
    with pytest.raises(OrderError, match="'b' is not related to itself"):
        check(np.array([[True, False], [False, False]]), "ab")
    with pytest.raises(OrderError, match="'a' ≤ 'c' and 'c' ≤ 'a'"):
        check(np.eye(3, dtype=bool) | np.eye(3, k=2, dtype=bool) | np.eye(3, k=-2, dtype=bool), "abc")


def test_a_missing_entry_is_shown_with_the_two_that_call_for_it():
    given = np.eye(4, dtype=bool) | np.eye(4, k=1, dtype=bool)
    error = description.not_transitive(given, np.triu(np.ones((4, 4), dtype=bool)), "abcd")
    assert "'a' ≤ 'b' ≤ 'c', but 'a' ≤ 'c' is missing" in str(error)
    with pytest.raises(AssertionError):
        description.not_transitive(np.eye(2, dtype=bool), np.eye(2, dtype=bool), "ab")


def test_parents_may_be_one_several_or_none_and_need_not_be_keys():
    elements, relations = read_mapping({"c": ["a", "b"], "d": "c", "e": None})
    assert elements == ["c", "d", "e", "a", "b"]
    assert relations == [("c", "a"), ("c", "b"), ("d", "c")]


@pytest.mark.parametrize(
    ("parents", "reason"), [({"a": ("b", "c")}, "Pass a list"), ({"a": [{}]}, "not hashable")]
)
def test_parents_that_are_no_names_are_refused(parents: Any, reason: str):
    with pytest.raises(OrderError, match=reason):
        read_mapping(parents)


def test_a_long_cycle_is_shortened_in_the_middle():
    assert "'a' ≤ 'b' ≤ 'a'. In an order" in str(description.cycle_error("ab"))
    text = str(description.cycle_error(range(100)))
    assert "5 ≤ … 89 more … ≤ 95 ≤ 96 ≤ 97 ≤ 98 ≤ 99 ≤ 0." in text


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([("a", "b")], "made of a mapping .* not of a list"),
        ({"a": ["b", "a"]}, "'a' cannot be its own parent"),
    ],
)
def test_what_is_no_mapping_to_other_names_is_refused(parents, message):
    with pytest.raises(OrderError, match=message):
        read_mapping(parents)
