from fractions import Fraction
from itertools import islice, pairwise
from math import floor
from unittest.mock import Mock

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.untimed import untimed

from isotone import noise
from isotone.errors import InputError
from isotone.noise import gaussian
from isotone.noise import gaussian as gaussian_kernel
from isotone.noise.gaussian import _exponents, _proposal_scale

variances = st.builds(Fraction, st.integers(1, 10**9), st.integers(1, 10**4))


def true_exponent(sigma2: Fraction, proposal: int, fraction: Fraction) -> Fraction:
    scale = _proposal_scale(sigma2)
    y = proposal + fraction
    return (y - sigma2 / scale) ** 2 / (2 * sigma2) + fraction / scale


@untimed
@given(variances)
def test_proposal_and_acceptance_multiply_to_the_gaussian(sigma2):
    """|k|/t plus the exponent of the coin is k²/(2·sigma2) plus a constant, for every proposal k."""
    scale = _proposal_scale(sigma2)
    constants = set()
    for k in (-40, -3, -1, 0, 1, 2, 3, 40, 1000):
        with pytest.MonkeyPatch.context() as patch:
            propose, coin = Mock(return_value=k), Mock(return_value=True)
            patch.setattr(gaussian, "two_sided_geometric", propose)
            patch.setattr(gaussian, "bernoulli_exp", coin)
            assert noise.discrete_gaussian(sigma2) == k
        (rate,), (exponent,) = propose.call_args.args, coin.call_args.args
        assert rate == Fraction(1, scale)
        constants.add(abs(k) * rate + exponent - Fraction(k * k) / (2 * sigma2))
    assert len(constants) == 1


@untimed
@given(variances, st.integers(0, 1000), st.fractions(0, 1))
def test_a_continuous_proposal_and_its_acceptance_multiply_to_the_gaussian(sigma2, proposal, fraction):
    """proposal/t plus the exponent is y²/(2·sigma2) plus a constant, for every real y = proposal + fraction."""
    scale = _proposal_scale(sigma2)
    total = Fraction(proposal, scale) + true_exponent(sigma2, proposal, fraction)
    assert total - (proposal + fraction) ** 2 / (2 * sigma2) == sigma2 / (2 * scale**2)


@untimed
@given(st.floats(0, 60), st.floats(0, 2.0**-17), st.floats(-1, 1))
@example(44.0, 0.0, 0.0)
@example(43.9999, 2.0**-17, 1.0)
@example(0.0, 2.0**-17, 1.0)
def test_the_acceptance_bracket_holds_every_exponent_within_its_error(exponent, error, where):
    low, high = gaussian_kernel._acceptance(exponent, error)
    x = max(0.0, exponent + where * error * (1 - 2.0**-50))
    with mpmath.workprec(200):
        true = mpmath.exp(-mpmath.mpf(x)) * mpmath.mpf(2) ** 63
    assert int(low) <= true <= int(high)
    assert int(high) - int(low) <= 2 + 2**63 * (5 * error + 2.0**-42) * np.exp(-x)


@untimed
@given(variances, st.data(), st.booleans())
def test_the_kernel_decides_as_the_true_exponent_does(sigma2, data, continuous):
    """Uniforms just off the true acceptance probability are decided rightly; those on it may stay open."""
    if continuous and sigma2 < 4:
        sigma2 += 4
    scale = _proposal_scale(sigma2)
    proposal = data.draw(st.integers(0, 12 * scale))
    fraction = data.draw(st.integers(0, 2**64 - 1)) if continuous else 0
    exponent = true_exponent(sigma2, proposal, Fraction(fraction, 2**64))
    assert exponent >= 0
    with mpmath.workprec(200):
        chance = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** 63
        target = int(mpmath.floor(chance))
    shape = np.array([float(sigma2 / scale), float(1 / (2 * sigma2)), 1 / scale])
    for uniform in (target, max(0, target - 3), target + 3, target >> 1, min(2 * target + 2, 2**63 - 1)):
        if uniform >= 2**63:
            continue
        values, state = np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64)
        status = gaussian_kernel.accept(
            values,
            np.array([proposal]),
            np.array([uniform << 1], dtype=np.uint64),
            np.array([fraction] if continuous else [], dtype=np.uint64),
            shape,
            1 if continuous else 0,
            state,
        )
        if uniform in (target >> 1, 2 * target + 2) and target > 2**30:
            assert status == gaussian_kernel.DONE
        if status == gaussian_kernel.DONE:
            accepted = state[gaussian_kernel.TAKEN] == 1
            assert accepted == (uniform < target) or uniform == target


