"""The public stream is what its definition says, and its numbers have the laws that they are named after."""

import hashlib

import numpy as np
import pytest
from scipy import stats

from isotone.noise.simulate import PublicStream

ALMOST_NEVER = 1e-6


def plain_words(label: str, count: int) -> list[int]:
    """SplitMix64 in Python's integers, as its authors wrote it down."""
    state, found = int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "little"), []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        found.append(z ^ (z >> 31))
    return found


def test_words_are_those_of_the_definition_however_they_are_read():
    wanted = plain_words("a", 70_000)  # more than one chunk
    assert PublicStream("a").words(70_000).tolist() == wanted
    stream = PublicStream("a")
    assert [x for size in (1, 0, 7, 65_536, 4_456) for x in stream.words(size).tolist()] == wanted
    assert PublicStream("b").words(3).tolist() == plain_words("b", 3) != wanted[:3]


def test_splitmix_has_its_published_first_word(monkeypatch):
    stream = PublicStream("a")
    monkeypatch.setattr(stream, "_key", 0)
    assert stream.words(1).tolist() == [0xE220A8397B1DCDAF]


LAWS = [
    ("random", {}, stats.uniform()),
    ("standard_exponential", {}, stats.expon()),
    ("standard_normal", {}, stats.norm()),
    ("normal", {"loc": 1, "scale": 3}, stats.norm(1, 3)),
    ("laplace", {"scale": 2}, stats.laplace(0, 2)),
    ("uniform", {"low": -1, "high": 2}, stats.uniform(-1, 3)),
    ("standard_gamma", {"shape": 5}, stats.gamma(5)),
    ("standard_gamma", {"shape": np.full((200, 100), 40.0)}, stats.gamma(40)),
]


@pytest.mark.parametrize(
    ("name", "options", "law"), LAWS, ids=[f"{name} {k}" for k, (name, _, _) in enumerate(LAWS)]
)
def test_numbers_have_their_law_and_no_other(name, options, law):
    drawn = getattr(PublicStream(f"law of {name}"), name)(size=(200, 100), **options)
    assert drawn.shape == (200, 100)
    assert stats.kstest(drawn.ravel(), law.cdf).pvalue > ALMOST_NEVER
    assert stats.kstest(1.1 * drawn.ravel() + 0.05, law.cdf).pvalue < ALMOST_NEVER
    half = drawn.ravel()[: drawn.size // 2], drawn.ravel()[drawn.size // 2 :]
    assert abs(np.corrcoef(*half)[0, 1]) < 5 / np.sqrt(half[0].size)


def test_integers_are_uniform_and_cover_whole_words():
    drawn = PublicStream("dice").integers(1, 7, size=60_000)
    assert stats.chisquare(np.bincount(drawn, minlength=7)[1:]).pvalue > ALMOST_NEVER
    assert PublicStream("a").integers(0, 2**64, size=3, dtype=np.uint64).tolist() == plain_words("a", 3)
    assert PublicStream("a").integers(5) in range(5)


def test_single_numbers_are_floats():
    stream = PublicStream("one")
    assert stream.standard_gamma(np.zeros((2, 3))).tolist() == [[0.0] * 3] * 2
    assert all(
        isinstance(x, float) for x in (stream.random(), stream.standard_normal(), stream.standard_gamma(2))
    )
