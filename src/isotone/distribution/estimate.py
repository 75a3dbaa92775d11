"""The distribution that noisy counts of bins suggest: the mean of a posterior where counts are few, least squares elsewhere.

Nothing here touches data, and no guarantee of privacy or of a band depends on it (docs/theory/distribution.md, section 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.distribution.mechanism import DistributionMechanism, MeasuredLine
from isotone.linear.least_squares import SumTree
from isotone.linear.strategy import DiscreteGaussian, Geometric
from isotone.noise.simulate import public_stream
from isotone.order.isotonic import pool_adjacent_violators

MANY = 2_000
"""Of more bins the posterior takes too long: there it is least squares."""
PRIORS = ((0.06, 0.004, 0.004), (0.06, 0.03, 0.02), (0.2, 0.02, 0.02), (0.2, 0.1, 0.05), (0.5, 0.25, 0.1))
"""How far log densities move from bin to bin, how often they jump anywhere, and how often bins become empty."""
EMPTY, STAY = 0.3, 0.95
"""How likely the first bin is empty, and how often an empty bin follows on one."""
PATHS, STEP, STEPS = 200, 0.1, 260
_EXACT, _LEAST = 1e-6, 1e-5
"""Smaller variances are taken for the first. States are left out that are so much less likely than the likeliest of their bin, given its noisy count."""


def running_totals(counts: Floats | Ints, bins: int, tree: SumTree | None) -> Floats:
    """Least-squares running totals over the bins (last axis), given noisy bins and sums of them."""
    values = np.asarray(counts, np.float64)
    return np.cumsum(values, axis=-1) if tree is None else tree.running_sums(values)


def variance_of(noise: Geometric | DiscreteGaussian) -> float:
    """The variance of the noise of a count, which is not quite none where the budget is enormous."""
    return max(noise.variance, _EXACT)


def bin_counts(mechanism: DistributionMechanism, line: MeasuredLine) -> Floats:
    """How many records each bin is estimated to have, by status, none of them below 0."""
    bins = line.bins
    tree, noise = mechanism.tree(bins), mechanism.counts_noise(mechanism.rule(line.number), bins)
    if bins > MANY:
        totals = running_totals(line.counts, bins, tree)
        risen = [pool_adjacent_violators(np.maximum(row, 0.0), np.ones(bins)) for row in totals]
        return np.diff(np.array(risen), axis=1, prepend=0.0)
    stream = public_stream(f"isotone distribution {line.seed} posterior")
    widths, inside = np.diff(line.edges).astype(np.float64), bins - mechanism.apart
    widths[inside:] = widths[:inside].sum()  # beyond the line there is about as much of it again
    rows = np.asarray(line.counts, np.float64)
    return np.array([posterior_counts(row, widths, tree, noise, stream) for row in rows])


def shares_below(edges: Ints, counts: Floats, cells: int) -> Floats:
    """The share of records in the cells before each, one number more than cells. Within a bin the density is linear."""
    total, places = counts.sum(), np.arange(cells + 1)
    if total <= 0:
        return places / cells
    widths = np.diff(edges).astype(np.float64)
    before = np.concatenate([[0.0], np.cumsum(counts) / total])
    result = np.interp(places, edges, before)
    if counts.size > 2:
        density, middle = counts / total / widths, (edges[1:] + edges[:-1]) / 2
        slopes = np.diff(density) / np.diff(middle)
        least = np.where(np.abs(slopes[:-1]) < np.abs(slopes[1:]), slopes[:-1], slopes[1:])
        slope = np.concatenate([[0.0], np.where(slopes[:-1] * slopes[1:] > 0, least, 0.0), [0.0]])
        slope = np.clip(slope, -2 * density / widths, 2 * density / widths)
        at = np.clip(np.searchsorted(edges, places, side="right") - 1, 0, counts.size - 1)
        inside = places - edges[at]
        result = result - slope[at] / 2 * inside * (widths[at] - inside)
    result = np.maximum.accumulate(np.clip(result, 0.0, 1.0))
    result[-1] = 1.0
    return result


# The posterior. Log densities are a hidden chain with an empty state, under five priors that are averaged by their evidence.


@dataclass(frozen=True)
class _Chain:
    """The states by bin: expected numbers of records (the first state is empty), and their likelihoods."""

    log_step: float
    means: Floats
    likelihood: Floats

    @classmethod
    def of(cls, seen: Floats, widths: Floats, noise: Geometric | DiscreteGaussian) -> _Chain:
        scale = math.sqrt(variance_of(noise) / 2)
        total = max(float(seen.sum()), 3 * scale, 4.0)
        top = float(np.log((np.maximum(seen, 0) + 4 * scale + 2) / widths).max())
        low = math.log(min(0.15 * scale, 0.3 * total / seen.size) / float(widths.max()))
        step = max(STEP, (top - low) / STEPS)
        grid = np.arange(low, top + step, step)
        means = np.concatenate([np.zeros((seen.size, 1)), np.exp(grid)[None, :] * widths[:, None]], axis=1)
        log_p = _log_likelihood(seen[:, None], means, noise)
        far = means > 3 * (np.maximum(seen, 0)[:, None] + 15 * scale + 10)
        log_p = np.where(far, -1e6, log_p)
        return cls(step, means, np.exp(log_p - log_p.max(axis=1, keepdims=True)))

    def moves(self, prior: tuple[float, float, float]) -> tuple[Floats, Floats]:
        """The law of a first state, and of each state after every other."""
        scale, jump, empties = prior
        size = self.means.shape[1] - 1
        anywhere = np.concatenate([[EMPTY], np.full(size, (1 - EMPTY) / size)])
        place = np.arange(size)
        near = np.exp(-np.abs(place[:, None] - place[None, :]) * self.log_step / scale)
        near /= near.sum(axis=1, keepdims=True)
        moves = np.zeros((size + 1, size + 1))
        moves[1:, 1:] = (1 - jump - empties) * near
        moves[1:, 0] = empties
        moves[1:] += jump * anywhere
        moves[0] = (1 - STAY) * anywhere
        moves[0, 0] += STAY
        return anywhere, moves

    @cached_property
    def likely(self) -> list[slice]:
        """The states of each bin that are not beyond all chance."""
        likely = self.likelihood > _LEAST
        first = likely.argmax(axis=1).tolist()
        last = (likely.shape[1] - likely[:, ::-1].argmax(axis=1)).tolist()
        return list(map(slice, first, last))

    def paths(self, stream: np.random.Generator) -> Floats:
        """Expected numbers of records by bin and path, drawn under all priors by their evidence."""
        first, moves = (np.array(each) for each in zip(*map(self.moves, PRIORS), strict=True))
        laws, evidence = self._forward(first, moves)
        weight = np.exp(evidence - evidence.max())
        prior = np.searchsorted(np.cumsum(weight / weight.sum()), (np.arange(PATHS) + 0.5) / PATHS)
        return self._backward(laws, moves, np.minimum(prior, len(PRIORS) - 1), stream)

    def _forward(self, first: Floats, moves: Floats) -> tuple[list[Floats], Floats]:
        """For each bin and prior the law of its likely states given the bins up to it; and by prior the log evidence."""
        message, before = first[:, None], None
        laws, totals = list[Floats](), np.empty((len(self.likely), len(first)))
        for place, (likelihood, here) in enumerate(zip(self.likelihood, self.likely, strict=True)):
            message = message[..., here] if before is None else message @ moves[:, before, here]
            message *= likelihood[here]
            total = np.maximum(np.add.reduce(message, axis=2, keepdims=True), 1e-300)
            totals[place] = total[:, 0, 0]
            message /= total
            before = here
            laws.append(message[:, 0])
        return laws, np.log(totals).sum(axis=0)

    def _backward(
        self, laws: list[Floats], moves: Floats, prior: Ints, stream: np.random.Generator
    ) -> Floats:
        """A path for each given prior, drawn from the last bin to the first."""
        some, own = np.unique(prior, return_inverse=True)
        states = moves.shape[1]
        to = np.ascontiguousarray(moves[some].transpose(0, 2, 1)).reshape(-1, states)
        places = np.empty((len(laws), prior.size), np.int64)
        drawn = np.asarray(stream.random(places.shape))
        rank, seen = np.empty(len(to), np.int64), np.zeros(len(to), np.bool_)
        rows, own, which, after = np.arange(len(to))[:, None], own * states, own, None
        for b in range(len(laws) - 1, -1, -1):
            # a row for each state, under its prior, that some path goes to, and all rows one after the other
            law, here = laws[b][some], self.likely[b]
            if after is None:
                weight = law
            else:
                weight = to[after, here]
                weight *= law if len(some) == 1 else law[after // states]
            weight = np.add.accumulate(weight, axis=1)
            weight /= np.maximum(weight[:, -1:], 1e-300)
            weight += rows[: len(weight)]
            size = weight.shape[1]
            positions = weight.ravel().searchsorted(which + drawn[b], side="right")
            positions -= which * size
            places[b] = np.minimum(positions, size - 1, out=positions) + here.start
            state = own + places[b]
            seen[state] = True
            after = seen.nonzero()[0]
            seen[after] = False
            rank[after] = rows[: after.size, 0]
            which = rank[state]
        return np.take_along_axis(self.means, places, axis=1)


def posterior_counts(
    seen: Floats,
    widths: Floats,
    tree: SumTree | None,
    noise: Geometric | DiscreteGaussian,
    stream: np.random.Generator,
) -> Floats:
    """The mean number of records of each bin, given noisy bins and sums: paths of the chain, moved towards the sums.

    Records by ``widths`` are what moves little from bin to bin.
    """
    bins = widths.size
    means = _Chain.of(seen[:bins], widths, noise).paths(stream)
    gain = means / (means + variance_of(noise))
    spread = np.sqrt(means * (1 - gain)) * np.asarray(stream.standard_normal(means.shape))
    counts = np.maximum(means + gain * (seen[:bins, None] - means) + spread, 0.0)
    if tree is not None:
        _condition(counts, seen, tree, variance_of(noise), stream)
    return np.maximum(counts.mean(axis=1), 0.0)


def _condition(
    counts: Floats, seen: Floats, tree: SumTree, variance: float, stream: np.random.Generator
) -> None:
    """Move the drawn counts towards each noisy sum, by how they vary with it (an ensemble Kalman filter)."""
    first, width = tree.lengths[0], 1
    for length in tree.lengths[1:]:
        width *= tree.branching
        for place in range(length):
            rows = slice(place * width, min((place + 1) * width, tree.lengths[0]))
            sums = counts[rows].sum(axis=0)
            apart = sums - sums.mean()
            gain = (counts[rows] * apart).mean(axis=1) / (float(np.mean(apart**2)) + variance + 1e-9)
            expected = seen[first + place] + math.sqrt(variance) * np.asarray(
                stream.standard_normal(sums.size)
            )
            counts[rows] += gain[:, None] * (expected - sums)
        first += length


def _log_likelihood(seen: Floats, means: Floats, noise: Geometric | DiscreteGaussian) -> Floats:
    """How likely a noisy count is where so many records are expected: about normal counts, with the noise."""
    spread = np.sqrt(means + 0.05)
    if isinstance(noise, DiscreteGaussian):
        whole = spread**2 + variance_of(noise)
        return -((seen - means) ** 2) / (2 * whole) - np.log(whole) / 2
    rate = math.sqrt(2 / variance_of(noise))
    z, steep = (seen - means) / spread, rate * spread
    both = np.logaddexp(_log_erfcx((steep - z) / math.sqrt(2)), _log_erfcx((steep + z) / math.sqrt(2)))
    return both - z * z / 2


def _log_erfcx(u: Floats) -> Floats:
    """The logarithm of ``exp(u²)·erfc(u)``, where that is too large as well."""
    from scipy.special import erfcx

    return np.where(u > -20, np.log(erfcx(np.maximum(u, -20.0))), u * u + math.log(2.0))
