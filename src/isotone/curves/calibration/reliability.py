"""A reliability diagram and the expected calibration error, from released noisy sums alone.

There is no second look at the data. Proof of the interval: docs/theory/bands.md, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.bands import Band, cumulant, reach
from isotone.curves.posterior import NoisySums
from isotone.lazy import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRENGTHS: Floats = 0.95 * 1.3 ** -np.arange(40.0)
"""Exponents of the bounds on noise, as shares of what its law allows; fixed, so the best of them is a public choice."""


class CalibrationError(NamedTuple):
    """The expected calibration error of the scores on the records, and limits that noise leaves possible."""

    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Reliability:
    """What the scores said and what came true, group by group and as a curve.

    Groups are equally wide parts of the range of scores. ``score`` is the mean score of a group, ``share`` the share of the
    positive class, ``records`` how many there are: all noisy. ``band`` goes with ``curve`` at the points ``x``. ``error`` is the
    expected calibration error of the scores as they were, before calibration; None where scores are no probabilities.
    """

    score: Floats
    share: Floats
    records: Floats
    x: Floats
    curve: Floats
    band: Band
    kind: str
    error: CalibrationError | None

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the diagram, the curve with its band, a dot for each group, and the diagonal of perfect scores."""
        if ax is None:
            ax = new_axes(layout="constrained")
        ax.fill_between(
            self.x, *self.band, color="#9dbbd6", alpha=0.45, linewidth=0, label=f"{self.kind} band"
        )
        ax.plot(self.x, self.curve, color="#1f4e79", linewidth=2, label="released curve")
        some = self.records > 0
        area = 160 * self.records[some] / max(float(self.records.max(initial=0.0)), 1.0)
        ax.scatter(
            self.score[some], self.share[some], s=np.maximum(area, 6), color="#c0392b", label="groups, noisy"
        )
        ax.set_xlabel("score")
        ax.set_ylabel("share of the positive class")
        ax.set_ylim(0, 1)
        result = self.error
        if result is not None:
            ax.plot([0, 1], [0, 1], color="gray", linewidth=1, linestyle="dashed")
            words = f"calibration error {result.value:.3f} ({result.low:.3f} to {result.high:.3f})"
            ax.set_title(words, fontsize=10)
        ax.legend(fontsize=8)
        return ax


def group_sums(sums: NoisySums, groups: int) -> Ints:
    """The group of every bin, by where its middle lies. Bins were fixed before the noise of their sums was drawn."""
    middles = (sums.starts + np.r_[sums.starts[1:], sums.points] - 1) / 2.0
    return np.minimum((middles * groups / sums.points).astype(np.int64), groups - 1)


def calibration_error(
    sums: NoisySums, scores: Floats, halves: Floats, groups: int, confidence: float
) -> CalibrationError:
    """``Σ |Σ (y − score)|/n`` over groups, for the records that were measured, with limits for it.

    ``scores`` are those at the middles of bins, and ``halves`` how far a score in a bin may be from that.
    """
    ones, zeros = sums.in_records
    place = group_sums(sums, groups)
    gaps = np.bincount(place, weights=(1 - scores) * ones - scores * zeros, minlength=groups)
    variance = sums.noise.variance * ((1 - scores) ** 2 + scores**2)
    noise = np.bincount(place, weights=variance, minlength=groups)
    log_limit = math.log(6) - math.log1p(
        -confidence
    )  # a third of what may go wrong for each of three bounds, two-sided
    off = _noise_bound(sums, np.abs(1 - scores), np.abs(scores), log_limit + groups * math.log(2))
    count, rounding = float(np.sum(ones + zeros)), float(np.sum(halves * (ones + zeros)))
    flat = np.ones(scores.size)
    apart = _noise_bound(sums, flat, flat, log_limit)
    moved = max(0.0, rounding + _noise_bound(sums, halves, halves, log_limit))
    total = float(np.abs(gaps).sum())
    most = max(count - apart, 0.0)
    low = max(0.0, total - off - moved) / max(count + apart, 1.0)
    high = (total + off + moved) / most if most > 0 else 1.0
    low, high = min(low, 1.0), min(high, 1.0)
    value = float(np.sqrt(np.maximum(gaps**2 - noise, 0.0)).sum()) / max(count, 1.0)
    return CalibrationError(min(max(value, low), high), low, high, confidence)


def _noise_bound(sums: NoisySums, by_ones: Floats, by_zeros: Floats, log_limit: float) -> float:
    """What ``Σ by_ones·X + by_zeros·Y`` exceeds with probability ``exp(−log_limit)`` at most."""
    largest = max(float(by_ones.max()), float(by_zeros.max()))
    if largest == 0:
        return 0.0
    t = STRENGTHS * reach(sums) / largest
    moved = (cumulant(sums, t[:, None] * by_ones) + cumulant(sums, t[:, None] * by_zeros)).sum(axis=1)
    return float(((log_limit + moved) / t).min())
