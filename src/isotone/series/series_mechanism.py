"""The noise of a whole series, drawn once, and its errors over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.knorm import PosetMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.order.bipartitions.counting import within_reach
from isotone.privacy.checks import one_of
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import ADDING, Guarantee, Unit
from isotone.series.causal import CausalGaussianMechanism
from isotone.series.two_scale import Scales, TwoScaleMechanism, over_time

LARGEST = 1000
"""So many counts, stages times periods, a series has at most."""


@dataclass(frozen=True, init=False)
class SeriesMechanism(AdditiveMechanism):
    """Counts of those who reached each stage by the end of each period, all of them one release.

    ``noise`` is the mechanism over stages and periods: one draw of the poset mechanism, noise on two scales, or Gaussian
    noise with a causal factor. Stages with exclusive options are running totals there. All noise is drawn before any
    data exist, and each period's part is added to that period's counts. The number of records is never part of it.

    Guarantee: that of ``noise``, for streams that react to what was shown (docs/theory/series.md, sections 2 to 4), if
    what a unit adds is the indicator of a growing sequence of filters, as the register sees to (section 1).
    Error: ``error()`` needs no data.
    """

    stages: Poset
    periods: int
    noise: AdditiveMechanism = field(repr=False)

    def __init__(self, stages: Poset, periods: int, noise: AdditiveMechanism) -> None:
        if over_time(stages.coding.order, periods) != noise.P:
            raise InputError("The noise is not that of these stages and periods.")
        self._set(stages=stages, periods=periods, noise=noise)
        self._settle(over_time(stages, periods), noise.guarantee, noise.contributions, None)

    def _rows(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Numbers of the coded order (last axis) by period and stage."""
        totals = numbers.reshape(*numbers.shape[:-1], self.periods, len(self.stages.coding.order))
        return self.stages.coding.decode(totals)

    def _counts(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return self._rows(numbers).reshape(*numbers.shape[:-1], len(self.P))

    def draw(self) -> Ints:
        """All noise of the series from cryptographic bits, a row for each period."""
        return self._rows(self.noise.release(np.zeros(len(self.noise.P), np.int64)))

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return self.draw().ravel()

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` draws of the noise, one per row, for planning only, as they are not private."""
        return Simulated.wrap(self._counts(np.asarray(self.noise.simulate(size, rng))))

    def simulate_independent(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate like :meth:`simulate`, with rows that are independent of each other."""
        return Simulated.wrap(self._counts(np.asarray(self.noise.simulate_independent(size, rng))))

    def simulate_released(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the whole numbers that are added to the counts, in independent rows."""
        return Simulated.wrap(self._counts(np.asarray(self.noise.simulate_released(size, rng))))

    @property
    def law_draws(self) -> int:
        """How many draws the law has."""
        return self.noise.law_draws

    @property
    def rounding(self) -> float:
        """How far rounding moves a released count at most."""
        return self.noise.rounding * (2 if self.stages.choices else 1)

    @cached_property
    def _covariances(self) -> tuple[Floats, float]:
        matrix = self._counts(self._counts(self.noise.covariance()).T)
        return matrix, self.noise.covariance_error()

    def error(self) -> Error:
        """The variance of the noise on each count."""
        if not self.stages.choices:
            return self.noise.error()
        matrix, spread = self._covariances
        variance = np.diag(matrix).copy()
        return Error(variance, "simulated", 2 * spread * variance) if spread else Error(variance)

    def change_sd(self, since: int, period: int) -> Floats:
        """The standard deviation of the noise on what is new in each stage at ``period`` since an earlier one.

        Periods count from 0; since -1 nothing is subtracted.
        """
        matrix = self.covariance()
        places = np.arange(len(self.P)).reshape(self.periods, -1)
        now = places[period]
        variance = np.diag(matrix)[now]
        if since >= 0:
            before = places[since]
            variance = variance + np.diag(matrix)[before] - 2 * matrix[now, before]
        return np.sqrt(np.maximum(variance, 0))

    def errors(self) -> dict[str, float]:
        """Root mean squares of the noise on all counts, on those of the last period, and on changes from period to period."""
        by_period = self.error().variance.reshape(self.periods, -1)
        changes = [self.change_sd(t - 1, t) ** 2 for t in range(self.periods)]
        squares = {"all": by_period, "last": by_period[-1], "changes": np.array(changes)}
        return {name: float(np.sqrt(np.mean(square))) for name, square in squares.items()}

    def part(self, share: Fraction) -> Self:
        """Refused: the series is one draw."""
        raise InputError("The noise of a series is one draw for the whole series and has no parts.")

    def recipe(self) -> dict[str, Any]:
        """What makes this mechanism again from its stages and periods, as plain values."""
        numbers = {name: getattr(self.guarantee, name) for name in ("epsilon", "delta", "rho")}
        plain: dict[str, Any] = {
            "name": _NAMES[type(self.noise)],
            **{name: str(number) for name, number in numbers.items() if number},
            "neighbours": self.neighbours,
            "contributions": self.contributions,
        }
        if isinstance(self.noise, TwoScaleMechanism):
            noise = self.noise
            relaxations = [_relaxation(part) for part in (noise.coarse_noise, noise.fine_noise)]
            anchors, share, fine = noise.scales
            plain |= {"anchors": list(anchors), "share": str(share), "fine": fine}
            plain |= {"relaxations": relaxations, "gain": noise.gain.tolist()}
        elif isinstance(self.noise, PosetMechanism):
            plain["relaxations"] = [_relaxation(self.noise)]
        return plain


_NAMES: dict[type, str] = {
    PosetMechanism: "product",
    TwoScaleMechanism: "two scales",
    CausalGaussianMechanism: "causal Gaussian",
}


def _relaxation(part: PosetMechanism) -> dict[str, Any] | None:
    # with the draws of its law, so that a recipe is the same before and after errors were asked for
    result = part.sampler.described(part.law_draws, always=True)
    return None if result is None else result.plain()


def rebuild(stages: Poset, periods: int, recipe: Mapping[str, Any]) -> SeriesMechanism:
    """The mechanism that :meth:`SeriesMechanism.recipe` describes."""
    given = dict(recipe)
    name = one_of(given.pop("name", None), "name", _NAMES.values())
    order = stages.coding.order
    relaxations = given.pop("relaxations", [])
    if name == "causal Gaussian":
        budget = (given.pop(name, None) for name in ("epsilon", "delta", "rho"))
        guarantee = Unit(neighbours=given.pop("neighbours", ADDING)).guarantee(*budget)
        return SeriesMechanism(stages, periods, CausalGaussianMechanism(order, periods, guarantee, **given))
    known = [None if plain is None else Relaxation.from_plain(plain) for plain in relaxations]
    if name == "product":
        whole = over_time(order, periods)
        (relaxation,) = known
        _require_known(whole, relaxation)
        return SeriesMechanism(stages, periods, PosetMechanism(whole, relaxation=relaxation, **given))
    coarse, fine = known
    scales = Scales(*(given.pop(name) for name in Scales._fields))
    _require_known(over_time(order, len(scales.anchors)), coarse)
    if scales.fine == "product":
        _require_known(over_time(order, periods), fine)
    guarantee = Guarantee.pure(given.pop("epsilon"), neighbours=given.pop("neighbours", ADDING))
    noise = TwoScaleMechanism(order, periods, guarantee, scales, relaxations=(coarse, fine), **given)
    return SeriesMechanism(stages, periods, noise)


def _require_known(P: Poset, relaxation: Relaxation | None) -> None:
    """Refuse a recipe that would have to be searched for, which could take hours."""
    if relaxation is None and P.height > 2 and not within_reach(P.canonical.order):
        raise InputError("The order is beyond exact reach, and the recipe names no relaxation of it.")
