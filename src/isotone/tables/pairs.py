"""Two counts for each category, with their joint distribution.

Both columns are measured as the strata of one table: a step touches one count of one column, so each column has the whole
budget. All that is done here is post-processing of the noisy counts (docs/theory/tables-whole.md, section 11): the joint
distribution by a few steps of expectation and maximisation between the fitted margins, posterior means given both noisy counts, and
published pairs by optimal transport from these means to the joint distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.tables.distribution import Counts, top_coded
from isotone.tables.published_table import PublishedTable, Stratum
from isotone.tables.two_stage import TableMechanism

LARGEST_PAIR = 63
"""The largest count of a pair: its joint distribution has the square of as many cells."""
_STEPS = 40  # of expectation and maximisation: fewer leave the columns too independent, more fit the noise
_SWEEPS = 60  # of fitting margins
_BLOCK = 1600  # categories that are matched with published pairs at a time: the more, the closer the match
_QUICK = 400  # where there are more than _MANY, since a match takes the cube of its size
_MANY = 20_000


@dataclass(frozen=True, eq=False)
class PublishedPair:
    """Two released columns, each with an entry for every category.

    ``values`` and ``estimates`` have one row for each category and one column for each of the two. ``joint`` is the distribution of pairs
    believed in. ``table`` has both columns, the second after the first, as two strata, with what was measured of each.
    """

    values: Ints
    estimates: Floats
    joint: Floats
    table: PublishedTable


def release_pair(mechanism: TableMechanism, first: Counts, second: Counts) -> PublishedPair:
    """Release two counts for each category, from exact noise and cryptographic bits.

    Guarantee: that of the mechanism, for a person who is counted at most ``contributions`` times in both columns together.
    """
    return _run(mechanism, first, second, require_exact(ExactDraws()))


def simulate_pair(
    mechanism: TableMechanism, first: Counts, second: Counts, rng: np.random.Generator
) -> PublishedPair:
    """Simulate a release, for experiments only."""
    return _run(mechanism, np.asarray(first), np.asarray(second), SeededDraws(rng))


def _run(mechanism: TableMechanism, first: Counts, second: Counts, draws: Draws) -> PublishedPair:
    if mechanism.upper is None or mechanism.upper > LARGEST_PAIR:
        raise InputError(f"upper must be at most {LARGEST_PAIR} for pairs of counts, not {mechanism.upper}.")
    columns = [top_coded(column, mechanism.upper) for column in (first, second)]
    size = len(columns[0])
    if len(columns[1]) != size:
        raise InputError("The two columns of counts must have the same number of categories.")
    parts = [np.arange(size), size + np.arange(size)]
    result = mechanism.run(np.concatenate(columns), draws, parts)
    words = draws.words(size)
    return _published(result, words)


def _published(table: PublishedTable, words: NDArray[np.uint64]) -> PublishedPair:
    """What is made of the two measured columns."""
    one, other = table.strata
    size = len(one.members)
    values = np.asarray(table.values.view(np.ndarray)).reshape(2, size).T.copy()
    if "noise" in (one.method, other.method):
        joint = np.outer(one.probabilities, other.probabilities)
        return PublishedPair(values, table.estimates.reshape(2, size).T, joint, table)
    joint = joint_distribution(one, other)
    channels = one.thresholds.channel(), other.thresholds.channel()
    estimates = pair_means(joint, channels, _seen(one, other))
    return PublishedPair(_transported(estimates, joint, words), estimates, joint, table)


def joint_distribution(one: Stratum, other: Stratum) -> Floats:
    """The joint distribution of both columns, with the margins that were fitted to each."""
    channels = one.thresholds.channel(), other.thresholds.channel()
    seen = _seen(one, other)
    n = len(one.probabilities)
    observed = np.zeros((n, n))
    np.add.at(observed, (seen[:, 0], seen[:, 1]), 1.0 / len(seen))
    joint = np.outer(one.probabilities, other.probabilities)
    for _ in range(_STEPS):
        expected = channels[0].T @ joint @ channels[1]
        joint = joint * (channels[0] @ (observed / np.maximum(expected, 1e-300)) @ channels[1].T)
        joint = _fitted(joint, one.probabilities, other.probabilities)
    return joint


def _seen(one: Stratum, other: Stratum) -> Ints:
    return np.column_stack([one.clamped, other.clamped])


def _fitted(joint: Floats, rows: Floats, columns: Floats) -> Floats:
    """The joint distribution scaled to its margins (iterative proportional fitting)."""
    for _ in range(_SWEEPS):
        joint = joint * (rows / np.maximum(joint.sum(axis=1), 1e-300))[:, None]
        joint = joint * (columns / np.maximum(joint.sum(axis=0), 1e-300))
    return joint / joint.sum()


def pair_means(joint: Floats, channels: tuple[Floats, Floats], pairs: Ints) -> Floats:
    """The posterior means of both counts, given each pair of clamped noisy counts."""
    counts = np.arange(len(joint), dtype=np.float64)
    a, b = channels[0][:, pairs[:, 0]].T, channels[1][:, pairs[:, 1]].T
    total = np.maximum(np.einsum("sb,sb->s", a @ joint, b), 1e-300)
    first = np.einsum("sb,sb->s", (a * counts) @ joint, b) / total
    second = np.einsum("sb,sb->s", a @ joint, b * counts) / total
    return np.column_stack([first, second])


def _transported(means: Floats, joint: Floats, words: NDArray[np.uint64]) -> Ints:
    """Published pairs, as many of each as the joint distribution says, each as near to a posterior mean as all together can be.

    Categories and pairs are dealt to blocks so that each block has a fair sample of both, and blocks are matched one by one:
    the least sum of squared distances in every block.
    """
    from scipy.optimize import linear_sum_assignment

    size = len(means)
    pairs = _apportioned(joint, size)
    blocks = -(-size // (_BLOCK if size <= _MANY else _QUICK))
    order = np.lexsort((words, means[:, 1], means[:, 0]))
    out = np.empty((size, 2), np.int64)
    for block in range(blocks):
        members, expected = order[block::blocks], pairs[block::blocks]
        cost = (means[members, None, :] - expected[None, :, :]) ** 2
        _, chosen = linear_sum_assignment(cost.sum(axis=2))
        out[members] = expected[chosen]
    return out


def is_matched(means: Floats, values: Ints, rounding: float) -> bool:
    """Whether no other order of the published pairs is nearer to the means, which are known up to ``rounding``.

    Only what was matched in one block can be told.
    """
    from scipy.optimize import linear_sum_assignment

    if len(means) > _BLOCK:
        return True
    cost = ((means[:, None, :] - values[None, :, :]) ** 2).sum(axis=2)
    own, best = float(np.trace(cost)), float(cost[linear_sum_assignment(cost)].sum())
    # rounding moves the sum of squares by at most twice itself times the distances, of either order
    room = 4 * rounding * (float(np.abs(means - values).sum()) + float(np.sqrt(2 * len(means) * best)))
    return own <= best + room + 1e-9


def _apportioned(joint: Floats, size: int) -> Ints:
    """``size`` pairs whose distribution is as near to the joint one as whole numbers are, in a winding order of the cells."""
    n = len(joint)
    first, second = np.divmod(np.arange(n * n), n)
    second = np.where(first % 2 == 0, second, n - 1 - second)
    reached = np.cumsum(joint[first, second])
    places = np.searchsorted(reached / reached[-1], (np.arange(size) + 0.5) / size)
    return np.column_stack([first[places], second[places]]).astype(np.int64)
