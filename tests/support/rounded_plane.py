"""The law of rounded noise on orders with two elements, by quadrature on triangles where the density is smooth."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from isotone.counts import PosetMechanism

__all__ = ["rounded_law"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def rounded_law(m: PosetMechanism, reach: int) -> dict[tuple[int, int], float]:
    """The probability of each pair of integers within ``reach`` of zero, to about 1e-14.

    The norm has its kinks on the axes and diagonals, so each unit square is cut in eight triangles around its
    middle, on each of which the density is the exponential of a linear function.
    """
    corners = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0)]) / 2
    u, v = (_NODES[:, None] + 1) / 2, (_NODES[None, :] + 1) / 2
    weights = _WEIGHTS[:, None] * _WEIGHTS[None, :] / 4 * u  # Duffy: (u, v) -> u·(1 - v, v) in the triangle
    sides = range(-reach, reach + 1)
    cells = np.array(list(product(sides, sides)), dtype=float)
    total = np.zeros(len(cells))
    for one, other in pairwise(corners):
        points = (u * (1 - v))[..., None] * one + (u * v)[..., None] * other
        density = np.exp(m.log_density(cells[:, None, None, :] + points))
        total += abs(one[0] * other[1] - one[1] * other[0]) * np.sum(weights * density, axis=(1, 2))
    return dict(zip(product(sides, sides), total.tolist(), strict=True))
