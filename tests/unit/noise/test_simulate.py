import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from isotone.errors import InputError
from isotone.noise import Simulated, simulate

EVERY = [
    lambda rng: simulate.exponentials(rng, 1, (3, 2)),
    lambda rng: simulate.geometrics(rng, "0.5", 5),
    lambda rng: simulate.two_sided_geometrics(rng, Fraction(1, 3), 5),
    lambda rng: simulate.gaussians(rng, 2, 5),
    lambda rng: simulate.rounded_gaussians(rng, 2.5, 5),
    lambda rng: simulate.discrete_gaussians(rng, 4, (2, 3)),
]


@pytest.mark.parametrize("draw", EVERY)
def test_a_simulation_is_marked_and_repeats_with_its_seed(draw):
    first, second = draw(np.random.default_rng(3)), draw(np.random.default_rng(3))
    assert isinstance(first, Simulated)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, draw(np.random.default_rng(4))) or first.size < 6


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: simulate.exponentials(rng, 0, 1),
        lambda rng: simulate.gaussians(rng, -1, 1),
    ],
)
def test_impossible_parameters_are_refused(draw):
    with pytest.raises(InputError):
        draw(np.random.default_rng(0))


def test_no_exact_sampler_uses_a_seeded_or_float_generator():
    """Only simulate.py may name numpy's generators, and nothing may import random.

    The public stream, whose draws are never released, hands its numbers to functions that take such a generator.
    """
    folder = Path(simulate.__file__).parent
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {
            name.name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for name in node.names
        } | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert "random" not in imported
        if path.name not in ("simulate.py", "public_stream.py"):
            attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not attributes & {"random", "default_rng", "Generator"}, path.name


def test_the_bits_come_from_one_place():
    """Only bits.py asks the operating system."""
    folder = Path(simulate.__file__).parent
    asking = [path.name for path in folder.glob("*.py") if "urandom" in path.read_text()]
    assert asking == ["bits.py"]
