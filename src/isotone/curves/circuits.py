"""Circuits that choose among ideals, with exact totals of any width."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.array_types import Bools, Floats, Ints
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.noise.bits import exp_negative, log_two
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact

# The totals of a circuit in integers of any size.
#
# For the rare draw that the floats of :mod:`isotone.curves.circuits` leave open.

Bracket = tuple[int, int, int]
"""``(lower, upper, exponent)``: a number between ``lower·2**exponent`` and ``upper·2**exponent``."""

GUARD = 64
ONE: Bracket = (1, 1, 0)


class WideTotals:
    """Totals of a circuit as brackets of any precision, computed when first asked for."""

    def __init__(
        self, summed: NDArray[np.bool_], first: Ints, child: Ints, costs: Ints, rate: Fraction
    ) -> None:
        self._summed, self._first, self._child = summed, first, child
        self._costs, self._rate = costs, rate
        self._totals: dict[int, list[Bracket]] = {}

    def brackets(self, nodes: list[int], bits: int, scale: int) -> tuple[list[int], list[int]]:
        """Integers that bracket ``2**(bits − scale)`` times the totals of the given nodes."""
        if bits not in self._totals:
            self._totals[bits] = self._compute(bits + GUARD)
        totals = self._totals[bits]
        lower = [_shift(totals[node][0], bits - scale + totals[node][2]) for node in nodes]
        upper = [-_shift(-totals[node][1], bits - scale + totals[node][2]) for node in nodes]
        return lower, upper

    def _compute(self, precision: int) -> list[Bracket]:
        weights: dict[int, Bracket] = {0: ONE}
        totals: list[Bracket] = []
        bounds = self._first.tolist()
        for node, (cost, summed) in enumerate(zip(self._costs.tolist(), self._summed.tolist(), strict=True)):
            if cost not in weights:
                weights[cost] = _weight(self._rate * cost, precision)
            parts = [totals[other] for other in self._child[bounds[node] : bounds[node + 1]].tolist()]
            if summed:
                total = _add_wide(parts, precision)
            else:
                total = ONE
                for part in parts:
                    total = _trim(_times(total, part), precision)
            totals.append(_trim(_times(total, weights[cost]), precision))
        return totals


def _weight(x: Fraction, precision: int) -> Bracket:
    """``exp(−x)`` for ``x`` of either sign, with as many binary digits for large ``x`` as for small."""
    extra = precision + x.numerator.bit_length() + 8
    low, high = log_two(extra)
    octaves = floor(x * (1 << extra) / high)
    # high bounds ln 2 from above and low from below, whatever the sign of the number of octaves
    ends = (x - Fraction(octaves * high, 1 << extra), x - Fraction(octaves * low, 1 << extra))
    bits = precision + 8
    least, most = max(Fraction(0), min(ends)), max(Fraction(0), *ends)
    return exp_negative(most, bits)[0], _above(min(ends), least, bits), -octaves - bits


def _above(end: Fraction, least: Fraction, bits: int) -> int:
    """An upper bound of ``2**bits·exp(−end)``, also where the bracket of the rest reaches just below 0."""
    if end >= 0:
        return exp_negative(least, bits)[1]
    return (1 << bits) + floor(-2 * end * (1 << bits)) + 1  # exp(t) <= 1 + 2t for t up to 1


def _times(a: Bracket, b: Bracket) -> Bracket:
    return a[0] * b[0], a[1] * b[1], a[2] + b[2]


def _add_wide(parts: list[Bracket], precision: int) -> Bracket:
    parts = [part for part in parts if part[1]]
    if not parts:
        return 0, 0, 0
    # digits far below the largest part are rounded away, outward
    lowest = max(part[1].bit_length() + part[2] for part in parts) - 2 * precision
    exponent = max(min(part[2] for part in parts), lowest)
    lower = sum(_shift(part[0], part[2] - exponent) for part in parts)
    upper = sum(-_shift(-part[1], part[2] - exponent) for part in parts)
    return lower, upper, exponent


def _trim(number: Bracket, precision: int) -> Bracket:
    lower, upper, exponent = number
    spare = upper.bit_length() - precision - 2
    if spare <= 0:
        return number
    return lower >> spare, -(-upper >> spare), exponent + spare


def _shift(value: int, places: int) -> int:
    """``value·2**places``, rounded down."""
    return value << places if places >= 0 else value >> -places


# Circuits that choose among ideals.

# Sums of products, and exact draws from them. How whole curves, and ideals and functions on an order, are chosen.
#
# A circuit has one root. A *sum* node chooses one of its children, a *product* node takes them all; and a node of cost
# ``c`` multiplies by ``exp(−rate·c)``. A draw from the root picks a selection of nodes with weight
# ``exp(−rate · sum of their costs)``: totals are computed from the leaves up, and the choices made from the root down.
# A circuit in which no product has two children is a graph of paths (docs/theory/curves-posets.md, section 3).
#
# Totals are floats with a running bound on their error; a choice that falls within the bound is decided by recomputing
# them with integers of any size. So the draw is exact whatever the rounding.

MOST_EDGES = 20_000_000
UNIT = 2.0**-53
"""The largest relative error of one rounded floating-point operation."""
SERIES = np.array([1.0 / math.factorial(order) for order in range(16, -1, -1)])


@dataclass(frozen=True)
class Circuit:
    """A public circuit. Children before their parents, the root last, ``child[first[i]:first[i + 1]]`` those of ``i``.

    A product without children has the total 1, and a sum without children the total 0: it is never chosen.
    """

    summed: Bools = field(repr=False)
    first: Ints = field(repr=False)
    child: Ints = field(repr=False)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.summed.size

    @classmethod
    def of_paths(cls, nodes: int, lower: Ints, upper: Ints, source: Bools) -> Circuit:
        """All paths from a source to the last node along the edges from ``lower`` to ``upper``, which only go up."""
        if lower.size > MOST_EDGES:
            raise InputError(
                f"This grid needs a graph of {lower.size:,} edges, and {MOST_EDGES:,} is the limit: take fewer points of "
                "x (x_grid) or fewer values (value_levels)."
            )
        order = np.argsort(upper, kind="stable")
        first = np.searchsorted(upper[order], np.arange(nodes + 1))
        return cls(~source, first.astype(np.int64), lower[order].astype(np.int64))

    def children(self, node: int) -> Ints:
        """The children of a node."""
        return self.child[self.first[node] : self.first[node + 1]]


def descend(circuit: Circuit, choose: Callable[[int], int]) -> Ints:
    """The nodes of a selection, walked down from the root. ``choose(node)`` picks the place of a sum's child."""
    waiting = [circuit.nodes - 1]
    selected: list[int] = []
    while waiting:
        node = waiting.pop()
        selected.append(node)
        children = circuit.children(node)
        if circuit.summed[node]:
            waiting.append(int(children[0 if children.size == 1 else choose(node)]))
        else:
            waiting.extend(children.tolist())
    return np.array(selected, dtype=np.int64)


