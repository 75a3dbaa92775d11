"""Noise that a test writes, in place of noise that is drawn: the code that releases runs on it, and its law comes out.

Every function of ``isotone.noise`` that draws is replaced, also where ``ExactDraws`` keeps it. What a script does not know it
refuses: a mechanism with a new kind of noise has no law here until somebody writes it down.

- :func:`linear_map`: mechanisms whose noise is a linear image of independent numbers. One number after the other is set, and
  the release shows where it goes.
- :func:`enumerated`: all others, on tiny cases. Every path is walked, each choice with its probability.
- :func:`measured_without_noise`: mechanisms that publish what they measured. Without noise the truth comes out, and with it
  the laws of the noise that was left out.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import gamma

from isotone import noise
from isotone.privacy.draws import ExactDraws

__all__ = [
    "LinearMap",
    "NotInScriptError",
    "cube_law",
    "drawn_from",
    "enumerated",
    "linear_map",
    "measured_without_noise",
]

DRAWING = frozenset(noise.__all__) - {"Simulated", "UnevenLine", "bits", "refuse_simulated", "simulate"}
"""The names of ``isotone.noise`` that draw."""


class NotInScriptError(Exception):
    """Noise was drawn that the script has no law for."""


@contextmanager
def drawn_from(script: dict[str, Any]) -> Generator[None]:
    """Every draw of a release comes from the script, by its name in ``isotone.noise``."""
    assert script.keys() <= DRAWING, "the script has a name that draws nothing"

    def refuse(name: str) -> Any:
        def refused(*_: Any, **__: Any) -> Any:
            raise NotInScriptError(name)

        return refused

    with pytest.MonkeyPatch.context() as patch:
        kept = {name: vars(ExactDraws)[name] for name in vars(ExactDraws)}
        for name in DRAWING:
            drawing, other = getattr(noise, name), script.get(name, refuse(name))
            patch.setattr(noise, name, other)
            for own, member in kept.items():
                if getattr(member, "__func__", member) is drawing:
                    patch.setattr(ExactDraws, own, staticmethod(other))
        yield


# noise that is a linear image of independent numbers

PROBE = 10**6
"""How many of its units a number is set to, so that rounding of the release does not matter."""


@dataclass(frozen=True)
class LinearMap:
    """A release is the true values plus ``columns @ numbers``, of which each has the unit 1 and a law of its own.

    The unit of a two-sided geometric number is one over its rate, that of a Gaussian its standard deviation. ``scales`` has
    them. ``laws`` are "laplace", "gaussian" or "discrete gaussian".
    """

    columns: NDArray[np.float64]
    laws: tuple[str, ...]
    scales: tuple[float, ...]


class _Setter:
    """Sets one number and leaves all others at zero. It remembers which were asked for."""

    def __init__(self, chosen: dict[int, int]) -> None:
        self.chosen = chosen
        self.laws: list[str] = []
        self.scales: list[float] = []

    def _numbers(self, law: str, scale: float, size: int) -> NDArray[np.int64]:
        first = len(self.laws)
        self.laws += [law] * size
        self.scales += [scale] * size
        places = range(first, first + size)
        return np.array([round(self.chosen.get(place, 0) * scale) for place in places], np.int64)

    def script(self) -> dict[str, Any]:
        def laplace(rate: Fraction, size: int) -> Any:
            return self._numbers("laplace", 1 / float(rate), size)

        def gaussian(law: str) -> Any:
            return lambda variance, size: self._numbers(law, math.sqrt(variance), size)

        return {
            "two_sided_geometrics": laplace,
            "lazy_two_sided_geometrics": laplace,
            "rounded_laplaces": laplace,
            "rounded_gaussians": gaussian("gaussian"),
            "discrete_gaussians": gaussian("discrete gaussian"),
            "random_words": lambda size: np.full(size, 1 << 63, np.uint64),  # ties, after the noise
        }


def linear_map(run: Callable[[], Any]) -> LinearMap:
    """What each number does to a release; an error if the noise is not a linear image of independent numbers."""

    def released(chosen: dict[int, int]) -> tuple[NDArray[np.float64], _Setter]:
        setter = _Setter(chosen)
        with drawn_from(setter.script()):
            out = np.asarray(run(), dtype=np.float64).ravel()
        return out, setter

    plain, setter = released({})
    size = len(setter.laws)
    columns = [(released({place: PROBE})[0] - plain) / PROBE for place in range(size)]
    both = {place: PROBE * (-1) ** place * (2 + place % 3) for place in range(size)}
    table = np.array(columns).T.reshape(plain.size, size)
    together = (released(both)[0] - plain) / PROBE
    expected = table @ np.array([both[place] / PROBE for place in range(size)])
    assert np.allclose(together, expected, atol=1e-4 * max(1.0, float(np.abs(expected).max(initial=0)))), (
        "the noise of a release is not linear in what was drawn"
    )
    return LinearMap(table, tuple(setter.laws), tuple(setter.scales))


# measurements whose noise is left out


@dataclass
class Unnoised:
    """What was asked for in place of noise: by measurement, the rate or the variance; and values on uneven lines."""

    rates: list[float] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)
    lines: list[tuple[NDArray[np.int64], Any]] = field(default_factory=list)


def measured_without_noise(run: Callable[[], Any]) -> tuple[Any, Unnoised]:
    """A release without noise, and the noise that it would have had."""
    asked = Unnoised()

    def geometric(rate: Fraction, size: int) -> Any:
        asked.rates += [float(rate)] * size
        return np.zeros(size, np.int64)

    def gaussian(variance: Fraction, size: int) -> Any:
        asked.variances += [float(variance)] * size
        return np.zeros(size, np.int64)

    def uneven(values: Any, line: Any) -> Any:
        asked.lines.append((values.copy(), line))
        return values

    def chosen(scores: Any, rate: Fraction) -> int:
        raise NotInScriptError("a choice")

    script = {
        "two_sided_geometrics": geometric,
        "rounded_gaussians": gaussian,
        "discrete_gaussians": gaussian,
        "uneven_geometrics": uneven,
        "choose_exponential": chosen,
        "random_words": lambda size: np.full(size, 1 << 63, np.uint64),
    }
    with drawn_from(script):
        return run(), asked


# every path of a release

Options = Sequence[tuple[Any, float]]


class _LeftOutError(Exception):
    """A path ends here: too unlikely, or rejected, after which all begins again with the same law."""

    def __init__(self, mass: float) -> None:
        self.mass = mass


class _Walk:
    """One path: the choices that are given, and then the likeliest of each kind."""

    def __init__(self, given: list[int], floor: float) -> None:
        self.given, self.floor = given, floor
        self.mass = 1.0
        self.taken: list[int] = []
        self.open: list[list[int]] = []

    def choose(self, options: Options) -> Any:
        """Options are sorted, the likeliest first."""
        place = len(self.taken)
        step = self.given[place] if place < len(self.given) else 0
        if place >= len(self.given):
            for other in range(1, len(options)):
                if self.mass * options[other][1] < self.floor:
                    break
                self.open.append([*self.taken, other])
        self.taken.append(step)
        value, probability = options[step]
        self.mass *= probability
        return value

    def reject(self, kept: float) -> None:
        """Go on with the draws that are kept."""
        self.mass *= kept
        if self.mass < self.floor:
            raise _LeftOutError(self.mass)

    def script(self, *, tossed: bool = False) -> dict[str, Any]:
        def each(options: Callable[..., Options]) -> Any:
            def drawn(*law: Any) -> Any:
                *numbers, size = law
                return np.array([self.choose(options(*numbers)) for _ in range(size)], np.int64)

            return drawn

        def both(rate: Fraction, multiples: Any) -> Any:
            chances = [math.exp(-float(rate) * int(m)) for m in multiples]
            sides = [sorted([(True, p), (False, 1 - p)], key=lambda side: -side[1]) for p in chances]
            return np.array([self.choose([side for side in two if side[1]]) for two in sides], np.bool_)

        def coins(rate: Fraction, multiples: Any) -> Any:
            assert np.size(multiples) == 1, "one try at a time is walked"
            self.reject(math.exp(-float(rate) * int(np.ravel(multiples)[0])))
            return np.ones(1, np.bool_)

        def shuffled(items: Sequence[Any]) -> list[Any]:
            ways = sorted(set(itertools.permutations(items)))
            return list(self.choose([(way, 1 / len(ways)) for way in ways]))

        def weighed(weights: Sequence[int]) -> int:
            shares = [(place, weight / sum(weights)) for place, weight in enumerate(weights) if weight]
            return self.choose(sorted(shares, key=lambda share: -share[1]))

        def below(sizes: Any) -> Any:
            return np.array([self.choose([(k, 1 / n) for k in range(n)]) for n in sizes.tolist()], np.int64)

        def sums(rate: Fraction, plus: Any, minus: Any) -> Any:
            ends = tuple(zip(plus.tolist(), minus.tolist(), strict=True))
            return np.array(self.choose(_sums_law(float(rate), ends)), np.int64)

        def spans(rate: Fraction, upper: Any, lower: Any, starts: Any = None) -> Any:
            first, second = (np.zeros_like(upper), np.zeros_like(lower)) if starts is None else starts
            rows = tuple(zip(*(part.tolist() for part in (upper, lower, first, second)), strict=True))
            return np.array(self.choose(_spans_law(float(rate), rows)), np.int64)

        def cube(rate: Fraction, size: int) -> Any:
            if size > 2:
                raise NotInScriptError("a cube of so many sides has too many cells to walk through")
            return np.array(self.choose(cube_law(float(rate), size)), np.int64)

        def words(size: int) -> Any:
            ways = [(high << 62 | low, 1 / 8) for high in (1, 3) for low in range(4)]
            return np.array([self.choose(ways) for _ in range(size)], np.uint64)

        return {
            "random_words": words,  # what hangs on their highest and lowest bits
            "two_sided_geometrics": each(lambda rate: _two_sided(float(rate))),
            "lazy_two_sided_geometrics": each(lambda rate: _two_sided(float(rate))),
            "geometrics": each(lambda rate: _one_sided(float(rate))),
            "lazy_geometrics": each(lambda rate: _one_sided(float(rate))),
            "geometric_sums": each(lambda rate, terms: _one_sided(float(rate), terms)),
            "bernoulli_exps": both if tossed else coins,
            "shuffle": shuffled,
            "choose_integer": weighed,
            "random_belows": below,
            "discrete_gaussians": each(lambda variance: _gaussian(float(variance))),
            "rounded_cube": cube,
            "rounded_exponential_sums": sums,
            "rounded_exponential_spans": spans,
        }


@dataclass
class EnumeratedLaw:
    """The probabilities of outputs, as far as paths were walked, and the mass of all paths that were walked to their end."""

    reached: dict[tuple[int, ...], float] = field(default_factory=lambda: defaultdict(float))
    total: float = 0.0


def enumerated(run: Callable[[], Any], floor: float = 1e-6, *, tossed: bool = False) -> EnumeratedLaw:
    """The law of what a release gives, by all paths of at least so much probability.

    Coins are those of rejected tries, unless they are ``tossed``: then both sides are walked, and words decide nothing.
    """
    law, waiting = EnumeratedLaw(), [list[int]()]
    with pytest.MonkeyPatch.context() as patch:
        # one try at a time, leaf after leaf
        patch.setattr("isotone.counts.tree_field.leaf_sums", lambda *_: [])
        patch.setattr("isotone.counts.tree_field._CELLS", 1)
        while waiting:
            walk = _Walk(waiting.pop(), floor)
            try:
                script = walk.script(tossed=tossed)
                if tossed:
                    script["random_words"] = lambda size: np.zeros(size, np.uint64)
                with drawn_from(script):
                    out = tuple(int(x) for x in np.ravel(run()))
            except _LeftOutError:
                pass
            else:
                law.reached[out] += walk.mass
                law.total += walk.mass
            waiting += walk.open
    return law


@lru_cache
def _two_sided(rate: float) -> Options:
    reach = int(30 / rate) + 1
    numbers = sorted(range(-reach, reach + 1), key=abs)
    return [(k, math.tanh(rate / 2) * math.exp(-rate * abs(k))) for k in numbers]


@lru_cache
def _one_sided(rate: float, terms: int = 1) -> Options:
    """A sum of so many numbers k ≥ 0 with weight exp(−rate·k)."""
    weights = [
        math.comb(k + terms - 1, k) * (-math.expm1(-rate)) ** terms * math.exp(-rate * k)
        for k in range(int(30 / rate) + 1)
    ]
    return sorted(enumerate(weights), key=lambda option: -option[1])


@lru_cache
def _gaussian(variance: float) -> Options:
    reach = int(10 * math.sqrt(variance)) + 1
    numbers = sorted(range(-reach, reach + 1), key=abs)
    weights = [math.exp(-(k**2) / (2 * variance)) for k in numbers]
    return [(k, weight / sum(weights)) for k, weight in zip(numbers, weights, strict=True)]


@lru_cache
def cube_law(rate: float, size: int) -> Options:
    """Uniform in a cube whose half-side is a sum of size + 1 exponentials, rounded."""
    radii = np.linspace(0, 25 / rate, 4001)
    radii = (radii[1:] + radii[:-1]) / 2
    mass = gamma.pdf(radii, size + 1, scale=1 / rate) * (radii[1] - radii[0])
    reach = int(12 / rate) + 1
    inside = {
        k: np.clip(np.minimum(k + 0.5, radii) - np.maximum(k - 0.5, -radii), 0, None) / (2 * radii)
        for k in range(-reach, reach + 1)
    }
    cells = itertools.product(inside, repeat=size)
    law = [(cell, float(np.sum(mass * np.prod([inside[k] for k in cell], axis=0)))) for cell in cells]
    return sorted(law, key=lambda option: -option[1])


@cache
def _sums_law(rate: float, ends: tuple[tuple[int, int], ...]) -> Options:
    """Rounded sums of p exponentials minus q others, for every pair, jointly."""
    ups, downs = max(p for p, _ in ends), max(q for _, q in ends)
    rows = [([1] * p + [0] * (ups - p), [1] * q + [0] * (downs - q)) for p, q in ends]
    return _rounded_law(rate, np.array([[*up, *(-x for x in down)] for up, down in rows]))


@cache
def _spans_law(rate: float, rows: tuple[tuple[int, int, int, int], ...]) -> Options:
    """Rounded differences of two spans of one sequence of exponentials."""
    steps = max(max(row) for row in rows)
    place = np.arange(1, steps + 1)
    signs = [
        ((first < place) & (place <= upper)).astype(int) - ((second < place) & (place <= lower))
        for upper, lower, first, second in rows
    ]
    used = np.array(signs).reshape(len(rows), steps)
    return _rounded_law(rate, used)


def _rounded_law(rate: float, signs: NDArray[Any]) -> Options:
    """``round(signs @ E)`` for independent exponentials, by the middle of cells of a grid; ties are halved."""
    signs = signs[:, np.any(signs != 0, axis=0)]
    steps = signs.shape[1]
    if steps == 0:
        return [(tuple([0] * len(signs)), 1.0)]
    cells = {1: 512, 2: 32, 3: 10}.get(steps, 4)  # a unit
    size = int(11 * cells / rate)
    weight = -np.expm1(-rate / cells) * np.exp(-rate / cells * np.arange(size))
    mass = weight
    for _ in range(steps - 1):
        mass = np.multiply.outer(mass, weight)
    axes = np.meshgrid(*[np.arange(size) + 0.5] * steps, indexing="ij", sparse=True)
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for aside in (-1e-6, 1e-6):
        values = [sum(s * a for s, a in zip(row, axes, strict=True)) / cells + aside for row in signs]
        whole = [np.broadcast_to(np.floor(v + 0.5).astype(np.int64), mass.shape).ravel() for v in values]
        low = [int(w.min()) for w in whole]
        spans = [int(w.max()) - bottom + 1 for w, bottom in zip(whole, low, strict=True)]
        code = np.ravel_multi_index([w - bottom for w, bottom in zip(whole, low, strict=True)], spans)
        found = np.bincount(code, mass.ravel())
        for one in np.flatnonzero(found).tolist():
            cell = tuple(int(k) + bottom for k, bottom in zip(np.unravel_index(one, spans), low, strict=True))
            law[cell] += float(found[one]) / 2
    return sorted(law.items(), key=lambda option: -option[1])
