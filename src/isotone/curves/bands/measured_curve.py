"""What a curve was measured by, and the bands that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from isotone.curves.bands.band import GridBand, TurnedBand
from isotone.curves.bands.credible import credible_band
from isotone.curves.bands.population_band import population_band
from isotone.curves.bands.records_band import records_band
from isotone.curves.chain.posterior_fit import curve_of, spread_of
from isotone.curves.curve import Curve
from isotone.curves.grids import FINE
from isotone.curves.measure import NoisySums
from isotone.curves.posterior.posterior import curve_posterior
from isotone.errors import InputError
from isotone.privacy.checks import confidence_level, one_of

__all__ = ["KINDS", "MeasuredSums", "no_band", "why_no_population"]

KINDS = ("population", "records", "credible")
ROUNDING = 0.5 / FINE
"""A ``y`` that is no label was moved so far at most, as a share of its range."""


@dataclass(frozen=True)
class MeasuredSums:
    """The noisy sums of a fit, and what is public about the records.

    ``levels`` is the number of values of the posterior, ``contributions`` how many records a unit may have, and
    ``direction_given`` whether the direction was declared and not found.
    """

    sums: NoisySums
    increasing: bool
    labels: bool
    levels: int
    contributions: int = 1
    direction_given: bool = True

    def band(self, confidence: float, kind: str) -> GridBand:
        """Limits at every point, as shares of the range of ``y``."""
        kind, confidence = one_of(kind, "kind", KINDS), confidence_level(confidence)
        reason = why_no_population(self.contributions, self.direction_given)
        if kind == "population" and reason:
            raise InputError(reason)
        sums = self.sums if self.increasing else self.sums.mirrored()
        found = self._rising(sums, confidence, kind)
        return found if self.increasing else TurnedBand(found, sums.points)

    def curve(self, output: str, ends: tuple[Fraction, Fraction], even: bool) -> Curve:
        """The curve that the sums give, as shares of the range of predictions, whose ``ends`` are shares of that of ``y``."""
        sums = self.sums if self.increasing else self.sums.mirrored()
        posterior = curve_posterior(sums, self.levels, spread_of(self.labels))
        found = curve_of(sums, posterior, output, ends, even)
        return found if self.increasing else found.mirrored()

    def _rising(self, sums: NoisySums, confidence: float, kind: str) -> GridBand:
        if kind == "credible":
            posterior = curve_posterior(sums, self.levels, spread_of(self.labels))
            return credible_band(sums, posterior, confidence)
        found = (population_band if kind == "population" else records_band)(sums, confidence)
        return found if self.labels else found.widened(ROUNDING)


def why_no_population(contributions: int, direction_given: bool) -> str:
    """Why there is no band for the population, or nothing."""
    if contributions > 1:
        return (
            f"A unit may have {contributions} records, which are not independent: there is no band for the population. A band "
            "of kind 'records' needs no independence."
        )
    if not direction_given:
        return (
            "The direction is found from the data, and a band for the population needs one that is known: give "
            "increasing=True or False, or use a band of kind 'records'."
        )
    return ""


def no_band(method: str) -> InputError:
    """The error for a curve whose sums were not measured."""
    return InputError(
        f"A curve by {method!r} has no band: the law of its error depends on the data. Bands are for squared and logistic "
        "loss with method='auto', without a shape."
    )
