from fractions import Fraction
from itertools import count

import pytest
from tests.support.tape import Script, follow_all_paths

from isotone.errors import InputError
from isotone.noise import bernoulli, bernoulli_exp, bernoulli_exp_lazily
from isotone.noise import bits as coins
from isotone.noise.bits import exp_negative

COINS = ["isotone.noise.bits.random_below"]


def exp_of(x: Fraction) -> Fraction:
    return Fraction(exp_negative(x, 300)[0], 2**300)


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(2, 3), Fraction(5, 7)])
def test_a_rational_coin_is_exact_on_every_path(p, monkeypatch):
    law = follow_all_paths(lambda: bernoulli(p), monkeypatch, COINS)
    assert law.unexplored == 0
    assert law.reached.get(True, 0) == p


@pytest.mark.parametrize("x", ["0", "1/3", "1/2", "1", "3/2", "7/3", "4"])
def test_an_exponential_coin_is_exact_on_every_path(x, monkeypatch):
    law = follow_all_paths(lambda: bernoulli_exp(Fraction(x)), monkeypatch, COINS, Fraction(1, 10**8))
    assert law.unexplored < Fraction(1, 10**4)
    assert law.allows(True, exp_of(Fraction(x)))
    assert law.allows(False, 1 - exp_of(Fraction(x)))
    if x != "0":  # the enumeration is sharp enough to tell a rate that is wrong by a hundredth
        assert not law.allows(True, exp_of(Fraction(x) * Fraction(101, 100)))


def lazy_bounds(x: Fraction):
    for places in count(4, 4):
        low = Fraction(int(x * 2**places), 2**places)
        yield low, low + Fraction(1, 2**places)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 7), Fraction(2), Fraction(50)])
@pytest.mark.parametrize("distance", [-1, 1])
def test_a_lazy_coin_reads_on_until_it_knows_the_side(x, distance, monkeypatch):
    """A uniform that agrees with exp(-x) in 256 bits, and then is below or above it."""
    digits = exp_negative(x, 320)[0] + distance * 2**63
    words = [digits >> 64 * i & (2**64 - 1) for i in range(4, -1, -1)]
    script = Script(words)
    monkeypatch.setattr(coins, "random_bits", script.random_bits)
    if 0 < digits < 2**320:
        assert bernoulli_exp_lazily(lazy_bounds(x)) == (distance < 0)
        assert script.used >= 4


def test_a_lazy_coin_continues_a_uniform_that_was_begun():
    x = Fraction(1, 7)
    start = exp_negative(x, 63)[0]
    assert bernoulli_exp_lazily(lazy_bounds(x), start - 2, 63)
    assert not bernoulli_exp_lazily(lazy_bounds(x), start + 3, 63)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: bernoulli(Fraction(3, 2)), "between 0 and 1, not 3/2"),
        (lambda: bernoulli(Fraction(-1, 2)), "between 0 and 1"),
        (lambda: bernoulli_exp(Fraction(-1)), "at or above 0, not -1"),
        (lambda: bernoulli_exp_lazily([]), "ever closer"),
    ],
)
def test_impossible_coins_are_refused_with_their_reason(draw, message):
    with pytest.raises(InputError, match=message):
        draw()
