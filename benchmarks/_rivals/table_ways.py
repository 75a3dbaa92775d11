"""How rivals publish a table: a distribution from noise, and counts from the noisy ones under that distribution.

A distribution comes from the clamped noisy counts themselves, deconvolved, which costs nothing, or from a measurement of its own for
a share of ε. Counts are given back by rank, which keeps the distribution, or as rounded posterior means, which are nearer to the true ones
and do not. An estimate is the posterior mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize
from scipy.special import gammaln

from isotone.privacy.checks import exact
from isotone.privacy.draws import SeededDraws
from isotone.tables import simulate_distribution
from isotone.tables.thresholds import Thresholds

if TYPE_CHECKING:
    from experiments._tables import Table

__all__ = ["WAYS", "PairedDraws", "Published", "Way", "monotone_posterior"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SHARES = (0.5, 0.003, 0.01, 0.02, 0.05, 0.1, 0.25, 0.75, 0.9, 0.98, 1.0)
"""Shares of ε for the distribution, where a rival needs one: a half is the rule, the others are hindsight."""
STEPS = (400, 0, 1, 3, 10, 30, 100, 2_000)
"""Steps of the maximum likelihood: 400 are the rule, and to stop early smooths."""
DEGREES, PENALTIES = (5, 2, 3, 8, 12, 20, 40), (1.0, 0.0, 0.01, 0.1, 10.0, 100.0)
"""Of splines, and weights of the penalty: first what ``deconvolveR`` takes by default."""
POSTERIOR_SHARES, PRIORS = (0.5, 0.25, 0.75, 0.9, 0.98, 1.0), (1.0, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0)
"""Where the posterior of the cumulative histogram is taken, and weights of its Dirichlet prior for each count: first the rule."""
WIDTHS = (0.5, 1.0, 2.0)
"""Standard deviations, in counts, over which a distribution is smoothed in hindsight."""
_FAR = 40.0
"""A cumulative number further from its noisy one than so many scales of the noise has no weight."""
RANKS, MEANS, RAW = "rank map", "rounded posterior means", "rank map, noise as the estimate"


class Published(NamedTuple):
    """A table of whole counts, and an estimate of each count."""

    values: Ints
    estimates: Floats | Ints


@dataclass(frozen=True)
class Way:
    """How a table is published for a setting, the first of which is the rule, with each of the outputs."""

    publish: Callable[[Table, float, np.random.Generator, Any], list[Published]]
    settings: tuple[Any, ...] = (None,)
    outputs: tuple[str, ...] = ("",)
    words: str = "{}"

    def named(self, setting: Any, output: str) -> str:
        """A choice in words."""
        values = setting if isinstance(setting, tuple) else (setting,)
        told = "" if setting is None else self.words.format(*values)  # pyright: ignore[reportUnknownArgumentType]
        return ", ".join(part for part in (told, output) if part)


class PairedDraws(SeededDraws):
    """Noise of counts from the numbers that every way draws it from, so that ways are paired; the rest from others."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.others = SeededDraws(rng.spawn(1)[0])

    def geometrics(self, rate: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return self.others.geometrics(rate, size)


def clamped(table: Table, epsilon: float, rng: np.random.Generator, setting: None) -> list[Published]:
    """Two-sided geometric noise on each count, clamped to the range."""
    values = noisy_counts(table, epsilon, rng)
    return [Published(values, values)]


def noisy_counts(table: Table, epsilon: float, rng: np.random.Generator) -> Ints:
    """The noise that isotone draws where it has no thresholds, from the same numbers."""
    plain = Thresholds(table.upper, exact(repr(epsilon)), (), Fraction(0))
    return np.clip(plain.measure(table.counts, PairedDraws(rng))[2], 0, table.upper)


@lru_cache(maxsize=64)
def clamped_law(upper: int, epsilon: float) -> Floats:
    """The law of a clamped noisy count, one row for each true count."""
    b = np.exp(-epsilon)
    places = np.arange(upper + 1)
    law = (1 - b) / (1 + b) * b ** np.abs(places[:, None] - places[None, :])
    law[:, 0], law[:, -1] = b**places / (1 + b), b ** (upper - places) / (1 + b)
    return law


def npmle(noisy: Ints, upper: int, epsilon: float, steps: int = STEPS[0]) -> Floats:
    """The distribution of true counts that makes the clamped noisy ones most likely, without any model."""
    law = clamped_law(upper, epsilon)
    seen = np.bincount(noisy, minlength=upper + 1) / len(noisy)
    belief = np.full(upper + 1, 1 / (upper + 1))
    for _ in range(steps):
        belief = belief * (law @ (seen / np.maximum(belief @ law, 1e-300)))
    return belief / belief.sum()


def efron(noisy: Ints, upper: int, epsilon: float, degree: int, penalty: float, atom: bool) -> Floats:
    """The same from an exponential family with natural splines and a penalty (Efron 2016), or with an atom at 0 beside."""
    law, basis = clamped_law(upper, epsilon), _splines(upper, min(degree, upper - 1), atom)
    seen = np.bincount(noisy, minlength=upper + 1).astype(np.float64)

    def believed(weights: Floats) -> Floats:
        logs = basis @ weights
        belief = np.exp(logs - logs.max())
        return belief / belief.sum()

    def objective(weights: Floats) -> tuple[float, Floats]:
        belief = believed(weights)
        likely = np.maximum(belief @ law, 1e-300)
        length = float(np.sqrt(weights @ weights + 1e-12))
        slope = basis.T @ (belief * (law @ (seen / likely)) - len(noisy) * belief)
        return penalty * length - float(seen @ np.log(likely)), penalty * weights / length - slope

    return believed(minimize(objective, np.zeros(basis.shape[1]), jac=True, method="L-BFGS-B").x)


@lru_cache(maxsize=64)
def _splines(upper: int, degree: int, atom: bool) -> Floats:
    """Natural cubic splines with evenly spaced knots and without a constant, orthonormal over the counts, and the atom."""
    x, knots = np.linspace(0, 1, upper + 1), np.linspace(0, 1, degree + 1)
    cubes = np.maximum(x[:, None] - knots, 0) ** 3
    slopes = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
    columns = np.column_stack([x, slopes[:, :-1] - slopes[:, -1:]])[:, :degree]
    basis = np.linalg.qr(columns - columns.mean(axis=0))[0]
    return np.column_stack([basis, x == 0]) if atom else basis


def posterior_means(noisy: Ints, belief: Floats, epsilon: float) -> Floats:
    """The mean of the true count, given the clamped noisy one and the distribution believed in."""
    joint = belief[:, None] * clamped_law(len(belief) - 1, epsilon)
    weight = joint.sum(axis=0)
    means = np.arange(len(belief)) @ joint / np.maximum(weight, 1e-300)
    return np.where(weight > 1e-290, means, np.arange(len(belief)))[noisy]


def rank_map(noisy: Ints, belief: Floats, rng: np.random.Generator) -> Ints:
    """Counts with the distribution believed in, given to the categories in the order of their noisy counts."""
    size = len(noisy)
    quantiles = np.searchsorted(np.cumsum(belief), (np.arange(size) + 0.5) / size).clip(0, len(belief) - 1)
    out = np.empty(size, np.int64)
    out[np.lexsort((rng.random(size), noisy))] = quantiles
    return out


def _given_back(noisy: Ints, belief: Floats, epsilon: float, rng: np.random.Generator) -> list[Published]:
    """With the distribution believed in, as rounded posterior means, and with it and the noisy count as the estimate."""
    means = posterior_means(noisy, belief, epsilon)
    rounded = np.rint(means).astype(np.int64)
    ranked = rank_map(noisy, belief, rng)
    return [Published(ranked, means), Published(rounded, means), Published(ranked, noisy)]


def deconvolved(
    fit: Callable[..., Floats], table: Table, epsilon: float, rng: np.random.Generator, setting: Any
) -> list[Published]:
    """Clamped noise with all of ε, and its distribution deconvolved."""
    noisy = noisy_counts(table, epsilon, rng)
    settings = setting if isinstance(setting, tuple) else (setting,)
    return _given_back(noisy, fit(noisy, table.upper, epsilon, *settings), epsilon, rng)  # pyright: ignore[reportUnknownArgumentType]


def shared(
    measure: Callable[[Table, float, np.random.Generator], Floats],
    table: Table,
    epsilon: float,
    rng: np.random.Generator,
    share: float,
) -> list[Published]:
    """A share of ε on the distribution and the rest on clamped noise; with all of it, categories go by lot."""
    belief = measure(table, share * epsilon, rng)
    if share < 1:
        return _given_back(
            noisy_counts(table, (1 - share) * epsilon, rng), belief, (1 - share) * epsilon, rng
        )
    return _by_lot(table, belief, rng)


def _by_lot(table: Table, belief: Floats, rng: np.random.Generator) -> list[Published]:
    """The same where nothing is known of single counts."""
    means = np.full(len(table.counts), belief @ np.arange(len(belief)))
    lots = rank_map(np.zeros(len(means), np.int64), belief, rng)
    flat = Published(np.rint(means).astype(np.int64), means)
    return [Published(lots, means), flat, Published(lots, means)]


def sorted_counts(table: Table, epsilon: float, rng: np.random.Generator) -> Floats:
    """The sorted counts with noise and isotonic regression (Hay et al. 2010)."""
    drawn = rng.geometric(1 - np.exp(-epsilon), (2, len(table.counts)))
    fit = isotonic_regression(np.sort(table.counts) + drawn[0] - drawn[1]).x
    values = np.clip(np.rint(fit), 0, table.upper).astype(np.int64)
    return np.bincount(values, minlength=table.upper + 1) / len(values)


def wavelets(table: Table, epsilon: float, rng: np.random.Generator) -> Floats:
    """The distribution by Privelet."""
    found = simulate_distribution(table.counts, table.upper, repr(epsilon), "privelet", rng=rng)
    return np.asarray(found.probabilities, float)


def noisy_cumulative(table: Table, epsilon: float, rng: np.random.Generator) -> Ints:
    """The cumulative histogram with noise at every threshold, of which a unit moves one by one."""
    below = np.cumsum(np.bincount(table.counts, minlength=table.upper + 1))[:-1]
    drawn = rng.geometric(1 - np.exp(-epsilon), (2, len(below)))
    return np.asarray(below + drawn[0] - drawn[1], np.int64)


def cumulative(table: Table, epsilon: float, rng: np.random.Generator) -> Floats:
    """The noisy cumulative histogram by isotonic regression."""
    size = len(table.counts)
    fit = np.clip(isotonic_regression(noisy_cumulative(table, epsilon, rng)).x, 0, size)
    return np.diff(fit, prepend=0.0, append=float(size)) / size


def monotone_posterior(noisy: Ints, size: int, epsilon: float, prior: float) -> Floats:
    """The mean of a distribution of ``size`` categories given its noisy cumulative numbers, exactly, under a Dirichlet prior.

    It goes once up and once down the thresholds. A prior of 1 holds all rising sequences of numbers for equally likely.
    """
    steps = np.arange(size + 1.0)
    weights = np.exp(gammaln(steps + prior) - gammaln(prior) - gammaln(steps + 1))
    reach = int(_FAR / epsilon) + 1
    places = [
        np.arange(max(0, min(x - reach, size)), max(0, min(x + reach, size)) + 1) for x in noisy.tolist()
    ]
    seen = [
        np.exp(-epsilon * (np.abs(at - x) - np.abs(at - x).min()))
        for at, x in zip(places, noisy, strict=True)
    ]
    up, down = [weights[places[0]] * seen[0]], [weights[size - places[-1]]]
    for at, low, each in zip(places[1:], places[:-1], seen[1:], strict=True):
        up.append(_scaled(np.convolve(_between(weights, low, at), up[-1], "valid") * each))
    for at, high, each in zip(places[-2::-1], places[:0:-1], seen[:0:-1], strict=True):
        down.append(_scaled(np.convolve(_between(weights, at, high), (down[-1] * each)[::-1], "valid")[::-1]))
    means = [a * b @ at / (a @ b) for at, a, b in zip(places, up, down[::-1], strict=True)]
    return np.diff(means, prepend=0.0, append=float(size)) / size


def _between(weights: Floats, low: Ints, high: Ints) -> Floats:
    """The weights of all differences between two ranges of places, 0 where they are negative."""
    first, last = int(high[0] - low[-1]), int(high[-1] - low[0])
    return (
        np.concatenate([np.zeros(min(-first, last - first + 1)), weights[: max(last + 1, 0)]])
        if first < 0
        else weights[first : last + 1]
    )


def _scaled(values: NDArray[Any]) -> Floats:
    return np.asarray(values / values.max(), np.float64)


def smoothed(belief: Floats, width: float) -> Floats:
    """A distribution whose every count is spread over those around it, without any going beyond the ends."""
    places = np.arange(len(belief))
    spread = np.exp(-0.5 * ((places[:, None] - places) / width) ** 2)
    return spread / spread.sum(axis=0) @ belief


def posterior(
    table: Table, epsilon: float, rng: np.random.Generator, setting: tuple[float, float]
) -> list[Published]:
    """The posterior of the cumulative histogram for a share of ε, with a prior, and the same smoothed."""
    share, prior = setting
    noisy = noisy_cumulative(table, share * epsilon, rng)
    belief = np.maximum(monotone_posterior(noisy, len(table.counts), share * epsilon, prior), 0)
    beliefs = [belief, *(smoothed(belief, width) for width in WIDTHS)]
    if share == 1:
        return [each for one in beliefs for each in _by_lot(table, one, rng)]
    left = (1 - share) * epsilon
    counts = noisy_counts(table, left, rng)
    return [each for one in beliefs for each in _given_back(counts, one, left, rng)]


_OUTPUTS = (RANKS, MEANS, RAW)
_SMOOTHED = (*_OUTPUTS, *(f"smoothed over {width:g}, {each}" for width in WIDTHS for each in _OUTPUTS))
_SPLINES = tuple(product(DEGREES, PENALTIES, (False, True)))


def _of_share(measure: Callable[[Table, float, np.random.Generator], Floats]) -> Way:
    return Way(partial(shared, measure), SHARES, _OUTPUTS, "share {:g}")


WAYS: dict[str, Way] = {
    "clamped noise": Way(clamped),
    "clamped noise, NPMLE": Way(partial(deconvolved, npmle), STEPS, _OUTPUTS, "{} steps"),
    "clamped noise, g-modelling (Efron 2016)": Way(
        partial(deconvolved, efron), _SPLINES, _OUTPUTS, "degree {}, penalty {:g}, atom {}"
    ),
    "cumulative histogram, isotonic": _of_share(cumulative),
    "cumulative histogram, posterior mean": Way(
        posterior, tuple(product(POSTERIOR_SHARES, PRIORS)), _SMOOTHED, "share {:g}, prior {:g}"
    ),
    "cumulative histogram with all of ε, posterior mean": Way(
        posterior, tuple(product((1.0,), PRIORS)), _SMOOTHED, "share {:g}, prior {:g}"
    ),
    "sorted counts, isotonic (Hay et al. 2010)": _of_share(sorted_counts),
    "Privelet": _of_share(wavelets),
}
"""How each publishes a table, and the choices it has."""
