"""Precision attacks: outputs that one count can produce and its neighbour cannot.

Floating-point noise has holes. Mironov (2012) finds the values that ``count + noise`` can take for one count and
not for the next; the same search is run here on a textbook float sampler, to show that it finds holes where there
are some, and on ours.
"""

from fractions import Fraction

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.tape import Script

from isotone import noise
from isotone.noise import bits as exponential_choice
from isotone.noise import laplace as bulk
from isotone.noise import laplace as digits
from isotone.noise.laplace import geometric_digits

TRIALS = 400


def textbook_laplace(count: int, uniforms: np.ndarray) -> np.ndarray:
    """``count - ln(u)``, u a 53-bit uniform: the positive half of the textbook Laplace mechanism."""
    return count - np.log(uniforms)


def could_come_from(outputs: np.ndarray, count: int) -> np.ndarray:
    """Whether the textbook sampler can produce each output exactly, for this count."""
    centre = np.exp(count - outputs)
    steps = np.round(centre * 2**53)[:, None] + np.arange(-40, 41)
    uniforms = np.clip(steps, 1, 2**53 - 1) / 2**53
    return np.any(textbook_laplace(count, uniforms) == outputs[:, None], axis=1)


def test_the_attack_separates_neighbouring_counts_of_the_textbook_sampler():
    uniforms = np.random.default_rng(0).integers(1, 2**53, 4000) / 2**53
    outputs = textbook_laplace(1, uniforms)
    outputs = outputs[outputs < 1.5]  # where the grid of uniforms is coarser than that of outputs
    assert np.all(could_come_from(outputs, 1))
    assert np.mean(could_come_from(outputs, 0)) < 0.9  # the rest unmasks the count for certain


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 100), Fraction(1, 10**6), Fraction(20)])
def test_every_output_of_one_count_is_possible_for_its_neighbour(epsilon):
    """For each output of count 1, a stream of bits is found that gives the same output for count 0."""
    table = geometric_digits(epsilon)
    for output in 1 + noise.two_sided_geometrics(epsilon, TRIALS):
        with pytest.MonkeyPatch.context() as patch:
            path = Script(path_to(int(output), table))
            patch.setattr(bulk, "random_words", path.random_words)
            patch.setattr(digits, "random_bits", path.random_bits)
            assert bulk.draw_digits(table, 1, two_sided=True)[0] == output


def path_to(value: int, table) -> list[int]:
    """Words that make the kernel draw ``value``: one word per digit, just above the digit's lower threshold."""
    sign, rest = int(value < 0), abs(value)
    words: list[int] = []
    last = len(table.rates) - 1
    for row in range(last):
        words.append(word_for(table, row, rest & 255))
        rest >>= 8
    while rest >= 255:
        words.append(word_for(table, last, 255))
        rest -= 255
    return [*words, word_for(table, last, rest) | sign]


def word_for(table, row: int, digit: int) -> int:
    lower = 0 if digit == 0 else int(table.thresholds[row, digit - 1]) + 1
    assert lower < int(table.thresholds[row, digit]), "no word decides this digit by itself"
    return lower << 1


@pytest.mark.parametrize(
    ("draws", "period"),
    [
        (lambda: noise.two_sided_geometrics(Fraction(1, 10**6), 100_000), 64),
        (lambda: noise.geometrics(Fraction(1, 10**7), 100_000), 64),
        (lambda: noise.discrete_gaussians(Fraction(10**12), 100_000), 64),
        (lambda: noise.rounded_gaussians(Fraction(10**12), 100_000), 64),
        (lambda: np.array([noise.two_sided_geometric(Fraction(1, 10**6)) for _ in range(5000)]), 16),
    ],
)
def test_low_bits_of_wide_noise_are_uniform(draws, period):
    """Noise wide against the period: its residues are uniform to within 1e-4 (false alarm 1e-8)."""
    residues = np.bincount(draws() % period, minlength=period)
    assert chi_square_p(residues, np.full(period, 1 / period)) > FALSE_ALARM
    biased = residues.copy()
    biased[0] += biased[1]
    biased[1] = 0
    assert chi_square_p(biased, np.full(period, 1 / period)) < FALSE_ALARM  # the test can see a bias


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 3)])
def test_residues_of_narrow_noise_have_their_exact_law(epsilon):
    """P(k ≡ r mod 4) in closed form; the parity of a count must not shine through."""
    draws = noise.two_sided_geometrics(epsilon, 200_000)
    a = np.exp(-float(epsilon))
    k = np.arange(-400, 401)
    law = np.bincount(k % 4, weights=(1 - a) / (1 + a) * a ** np.abs(k), minlength=4)
    assert chi_square_p(np.bincount(draws % 4, minlength=4), law) > FALSE_ALARM
    assert chi_square_p(np.bincount((draws + 1) % 4, minlength=4), law) < FALSE_ALARM


def test_the_order_of_candidates_tells_nothing():
    """Float sums depend on the order of their terms; exact weights do not (false alarm 1e-8)."""
    scores = np.array([0, 40, 0, 41, 1])
    law = np.exp(-scores.astype(float)) / np.exp(-scores.astype(float)).sum()
    size = 40_000
    for order in (np.arange(5), np.array([4, 3, 2, 1, 0]), np.array([1, 3, 0, 4, 2])):
        picks = noise.choose_exponential_segments(
            np.tile(scores[order], size), np.arange(size + 1) * 5, Fraction(1)
        )
        seen = np.bincount(order[picks], minlength=5)
        assert chi_square_p(seen, law) > FALSE_ALARM


def test_swamped_candidates_keep_their_probability():
    """2**80 + 1 - 2**80 is 0 in floats: a light candidate after a heavy one would never be drawn."""
    light, heavy = 1, 2**62
    for order in ([heavy, light], [light, heavy]):
        with pytest.MonkeyPatch.context() as patch:
            # the least uniform that falls on the light candidate, wherever it stands
            found = boundary_word(order)
            patch.setattr(exponential_choice, "random_words", Script(found).random_words)
            assert noise.choose_exponential([0, 0], Fraction(1), order) == order.index(light)


def boundary_word(order: list[int]) -> list[int]:
    """Two words whose 128-bit uniform lies in the middle of the light candidate's interval."""
    scale = 100 - max(order).bit_length()  # the kernel puts the largest weight just below 2**100
    start = 0 if order[0] == 1 else order[0]
    middle = (2 * start + 1) << (scale - 1)
    return [middle >> 64, middle & (2**64 - 1)]
