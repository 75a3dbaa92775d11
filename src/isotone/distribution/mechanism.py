"""The mechanism: a noisy number of records, a private partition of the grid, and noisy counts of its bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.array_types import Ints
from isotone.distribution.partition import Partition, roots
from isotone.errors import InputError
from isotone.linear.least_squares import SumTree
from isotone.linear.strategy import DiscreteGaussian, Geometric
from isotone.mechanism import ExpectedError
from isotone.noise.simulate import Simulated, refuse_simulated
from isotone.privacy.checks import Number, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit

FEW, LEAST = 600, 60
"""Below so many records times ε a release is small, and of no use."""
MOST_CELLS = 1_000_000
"""Of all groups and statuses together, since each may become a bin that is published."""
MOST_RECORDS = (1 << 53) - 1
"""Above it not every number is told from the next."""
_NUMBER, _HALVING = Fraction(1, 50), {"pure": Fraction(1, 5), "zcdp": Fraction(1, 10)}
_THRESHOLD, _LEVELS = 10, 6
_WEAKEST = 1e-6
_PLAIN, _ALL = 16, 1_500
"""Up to so many cells each is a bin; and up to a 20th of the records times ε, but never more than the second."""


@dataclass(frozen=True)
class LineRule:
    """What a number of records decides, which is public or noisy. ``size`` is the number times the ε of one record."""

    size: float
    cells: int
    part: Fraction
    """What bins cost that are found by a partition, of the budget without that of the number."""
    least: float = 0
    """Of a smaller size the public parts of the line are the bins: there halving would find none."""

    @property
    def single(self) -> bool:
        """Whether each cell is a bin."""
        return self.cells <= max(_PLAIN, min(self.size / 20, _ALL))

    @property
    def halves(self) -> bool:
        """Whether bins are found by a partition. Otherwise they are public."""
        return not self.single and self.size >= self.least

    @property
    def share(self) -> Fraction:
        """What bins cost, of the budget without that of the number."""
        return self.part if self.halves else Fraction(0)

    @property
    def threshold(self) -> float:
        """What halves a node, in standard records: those whose ε is 1."""
        return _THRESHOLD if self.size < FEW else 0


@dataclass(frozen=True, eq=False)
class MeasuredLine:
    """What was released of one line: the ends of its bins, and noisy counts of each bin and of sums of neighbours.

    ``counts`` has a row for each status, in which bins come first, and then each level of sums.
    """

    edges: Ints
    counts: Ints
    number: int
    """The noisy number of records, or the public one."""
    seed: int
    """For draws of the same law as the noise, of which it is independent."""

    @property
    def bins(self) -> int:
        """The number of bins."""
        return self.edges.size - 1


@dataclass(frozen=True, init=False)
class DistributionMechanism:
    """Records by cell of a line, with noise: the line is halved where there are many, and its bins are counted.

    ``statuses`` says how many kinds of records there are in a cell, of which each is one. ``groups`` is how many lines there
    are, of which each record is in one. So many cells at the end stand ``apart``: each is a bin of its own.

    Guarantee: ε-DP or ρ-zCDP, as given, for neighbours that differ in one unit with at most ``contributions`` records in all
    lines together (docs/theory/distribution.md, Theorem 3). The parts of the budget add up to it on every path.
    """

    cells: int
    statuses: int
    groups: int
    apart: int
    contributions: int
    public_n: int | None
    guarantee: Guarantee

    def __init__(
        self,
        cells: int,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        statuses: int = 1,
        groups: int = 1,
        apart: int = 0,
        contributions: int = 1,
        public_n: int | None = None,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        whole = Unit(whole_number(contributions, "contributions"), neighbours)
        given: dict[str, Any] = {
            "cells": whole_number(cells, "cells", 1, MOST_CELLS),
            "statuses": whole_number(statuses, "statuses", 1, 2),
            "groups": whole_number(groups, "groups"),
            "apart": whole_number(apart, "apart", 0, MOST_CELLS),
            "contributions": whole.contributions,
            "public_n": None if public_n is None else whole_number(public_n, "public_n", 1, MOST_RECORDS),
            "guarantee": whole.guarantee(epsilon=epsilon, rho=rho),
        }
        if given["cells"] * given["statuses"] * given["groups"] > MOST_CELLS:
            raise InputError(
                f"There would be {given['cells'] * given['groups']:,} cells in all groups, and {MOST_CELLS:,} is the limit: ask "
                "for fewer cells or groups."
            )
        if given["apart"] >= given["cells"]:
            raise InputError("apart must be less than the number of cells.")
        if public_n is not None and given["groups"] > 1:
            raise InputError(
                "public_n is for one group: leave it out, and each group has a noisy number of its own."
            )
        for name, value in given.items():
            object.__setattr__(self, name, value)
        if self.strength < _WEAKEST:
            raise InputError(
                f"The noise on a count of {self.guarantee} with {self.contributions} records a unit would be above a million. Ask for "
                "a larger budget, or fewer contributions."
            )

    @property
    def unit(self) -> Unit:
        """The unit with its records."""
        return Unit(self.contributions, self.guarantee.neighbours)

    @property
    def budget(self) -> Fraction:
        """ε, or ρ."""
        return self.guarantee.rho if self.guarantee.kind == "zcdp" else self.guarantee.epsilon

    @property
    def number_part(self) -> Fraction:
        """What is spent on the number of records."""
        return Fraction(0) if self.public_n is not None else self.budget * _NUMBER

    def parts(self, rule: LineRule) -> tuple[Fraction, Fraction, Fraction]:
        """What is spent on the number of records, on the partition and on the counts. They add up to the budget."""
        number = self.number_part
        partition = (self.budget - number) * rule.share
        return number, partition, self.budget - number - partition

    def noise(self, budget: Fraction, levels: int = 1) -> Geometric | DiscreteGaussian:
        """The noise of counts of which a record changes one on each level, for a part of the budget."""
        if self.guarantee.kind == "zcdp":
            moved = levels * self.unit.adjacency.sides * self.unit.changes**2
            return DiscreteGaussian(moved / (2 * budget))
        return Geometric(budget / (levels * self.unit.steps))

    def partition(self, rule: LineRule) -> Partition:
        """The decisions about bins, where there are any."""
        part = self.parts(rule)[1]
        if self.guarantee.kind == "zcdp":
            result = Partition.zcdp(part, self.unit)
        else:
            result = Partition.pure(part, self.unit, several=self.groups > 1)
        return Partition(result.scale, round(rule.threshold / self.strength))

    def edges(self, records: Ints, rule: LineRule, draws: Draws) -> Ints:
        """The ends of the bins, counted in cells, given how many records each cell has."""
        if rule.halves:
            return self.partition(rule).edges(records, draws, self.apart)
        return self.public_edges(rule)

    def public_edges(self, rule: LineRule) -> Ints:
        """The ends of the bins where nothing is halved."""
        return np.arange(self.cells + 1) if rule.single else roots(self.cells, self.apart)

    @property
    def strength(self) -> float:
        """The ε at which one record is hidden by as much noise as a count has that is given all of the budget."""
        noise = self.noise(self.budget)
        return float(noise.rate) if isinstance(noise, Geometric) else math.sqrt(2 / noise.sigma2)

    def rule(self, number: float) -> LineRule:
        """What a number of records decides. It must be public or noisy."""
        size, part = max(0.0, float(number)) * self.strength, _HALVING[self.guarantee.kind]
        if self.statuses == 1:
            return LineRule(size, self.cells, part)
        return LineRule(size, self.cells, part * Fraction(5, 8), LEAST)  # twice the noise wants fewer bins

    def tree(self, bins: int) -> SumTree | None:
        """The sums of neighbouring bins that are measured beside the bins, or None.

        There are as many levels as make totals most exact: with each the noise of a node grows, and a total has fewer nodes.
        """
        growth = 2 if self.guarantee.kind == "zcdp" else 3
        cost = {levels: levels**growth * (_branching(bins, levels) - 1) for levels in range(1, _LEVELS + 1)}
        best = min(cost, key=lambda levels: cost[levels])
        return None if best == 1 else SumTree(bins, _branching(bins, best), root=False)

    def counts_noise(self, rule: LineRule, bins: int) -> Geometric | DiscreteGaussian:
        """The noise of each count of so many bins, and of sums of them."""
        tree = self.tree(bins)
        return self.noise(self.parts(rule)[2], 1 if tree is None else len(tree.lengths))

    def release(self, cells: Ints) -> tuple[MeasuredLine, ...]:
        """The measurements of each group, given records by group, status and cell. Drawn from cryptographic bits."""
        refuse_simulated(cells)
        return self._measured(cells, ExactDraws())

    def simulate(self, cells: Ints, rng: np.random.Generator) -> tuple[MeasuredLine, ...]:
        """The same from a seeded generator, for planning alone: its counts are of the type ``Simulated``."""
        return self._measured(cells, SeededDraws(rng))

    def error(self) -> ExpectedError:
        """What to expect for the public number of records, or about ten thousand, on stated shapes."""
        from isotone.distribution.plan import USUAL, plan

        return plan(self, self.public_n or USUAL)

    def _measured(self, cells: Ints, draws: Draws) -> tuple[MeasuredLine, ...]:
        records = np.asarray(cells)
        if records.shape != (self.groups, self.statuses, self.cells) or records.dtype.kind not in "iu":
            raise InputError(
                f"Records must be whole numbers by group, status and cell, {self.groups} × {self.statuses} × {self.cells}, not an "
                f"array of {records.dtype} of the shape {records.shape}."
            )
        return tuple(self._line(line.astype(np.int64), draws) for line in records)

    def _line(self, line: Ints, draws: Draws) -> MeasuredLine:
        """One group: its number of records, its bins, and their counts."""
        number = self.public_n
        if number is None:
            noise = self.noise(self.number_part)
            number = int(line.sum()) + int(noise.integers(draws, 1)[0])
        rule = self.rule(number)
        edges = self.edges(line.sum(axis=0), rule, draws)
        bins = np.add.reduceat(line, edges[:-1], axis=1)
        tree = self.tree(edges.size - 1)
        nodes = bins if tree is None else tree.sums(bins)
        drawn = self.counts_noise(rule, edges.size - 1).integers(draws, nodes.size)
        seed = int(draws.words(1)[0] >> np.uint64(11))
        counts = nodes + np.asarray(drawn).reshape(nodes.shape)
        return MeasuredLine(
            edges, Simulated.wrap(counts) if isinstance(draws, SeededDraws) else counts, number, seed
        )


def _branching(bins: int, levels: int) -> int:
    """The fewest children of a node, at least 2, with which so many levels hold all bins."""
    fewest = max(2, round(bins ** (1 / levels)) - 1)
    while fewest**levels < bins:
        fewest += 1
    return fewest
