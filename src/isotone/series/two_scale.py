"""Noise on two scales of time: a coarse draw at a few periods, a fine one at every period.

Both draws are those of :class:`~isotone.counts.knorm.PosetMechanism`, and least squares combine them
before any data exist. One draw over a long product has errors that grow from period to period; the coarse draw ties
them down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.knorm import PosetMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.privacy.checks import Number, one_of, whole_number
from isotone.privacy.checks import share as checked_share
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import Guarantee

GAIN_BITS = 20
"""The gain is given in whole numbers of ``2**-GAIN_BITS``."""

Fine = Literal["product", "chains"]


def over_time(stages: Poset, periods: int) -> Poset:
    """The order of histories: who reached a stage has reached what is above it, and in every later period.

    The counts of one period stand together. Names are texts, as relaxations that were published name them.
    """
    product = Poset.product(Poset.chain(range(periods)), stages)
    return product.rename(lambda place: f"{place[0]} {place[1]}")


class Scales(NamedTuple):
    """The periods of the coarse draw, its share of epsilon, and whether the fine draw has all relations or those in time."""

    anchors: Sequence[int]
    share: Any
    fine: Fine

    def checked(self, periods: int) -> Scales:
        """The same as plain values, for so many periods."""
        anchors = tuple(whole_number(t, "anchors", least=0, most=periods - 1) for t in self.anchors)
        if not anchors or sorted(set(anchors)) != list(anchors):
            raise InputError("anchors must be periods, counted from 0, in the sequence of time, each once.")
        fine = one_of(self.fine, "fine", ("product", "chains"))
        return Scales(anchors, checked_share(self.share, "share"), fine)


@dataclass(frozen=True, init=False)
class TwoScaleMechanism(AdditiveMechanism):
    """Counts of stages reached by the end of each period, with noise that is drawn on two scales.

    The coarse draw is shaped by the order over the periods ``anchors``, with ``share`` of epsilon; the fine one has the
    rest, for every period, over all relations (``fine="product"``) or over those in time alone (``"chains"``). The noise is
    ``fine + gain · (coarse − fine at the anchors)`` with the whole numbers of ``gain`` over ``2**20``, rounded coordinate by
    coordinate: half a step up, then down. Whatever the gain, a change of the counts passes through it unchanged.

    Guarantee: epsilon-DP for ``neighbours``, also where later periods react to earlier ones (docs/theory/series.md,
    sections 2 and 3).
    Error: ``error()`` needs no data; the gain is that of least squares.

    >>> m = TwoScaleMechanism(Poset.chain(["dose 2", "dose 1"]), 6, 1, Scales((2, 5), "0.3", "chains"))
    >>> m.release([0] * 12).shape
    (12,)
    """

    stages: Poset
    periods: int
    scales: Scales
    gain: NDArray[np.int64] = field(repr=False, compare=False)
    coarse_noise: PosetMechanism = field(repr=False, compare=False)
    fine_noise: PosetMechanism = field(repr=False, compare=False)

    def __init__(
        self,
        stages: Poset,
        periods: int,
        epsilon: Number | Guarantee,
        scales: Scales,
        contributions: int = 1,
        *,
        gain: ArrayLike | None = None,
        relaxations: Any = (None, None),
    ) -> None:
        length = whole_number(periods, "periods")
        checked = scales.checked(length)
        self._set(stages=stages, periods=length, scales=checked)
        guarantee = epsilon if isinstance(epsilon, Guarantee) else Guarantee.pure(epsilon)
        if guarantee.kind != "pure":
            raise InputError("Noise on two scales is for pure ε.")
        self._settle(over_time(stages, length), guarantee, contributions, None)
        fine_stages = stages if checked.fine == "product" else Poset.antichain(stages.elements)
        parts = (
            ("coarse_noise", over_time(stages, len(checked.anchors)), checked.share),
            ("fine_noise", over_time(fine_stages, length), 1 - checked.share),
        )
        for (name, order, part), relaxation in zip(parts, relaxations, strict=True):
            given = guarantee.epsilon * part, guarantee.neighbours, self.contributions
            self._set(**{name: PosetMechanism(order, *given, relaxation=relaxation)})
        self._set(gain=self._least_squares_gain() if gain is None else self._checked_gain(gain))

    @property
    def anchored(self) -> Ints:
        """The positions of the counts that the coarse draw is about."""
        return np.arange(len(self.P)).reshape(self.periods, -1)[list(self.scales.anchors)].ravel()

    def _least_squares_gain(self) -> Ints:
        fine, coarse = self.fine_noise.covariance(), self.coarse_noise.covariance()
        gain = np.linalg.solve(fine[np.ix_(self.anchored, self.anchored)] + coarse, fine[self.anchored])
        return np.rint(gain.T * 2**GAIN_BITS).astype(np.int64)

    def _checked_gain(self, gain: ArrayLike) -> Ints:
        given = np.asarray(gain)
        if given.dtype.kind != "i" or given.shape != (len(self.P), self.anchored.size):
            raise InputError(f"gain must be {len(self.P)} rows of {self.anchored.size} whole numbers.")
        if np.abs(given).max() > 2 ** (GAIN_BITS + 8):
            raise InputError("gain must be small multiples of one: no number above 256.")
        return given.astype(np.int64)

    def _combined(self, fine: Any, coarse: Any, gain: Any) -> Any:
        """The noise from draws in whole numbers, a row each: ``floor(η + ½)`` in integers."""
        scaled = fine * 2**GAIN_BITS + (coarse - fine[..., self.anchored]) @ gain.T
        return (scaled + 2 ** (GAIN_BITS - 1)) // 2**GAIN_BITS

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        parts = (self.fine_noise, self.coarse_noise)
        # each part draws its own bits; Python's integers, as no sum may wrap
        fine, coarse = (part.release(np.zeros(len(part.P), np.int64)).astype(object) for part in parts)
        return self._combined(fine, coarse, self.gain.astype(object)).astype(np.int64)

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` draws of the noise, one per row, for planning only, as they are not private."""
        return self._simulated(size, rng, independent=False)

    def simulate_independent(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate like :meth:`simulate`, with rows that are independent of each other."""
        return self._simulated(size, rng, independent=True)

    simulate_released = simulate_independent

    def _simulated(self, size: int, rng: np.random.Generator, *, independent: bool) -> Simulated:
        def drawn(part: PosetMechanism) -> Floats:
            rows = part.simulate_independent(size, rng) if independent else part.simulate(size, rng)
            return np.floor(np.asarray(rows) + 0.5)

        # whole numbers below 2**53, so that products of floats are exact
        fine, coarse = drawn(self.fine_noise), drawn(self.coarse_noise)
        return Simulated.wrap(self._combined(fine, coarse, self.gain.astype(np.float64)))

    @property
    def law_draws(self) -> int:
        """How many draws the law has, as many as the slower part."""
        return min(self.fine_noise.law_draws, self.coarse_noise.law_draws)

    @property
    def rounding(self) -> float:
        """The noise is drawn as whole numbers."""
        return 0.0

    @property
    def whole_parts(self) -> NDArray[np.float64] | float | None:
        """The least variance of the whole numbers that noise is a weighted sum of."""
        return None

    @cached_property
    def _covariances(self) -> tuple[Floats, float]:
        """What least squares make of both parts, with what three roundings add."""
        gain = self.gain / 2**GAIN_BITS
        rest = np.eye(len(self.P))
        rest[:, self.anchored] -= gain
        fine, coarse = (
            part.covariance() + np.diag(part.rounding_variance())
            for part in (self.fine_noise, self.coarse_noise)
        )
        matrix = rest @ fine @ rest.T + gain @ coarse @ gain.T + np.eye(len(self.P)) / 12
        return matrix, max(self.fine_noise.covariance_error(), self.coarse_noise.covariance_error())

    def error(self) -> Error:
        """The variance of the noise on each count, rounding included."""
        matrix, spread = self._covariances
        variance = np.diag(matrix).copy()
        return Error(variance, "simulated", 2 * spread * variance) if spread else Error(variance)

    def part(self, share: Fraction) -> Self:
        """Refused: both draws belong to one whole."""
        raise InputError("Noise on two scales is one draw for the whole series and has no parts.")

    def __str__(self) -> str:
        number, share = len(self.scales.anchors), float(self.scales.share)
        return f"noise on two scales, {number} period{'s' * (number != 1)} with {100 * share:.0f} % of ε"
