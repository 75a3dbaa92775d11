"""How much privacy the published sampler loses: exactly, by search, and by an audit with a confidence bound.

At ε = 1 its noise has the log density ``ln p(cone of y) - norm(y)``, up to a constant. Outputs that two
neighbouring data sets can both give differ by a record v; the loss at y is that log density at y minus the one at
y - v. For the exact sampler p is constant, and the loss is at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.stats import beta

from _published import PublishedSampler, log_probability
from isotone.counts.sampler import bottom_up, noise_rows, sampler
from isotone.order import Poset

__all__ = ["Audit", "Event", "audit", "choose_event", "exact_loss", "search_loss", "simulated_noise"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# Exactly, on tiny orders


def exact_loss(P: Poset) -> float:
    """The largest loss over all outputs and records, by linear programs over pairs of cones."""
    law = PublishedSampler(P).distribution()
    cones = {sides: _generators(P, *sides) for sides in law}
    records = [sign * f for f in _filters(P) for sign in (1.0, -1.0)]
    ranked = sorted(law.items(), key=lambda item: item[1])
    pairs = [(math.log(p / q), one, other) for one, p in ranked for other, q in ranked]
    best = 0.0
    for log_ratio, one, other in sorted(pairs, key=lambda pair: -pair[0]):
        if log_ratio + 1 <= best + 1e-9:  # the norm moves by at most 1
            break
        for v in records:
            best = max(best, log_ratio + _norm_gain(cones[one], cones[other], v))
    return best


def _norm_gain(one: Floats, other: Floats, v: Floats) -> float:
    """The largest norm(y - v) - norm(y) with y inside the first and y - v inside the second cone."""
    n = len(v)
    equalities = np.hstack((one.T, -other.T))
    inside = linprog(
        np.append(np.zeros(2 * n), -1.0),
        A_ub=np.hstack((-np.eye(2 * n), np.ones((2 * n, 1)))),
        b_ub=np.zeros(2 * n),
        A_eq=np.hstack((equalities, np.zeros((n, 1)))),
        b_eq=v,
        bounds=[(0, None)] * (2 * n) + [(0, 1)],
    )
    if inside.status != 0 or -inside.fun < 1e-9:
        return -math.inf
    gain = linprog(np.append(np.ones(n), -np.ones(n)), A_eq=equalities, b_eq=v, bounds=[(0, None)] * (2 * n))
    return -float(gain.fun)


def _generators(P: Poset, A: tuple[int, ...], B: tuple[int, ...]) -> Floats:
    less = P.leq_matrix()
    sides = ((A, 1.0), (B, -1.0))
    rows = [sign * less[list(side[k:])].any(axis=0) for side, sign in sides for k in range(len(side))]
    return np.array(rows, dtype=np.float64)


def _filters(P: Poset) -> list[Floats]:
    """The indicators of all filters but the empty one, from the top down."""
    less, found = P.leq_matrix(), {(False,) * len(P)}
    for x in P.linear_order[::-1]:
        found |= {tuple(np.array(f) | less[x]) for f in found}
    return [np.array(f, dtype=np.float64) for f in sorted(found) if any(f)]


# By search, on larger ones


def search_loss(P: Poset, moves: int, rng: np.random.Generator) -> tuple[float, Floats, Floats]:
    """A loss that is attained near the origin, found by annealing: its value, the output y and the record v."""
    n = len(P)
    best, y, v = _anneal(
        *_arrays(P),
        np.ones(n) * rng.choice([-1.0, 1.0]),
        rng.normal(size=n),
        rng.integers(n + 2, size=moves),
        rng.normal(size=moves),
        rng.random(moves),
    )
    return float(best), y, v


@njit(cache=True)
def _log_density(
    y: Floats, less: NDArray[np.bool_], inserted: Ints, order: Ints, starts: Ints, lowers: Ints
) -> float:
    """``ln p(cone of y) - norm(y)``, as in isotone.counts.sampler."""
    n = y.size
    p, q, row = np.empty(n), np.empty(n), np.empty(n, np.int64)
    key, on_a = np.empty(n), np.empty(n, np.bool_)
    a = 0
    for z in order:
        up = down = 0.0
        for w in lowers[starts[z] : starts[z + 1]]:
            up, down = max(up, p[w]), max(down, q[w])
        on_a[z] = y[z] > up - down
        if on_a[z]:
            p[z], q[z] = y[z] + down, down
            a += 1
        else:
            p[z], q[z] = up, up - y[z]
    i, j = 0, a
    for z in order:  # insertion sort of each side; ties keep the linear extension's order
        start, k = (0, i) if on_a[z] else (a, j)
        value = p[z] if on_a[z] else q[z]
        while k > start and key[k - 1] > value:
            key[k], row[k] = key[k - 1], row[k - 1]
            k -= 1
        key[k], row[k] = value, z
        if on_a[z]:
            i += 1
        else:
            j += 1
    return log_probability(less, inserted, row, a) - p.max() - q.max()


@njit(cache=True)
def _losses(
    rows: Floats, v: Floats, less: NDArray[np.bool_], inserted: Ints, order: Ints, starts: Ints, lowers: Ints
) -> Floats:
    result = np.empty(rows.shape[0])
    for r in range(rows.shape[0]):
        here = _log_density(rows[r], less, inserted, order, starts, lowers)
        result[r] = here - _log_density(rows[r] - v, less, inserted, order, starts, lowers)
    return result


@njit(cache=True)
def _anneal(
    less: NDArray[np.bool_],
    inserted: Ints,
    order: Ints,
    starts: Ints,
    lowers: Ints,
    v: Floats,
    y: Floats,
    picks: Ints,
    steps: Floats,
    uniforms: Floats,
) -> tuple[float, Floats, Floats]:
    """Anneal over directions y of infinitesimal length and signed filters v."""
    n, tiny = y.size, 1e-6
    best, best_y, best_v, current = -np.inf, y.copy(), v.copy(), -np.inf
    for t in range(picks.size):
        temperature = 0.5 * (1 - t / picks.size) + 1e-3
        new_y, new_v = y.copy(), v.copy()
        if picks[t] < n:
            new_y[picks[t]] = steps[t] if uniforms[t] < 0.5 else y[picks[t]] + 0.3 * steps[t]
        else:  # add or take away an element of the filter, if it stays one
            x = int(abs(steps[t]) * 1e6) % n
            sign = 1.0 if v.max() > 0 else -1.0
            new_v[x] = sign - v[x]
            closed = new_v.max() != new_v.min() or new_v.max() != 0.0
            for z in range(n):
                if new_v[z] != 0.0:
                    for w in range(n):
                        if less[z, w] and new_v[w] == 0.0:
                            closed = False
            if not closed:
                continue
        here = _log_density(tiny * new_y, less, inserted, order, starts, lowers)
        found = here - _log_density(tiny * new_y - new_v, less, inserted, order, starts, lowers)
        if found > current or uniforms[t] < np.exp((found - current) / temperature):
            y, v, current = new_y, new_v, found
            if found > best:
                best, best_y, best_v = found, tiny * new_y, new_v.copy()
    return best, best_y, best_v


# By an audit of the sampler as a black box


@dataclass(frozen=True, eq=False)
class Event:
    """That the published sampler's loss for a record is at least a threshold."""

    record: Floats
    threshold: float


