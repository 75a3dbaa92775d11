"""What every way to measure a table can do."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.privacy.draws import Draws
from isotone.tables.estimate.beliefs import Beliefs

__all__ = ["Measurement"]


class Measurement(Protocol):
    """Noise on cumulative numbers at ``places``, and on counts up to ``upper``, and what both tell."""

    @property
    def upper(self) -> int:
        """The largest count."""
        ...

    @property
    def places(self) -> tuple[int, ...]:
        """The thresholds that are measured."""
        ...

    @property
    def finer(self) -> tuple[int, ...]:
        """The thresholds between them that were measured after a look at the first, which is a private output."""
        ...

    def with_finer(self, finer: tuple[int, ...]) -> Measurement:
        """The same measurement with these thresholds between the first, refused if it cannot have them."""
        ...

    def measure(self, table: Ints, draws: Draws) -> tuple[Measurement, Ints, Ints]:
        """The measurement as it was made, noisy cumulative numbers and noisy counts. Nothing else reads the table."""
        ...

    def histogram(self, cumulative: Ints, noisy: Ints) -> tuple[NDArray[np.float64], str]:
        """The histogram that both tell, and the model it comes from."""
        ...

    def seen(self, noisy: Ints) -> Ints:
        """What a posterior is computed from."""
        ...

    def beliefs(self, probabilities: NDArray[np.float64], size: int) -> Beliefs:
        """The posteriors of the true counts."""
        ...

    def channel(self) -> NDArray[np.float64]:
        """The probability of every noisy count within 0..upper (clamped), given every true count."""
        ...

    def readings(self, unbiased: float) -> list[int]:
        """What a posterior may have been computed from, given a published unbiased count, rounded to four digits."""
        ...

    def unbiased(self, noisy: Ints) -> NDArray[np.float64]:
        """For each noisy count an estimate whose mean is the true count."""
        ...

    def errors(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far :meth:`unbiased` is from a true count, and with which probabilities.

        Where no thresholds are measured it is the same for every count.
        """
        ...

    def widest(self, many: bool) -> list[int]:
        """True counts among which the widest :meth:`errors` are.

        The sum of many is widest for the largest variances, that of a few need not be.
        """
        ...

    @property
    def deviation(self) -> float:
        """The largest standard deviation of :meth:`unbiased` over all true counts, a public number."""
        ...
