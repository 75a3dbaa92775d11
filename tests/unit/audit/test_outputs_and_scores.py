"""What an audit makes of outputs of any kind, and the scores that it learns from them."""

import numpy as np
import pytest

from isotone.audit.black_box import Sides, draw_both, learn_scores
from isotone.errors import InputError


def both(first, second):
    """The two sides as an audit sees them, from given outputs."""
    outputs = {0: first, 1: second}
    return draw_both(lambda side, size: outputs[side], 0, 1, len(first), True, lambda done: None)


def test_numbers_and_vectors_are_rows():
    sides = both([1, 2, 3], [4, 5, 6])
    assert sides.first.tolist() == [[1.0], [2.0], [3.0]]
    assert sides.second.tolist() == [[4.0], [5.0], [6.0]]
    assert both([[1, 2], [3, 4]], [[5, 6], [7, 8]]).second.tolist() == [[5.0, 6.0], [7.0, 8.0]]


def test_whole_numbers_that_floats_cannot_tell_apart_are_shifted_and_not_rounded():
    first, second = [2**60, 2**60 + 1], [2**60 + 3, 2**60 + 1]
    sides = both(first, second)
    assert sides.first.ravel().tolist() == [0.0, 1.0]
    assert sides.second.ravel().tolist() == [3.0, 1.0]
    huge = both([10**30, 10**30 + 1], [10**30 + 2, 10**30])
    assert huge.second.ravel().tolist() == [2.0, 0.0]


def test_labels_have_one_code_on_both_sides():
    sides = both(["a", "b", "a"], ["b", "b", ("c", 1)])
    assert sides.labels
    a, b = sides.first.ravel()[0], sides.first.ravel()[1]
    assert sides.first.ravel().tolist() == [a, b, a]
    assert sides.second.ravel()[:2].tolist() == [b, b]
    assert len({a, b, sides.second.ravel()[2]}) == 3


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([[1, 2], [3, 4]], [[1], [2]], "different lengths"),
        ([[1, 2], [3]], [[1, 2], [3, 4]], "different lengths"),
        ([{"a": 1}], [{"a": 1}], "not dict"),
    ],
)
def test_outputs_that_cannot_be_compared_are_refused(first, second, message):
    with pytest.raises(InputError, match=message):
        both(first, second)


def test_a_mechanism_that_gives_too_few_outputs_at_once_is_refused():
    with pytest.raises(InputError, match="gave 2"):
        draw_both(lambda side, size: [1, 2], 0, 1, 3, True, lambda done: None)


CASES = {
    "a logistic score": lambda rng, shift: rng.normal(shift, 1.0, (2_000, 2)),
    "the ratio of counts, coordinate by coordinate": lambda rng, shift: rng.normal(0, 1 + shift, (2_000, 6)),
    "the ratio of cell counts": lambda rng, shift: rng.normal(shift, 1.0, (2_000, 1)),
    "signs and order of the coordinates": lambda rng, shift: np.sort(rng.normal(0, 1, (2_000, 2)))[
        :, :: -1 if shift else 1
    ],
    "the lowest binary digit": lambda rng, shift: np.where(
        shift, np.rint(rng.normal(0, 9, (2_000, 1))), rng.normal(0, 9, (2_000, 1))
    ),
    "the finest binary place": lambda rng, shift: (
        np.rint(rng.normal(0, 9, (2_000, 1))) * (0.5 if shift else 1.0)
    ),
    "numbers that are not finite": lambda rng, shift: np.where(
        rng.random((2_000, 1)) < 0.3 * shift, np.nan, rng.normal(0, 1, (2_000, 1))
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_score_tells_the_sides_apart_that_it_is_made_for(name):
    """On fresh draws its mean differs by more than ten standard errors; on draws of one side it does not."""
    rng = np.random.default_rng(3)
    scores = {score.name: score for score in learn_scores(Sides(CASES[name](rng, 0), CASES[name](rng, 1)))}
    one, other, again = (scores[name](CASES[name](rng, shift)) for shift in (0, 1, 0))
    error = np.sqrt((one.var() + other.var()) / 2_000) + 1e-12
    assert abs(one.mean() - other.mean()) > 10 * error
    assert abs(one.mean() - again.mean()) < 6 * error


def test_a_cell_that_was_never_seen_tells_nothing():
    sides = Sides(np.array([[0.0], [0.0], [1.0]]), np.array([[1.0], [1.0], [0.0]]), labels=True)
    (score,) = learn_scores(sides)
    assert score(np.array([[0.0], [1.0], [7.0]])).tolist() == pytest.approx(
        [np.log(2.5 / 1.5), -np.log(2.5 / 1.5), 0]
    )
