"""Rounded sums of exponentials: each sum, and sums that share terms (false-alarm rate 1e-8)."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from tests.support import laws
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.effort import draws, off

from isotone import noise
from isotone.noise import exponential

SIZE = draws(4000, 0.4)


def drawn(rate: Fraction, plus: list[int], minus: list[int], size: int = SIZE):
    lengths = np.array(plus), np.array(minus)
    return np.array([noise.rounded_exponential_sums(rate, *lengths) for _ in range(size)])


@pytest.fixture(params=[None, 1], ids=["as many places as usual", "one place at first"])
def places(request, monkeypatch):
    """One binary place leaves almost every rounding open, so that digits are read on."""
    if request.param is not None:
        monkeypatch.setattr(exponential, "first_places", lambda *_: request.param)
    return request.param


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 50)])
def test_each_sum_has_its_gamma_law(rate, places):
    sums = drawn(rate, [1, 0, 12, 1], [0, 2, 0, 1])
    # short sums tell a rate off by two fifths, a sum of twelve one off by a fifth
    for column, law, low, high in (
        (sums[:, 0], lambda r: laws.rounded_gamma_cdf(r, 1), 0.35, 0.4),
        (-sums[:, 1], lambda r: laws.rounded_gamma_cdf(r, 2), 0.35, 0.4),
        (sums[:, 2], lambda r: laws.rounded_gamma_cdf(r, 12), 0.2, 0.2),
        (sums[:, 3], laws.rounded_laplace_cdf, 0.35, 0.4),
    ):
        wrong = [law(float(rate) * factor) for factor in (1 - off(low), 1 + off(high))]
        laws.assert_tells_integers(column, law(float(rate)), *wrong, cells=20)


def joint_law(rate: float, size: int) -> np.ndarray:
    """P(round(E_1) = a, round(E_1 + E_2) = b) for a, b below ``size``."""

    def mass(a: int, b: int) -> float:
        def density(x: float) -> float:
            tail = [np.exp(-rate * max(0.0, edge - x)) for edge in (b - 0.5, b + 0.5)]
            return rate * np.exp(-rate * x) * (tail[0] - tail[1])

        start, stop = max(0.0, a - 0.5), a + 0.5
        kink = [x for x in (b - 0.5, b + 0.5) if start < x < stop]
        return quad(density, start, stop, points=kink or None)[0]

    return np.array([[mass(a, b) if a <= b else 0.0 for b in range(size)] for a in range(size)])


def test_sums_that_share_a_term_have_the_joint_law(places):
    rate, size = 0.7, 8
    law = joint_law(rate, size)
    seen = np.zeros((size, size))
    for a, b in drawn(Fraction(7, 10), [1, 2], [0, 0]):
        if b < size:
            seen[a, b] += 1
    inside = seen.sum() / SIZE
    assert abs(inside - law.sum()) < 5.8 * np.sqrt(law.sum() * (1 - law.sum()) / SIZE)  # false alarm 1e-8
    assert chi_square_p(seen, law / law.sum()) > FALSE_ALARM
    independent = np.outer(law.sum(axis=1), law.sum(axis=0))
    assert chi_square_p(seen, independent / independent.sum()) < FALSE_ALARM
