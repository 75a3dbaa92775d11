"""Every path of a release of a distribution: the code that releases, walked through coin by coin.

Decisions about bins are walked, both sides of each coin, and the noisy number of records is set. Noise on counts is left out, so
that the truth comes out, and with it the law of the noise: at outputs far away from both truths its loss is that law's rate times
the distance.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.distribution import DistributionMechanism
from isotone.privacy.draws import ExactDraws
from tests.support.noise_scripts import drawn_from

__all__ = ["Path", "paths", "pure_loss", "tiny", "zcdp_loss"]

FAR = 10**12


@contextmanager
def tiny(roots: int = 1, plain: int = 1) -> Generator[None]:
    """Grids are so small that every path of a partition can be walked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isotone.distribution.partition.ROOTS", roots)
        patch.setattr("isotone.distribution.mechanism._PLAIN", plain)
        patch.setattr("isotone.distribution.mechanism.LEAST", 20)
        yield


@dataclass
class Path:
    """The ways to one list of bins: their probability, and the truth that noise is added to there."""

    probability: float
    number: tuple[str, Any, Any]
    counts: tuple[str, Any, Any]
    """The law, its rate or variance, and the true numbers."""


class _Script:
    """Decides by a list of choices; beyond its end by the first possibility."""

    def __init__(self, choices: list[int], number: int | None, records: int) -> None:
        self.choices, self.options, self.mass = choices, list[int](), 1.0
        self.number, self.records = number, records
        self.far = list[bool]()
        self.asked = list[tuple[str, Any, int]]()

    def choose(self, chances: list[float]) -> int:
        open_ones = [place for place, chance in enumerate(chances) if chance > 0]
        place = len(self.options)
        step = self.choices[place] if place < len(self.choices) else 0
        self.options.append(len(open_ones))
        if place >= len(self.choices):
            self.choices.append(0)
        self.mass *= chances[open_ones[step]]
        return open_ones[step]

    def coins(self, rate: Fraction, multiples: Any) -> Any:
        chances = [math.exp(-float(rate) * int(m)) for m in multiples]
        self.far = [bool(self.choose([1 - p, p])) for p in chances]
        return np.array(self.far, np.bool_)

    def below(self, sizes: Any) -> Any:
        """The other side of a coin that came out as no decides nothing."""
        assert list(sizes) == [2] * len(self.far)
        return np.array([self.choose([0.5, 0.5]) if far else 0 for far in self.far], np.int64)

    def noise(self, law: str) -> Any:
        def drawn(scale: Any, size: int) -> Any:
            self.asked.append((law, scale, size))
            first = len(self.asked) == 1 and self.number is not None
            return np.full(size, self.number - self.records if first and self.number is not None else 0)

        return drawn

    def laws(self) -> dict[str, Any]:
        return {
            "bernoulli_exps": self.coins,
            "random_belows": self.below,
            "two_sided_geometrics": self.noise("rate"),
            "discrete_gaussians": self.noise("variance"),
            "random_words": lambda size: np.zeros(size, np.uint64),
        }


def _scripts(
    mechanism: Any, line: Any, number: int | None, now: list[_Script]
) -> Iterator[tuple[_Script, Any]]:
    """Every path in turn, and what it gives."""
    choices: list[int] = []
    while True:
        script = _Script(choices, number, int(line.sum()))
        now[:] = [script]
        yield script, mechanism._line(line, ExactDraws())
        choices = script.choices
        while choices and choices[-1] == script.options[len(choices) - 1] - 1:
            choices.pop()
        if not choices:
            return
        choices[-1] += 1


def _passed_on(now: list[_Script], name: str) -> Any:
    """The law of the path that is walked now."""
    return lambda *asked: now[0].laws()[name](*asked)


def paths(mechanism: DistributionMechanism, line: Any, number: int | None) -> dict[tuple[int, ...], Path]:
    """The paths of one group by their bins, where the noisy number of records comes out as ``number``."""
    line, found = np.asarray(line, np.int64), dict[tuple[int, ...], Path]()
    now: list[_Script] = []
    laws = {name: _passed_on(now, name) for name in _Script([], None, 0).laws()}
    with drawn_from(laws):
        walked = [(script, made) for script, made in _scripts(mechanism, line, number, now)]
    for script, measured in walked:
        key = tuple(measured.edges.tolist())
        laws = list(script.asked)
        first = ("none", 1, 0) if number is None else (*laws.pop(0)[:2], int(line.sum()))
        assert [law[2] for law in laws] == [measured.counts.size]
        path = Path(0.0, first, (*laws[0][:2], measured.counts.ravel()))
        found.setdefault(key, path).probability += script.mass
    assert abs(sum(path.probability for path in found.values()) - 1) < 1e-9
    return found


def _moved(one: tuple[str, Any, Any], other: tuple[str, Any, Any]) -> float:
    """The loss of noise between two truths, pure or as a ρ."""
    assert one[:2] == other[:2], "the noise depends on the data"
    apart = np.abs(np.asarray(one[2], float) - np.asarray(other[2], float))
    return (
        float(one[1]) * float(apart.sum()) if one[0] != "variance" else float(np.sum(apart**2) / (2 * one[1]))
    )


def pure_loss(one: dict[tuple[int, ...], Path], other: dict[tuple[int, ...], Path]) -> float:
    """The largest loss of one group, from the first data to the second."""
    assert one.keys() == other.keys(), "some bins are possible for one of two neighbours alone"
    worst = 0.0
    for bins, path in one.items():
        there = other[bins]
        number = 0.0 if path.number[0] == "none" else _moved(path.number, there.number)
        loss = math.log(path.probability / there.probability) + number + _moved(path.counts, there.counts)
        worst = max(worst, loss)
    return worst


def zcdp_loss(one: dict[tuple[int, ...], Path], other: dict[tuple[int, ...], Path], order: float) -> float:
    """The Rényi divergence of this order over the order, of all that is released of one group."""
    assert one.keys() == other.keys()
    total, number = 0.0, 0.0
    for bins, path in one.items():
        there = other[bins]
        number = 0.0 if path.number[0] == "none" else _moved(path.number, there.number)
        p, q = path.probability, there.probability
        # Gaussian noise between two means: E_q[(p/q)^a] = exp(a(a − 1)·distance²/(2·variance))
        total += q * (p / q) ** order * math.exp(order * (order - 1) * _moved(path.counts, there.counts))
    return math.log(total) / (order - 1) / order + number
