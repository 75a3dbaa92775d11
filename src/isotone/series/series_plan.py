"""Which noise a series gets, by a public rule, and what it costs. Nothing is read and nothing is spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from isotone.array_types import Floats
from isotone.counts.knorm import PosetMechanism
from isotone.counts.relaxation import Relaxation
from isotone.counts.sampler import sampler
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.order.bipartitions.counting import within_reach
from isotone.planning import Column, Plan, Row
from isotone.privacy.checks import one_of, whole_number
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.series.causal import CausalGaussianMechanism
from isotone.series.series_mechanism import LARGEST, SeriesMechanism
from isotone.series.two_scale import Fine, Scales, TwoScaleMechanism, over_time

Matters = Literal["all", "last", "changes"]

LARGEST_PRODUCT, LARGEST_FINE, LARGEST_COARSE = 150, 100, 60
"""Counts that one draw of the product has at most, alone and as the fine draw, and that the coarse draw has (half of it in short series)."""

KEPT, REACH = 2e-3, 1 << 18
"""The share of draws that rejection must keep, and the states of a block that they come from: small tables are walked through faster."""

ANCHORS = (1, 2, 3, 4, 6)
"""How many periods the coarse draw may be about."""

SHARES = tuple(Fraction(k, 50) for k in range(2, 45))
"""What the coarse draw may have of epsilon."""

MOVES = (-4, -2, -1, 1, 2, 4)


@dataclass(frozen=True)
class SeriesRow(Row):
    """One noise for a series, with the root mean square of its errors."""

    columns: ClassVar[tuple[Column, ...]] = (
        Column("all", "all counts", marker="o"),
        Column("last", "last period", marker="s"),
        Column("changes", "new per period", marker="^"),
    )
    mechanism: SeriesMechanism
    all: float
    last: float
    changes: float

    @property
    def note(self) -> str:
        """How it is drawn."""
        return str(self.mechanism.noise) if isinstance(self.mechanism.noise, TwoScaleMechanism) else ""


@dataclass(frozen=True)
class SeriesPlan(Plan[SeriesRow]):
    """Noise for a series, the least error of what matters first."""

    stages: Poset
    periods: int
    guarantee: Guarantee
    matters: Matters

    @property
    def title(self) -> str:
        """The question in words."""
        return f"Counts of {len(self.stages)} stages over {self.periods} periods, {self.guarantee}"

    @property
    def remark(self) -> str:
        """What else is public about it."""
        return (
            "Root mean squared errors of the whole series: one charge at opening, none later. The number of periods "
            "is fixed when the series is opened."
        )


def plan_series(
    stages: Poset,
    periods: int,
    guarantee: Guarantee,
    contributions: int = 1,
    matters: Matters = "all",
    progress: Progress = no_progress,
) -> SeriesPlan:
    """The candidates for a series, best first, from public numbers alone.

    ``matters`` says which error decides: of all counts, of the last period, or of changes from period to period.
    """
    aim = one_of(matters, "matters", ("all", "last", "changes"))
    length = whole_number(periods, "periods")
    order = stages.coding.order
    if len(order) * length > LARGEST:
        raise InputError(
            f"{len(order)} stages over {length} periods are {len(order) * length} counts; a series has {LARGEST} at most. "
            "Plan coarser periods, or fewer stages."
        )
    unit = Unit(contributions, guarantee.neighbours)
    rows = [
        SeriesRow(name, mechanism, **mechanism.errors())
        for name, mechanism in _candidates(stages, length, guarantee, unit, aim, progress)
    ]
    return SeriesPlan(tuple(sorted(rows, key=lambda row: getattr(row, aim))), stages, length, guarantee, aim)


def _candidates(
    stages: Poset, periods: int, guarantee: Guarantee, unit: Unit, aim: Matters, progress: Progress
) -> Iterator[tuple[str, SeriesMechanism]]:
    order, n = stages.coding.order, len(stages.coding.order) * periods
    unit_arguments: dict[str, Any] = {"neighbours": unit.neighbours, "contributions": unit.contributions}
    if guarantee.kind != "pure":
        causal = CausalGaussianMechanism(order, periods, guarantee, unit.contributions, progress)
        yield "causal Gaussian", SeriesMechanism(stages, periods, causal)
    if guarantee.kind == "zcdp":
        return
    epsilon = guarantee.epsilon
    if periods > 1:
        fine: Fine = "product" if n <= LARGEST_FINE else "chains"
        anchors, share, relaxations = _best_anchors(order, periods, fine, aim, progress)
        scales, pure = Scales(anchors, share, fine), unit.pure(epsilon)
        noise = TwoScaleMechanism(order, periods, pure, scales, unit.contributions, relaxations=relaxations)
        yield "two scales", SeriesMechanism(stages, periods, noise)
    if n <= LARGEST_PRODUCT or len(order) == 1:
        product = _poset_mechanism(over_time(order, periods), epsilon, progress, **unit_arguments)
        yield "product", SeriesMechanism(stages, periods, product)


def _poset_mechanism(P: Poset, epsilon: Fraction, progress: Progress, **unit: Any) -> PosetMechanism:
    """Noise shaped by an order over time, from draws of which enough are kept for a law to be drawn in seconds."""
    order = P.canonical.order
    relaxation = (
        None if within_reach(order) else sampler(order, progress=progress, share=KEPT, reach=REACH).relaxation
    )
    return PosetMechanism(P, epsilon, relaxation=relaxation, progress=progress, **unit)


def _best_anchors(
    order: Poset, periods: int, fine: Fine, aim: Matters, progress: Progress
) -> tuple[tuple[int, ...], Fraction, tuple[Relaxation | None, Relaxation | None]]:
    """The periods of the coarse draw and its share of epsilon with the least error of what matters."""
    within, one = order if fine == "product" else Poset.antichain(order.elements), Fraction(1)
    most = LARGEST_COARSE if len(order) * periods > LARGEST_PRODUCT else LARGEST_COARSE // 2
    numbers = [b for b in ANCHORS if b <= periods and (b * len(order) <= most or b == 1)]
    some = {b: _poset_mechanism(over_time(order, b), one, progress) for b in numbers}
    every = _poset_mechanism(over_time(within, periods), one, progress)  # last, as few samplers are kept
    scales = _ScaleSearch(every.covariance(), periods, aim)
    best_of = {b: scales.search(coarse.covariance(), b) for b, coarse in some.items()}
    best = min(numbers, key=lambda b: best_of[b][0])
    _, anchors, share = best_of[best]
    return anchors, share, (some[best].sampler.relaxation, every.sampler.relaxation)


class _ScaleSearch:
    """The error of noise on two scales, as a function of its anchors and its share."""

    def __init__(self, fine: Floats, periods: int, aim: Matters) -> None:
        self.periods = periods
        self.places = np.arange(len(fine)).reshape(periods, -1)
        if aim == "last":
            images = fine[self.places[-1]]
            self.own = float(np.trace(images[:, self.places[-1]]))
        else:
            images, stages = fine, self.places.shape[1]
            if aim == "changes":
                images = np.concatenate((fine[:stages], fine[stages:] - fine[:-stages]))
                turned = np.concatenate(
                    (images[:, :stages], images[:, stages:] - images[:, :-stages]), axis=1
                )
                self.own = float(np.trace(turned))
            else:
                self.own = float(np.trace(fine))
        self.images, self.fine = images, fine

    def error(self, coarse: Floats, anchors: tuple[int, ...], share: Fraction) -> float:
        """The total squared error at epsilon 1."""
        ends, s = self.places[list(anchors)].ravel(), float(share)
        images = self.images[:, ends]
        inner = self.fine[np.ix_(ends, ends)] + coarse * ((1 - s) / s) ** 2
        saved = float(np.sum(images.T * np.linalg.solve(inner, images.T)))
        return (self.own - saved) / (1 - s) ** 2

    def search(self, coarse: Floats, number: int) -> tuple[float, tuple[int, ...], Fraction]:
        """The least error that moving one anchor or the share does not improve."""
        anchors = tuple(-(-self.periods * (b + 1) // number) - 1 for b in range(number))
        share = SHARES[len(SHARES) // 3]
        best = self.error(coarse, anchors, share)
        while True:
            before = best
            error, share = min((self.error(coarse, anchors, s), s) for s in SHARES)
            best = min(best, error)
            for i in range(number):
                for move in MOVES:
                    moved = (*anchors[:i], anchors[i] + move, *anchors[i + 1 :])
                    if moved[0] < 0 or moved[-1] >= self.periods or len({*moved}) < number:
                        continue
                    if list(moved) == sorted(moved) and (error := self.error(coarse, moved, share)) < best:
                        best, anchors = error, moved
            if best > before * (1 - 1e-6):
                return best, anchors, share
