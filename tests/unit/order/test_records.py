"""Filters: which records are closed, and closing them."""

from itertools import product

import numpy as np
import pytest
from tests.support.posets import all_posets

from isotone.errors import InputError
from isotone.order import Poset

SMALL = [P for n in range(1, 6) for P in all_posets(n)]
SURVEY = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])


@pytest.mark.parametrize("P", SMALL, ids=repr)
def test_filters_and_closures_by_brute_force(P):
    n = len(P)
    leq = P.leq_matrix()
    every = np.array(list(product((0, 1), repeat=n)))
    closed = [all(row[b] for a in range(n) if row[a] for b in range(n) if leq[a, b]) for row in every]
    assert P.are_filters(every).tolist() == closed
    filters = every[closed]
    for row, result in zip(every, P.close_all(every), strict=True):
        containing = filters[(filters >= row).all(axis=1)]
        assert np.array_equal(result, containing.all(axis=0))
    names = np.array(P.elements)
    for row, is_closed in zip(every.tolist(), closed, strict=True):
        yes = set(names[np.flatnonzero(row)].tolist())
        assert P.is_filter(row) == P.is_filter(yes) == P.is_filter(dict(enumerate(row))) == is_closed


def test_a_record_is_closed_in_its_own_form():
    assert SURVEY.close({"twice": True}) == {"hyp": True, "twice": True, "meds": False}
    assert SURVEY.close({"hyp": 0, "twice": 0, "meds": 1}) == {"hyp": True, "twice": False, "meds": True}
    assert SURVEY.close({"meds"}) == frozenset({"meds", "hyp"})
    assert SURVEY.close(frozenset()) == frozenset()
    assert SURVEY.close([0, 1, 0]).tolist() == [True, True, False]
    assert SURVEY.close(np.array([False, False, True])).tolist() == [True, False, True]


def test_closing_leaves_what_was_given_as_it_was():
    record = np.array([0, 1, 0])
    matrix = np.array([[False, True, False]])
    SURVEY.close(record)
    SURVEY.close_all(matrix)
    assert record.tolist() == [0, 1, 0]
    assert matrix.tolist() == [[False, True, False]]


def test_records_may_lie_in_memory_in_any_way():
    matrix = np.asfortranarray(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]))
    assert SURVEY.are_filters(matrix).tolist() == [False, True, False, True]
    assert SURVEY.close_all(matrix[::2]).tolist() == [[True, True, False], [True, False, True]]
    assert SURVEY.close_all(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    "record",
    [
        {"secret": 1},
        {"secret"},
        {"hyp": 7},
        {"hyp": "secret"},
        [0, 1],
        [0, 1, 7],
        [0.5, 0, 0],
        ["secret"] * 3,
        [None] * 3,
    ],
)
def test_a_record_that_does_not_fit_is_refused_without_quoting_it(record):
    for ask in (SURVEY.is_filter, SURVEY.close):
        with pytest.raises(InputError) as caught:
            ask(record)
        assert "secret" not in str(caught.value)
        assert "7" not in str(caught.value)


@pytest.mark.parametrize(
    "matrix", [[0, 1, 0], [[0, 1]], [[0, 1, 7]], [[0.5, 0, 0]], [["a", "b", "c"]], [[np.nan, 0, 0]]]
)
def test_a_matrix_that_does_not_fit_is_refused(matrix):
    for ask in (SURVEY.are_filters, SURVEY.close_all):
        with pytest.raises(InputError, match=r"0 or 1|one column per element"):
            ask(matrix)