@dataclass(frozen=True)
class Audit:
    """How often an event happened on two neighbouring data sets, and the loss that this proves."""

    frequency: float
    neighbour_frequency: float
    proven_loss: float


def simulated_noise(P: Poset, published: bool, size: int, rng: np.random.Generator) -> Floats:
    """Noise at ε = 1 from the published or from the exact sampler."""
    source = PublishedSampler(P) if published else sampler(P)
    orders, sizes = source.simulate(size, rng)
    return noise_rows(P, orders, sizes, rng.standard_exponential((size, len(P))))


def choose_event(P: Poset, draws: int, rng: np.random.Generator) -> Event:
    """The event that promises to prove most from so many draws, judged on a first sample."""
    arrays, sample = _arrays(P), min(40_000, draws // 8)
    records = _filters(P) if len(P) < 8 else _some_filters(P, min(60, draws // 5_000), rng)
    best, score = Event(records[0], 1.0), -math.inf
    for v in (sign * f for f in records for sign in (1.0, -1.0)):
        losses = _losses(simulated_noise(P, True, sample, rng), v, *arrays)
        for threshold in (1.05, 1.2, 1.4, 1.6):
            hit = losses[losses >= threshold - 1e-9]
            if hit.size >= 40:
                p, q = hit.size / losses.size, float(np.sum(np.exp(-hit))) / losses.size
                promise = math.log(p / q) - 2.6 / math.sqrt(q * draws)
                if promise > score:
                    best, score = Event(v, threshold), promise
    return best


def audit(
    P: Poset, event: Event, published: bool, draws: int, rng: np.random.Generator, confidence: float = 0.999
) -> Audit:
    """Count the event on fresh draws with and without the record; Clopper and Pearson's bounds on both."""
    arrays, block = _arrays(P), min(1 << 18, draws)
    blocks = -(-draws // block)
    counts: list[int] = []
    for shift in (np.zeros(len(P)), event.record):
        happened = 0
        for _ in range(blocks):
            rows = simulated_noise(P, published, block, rng) + shift
            happened += int(np.sum(_losses(rows, event.record, *arrays) >= event.threshold - 1e-9))
        counts.append(happened)
    total, tail = blocks * block, (1 - confidence) / 2
    low = beta.ppf(tail, counts[0], total - counts[0] + 1) if counts[0] else 0.0
    high = beta.ppf(1 - tail, counts[1] + 1, total - counts[1])
    proven = math.log(low / high) if low > 0 else -math.inf
    return Audit(counts[0] / total, counts[1] / total, proven)


def _arrays(P: Poset) -> tuple[NDArray[np.bool_], Ints, Ints, Ints, Ints]:
    published = PublishedSampler(P)
    return published.less, published.inserted, *bottom_up(P)


def _some_filters(P: Poset, count: int, rng: np.random.Generator) -> list[Floats]:
    seeds = rng.random((count, len(P))) < rng.random((count, 1))
    closed = np.asarray(P.close_all(seeds), dtype=np.float64)
    return [f for f in np.unique(closed, axis=0) if f.any()] + [np.ones(len(P))]