@untimed
@given(variances, st.integers(0, 10**5), st.integers(0, 2**64 - 1) | st.none())
def test_exponents_come_ever_closer_and_hold_the_true_one(sigma2, proposal, fraction):
    read: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian, "random_bits", lambda count: read.append(7 << 50) or read[-1])
        bounds = list(islice(_exponents(sigma2, proposal, fraction), 4))
    words = [] if fraction is None else [fraction, *read]
    true = true_exponent(
        sigma2, proposal, sum((Fraction(w, 2 ** (64 * (i + 1))) for i, w in enumerate(words)), Fraction(0))
    )
    for low, high in bounds:
        assert 0 <= low <= true <= high
    widths = [high - low for low, high in bounds]
    if fraction is None:
        assert widths == [0] * 4
    else:
        assert all(later <= earlier / 2**40 for earlier, later in pairwise(widths))


@pytest.mark.parametrize("places", [1, 2, 5])
def test_rounding_is_that_of_the_signed_real_number(places):
    for proposal in range(3 << places):
        for sign in (0, 1):
            values, state = np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64)
            gaussian_kernel.put(values, proposal, sign, places, state)
            for fraction in (Fraction(1, 1000), Fraction(999, 1000)):
                y = (proposal + fraction) * (-1 if sign else 1)
                assert values[0] == floor(y / 2**places + Fraction(1, 2))


def test_minus_zero_is_not_stored():
    values, state = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    gaussian_kernel.put(values, 0, 1, 0, state)
    assert state[gaussian_kernel.TAKEN] == 0
    gaussian_kernel.put(values, 3, 1, 0, state)
    gaussian_kernel.put(values, 0, 0, 0, state)
    assert values.tolist() == [-3, 0]


@pytest.mark.parametrize("draw", [noise.discrete_gaussians, noise.rounded_gaussians])
def test_variances_from_tiny_to_huge(draw):
    for least in (Fraction(1, 10**12), Fraction(1, 2**100)):
        assert draw(least, 1000).tolist() == [0] * 1000  # false alarm below exp(-1e11)
    wide = draw(Fraction(2**84), 500)
    assert 2**41 < np.abs(wide).max() < 2**46  # false alarm below 1e-50
    assert draw(Fraction(3), 0).shape == (0,)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: noise.discrete_gaussian(Fraction(0)), "above 0, not 0"),
        (lambda: noise.discrete_gaussians(Fraction(-1), 3), "above 0, not -1"),
        (lambda: noise.rounded_gaussians(Fraction(0), 3), "above 0"),
        (lambda: noise.discrete_gaussians(Fraction(1), -1), "at least 0, not -1"),
        (lambda: noise.discrete_gaussians(Fraction(1, 2**101), 1), "at least 2\\*\\*-50"),
        (lambda: noise.rounded_gaussians(Fraction(1, 10**60), 1), "at least 2\\*\\*-50"),
        (lambda: noise.discrete_gaussians(Fraction(2**90), 1), "below 2\\*\\*44"),
        (lambda: noise.rounded_gaussians(Fraction(2**88), 1), "below 2\\*\\*43"),
    ],
)
def test_gaussians_that_cannot_be_drawn_are_refused_with_their_reason(draw, message):
    with pytest.raises(InputError, match=message):
        draw()
