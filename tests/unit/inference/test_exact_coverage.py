"""Coverage without chance: every noise that a release of two counts can draw, with its exact probability.

The law that intervals come from is drawn from a public stream, so these numbers are the same every time.
"""

import csv
import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isotone.counts import DiscreteLaplaceMechanism
from isotone.inference import Measured
from isotone.linear.mechanism import Law
from isotone.order import Poset

P = Poset(["a", "b"], [("a", "b")])
M = DiscreteLaplaceMechanism(P, epsilon=2)
LAW = M.law(draws=20_000)
FEW = M.law(draws=4_000)
HALF = Law(*(np.trunc(part.astype(float) / 2) for part in (FEW.draws, FEW.other)))
"""A law of half the noise, which must be noticed. Its many ties make it slow."""
NOISE = {
    pair: weight
    for pair in itertools.product(range(-12, 13), repeat=2)
    if (weight := math.exp(float(M.log_probability(np.array(pair))))) > 2e-6
}


def measured(truth, noise, law=LAW):
    return Measured(
        P, np.add(truth, noise, dtype=float), law, variance=M.error().variance, covariance=M.covariance
    )


def coverage(holds):
    """The probability that ``holds`` is true of the noise; what is left out counts as a miss."""
    return sum(weight for noise, weight in NOISE.items() if holds(noise))


def test_the_noise_that_is_looked_at_is_nearly_all():
    assert 0.9998 < coverage(lambda noise: True) <= 1


@pytest.mark.parametrize("truth", [(3, 10), (0, 5), (8, 8), (40, 60)])
def test_shares_hold_with_the_stated_probability(truth):
    true = truth[0] / truth[1]

    def holds(noise, law=LAW):
        share = measured(truth, noise, law).share("a", "b", 0.95)
        return share.low - 1e-12 <= true <= share.high + 1e-12

    assert 0.95 <= coverage(holds) < 0.985 + 0.015 * (truth != (40, 60))  # clipped intervals hold more often
    if truth == (40, 60):
        assert coverage(lambda noise: holds(noise, HALF)) < 0.9


def test_the_stored_table_of_coverage_keeps_what_is_stated():
    """Over real releases: at least 0.945 beyond 3 standard errors, at most 0.985 where few intervals are clipped."""
    folder = Path(__file__).parents[3] / "docs" / "reproduction" / "inference_coverage"
    rows = list(csv.DictReader((folder / "inference_coverage.csv").open()))
    assert len({row["order"] for row in rows}) >= 4
    assert len({row["mechanism"] for row in rows}) == 3
    assert {row["records"] for row in rows} >= {"50", "30000"}
    for row in rows:
        for figure in ("count", "difference", "share"):
            assert float(row[figure]) - 3 * float(row[f"{figure} se"]) >= 0.945, row
            assert float(row["clipped"]) >= 0.05 or float(row[figure]) <= 0.985, row
        assert float(row["all together"]) >= 0.95, row
        assert 0 <= float(row["not known"]) <= 1


def test_contrasts_families_and_ranks_hold_with_the_stated_probability():
    truth, step = np.array([4, 9]), {"b": 1, "a": -1}

    def contrast(noise):
        found = measured(truth, noise).contrast(step, 0.95)
        return found.low <= 5 <= found.high

    half = measured(truth, (0, 0)).region(0.95).half_widths  # of both counts and of their difference

    def together(noise):
        return bool(np.all(np.abs([*noise, noise[1] - noise[0]]) <= half))

    def rank(noise):
        found = measured(truth, noise).rank("b", 0.95)
        return found.low <= 1 <= found.high

    assert 0.95 <= coverage(contrast) < 0.985
    assert coverage(together) >= 0.95
    assert coverage(rank) >= 0.95
    wrong = replace(measured(truth, (0, 0)), law=HALF).region(0.95).half_widths
    assert coverage(lambda noise: bool(np.all(np.abs([*noise, noise[1] - noise[0]]) <= wrong))) < 0.9
    for noise in [noise for noise, weight in NOISE.items() if weight > 4e-3 and together(noise)]:
        region = measured(truth, noise).region(0.95)
        low, high = region.counts
        share = region.share(0, 1)
        assert np.all((low <= truth) & (truth <= high))
        assert share
        assert share[0] <= 4 / 9 <= share[1]
