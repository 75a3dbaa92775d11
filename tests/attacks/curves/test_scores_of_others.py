"""No row changes the score of another: rows are scored alone, at the middle between two points of the grid too."""
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from isotone.curves.calibration.frozen import FrozenScores
from isotone.curves.problem import Grid, make_grid

WEIGHTS = np.array([0.5, 0.7, 0.9, 0.1, 0.2, 0.8, 0.9, 0.3, 0.3, 0.8, 0.4, 0.3, 0.8])
ROW = np.array([0.0, 0, 3, 0, 3, 0, 2, 3, 0, 0, 1, 1, 1])


class Points:
    """Scores in points, as of a questionnaire, whose sums lie at the middle of two points of a grid."""

    def __init__(self, weights: Any) -> None:
        self.model = LogisticRegression()
        self.model.classes_, self.model.coef_ = np.array([0, 1]), weights[None, :]
        self.model.intercept_, self.model.n_features_in_ = np.zeros(1), len(weights)
        self.classes_, self.n_features_in_ = self.model.classes_, len(weights)

    def decision_function(self, X: Any) -> Any:
        return self.model.decision_function(X)


def grid_of(weights: Any) -> Grid:
    most = int(weights.sum() * 3) + 1
    return make_grid((Fraction(0), Fraction(most)), most + 1, 4096)


def points(model: Any, X: Any) -> list[int]:
    return grid_of(WEIGHTS).snap(np.nan_to_num(FrozenScores(model).of_private(X), nan=-1.0)).tolist()


def test_equal_rows_have_one_score_however_many_there_are() -> None:
    found = {
        point
        for n in (1, 2, 3, 4, 5, 7, 8, 17, 101, 500)
        for point in points(Points(WEIGHTS), np.tile(ROW, (n, 1)))
    }
    assert len(found) == 1


@pytest.mark.parametrize("odd", [[np.nan] * 13, [np.inf] * 13, [None] * 13, ["x"] * 13, [1], [1e300] * 13])
def test_a_row_that_is_odd_changes_no_other_score(odd: Any) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (200, 13)).astype(float)
    rows[:100] = ROW
    alone = points(Points(WEIGHTS), rows)
    assert points(Points(WEIGHTS), [odd, *rows.tolist(), odd])[1:-1] == alone
    assert alone == [points(Points(WEIGHTS), row[None])[0] for row in rows]


def test_a_batch_would_tell_them_apart() -> None:
    """What this attack sees if rows are scored together, which is why they are not."""
    model, grid = Points(WEIGHTS), grid_of(WEIGHTS)
    seen = {
        int(point) for n in range(1, 40) for point in grid.snap(model.decision_function(np.tile(ROW, (n, 1))))
    }
    if len(seen) == 1:
        pytest.skip("the linear algebra of this machine adds in one way")
    assert len(seen) == 2