def cheapest(circuit: Circuit, costs: Ints) -> Ints:
    """The nodes of a selection of least cost, root first. Of several, that with the first children."""
    chosen = _cheapest(circuit.summed, circuit.first, circuit.child, costs)
    return descend(circuit, lambda node: int(chosen[node]))


class CircuitTables:
    """For every node the total weight of its selections, as ``mantissa · 2**exponent``.

    ``error[i]`` bounds the absolute error of the logarithm of node ``i``'s total.
    """

    def __init__(self, circuit: Circuit, costs: Ints, rate: Fraction) -> None:
        self._circuit = circuit
        self._wide = WideTotals(circuit.summed, circuit.first, circuit.child, costs, rate)
        self._mantissa, self._exponent, self._error = _totals(
            circuit.summed, circuit.first, circuit.child, costs, float(rate)
        )

    def weights(self, node: int) -> Floats:
        """Floats proportional to the totals of a node's children (for simulation)."""
        children = self._circuit.children(node)
        shift = self._exponent[children] - self._scale(children)
        return np.ldexp(self._mantissa[children], np.clip(shift, -1000, 0))

    def _scale(self, children: Ints) -> int:
        """The largest exponent of a child that can be chosen."""
        return int(self._exponent[children][self._mantissa[children] > 0].max())

    def log_total(self) -> float:
        """The natural logarithm of the total weight of all selections."""
        return float(np.log(self._mantissa[-1]) + self._exponent[-1] * np.log(2.0))

    def brackets(self, node: int, bits: int) -> tuple[list[int], list[int]]:
        """Integers that bracket ``2**bits`` times the totals of the node's children, relative to the largest."""
        children = self._circuit.children(node)
        exponents = self._exponent[children].tolist()
        errors = self._error[children].tolist()
        scale = self._scale(children)
        if bits > 64 or max(errors) > 0.25:
            return self._wide.brackets(children.tolist(), bits, scale)
        lower: list[int] = []
        upper: list[int] = []
        for mantissa, exponent, error in zip(
            self._mantissa[children].tolist(), exponents, errors, strict=True
        ):
            whole = int(mantissa * 2.0**60)  # exact: a mantissa has 53 bits and is below 1
            slack = int(whole * (2.0 * error)) + 1 if whole else 0  # e^±error is within 1 ± 2·error up to 1/2
            shift = bits - 60 + exponent - scale
            lower.append(_shifted(max(0, whole - slack), shift))
            upper.append(-_shifted(-(whole + slack), shift))
        return lower, upper


def _shifted(value: int, places: int) -> int:
    """``value·2**places``, rounded down."""
    return value << places if places >= 0 else value >> -places


