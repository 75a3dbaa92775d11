"""Count mechanisms that are a sum of ε-scales, released exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise.brackets import powers_of_exp
from isotone.noise.choices.lazy_choice import OPEN, locate
from isotone.privacy.draws import Draws
from isotone.privacy.unit import Unit
from isotone.published.tables.terms import Terms, levels_by_row, row_sums, values_by_row
from isotone.tables.distribution.distribution import DistributionLike
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.matrices.coupling import Remap, draw_remap, single_row, weighted_sums
from isotone.tables.matrices.losses import Loss, loss_rows

__all__ = ["ScaleMechanism", "require_scales", "scale_mechanism"]

_WORD = 64
_STEEPEST = 200.0


@dataclass(frozen=True, eq=False, repr=False)
class ScaleMechanism(CountMechanism):
    """A row of terms, each a multiple of an ε-scale in one column, and a small rest that goes to ``goal``.

    The terms' values are floats, so their rows sum to 1 only up to rounding. The mechanism is defined as
    ``(1 - rest)`` times the terms plus whatever is missing from each row, drawn from ``goal``. What is missing
    is nearly the same in all rows, so it too is private, and the whole is ε-DP in exact arithmetic
    (docs/theory/tables.md, section 7). Release: exact, from that definition: floats decide all draws but those
    within their error bound of a boundary, and big integers decide these.
    """

    terms: Terms = field(kw_only=True)
    goal: Remap = field(kw_only=True)
    rest: Fraction = field(kw_only=True)

    def matrix(self) -> NDArray[np.float64]:
        """The transition matrix, dense."""
        goal = self._goal()
        return np.stack([self._by_column(v) + missing * goal for _, v, missing in self._rows()])

    def output(self, z: DistributionLike) -> NDArray[np.float64]:
        """``z·T``, row by row."""
        p = self._checked(z)
        total, missed = np.zeros(len(self.terms.values)), 0.0
        for i, values, missing in self._rows():
            total += p[i] * values
            missed += p[i] * missing
        return self._by_column(total) + missed * self._goal()

    def count_error(self, z: DistributionLike, loss: Loss = "absolute") -> float:
        """The expected loss, row by row."""
        p, goal = self._checked(z), self._goal()
        costs = loss_rows(loss, self.n)
        total = 0.0
        for i, values, missing in self._rows():
            total += p[i] * float(values @ costs[i][self.terms.columns] + missing * (goal @ costs[i]))
        return total

    def privacy_loss(self) -> float:
        """The largest log-ratio between neighbouring rows.

        Sums within a column are taken in logarithms.
        """
        order = np.argsort(self.terms.columns, kind="stable")
        columns, starts = np.unique(self.terms.columns[order], return_index=True)
        with np.errstate(divide="ignore"):
            logs = np.log(self.terms.values)[order] + math.log1p(-float(self.rest))
            goal = np.log(self._goal())[columns]
        worst, before = 0.0, None
        sums = (missing for _, _, missing in self._rows())
        for levels, missing in zip(levels_by_row(self.terms), sums, strict=True):
            here = np.logaddexp.reduceat(logs - self.step * levels[order], starts)
            here = np.logaddexp(here, goal + math.log(missing))
            if before is not None:
                worst = max(worst, float(np.max(np.abs(here - before))))
            before = here
        return worst

    def error(self) -> Error:
        """Mean squared error given each true count, exact."""
        j, goal = np.arange(self.n, dtype=np.float64), self._goal()
        out = np.empty(self.n)
        for i, values, missing in self._rows():
            out[i] = values @ (self.terms.columns - i) ** 2.0 + missing * (goal @ (j - i) ** 2)
        return Error(out)

    def _draw(self, counts: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        words = draws.words(len(counts))
        chosen = self._choose(counts, words)
        for t in np.flatnonzero(chosen == OPEN):
            chosen[t] = self._settle(int(counts[t]), int(words[t]), draws)
        return self._published(chosen, draws.words(len(counts)))

    def _choose(self, counts: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The term that each word picks from its count's row.

        One past the last is the rest. OPEN if the word is too close to a boundary.
        """
        order = np.argsort(counts, kind="stable")
        bounds = np.searchsorted(counts[order], np.arange(self.n + 1))
        uniform = words.astype(np.float64) / 2.0**_WORD
        chosen = np.empty(len(counts), np.int64)
        margin = self._float_error()
        for i, values, _ in self._rows():
            here = order[bounds[i] : bounds[i + 1]]
            if len(here) == 0:
                continue
            ceilings = np.cumsum(values)
            place = np.searchsorted(ceilings, uniform[here], side="right")
            edges = np.concatenate([[-1.0], ceilings, [2.0]])
            close = (uniform[here] - edges[place] <= margin) | (edges[place + 1] - uniform[here] <= margin)
            chosen[here] = np.where(close, OPEN, place)
        return chosen

    def _settle(self, i: int, word: int, draws: Draws) -> int:
        """The choice for a word that falls too close to a boundary.

        More bits are read until it is decided.
        """
        *_, levels = (
            levels.copy() for levels, _ in zip(levels_by_row(self.terms), range(i + 1), strict=False)
        )
        bits, uniform = _WORD, word
        while True:
            place = locate(uniform, *self._brackets(levels, bits))
            if place != OPEN:
                return place
            bits, uniform = bits + _WORD, uniform << _WORD | int(draws.words(1)[0])

    def _brackets(self, levels: NDArray[np.int64], bits: int) -> tuple[list[int], list[int]]:
        """Integers that bracket ``2**bits`` times each weight of a row.

        The last is the rest.
        """
        width = bits + _WORD
        powers = powers_of_exp(self.unit.per_step(self.epsilon), int(levels.max()), width)
        lower, upper = [], []
        for value, level in zip(self.terms.values, levels, strict=True):
            share = (1 - self.rest) * Fraction(float(value))
            low, high = powers[level]
            lower.append((share.numerator * low // share.denominator) >> _WORD)
            upper.append(-((-share.numerator * high // share.denominator) >> _WORD))
        unit = 1 << bits
        return [*lower, unit - sum(upper)], [*upper, unit - sum(lower)]

    def _published(self, chosen: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        fallback = draw_remap(
            np.zeros_like(chosen), words, self.goal.starts, self.goal.columns, self.goal.ceilings
        )
        return np.where(chosen < len(self.terms.values), np.append(self.terms.columns, 0)[chosen], fallback)

    def _log_entries(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        out, goal = np.empty(len(rows)), self._goal()
        with np.errstate(divide="ignore"):
            for i, values, missing in self._rows():
                here = rows == i
                if np.any(here):
                    out[here] = np.log(self._by_column(values) + missing * goal)[columns[here]]
        return out

    def _rows(self) -> Iterator[tuple[int, NDArray[np.float64], float]]:
        """The value of each term and what is missing, row by row."""
        for i, values in enumerate(values_by_row(self.terms, self.step)):
            values *= 1 - float(self.rest)
            yield i, values, 1.0 - float(np.sum(values))

    def _by_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted_sums(self.terms.columns, values, self.n)

    def _goal(self) -> NDArray[np.float64]:
        return self.goal.weights

    def _float_error(self) -> float:
        return float_error(len(self.terms.values))

    def __repr__(self) -> str:
        return f"ScaleMechanism(counts 0..{self.upper}, {len(self.terms.values)} terms, {self.guarantee})"


def float_error(terms: int) -> float:
    """A bound on the error of a float sum of up to ``terms`` terms of a row, each a value times a power of a.

    A power ``exp(-x)`` with ``x <= 745`` has a relative error below 1500 roundings, most of it from x; a sum
    of positive numbers adds one rounding for each term. Doubled, and with room for that of a uniform.
    """
    return (terms + 4096) * 2.0**-52


def require_scales(epsilon: float) -> None:
    """Refuse an ε per step so large that one step of a scale leaves the range of floats."""
    if epsilon > _STEEPEST:
        raise InputError(
            f"An epsilon of {epsilon:g} for each step is beyond what sums of scales can represent (at most "
            f"{_STEEPEST:g}). Use constructor='optimal', which has no such limit."
        )


def scale_mechanism(
    terms: Terms, goal: NDArray[np.float64], epsilon: Fraction, unit: Unit, simulated: bool
) -> ScaleMechanism:
    """The mechanism of ``terms``, with the least rest that makes it private in exact arithmetic.

    If all row sums of the terms are within d of 1, what is missing from ``1 - rest`` of them is within d of
    ``rest``: its neighbouring entries are within a factor ``exp(ε)`` once ``rest·(1 - a) >= 2d``.
    """
    step = float(unit.per_step(epsilon))
    worst = float(np.max(np.abs(row_sums(terms, step) - 1)))
    worst += float_error(len(terms.values))
    bound = 4 * worst / -math.expm1(-step)  # twice what is needed, for the rounding in this very line
    if not bound < 2.0**-10:
        raise InputError(
            f"For counts 0..{terms.n - 1} and epsilon {float(epsilon):g} rounding is too coarse to build this "
            "mechanism as a sum of scales. Use constructor='optimal', which has no such limit."
        )
    rest = Fraction(1, 1 << math.floor(-math.log2(bound)))
    return ScaleMechanism(terms.n, epsilon, unit, simulated, terms=terms, goal=single_row(goal), rest=rest)
