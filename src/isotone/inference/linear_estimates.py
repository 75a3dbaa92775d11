"""Linear estimates from published counts, with a public number of records as a control variate, and from several releases.

The noise of the result is a linear combination of that of the releases, so its law is known. Weights steer how short
intervals are, never whether they hold (docs/theory/inference.md, sections 5 and 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.inference.measured import Measured

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["combined", "common_scale", "given_records", "summed"]


def given_records(found: Measured, records: int) -> Measured:
    """The counts adjusted by the error of the noisy number of records, ``y - β·(T - records)``.

    β is the slope of the noise on each count on that of the number of records, so the variance falls by the share
    that the two have in common. Unbiased if ``records`` is right.
    """
    if not found.has_total:
        raise InputError("This release has no number of records to compare with: release with total=True.")
    slope, n = found.slope(), len(found.P)
    weights = np.concatenate((np.eye(n), -slope[None, :]))
    law = found.law.linear(weights)
    values = found.values[:n] - slope * (found.values[n] - records)
    variance = np.maximum(found.variance[:n] - slope**2 * found.variance[n], 0.0)

    def covariance() -> Floats:
        return found.covariance()[:n, :n] - found.variance[n] * np.outer(slope, slope)

    return replace(
        found,
        values=values,
        law=law,
        variance=variance,
        covariance=covariance,
        has_total=False,
        records=records,
        whole=False,
        shape=f"given {found.shape}" if found.shape else "",
    )


def combined(parts: Sequence[Measured], P: Poset) -> Measured:
    """One best estimate of the counts over ``P`` from independent releases, each over a part of its elements."""
    total = all(part.has_total for part in parts)
    places = [_places(part, P, total) for part in parts]
    scale, size = common_scale(parts), len(P) + total
    if scale is None:
        weights = _weights(parts, places, size)
    else:  # whatever the correlations
        weights = [share * np.eye(size)[own] for share, own in zip(scale, places, strict=True)]
    values, law = np.zeros(size), None
    for part, own, weight in zip(parts, places, weights, strict=True):
        values += part.values[: own.size] @ weight
        rows = np.zeros((len(part.values), size))
        rows[: own.size] = weight
        one = part.law.linear(rows)
        law = one if law is None else law.plus(one)

    def covariance() -> Floats:
        cut = zip(parts, places, weights, strict=True)
        return np.sum([w.T @ part.covariance()[: own.size, : own.size] @ w for part, own, w in cut], axis=0)

    if scale is None:
        variance = np.diag(covariance()).copy()
    else:
        variance = np.sum([s**2 * part.variance[:size] for s, part in zip(scale, parts, strict=True)], axis=0)
    known = {part.records for part in parts if part.records is not None}
    assert law is not None
    return Measured(
        P,
        values,
        law,
        variance=variance,
        covariance=covariance,
        has_total=total,
        records=known.pop() if len(known) == 1 else None,
        whole=False,
    )


def _places(part: Measured, P: Poset, total: bool) -> NDArray[np.int64]:
    own = [P.index(x) for x in part.P.elements]
    return np.array([*own, len(P)] if total else own, np.int64)


def _weights(parts: Sequence[Measured], places: Sequence[NDArray[np.int64]], size: int) -> list[Floats]:
    """Generalised least squares. Whatever the covariances, each true count is kept (weights of it add up to 1)."""
    precision, inverses = np.zeros((size, size)), list[Floats]()
    for part, own in zip(parts, places, strict=True):
        matrix = part.covariance()[: own.size, : own.size]
        ridge = 1e-9 * float(np.mean(np.diag(matrix))) + 1e-12
        inverses.append(np.linalg.inv(matrix + ridge * np.eye(own.size)).astype(np.float64))
        precision[np.ix_(own, own)] += inverses[-1]
    solve = np.linalg.inv(precision)
    raw = [inverse @ solve[own] for inverse, own in zip(inverses, places, strict=True)]
    kept = sum(np.eye(size)[own].T @ weight for weight, own in zip(raw, places, strict=True))
    return [weight @ np.linalg.inv(kept) for weight in raw]  # unbiased to the last digit


def common_scale(parts: Sequence[Measured]) -> list[float] | None:
    """The share of each part by the inverse of its variance, or None unless their noise differs in its size only."""
    first = parts[0]
    if not first.shape or any(
        part.shape != first.shape or part.P.elements != first.P.elements for part in parts
    ):
        return None
    sizes = [float(np.sum(part.variance[: len(first.P)])) for part in parts]
    if min(sizes) <= 0:
        return None
    inverse = np.array([1 / size for size in sizes])
    return (inverse / inverse.sum()).tolist()


def summed(groups: Sequence[Measured], weights: Floats, level: float) -> tuple[float, float]:
    """A combination of counts summed over groups, and its half-width.

    All groups have one law, and each its own draw: rows of the law are dealt out to the groups.
    """
    law, count = groups[0].law, len(groups)
    noise = law.along(weights)
    rows = noise.size // count
    dealt = noise[: rows * count].reshape(rows, count).sum(axis=1)
    value = float(sum(group.values @ weights for group in groups))
    return value, float(law.upper(np.abs(dealt), level))