@kernel
def _exp(x: float) -> tuple[float, int]:
    """``exp(−x)`` as a float in (0.7, 1.5) and a power of two, by operations whose rounding is known.

    Only additions and multiplications: no assumption about a library's ``exp`` (docs/theory/curves-posets.md,
    section 3).
    """
    octaves = math.floor(x * 1.4426950408889634 + 0.5)
    rest = octaves * 0.6931471805599453 - x
    total = SERIES[0]
    for order in range(1, SERIES.size):
        total = total * rest + SERIES[order]
    return total, -octaves


@kernel(steps=lambda summed, first, child, *_: summed.size + child.size)
def _totals(summed: Bools, first: Ints, child: Ints, costs: Ints, rate: float) -> tuple[Floats, Ints, Floats]:
    """Totals of all nodes in one pass, with a running bound on the error of their logarithms."""
    nodes = summed.size
    mantissa = np.empty(nodes)
    exponent = np.empty(nodes, np.int64)
    error = np.empty(nodes)
    for node in range(nodes):
        start, stop = int(first[node]), int(first[node + 1])
        if summed[node]:
            total, power, slack = _add(mantissa, exponent, error, child, start, stop)
        else:
            total, power, slack = 1.0, 0, 0.0
            for edge in range(start, stop):
                other = child[edge]
                total, shift = math.frexp(total * float(mantissa[other]))
                power += int(exponent[other]) + shift
                slack += float(error[other])
        octaves = 0
        if costs[node] != 0:
            x = rate * costs[node]
            weight, octaves = _exp(x)
            total *= weight
            slack += (64.0 + 8.0 * abs(x)) * UNIT
        mantissa[node], shift = math.frexp(total)
        exponent[node] = power + octaves + shift
        error[node] = slack + (stop - start) * 2.0 * UNIT
    return mantissa, exponent, error


@kernel
def _add(
    mantissa: Floats, exponent: Ints, error: Floats, child: Ints, start: int, stop: int
) -> tuple[float, int, float]:
    """The sum of the children's totals. Errors are averaged with the totals as weights (section 3)."""
    power, alive = 0, False
    for edge in range(start, stop):
        if mantissa[child[edge]] > 0.0:
            power = max(power, int(exponent[child[edge]])) if alive else int(exponent[child[edge]])
            alive = True
    if not alive:
        return 0.0, 0, 0.0
    total, spread, worst = 0.0, 0.0, 0.0
    for edge in range(start, stop):
        other = child[edge]
        if mantissa[other] == 0.0:
            continue
        part = math.ldexp(float(mantissa[other]), max(-1000, int(exponent[other]) - power))
        total += part
        spread += part * float(error[other])
        worst = max(worst, float(error[other]))
    if worst > 0.25:
        return total, power, worst
    return total, power, min(worst, spread / total * (1.0 + 2.0 * worst + 4.0 * (stop - start) * UNIT))


@kernel(steps=lambda summed, first, child, costs: summed.size + child.size)
def _cheapest(summed: Bools, first: Ints, child: Ints, costs: Ints) -> Ints:
    """For every sum the place of the child with the least total cost."""
    nodes = summed.size
    total = np.empty(nodes)
    chosen = np.zeros(nodes, np.int64)
    for node in range(nodes):
        start, stop = int(first[node]), int(first[node + 1])
        if summed[node]:
            least = np.inf
            for edge in range(start, stop):
                if total[child[edge]] < least:
                    least = float(total[child[edge]])
                    chosen[node] = edge - start
        else:
            least = 0.0
            for edge in range(start, stop):
                least += float(total[child[edge]])
        total[node] = least + costs[node]
    return chosen


# The draws of mechanisms on curves and orders, which are the shared ones and selections from circuits.
#
# As for all draws (:mod:`isotone.privacy.draws`) there are exact ones for releases and seeded ones for planning. Tests add
# a third, which walks through *all* outcomes, so what is checked exhaustively is the code that releases.


class CurveDraws(Draws, Protocol):
    """What a mechanism on curves may draw."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """The nodes of a selection from ``circuit``, root first, with weight ``exp(−rate·cost)``."""
        ...


class ExactCurveDraws(ExactDraws):
    """Cryptographic bits and exact probabilities."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """See ``CurveDraws``."""
        tables = CircuitTables(circuit, costs, rate)
        return descend(circuit, lambda node: noise.choose_lazily(lambda bits: tables.brackets(node, bits)))


def exact_draws() -> ExactCurveDraws:
    """The draws of a release. No others are accepted where one is made."""
    draws = ExactCurveDraws()
    require_exact(draws)
    return draws


class SeededCurveDraws(SeededDraws):
    """Floats from a seeded generator. The same laws up to rounding, and not private."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """See ``CurveDraws``."""
        tables = CircuitTables(circuit, costs, rate)

        def choose(node: int) -> int:
            weights = np.cumsum(tables.weights(node))
            return int(np.searchsorted(weights, self.rng.random() * weights[-1], side="right"))

        return descend(circuit, choose)
