"""Randomness that is shared between processes or threads would let one release unmask another."""

import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np

from isotone import noise

CHILDREN = 4


def draw() -> bytes:
    """What a release might draw: words, integers, arrays."""
    parts = [
        noise.random_words(8).tobytes(),
        str(noise.random_bits(256)).encode(),
        noise.two_sided_geometrics(Fraction(1, 10**6), 16).tobytes(),
        noise.rounded_gaussians(Fraction(10**12), 16).tobytes(),
    ]
    return b"".join(parts)


def draw_in_child() -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, draw())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        received = stream.read()
    os.waitpid(child, 0)
    return received


def test_children_of_one_process_share_no_randomness():
    """A copied buffer or generator would repeat itself in every child (false alarm below 2**-200)."""
    draw()  # whatever a sampler might keep, it keeps from here on
    received = [draw_in_child() for _ in range(CHILDREN)] + [draw()]
    for start in (slice(0, 64), slice(-256, -128), slice(-128, None)):
        assert len({part[start] for part in received}) == CHILDREN + 1


def test_threads_share_no_randomness():
    with ThreadPoolExecutor(8) as pool:
        received = list(pool.map(lambda _: draw(), range(64)))
    assert len({part[:64] for part in received}) == 64
    assert len({part[-128:] for part in received}) == 64


def test_a_numpy_seed_has_no_influence():
    received = []
    for _ in range(2):
        np.random.seed(7)
        received.append(draw())
    assert received[0] != received[1]
