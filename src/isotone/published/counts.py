"""K-norm mechanisms of ℓp balls, for comparison.

They have simulation, error and density, but no release.

The noise has density proportional to ``exp(-epsilon·‖y‖_p / sensitivity)``. The mechanism of the order's own
ball is at least as good as any of them, and none is the best of what can be released
(docs/theory/baselines.md, section 3), so an exact integer sampler is not worth having.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.mechanism import AdditiveMechanism, Counts, deviation
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.privacy.checks import Number, exact
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import Guarantee, Neighbours


@dataclass(frozen=True, init=False)
class LpMechanism(AdditiveMechanism):
    """Counts with noise shaped by the ℓp ball that contains every record (``p`` at least 1, finite).

    The ball has radius ``contributions · coordinates^(1/p)`` where ``coordinates`` is ``max_size`` or the
    number of elements. There is no release: see the module's first lines for why.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 3).
    Error: exact (Joseph, Ribero and Yu 2025, Lemma 4.1).

    >>> from isotone.order import Poset
    >>> LpMechanism(Poset.chain("abc"), epsilon=1, p=1).error().variance
    array([18., 18., 18.])
    """

    can_release: ClassVar[bool] = False

    p: Fraction

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        p: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        exponent = exact(p, "p")
        if exponent < 1:
            raise InputError(
                f"p must be at least 1, not {p!r}: below, the ball is not convex and has no norm."
            )
        self._set(p=exponent)

    @property
    def radius(self) -> float:
        """The ℓp sensitivity.

        The radius of the smallest ball that holds every change by one unit.
        """
        return self.sensitivity.records * self.sensitivity.coordinates ** float(1 / self.p)

    def norm(self, y: ArrayLike) -> NDArray[np.float64]:
        """The ℓp norm in units of the sensitivity.

        It is 1 for the largest change by one unit.
        """
        magnitudes, p = np.abs(deviation(self.P, y, None)), float(self.p)
        largest = np.max(magnitudes, axis=-1, keepdims=True)  # divided out, so that powers cannot overflow
        scaled = magnitudes / np.where(largest > 0, largest, 1.0)
        return largest[..., 0] * np.sum(scaled**p, axis=-1) ** (1 / p) / self.radius

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        from scipy.special import gammaln

        n, p, rate = len(self.P), float(self.p), float(self.epsilon) / self.radius
        log_volume = n * (math.log(2) + gammaln(1 + 1 / p)) - gammaln(1 + n / p)
        constant = n * math.log(rate) - gammaln(n + 1) - log_volume
        return constant - float(self.epsilon) * self.norm(deviation(self.P, output, counts))

    def error(self) -> Error:
        """The exact variance of the noise, the same for every count."""
        n = len(self.P)
        total = (n + 1) * (n + 2) * squared_norm_of_ball(n, float(self.p))
        return Error(np.full(n, total * (self.radius / float(self.epsilon)) ** 2 / n))

    @cached_property
    def _unrounded(self) -> NDArray[np.float64]:
        # no release has this noise, so nobody needs to draw the same numbers again
        return np.asarray(self.simulate(self.law_draws, np.random.default_rng(0)), dtype=np.float64)

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row.

        They are not private and serve planning only.

        A direction from independent numbers of density exp(-|t|^p), a norm from Gamma(n).
        """
        n, p = len(self.P), float(self.p)
        signs = rng.choice([-1.0, 1.0], size=(size, n))
        # log Gamma(1/p) as log Gamma(1 + 1/p) + p·log U: the direct draw underflows when p is large
        logs = (
            np.log(rng.standard_gamma(1 + 1 / p, size=(size, n))) + p * np.log1p(-rng.random((size, n)))
        ) / p
        point = signs * np.exp(logs - np.max(logs, axis=1, keepdims=True))
        lengths = rng.standard_gamma(n, size=(size, 1)) / float(self.epsilon)
        return Simulated.wrap(point / self.norm(point)[:, None] * lengths)

    def release(self, counts: Counts) -> NoReturn:
        """Raise an error, since there is no exact sampler for this ball."""
        raise InputError(
            f"{type(self).__name__} cannot release: it exists for comparison and has no exact sampler. Use "
            "PosetMechanism or LInfinityMechanism, or let plan() choose."
        )

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        self.release([])


@dataclass(frozen=True, init=False)
class L2Mechanism(LpMechanism):
    """Counts with noise shaped by the Euclidean ball.

    This is :class:`LpMechanism` with ``p = 2``.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 3).

    >>> from isotone.order import Poset
    >>> L2Mechanism(Poset.chain("abc"), epsilon=1).error().variance
    array([12., 12., 12.])
    """

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> None:
        super().__init__(P, epsilon, 2, neighbours, contributions, max_size)


def squared_norm_of_ball(n: int, p: float) -> float:
    """The expected squared Euclidean norm of a uniform point of the unit ℓp ball in n dimensions.

    ``p`` may be infinite. Joseph, Ribero and Yu 2025, Lemma 4.1.

    >>> squared_norm_of_ball(3, math.inf), round(squared_norm_of_ball(2, 2), 12)
    (1.0, 0.5)
    """
    from scipy.special import gammaln

    if math.isinf(p):
        return n / 3
    logs = gammaln(n / p) + gammaln(3 / p) - gammaln(1 / p) - gammaln((n + 2) / p)
    return float(n**2 / (n + 2) * np.exp(logs))
