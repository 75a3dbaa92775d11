"""The test of the tests: a chi-square test that cries wolf, or sleeps, would be worth nothing."""

import numpy as np
import pytest
from tests.support import laws
from tests.support.chisquare import FALSE_ALARM, chi_square_p, observe

LAW = 0.5 ** np.arange(1, 25)


def p_values(law, size, count=3000):
    rng = np.random.default_rng(8)
    full = np.append(LAW, 1 - LAW.sum())
    samples = rng.multinomial(size, full, size=count)
    return np.array([chi_square_p(sample, law) for sample in samples])


def test_p_values_of_the_true_law_are_uniform_even_in_their_tail():
    p = p_values(np.append(LAW, 1 - LAW.sum()), 5000)
    for level in (0.5, 0.1, 0.01, 0.002):
        expected = level * p.size
        assert abs(np.count_nonzero(p < level) - expected) < 5 * np.sqrt(expected) + 0.1 * expected
    assert p.min() > 1e-6


def test_a_wrong_law_is_found():
    wrong = 0.55 * 0.45 ** np.arange(25)
    assert np.all(p_values(wrong / wrong.sum(), 20_000, 50) < FALSE_ALARM)


def test_an_impossible_outcome_is_fatal():
    assert chi_square_p([5, 1], [1.0, 0.0]) == 0.0
    assert chi_square_p([5, 0], [1.0, 0.0]) == 1.0
    assert chi_square_p(*observe("aaab", {"a": 1.0})) == 0.0


def test_missing_mass_is_a_cell_of_its_own():
    assert chi_square_p([500, 500], [0.25, 0.25]) < FALSE_ALARM
    assert chi_square_p([500, 500], [0.5, 0.5]) == 1.0
    assert chi_square_p([500, 500], [50, 50]) == 1.0  # expected counts are rescaled


def test_cells_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="2 observed cells against 3"):
        chi_square_p([1, 2], [1, 2, 3])


def test_equally_likely_outcomes_are_counted():
    seen, law = observe("abbc", "abcd")
    assert seen == [1, 2, 1, 0]
    assert law == [0.25] * 4


@pytest.mark.parametrize("cells", [5, 50])
def test_cells_of_a_law_are_about_equally_likely(cells):
    rng = np.random.default_rng(4)
    draws = np.floor(rng.standard_exponential(50_000) * 1000)
    assert laws.fits(draws, laws.geometric_cdf(1e-3), cells) > FALSE_ALARM
    assert laws.fits(draws, laws.geometric_cdf(1.1e-3), cells) < FALSE_ALARM
