"""Records that were counted where the data are: bounded as the noise asks, and fitted as they were."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from isotone.curves import PrivateIsotonicRegression
from isotone.curves.cuts import fit_counted, point_source
from isotone.curves.problem import FINE


def test_a_unit_counts_as_often_as_the_noise_is_for() -> None:
    model = PrivateIsotonicRegression(1, (0, 10), y_values=(0, 1), x_grid=11, contributions=3)
    source = point_source(None, "x", "y", model.check(), "who")
    assert (source.unit, source.contributions) == ("who", 3)
    assert (source.bounds, source.y_range) == ((0, 10), (0, 1))
    assert (source.x_steps, source.y_steps, source.labels) == (10, FINE, True)


def test_counted_records_are_units_of_their_own_and_keep_the_ends_of_y() -> None:
    fitted: Any = SimpleNamespace(fit=lambda x, y, groups: (x, y, groups))
    ends = Fraction(2, 10), Fraction(9, 10)  # as floats, 0.2 + (0.9 - 0.2) is not 0.9
    levels, count = np.array([0, FINE, FINE // 2]), np.array([2, 1, 0])
    x, y, groups = fit_counted(fitted, np.array([5.0, 7.0, 8.0]), levels, count, ends)
    assert (x.tolist(), y.tolist()) == ([5.0, 5.0, 7.0], [0.2, 0.2, 0.9])
    assert len(set(groups.tolist())) == 3
