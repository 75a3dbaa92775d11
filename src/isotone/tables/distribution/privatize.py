"""Privatise the distribution of counts. How many categories have count 0, 1, …, upper."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise import Simulated
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.calibration import sigma_squared
from isotone.privacy.checks import Number, one_of, positive, share, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.tables.distribution.distribution import Distribution
from isotone.tables.distribution.haar import Haar
from isotone.tables.distribution.histogram_strategy import Cumulative, Cyclic, HistogramStrategy, Plain
from isotone.tables.distribution.level_counts import IntervalHierarchy
from isotone.tables.top_coding import Counts, histogram, top_coded

__all__ = ["Method", "Post", "measure_cumulative", "privatize_distribution", "simulate_distribution"]

Method = Literal["cumulative", "cyclic-laplace", "cyclic-gaussian", "laplace", "privelet", "hierarchical"]
Post = Literal["isotonic", "clip"]


def privatize_distribution(
    counts: Counts,
    upper: int,
    epsilon: Number,
    method: Method = "cumulative",
    *,
    post: Post = "isotonic",
    delta: Number | None = None,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
) -> Distribution:
    """A private distribution of ``counts``, top-coded at the public bound ``upper``.

    Guarantee: epsilon-DP for adding or removing one person ((epsilon, delta)-DP for ``cyclic-gaussian``, the
    only method that takes ``delta``), whose up to ``contributions`` countings change one count by one each;
    docs/theory/tables.md, section 2. The number of categories is public.

    Parameters
    ----------
    method
        ``cumulative`` (default): noise on the cumulative histogram, the K-norm mechanism of this statistic.
        ``cyclic-laplace``, ``cyclic-gaussian``: those of Kohli and Laskowski 2026. ``laplace``: noise on each
        bin. ``privelet``: noise on Haar wavelet coefficients. ``hierarchical``: noise on a tree of branching
        16, made consistent by least squares. All noise is integer and exact: two-sided geometric in place of
        Laplace, the exactly rounded Gaussian in place of the Gaussian.
    post
        ``isotonic`` (default): least-squares projection of the cumulative histogram onto those that rise from
        0 to N. ``clip``: negative bins become 0 and the rest is rescaled, as published.

    >>> z = privatize_distribution([0, 0, 1, 3, 9], upper=4, epsilon=1)
    >>> len(z.probabilities), bool(abs(z.probabilities.sum() - 1) < 1e-12)
    (5, True)
    """
    plan = _Privatiser(upper, epsilon, method, post, delta, Unit(contributions, neighbours))
    return plan.run(counts, require_exact(ExactDraws()))


def simulate_distribution(
    counts: Counts,
    upper: int,
    epsilon: Number,
    method: Method = "cumulative",
    *,
    rng: np.random.Generator,
    post: Post = "isotonic",
    delta: Number | None = None,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
) -> Distribution:
    """Simulate ``privatize_distribution`` with seeded floats.

    For experiments, and not private.

    Its probabilities are :class:`~isotone.noise.Simulated`, and no mechanism built on them will release.
    """
    plan = _Privatiser(upper, epsilon, method, post, delta, Unit(contributions, neighbours))
    return plan.run(counts, SeededDraws(rng))


def measure_cumulative(
    table: NDArray[np.int64], upper: int, epsilon: Fraction, unit: Unit, draws: Draws
) -> Distribution:
    """The distribution by the method ``cumulative`` with the given draws, marked as simulated unless they are exact."""
    return _Privatiser(upper, epsilon, "cumulative", "isotonic", None, unit).run(table, draws)


class _Privatiser:
    """The checked public choices of a privatiser, and the noise that goes with them."""

    def __init__(
        self, upper: int, epsilon: Number, method: Method, post: Post, delta: Number | None, unit: Unit
    ) -> None:
        self.upper = whole_number(upper, "upper", least=0)
        self.epsilon = positive(epsilon, "epsilon")
        self.method: Method = one_of(method, "method", get_args(Method))
        self.post: Post = one_of(post, "post", get_args(Post))
        self.strategy = _strategy(self.method, self.upper + 1)
        self.gaussian = self.method == "cyclic-gaussian"
        self.guarantee: Guarantee = unit.pure(self.epsilon)
        if self.gaussian:
            if delta is None:
                raise InputError(
                    "method 'cyclic-gaussian' is (epsilon, delta)-DP: pass delta, e.g. delta='1e-6'."
                )
            slack = share(delta, "delta")
            self.guarantee = unit.approximate(self.epsilon, slack)
            # unit steps add up to a distance of at most `steps` in Euclid's norm, whatever entries they hit
            self.variance = sigma_squared(self.epsilon, slack, unit.steps**2)
        elif delta is not None:
            raise InputError(f"method {method!r} is pure epsilon-DP and takes no delta.")
        else:
            self.rate = unit.per_step(self.epsilon) / max(self.strategy.l1, 1)

    def noise(self, size: int, draws: Draws) -> NDArray[np.int64]:
        """Integer noise of the law that the guarantee needs."""
        if self.gaussian:
            return draws.rounded_gaussians(self.variance, size)
        return draws.geometrics(self.rate, size)

    def run(self, counts: Counts, draws: Draws) -> Distribution:
        """Measure, add noise, estimate, project."""
        table = top_coded(counts, self.upper)
        size = len(table)
        truth = self.strategy.measure(histogram(table, self.upper))
        noisy = truth + self.noise(len(truth), draws)
        bins = self.strategy.estimate(noisy.astype(np.float64), size)
        probabilities = (_isotonic if self.post == "isotonic" else _clip)(bins, size)
        cumulative = _noisy_cumulative(self.strategy, noisy)
        if not isinstance(draws, ExactDraws):
            probabilities = Simulated.wrap(probabilities)
            cumulative = None if cumulative is None else Simulated.wrap(cumulative)
        else:
            probabilities.flags.writeable = False
            if cumulative is not None:
                cumulative.flags.writeable = False
        return Distribution(
            probabilities, self.epsilon, size, self.upper, self.method, self.post, self.guarantee, cumulative
        )


def _strategy(method: Method, n: int) -> HistogramStrategy:
    if method == "cumulative":
        return Cumulative()
    if method == "laplace":
        return Plain()
    if method == "privelet":
        return Haar(n)
    if method == "hierarchical":
        return IntervalHierarchy(n)
    return Cyclic()


def _noisy_cumulative(strategy: HistogramStrategy, noisy: NDArray[np.int64]) -> NDArray[np.int64] | None:
    if isinstance(strategy, Cumulative):
        return noisy
    return noisy[:-1] + noisy[-1] if isinstance(strategy, Cyclic) else None


def _isotonic(bins: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The distribution whose cumulative histogram is nearest to that of ``bins`` in least squares."""
    from scipy.optimize import isotonic_regression

    if size == 0:
        return _uniform(len(bins))
    # the projection onto rising sequences within [0, size] is the unbounded one, clipped
    cumulative = np.clip(isotonic_regression(np.cumsum(bins)[:-1]).x, 0, size) if len(bins) > 1 else bins[:0]
    return np.diff(cumulative, prepend=0.0, append=float(size)) / size


def _clip(bins: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Clip negative bins to 0 and rescale the sum to 1."""
    kept = np.maximum(bins, 0.0)
    total = float(np.sum(kept))
    return kept / total if size > 0 and total > 0 else _uniform(len(bins))


def _uniform(n: int) -> NDArray[np.float64]:
    """What to say of no categories at all, or when every bin was clipped."""
    return np.full(n, 1 / n)
