"""Survival from counts of events and of censored times: the curve, and one band for Kaplan and Meier's and Nelson and Aalen's.

A record is in one cell of time, with one of two statuses: ended by an event, or censored. The last cell holds those who were
followed beyond the line (docs/theory/distribution.md, section 7). Bands are about the estimators of the records themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.distribution.band import ShareBand, TotalsLaw, checked, risen_bounds
from isotone.distribution.estimate import bin_counts, posterior_counts
from isotone.distribution.figures import Interval, LineFigures
from isotone.distribution.mechanism import DistributionMechanism, MeasuredLine
from isotone.noise.simulate import public_stream

_FEWEST, _HALF = 0.3, 0.5
"""Where less than so many records are estimated to be at risk, this many are; the second where hazards are estimated."""


def kaplan_meier(
    events: Ints | Floats, censored: Ints | Floats, fewest: float = 1.0
) -> tuple[Floats, Floats]:
    """The estimators of counts by cell, up to the end of each: Kaplan and Meier's, and Nelson and Aalen's.

    Where less than ``fewest`` are at risk, so many are taken to be.
    """
    every = np.asarray(events + censored, np.float64)
    hazard = np.minimum(events / np.maximum(every[::-1].cumsum()[::-1], fewest), 1.0)
    return np.asarray(np.cumprod(1 - hazard), np.float64), np.cumsum(hazard)


def survival_counts(mechanism: DistributionMechanism, line: MeasuredLine) -> Floats:
    """How many records each bin is estimated to have by status. Beyond the line there are no events.

    Of few bins those with events are estimated once more, by how long records were at risk there: where noise is large, hazards
    that move little from bin to bin tell more than densities.
    """
    counts = bin_counts(mechanism, line)
    counts[0, -1] = 0.0
    if mechanism.tree(line.bins) is None:
        left = np.append(counts.sum(axis=0)[::-1].cumsum()[::-1], 0.0)
        lived = np.diff(line.edges) * np.maximum((left[1:] + left[:-1]) / 2, max(_HALF, left[0] / 100))
        noise = mechanism.counts_noise(mechanism.rule(line.number), line.bins)
        stream = public_stream(f"isotone distribution {line.seed} hazards")
        seen = np.asarray(line.counts[0, :-1], np.float64)
        counts[0, :-1] = posterior_counts(seen, lived[:-1], None, noise, stream)
    return counts


def survival_at(edges: Ints, counts: Floats) -> tuple[Floats, Floats]:
    """Estimated survival and cumulative hazard before each cell, one number more than cells, given records by status and bin.

    A bin's records are evenly spread over its cells. So where a cell is a bin, both are the estimators of its counts.
    """
    widths = np.diff(edges)
    events, censored = np.repeat(counts / widths, widths, axis=1)
    alive, hazard = kaplan_meier(events, censored, _FEWEST)
    return np.append(1.0, alive), np.append(0.0, hazard)


@dataclass(frozen=True, eq=False)
class SurvivalBand:
    """Bounds at the end of each bin, all at once: for the number at risk afterwards, and for the cumulative hazard.

    The first of each row is at the beginning. ``least_hazard`` bounds the estimator of Nelson and Aalen from below and
    ``−ln`` of that of Kaplan and Meier; ``most_hazard`` both from above, and is infinite where nobody may be at risk.
    """

    least_at_risk: Floats
    most_at_risk: Floats
    least_hazard: Floats
    most_hazard: Floats

    @property
    def ended(self) -> ShareBand:
        """One minus survival, as a band for the share that has ended. In the last bin, beyond the line, all may have."""
        low, high = -np.expm1(-self.least_hazard), -np.expm1(-self.most_hazard)
        low[-1] = high[-1] = 1.0
        return ShareBand(low, high, float(self.least_at_risk[0]))

    @classmethod
    def unknown(cls, bins: int) -> SurvivalBand:
        """Nothing is known but the beginning."""
        none, all_ = np.zeros(bins + 1), np.full(bins + 1, np.inf)
        most = all_.copy()
        most[0] = 0.0
        return cls(none, all_, none, most)


def band_for_survival(
    mechanism: DistributionMechanism, line: MeasuredLine, confidence: float
) -> SurvivalBand:
    """A band for both estimators of these records, whatever they are and however many."""
    law = TotalsLaw.of(mechanism, line)
    scales = law.scale[:-1], np.sqrt(2) * np.concatenate([law.scale[-1:], law.back[:-1]])[::-1]

    def both(totals: Floats) -> tuple[Floats, Floats]:
        """Events up to each end, and records from each beginning on. The last bin has no events."""
        return totals[..., 0, :-1], _from_the_end(totals.sum(axis=-2))

    def farthest(part: Floats) -> Floats:
        return np.max(
            [np.max(np.abs(noise) / sd, axis=1) for noise, sd in zip(both(part), scales, strict=True)], axis=0
        )

    reach = law.upper(farthest, checked(confidence))
    ended, at_risk = (
        risen_bounds(totals, reach * sd) for totals, sd in zip(both(law.totals), scales, strict=True)
    )
    if ended is None or at_risk is None:
        return SurvivalBand.unknown(line.bins)
    return _band(*ended, *(np.concatenate([[0.0], bound])[::-1] for bound in at_risk))


def _from_the_end(totals: Floats) -> Floats:
    """Running totals from the last bin, given those from the first."""
    before = np.concatenate([np.zeros((*totals.shape[:-1], 1)), totals[..., :-1]], axis=-1)
    return (totals[..., -1:] - before)[..., ::-1]


def _band(few: Floats, many: Floats, least: Floats, most: Floats) -> SurvivalBand:
    """From bounds of events so far at the end of each bin but the last, and of the number at risk at all ends.

    The cumulative hazard is a sum of one over the number at risk, over events. It is largest if events are many and late, and
    the number at risk is that of the end of each bin; and smallest if they are few and early, with that of its beginning.
    """
    bins, ends = most.size - 1, np.arange(few.size)
    steep = np.divide(1.0, least[1:-1], out=np.full(few.size, np.inf), where=least[1:-1] >= 1)
    known = np.isfinite(steep)  # the first ones: the number at risk does not grow
    rise = np.diff(steep[known], append=0.0)
    saved = np.concatenate([[0.0], np.cumsum(few[known] * rise)])
    upper = np.full(few.size, np.inf)
    upper[known] = steep[known] * many[known] - saved[:-1]
    flat = 1 / np.maximum(most[: few.size], 1.0)
    lost = np.concatenate([[0.0], np.cumsum(many[:-1] * np.diff(flat))])
    turn = np.minimum(np.searchsorted(many, few, side="right"), ends)
    lower = few * flat[turn] - lost[turn]
    low, high = np.zeros(bins + 1), np.zeros(bins + 1)
    low[1:-1] = np.maximum.accumulate(np.maximum(lower, 0.0))
    high[1:-1] = np.maximum.accumulate(np.maximum(upper, 0.0))
    low[-1], high[-1] = low[-2], np.inf
    if np.any(low > high * (1 + 1e-9) + 1e-9):
        return SurvivalBand.unknown(bins)
    return SurvivalBand(least, most, low, np.maximum(low, high))


@dataclass(frozen=True, eq=False)
class SurvivalFigures(LineFigures):
    """Shares that have ended before each cell, and how many records last longer. The last cell is all time beyond the line."""

    longer: Floats
    least: Floats
    most: Floats
    hazards: Floats
    """The cumulative hazard before each cell."""

    @classmethod
    def measured(
        cls,
        mechanism: DistributionMechanism,
        line: MeasuredLine,
        ends: tuple[Floats, Floats],
        confidence: float,
    ) -> SurvivalFigures:
        """From noisy counts. ``ends`` are those of the cells up to the horizon."""
        counts, band = survival_counts(mechanism, line), band_for_survival(mechanism, line, confidence)
        beyond = np.append(ends[0], ends[1][-1]), np.append(ends[1], np.inf)
        alive, hazards = survival_at(line.edges, counts)
        shares = LineFigures.of(beyond, line.edges, np.append(1 - alive[:-1], 1.0), band.ended)
        at_risk = np.append(counts.sum(axis=0)[::-1].cumsum()[::-1], 0.0)
        places = np.arange(line.edges[-1] + 1)
        least = band.least_at_risk[np.searchsorted(line.edges, places, side="left")]
        most = band.most_at_risk[np.searchsorted(line.edges, places, side="right") - 1]
        longer = np.clip(np.interp(places, line.edges, at_risk), least, most)
        return cls(**vars(shares), longer=longer, least=least, most=most, hazards=hazards)

    def survival(self, time: float) -> Interval:
        """The share that lasts longer than a time, as Kaplan and Meier estimate it."""
        share, low, high = self.share_up_to(time)
        return 1 - share, 1 - high, 1 - low

    def hazard(self, time: float) -> Interval:
        """The cumulative hazard up to a time, as Nelson and Aalen estimate it."""
        with np.errstate(divide="ignore"):
            high, low = (-np.log(self.survival(time)[1:]) + 0.0).tolist()
        return min(max(self.between(self.hazards, time), low), high), low, high

    def at_risk(self, time: float) -> Interval:
        """How many records last longer than a time."""
        if time < self.start[0]:
            return float(self.longer[0]), float(self.least[0]), float(self.most[0])
        whole, touched, _ = self.around(time)
        return self.between(self.longer, time), float(self.least[touched]), float(self.most[whole])

    def restricted_mean(self, until: float) -> Interval:
        """The mean time until the event, or until a time if that is earlier: the area below the curve."""
        wide = np.clip(until, self.start[:-1], self.stop[:-1]) - self.start[:-1]
        alive, least, most = 1 - self.below[:-1], 1 - self.high[:-1], 1 - self.low[:-1]
        middle = (alive[1:] + alive[:-1]) / 2
        return float(wide @ middle), float(wide @ least[1:]), float(wide @ most[:-1])
