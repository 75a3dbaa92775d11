"""The least sideways movement of lines: the own simplex against a linear program."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

from isotone.order import Poset
from isotone.order.layout import Diagram, arrange, least_movement


def random_diagram(seed: int) -> Diagram:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 18))
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size) if rng.random() < 0.25]
    return max(arrange(Poset(range(size), pairs)), key=lambda part: len(part.elements))


@pytest.mark.parametrize("seed", range(40))
def test_the_movement_is_that_of_the_linear_program(seed: int) -> None:
    diagram, rng = random_diagram(seed), np.random.default_rng(seed)
    points = sum(len(row) for row in diagram.levels)
    lines = np.array(diagram.segments, np.int64).reshape(-1, 2)
    pairs = np.array([pair for row in diagram.levels for pair in pairwise(row)], np.int64).reshape(-1, 2)
    weights, distances = rng.integers(1, 9, len(lines)).astype(float), rng.uniform(0.5, 3, len(pairs))
    found = least_movement(lines, weights, pairs, distances, points)
    assert np.all(found[pairs[:, 1]] - found[pairs[:, 0]] >= distances - 1e-9)
    moved = float(weights @ np.abs(found[lines[:, 0]] - found[lines[:, 1]]))
    rows, bound = [], []
    for k, (a, b) in enumerate(lines.tolist()):
        for sign in (1.0, -1.0):
            row = np.zeros(points + len(lines))
            row[a], row[b], row[points + k] = sign, -sign, -1.0
            rows.append(row)
            bound.append(0.0)
    for (a, b), distance in zip(pairs.tolist(), distances.tolist(), strict=True):
        row = np.zeros(points + len(lines))
        row[a], row[b] = 1.0, -1.0
        rows.append(row)
        bound.append(-distance)
    if not rows:
        return
    best = linprog(np.concatenate((np.zeros(points), weights)), A_ub=np.array(rows), b_ub=bound).fun
    assert moved == pytest.approx(best, abs=1e-6)
