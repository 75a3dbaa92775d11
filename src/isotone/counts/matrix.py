"""Sums of counts chosen for the order, with independent noise and least squares: the matrix mechanism.

The order falls into parts that are not related to each other, and a record is one filter in each. In the coordinates of
the *steps*, which are the counts less what is below them (Möbius inversion), a strategy has a weight for every step and
some weighted sums of steps, within each part or across all of them. Its weights are integers, and how far a record moves them is the maximum over all filters
of a part, or of the whole order, which are listed: the bound needs no search. Weights are found by descent from starts that are always the
same (docs/theory/counts.md, section 12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.array_types import Bools, Floats, Ints
from isotone.counts.mechanism import LinearCounts
from isotone.errors import InputError
from isotone.linear.strategy import Geometric, Sums
from isotone.order import Poset
from isotone.privacy.checks import Number
from isotone.privacy.guarantee import Guarantee, Neighbours

if TYPE_CHECKING:
    from scipy import sparse

MOST_ELEMENTS, MOST_RECORDS, MOST_SUMS = 200, 1_000, 64
"""The most elements of a part, the most filters it has, and the most sums of its steps that are measured."""

MOST_TOGETHER, _LONG = 12_000, 3
"""The most filters of a whole order whose parts share their sums, and the most steps that a record then takes on average."""

TALL = 8
"""Shorter orders are not looked at: noise shaped by their hull was better in all that were tried."""

_Weights = tuple[Floats, Floats, float]
_Whole = tuple[Ints, Ints]
_Parts = list[tuple[Ints, Bools]]

_PAIRS = 300
"""Up to so many filters all pairs are compared; beyond, two filters are at most twice as far apart as one is long."""

_SCALE, _LARGEST = 1 << 16, 1 << 31
_ROWS, _STEPS, _SHARPNESS = (1, 2, 3, 5, 7), 300, (30.0, 300.0)
_ROWS_TOGETHER = (4, 14)


@dataclass(frozen=True, init=False)
class MatrixMechanism(LinearCounts):
    """Counts from integer sums chosen for the order, with two-sided geometric noise on each and least squares.

    The strategy that has nearly the least total error is searched for without data, unless ``weights`` gives it: for each
    part of the order, or once for all parts together, the weights of its steps, and of sums of its steps, both in canonical sequence. It is optimal in no
    proved sense; what is proved is what it guarantees, for any weights.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/counts.md, section 12).
    Error: exact, before rounding.
    Cost: for orders whose parts have at most 200 elements and 1,000 possible records each; the search takes seconds.

    >>> from isotone.order import Poset
    >>> m = MatrixMechanism(Poset.chain(range(30)), epsilon=1)
    >>> round(m.error().rmse, 1)  # noise on the histogram: 5.6
    4.4
    """

    weights: list[dict[str, list[Any]]] = field(repr=False, hash=False)
    strategy: Sums = field(repr=False, compare=False)
    noise: Geometric

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        weights: Sequence[Any] | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        parts = _parts(P)
        if parts is None:
            raise InputError(
                f"A strategy of sums needs parts of at most {MOST_ELEMENTS} elements with at most {MOST_RECORDS:,} possible "
                "records each. Use PosetMechanism, or let plan() choose."
            )
        exchanges, whole = self.unit.adjacency.exchanges, _whole(P, parts)
        if weights is None:
            parts, result = _best(parts, whole, exchanges)
        else:
            if whole is not None and isinstance(weights, list | tuple) and len(weights) == 1:
                parts = [whole]
            result = _checked(parts, weights)
        matrices, reach = _measured(parts, result, exchanges)
        positions = P.canonical.positions
        strategy = Sums(tuple(positions[places] for places, _ in parts), tuple(matrices), reach)
        plain = [{"own": own.tolist(), "sums": sums.tolist()} for own, sums in result]
        rate = self.epsilon / (strategy.sensitivity * self.unit.changes)
        self._set(weights=plain, strategy=strategy, noise=Geometric(rate))

    @property
    def rate(self) -> Fraction:
        """Epsilon over the largest ℓ1 norm of what one unit adds to the sums."""
        return self.noise.rate

    @property
    def whole_parts(self) -> float:
        """The variance of every sum."""
        return self.noise.variance

    @property
    def method(self) -> str:
        """How many sums are measured."""
        return f"{self.strategy.rows} sums"


def has_few_records(P: Poset) -> bool:
    """Whether the filters of every part can be listed, and the order is tall enough for sums to help."""
    return P.height >= TALL and _parts(P) is not None


def longest_change(matrix: Ints, records: Bools, exchanges: bool) -> int:
    """The largest ℓ1 norm of the matrix times a record, or also times the difference of two, or a bound on it.

    >>> longest_change(np.array([[1, 0], [1, 1]]), np.array([[0, 1], [1, 1]], np.bool_), exchanges=False)
    3
    """
    from scipy import sparse

    moved = sparse.csr_array(records, dtype=np.int64) @ matrix.T
    longest = int(np.abs(moved).sum(axis=1).max(initial=0))
    if not exchanges:
        return longest
    if len(records) > _PAIRS:
        return 2 * longest
    apart = (int(np.abs(moved - one).sum(axis=1).max()) for one in moved)
    return max(longest, *apart)  # from no yes at all, and from another record


def records_of(leq: Bools) -> Bools:
    """All filters but the empty one, one per row, or more than ``MOST_TOGETHER`` rows if there are more: then some are missing."""
    result, order = np.zeros((1, len(leq)), np.bool_), np.argsort(leq.sum(axis=1), kind="stable")
    for x in order.tolist():  # those above an element come before it
        above = leq[x].copy()
        above[x] = False
        more = result[np.all(result[:, above], axis=1)]
        more[:, x] = True
        result = np.concatenate((result, more))
        if len(result) > MOST_TOGETHER + 1:
            break
    return result[result.any(axis=1)]


def all_records_of(leq: Bools) -> Bools:
    """All filters but the empty one. The bound on what a record moves needs every one of them."""
    result = records_of(leq)
    if len(result) > MOST_TOGETHER:
        raise InputError(f"This order has more than {MOST_TOGETHER:,} possible records. Use PosetMechanism.")
    return result


def _whole(P: Poset, parts: _Parts) -> tuple[Ints, Bools] | None:
    """All places and the order of several parts as one, or None if it is too large or there is one part only."""
    numbers = {leq.tobytes(): len(records_of(leq)) for _, leq in parts}
    together = 1
    for _, leq in parts:
        together *= numbers[leq.tobytes()] + 1  # or none of it
    if len(parts) == 1 or len(P) > MOST_ELEMENTS or together > MOST_TOGETHER + 1:
        return None
    return np.arange(len(P)), P.canonical.order.leq_matrix()


def _best(parts: _Parts, whole: tuple[Ints, Bools] | None, exchanges: bool) -> tuple[_Parts, list[_Whole]]:
    """The parts that are looked at by themselves, or all together, whichever has the least error, and their weights."""
    apart = [_search(leq.tobytes(), len(leq)) for _, leq in parts]
    listed = [(parts, _integers(apart), float(np.sum(np.cbrt([error for *_, error in apart])) ** 3))]
    together = None if whole is None else _together(whole[1].tobytes(), len(whole[1]))
    if whole is not None and together is not None:
        listed.append(([whole], _integers([together]), together[2]))

    def error(option: tuple[_Parts, list[_Whole], float]) -> float:
        reaches = [_measured(*option[:2], replaced)[1] for replaced in {exchanges, False}]
        return option[2] * (max(reaches) / min(reaches)) ** 2

    return min(listed, key=error)[:2]


def _measured(parts: _Parts, weights: list[_Whole], exchanges: bool) -> tuple[list[Ints], int]:
    """The sums of each part, and how far one record moves all of them together."""
    matrices, reach = list[Ints](), 0
    for (_, leq), (own, sums) in zip(parts, weights, strict=True):
        matrices.append(_combined(np.vstack((np.diag(own), sums)), _steps(leq)))
        reach += longest_change(matrices[-1], all_records_of(leq), exchanges)
    return matrices, reach


def _parts(P: Poset) -> _Parts | None:
    """The canonical places and the order of each part that is not related to others, or None if one is too large."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if P.choices:
        return None
    order = P.canonical.order
    lower, upper = order.cover_pairs.T
    graph = coo_array((np.ones(lower.size), (lower, upper)), (len(P), len(P)))
    number, labels = connected_components(graph, directed=False)
    if np.bincount(labels).max() > MOST_ELEMENTS:
        return None
    leq = order.leq_matrix()
    result = [np.flatnonzero(labels == label) for label in range(number)]
    parts = [(places, leq[np.ix_(places, places)]) for places in result]
    few = {part.tobytes(): part for _, part in parts}
    return parts if all(len(records_of(part)) <= MOST_RECORDS for part in few.values()) else None


def _steps(leq: Bools) -> Ints:
    """The steps as integer combinations of the counts: a count is the sum of the steps below it."""
    return np.rint(np.linalg.inv(leq.astype(np.float64))).T.astype(np.int64)


def _combined(weights: Ints, steps: Ints) -> Ints:
    """Weights of steps as weights of counts, whose sum over any record fits 64 bits."""
    if float(np.sum(np.abs(weights).astype(np.float64) @ np.abs(steps).astype(np.float64))) > 2.0**61:
        raise InputError("These weights are too large: sums of them may not fit 64 bits. Give smaller ones.")
    return weights @ steps


def _checked(parts: _Parts, weights: Any) -> list[_Whole]:
    """Weights that are given, as arrays, or an error."""
    wrong = InputError("weights must have, for each part, whole numbers: own, above 0, and sums of as many.")
    if not isinstance(weights, list | tuple) or len(weights) != len(parts):  # pyright: ignore[reportUnknownArgumentType]
        raise wrong
    result: list[_Whole] = []
    for (places, _), numbers in zip(parts, weights, strict=True):  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        if not isinstance(numbers, dict) or set(numbers) != {"own", "sums"}:  # pyright: ignore[reportUnknownArgumentType]
            raise wrong
        own, sums = numbers["own"], numbers["sums"]  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(own, list | tuple) or not isinstance(sums, list | tuple) or len(sums) > MOST_SUMS:  # pyright: ignore[reportUnknownArgumentType]
            raise wrong
        for row in (own, *sums):  # pyright: ignore[reportUnknownVariableType]
            if not isinstance(row, list | tuple) or len(row) != places.size:  # pyright: ignore[reportUnknownArgumentType]
                raise wrong
            if any(type(x) is not int or abs(x) > _LARGEST for x in row):  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
                raise wrong
        if min(own) < 1:  # pyright: ignore[reportUnknownArgumentType]
            raise wrong
        result.append((np.array(own, np.int64), np.array(sums, np.int64).reshape(-1, places.size)))
    return result


def _integers(parts: list[_Weights]) -> list[_Whole]:
    """Weights of all parts on an integer scale, each with the share of the budget that is best."""
    scale = np.cbrt([error for _, _, error in parts])  # errors over squared shares, which add up to 1
    whole: list[_Whole] = []
    for (own, sums, _), share in zip(parts, scale / scale.max(), strict=True):
        weights = np.rint(np.maximum(own * share * _SCALE, 1)).astype(np.int64)
        whole.append((weights, np.rint(sums * share * _SCALE).astype(np.int64)))
    return whole


@lru_cache(maxsize=16)
def _together(relation: bytes, size: int) -> _Weights | None:
    """The same for a whole order of several parts, or None where a record takes many steps."""
    from scipy import sparse

    leq = np.frombuffer(relation, np.bool_).reshape(size, size)
    records = records_of(leq)
    if len(records) > MOST_TOGETHER:
        return None
    moved = sparse.csr_array(records @ _steps(leq).T, dtype=np.float64)
    if moved.nnz > _LONG * len(records):
        return None
    counts, place = _upward(leq)
    result: list[_Weights] = []
    for number in _ROWS_TOGETHER:
        own, sums = _descend(counts, moved, _start(place, number))
        result.append(_at_length_one(counts, moved, own, sums))
    return min(result, key=lambda each: each[2])


@lru_cache(maxsize=64)
def _search(relation: bytes, size: int) -> _Weights:
    """Weights of steps and of sums of steps for one part at sensitivity 1, and the total squared error of unit noise."""
    leq = np.frombuffer(relation, np.bool_).reshape(size, size)
    records = records_of(leq)
    moved = (records @ _steps(leq).T).astype(np.float64)
    counts, place = _upward(leq)
    result: list[_Weights] = []
    for number in sorted({min(rows, size) for rows in _ROWS}):
        start, chain = _start(place, number), len(records) == size
        own, sums = _descend_chain(counts, start) if chain else _descend(counts, moved, start)
        result.append(_at_length_one(counts, moved, own, sums))
    return min(result, key=lambda each: each[2])


def _upward(leq: Bools) -> tuple[Floats, Ints]:
    """The counts as sums of steps, and the place of each step from the top down, along which sums are blocks."""
    counts = np.linalg.inv(_steps(leq).astype(np.float64)).astype(np.float64)
    place = np.empty(len(leq), np.int64)
    place[np.argsort(leq.sum(axis=1), kind="stable")] = np.arange(len(leq))
    return counts, place


def _start(place: Ints, number: int) -> Floats:
    """Sums of blocks of steps, not quite equal: equal ones would stay equal."""
    start = np.full((number, len(place)), 0.02)
    start += 0.5 * (place * number // len(place) == np.arange(number)[:, None])
    return start + 0.01 * np.cos(np.arange(start.size).reshape(start.shape))


def _at_length_one(counts: Floats, moved: Floats | sparse.csr_array, own: Floats, sums: Floats) -> _Weights:
    """Weights on the scale at which no record is longer than 1, and the total squared error of unit noise there."""
    matrix = np.vstack((np.diag(own), sums))
    longest = float(np.abs(moved @ matrix.T).sum(axis=1).max())
    error = float(np.sum(np.square(counts @ np.linalg.pinv(matrix)))) * longest**2
    return own / longest, sums / longest, error


def _descend_chain(counts: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Weights where every record is one step: those of one step add up to 1 (McKenna et al. 2018, p-Identity)."""
    from scipy.optimize import minimize

    def objective(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(start.shape)
        length = 1 + theta.sum(axis=0)
        B = counts * length
        small = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
        Y = B - (B @ theta.T) @ small @ theta  # counts · D⁻¹ (I + ΘᵀΘ)⁻¹, by Woodbury
        slope = 2 * np.sum(counts * Y, axis=0) - 2 * (theta @ Y.T) @ Y
        value = float(np.sum(Y * B))
        return float(np.log(value)), slope.ravel() / value

    limits = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": 1e-9}
    result = minimize(
        objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size, options=limits
    )
    theta = result.x.reshape(start.shape)
    length = 1 + theta.sum(axis=0)
    return 1 / length, theta / length


def _descend(counts: Floats, moved: Floats | sparse.csr_array, start: Floats) -> tuple[Floats, Floats]:
    """Weights for any records, with the longest of them smoothed, and ever less so."""
    from scipy import sparse
    from scipy.optimize import minimize

    size, least = start.shape[1], 1e-4
    gram = counts.T @ counts
    entries = sparse.csr_array(moved)  # of most records few steps
    rows = np.repeat(np.arange(len(entries.indptr) - 1), np.diff(entries.indptr))
    values, columns = np.asarray(entries.data, np.float64), np.asarray(entries.indices, np.int64)

    def first(own: Floats) -> Floats:
        return values * own[columns]

    def objective(flat: Floats, sharp: float) -> tuple[float, Floats]:
        own, sums = flat[:size], flat[size:].reshape(start.shape)
        inverse = np.linalg.inv(np.diag(own**2 + 1e-9) + sums.T @ sums)
        trace = float(np.sum(inverse * gram))
        by_matrix = -(inverse @ gram @ inverse) / trace
        second = entries @ sums.T
        long, more = np.sqrt(first(own) ** 2 + least**2), np.sqrt(second**2 + least**2)
        length = np.bincount(rows, long, len(second)) + more.sum(axis=1)
        logs = sharp * np.log(length)
        weight = np.exp(logs - logs.max())
        value = np.log(trace) + 2 * (logs.max() + np.log(weight.sum())) / sharp
        each = 2 * weight / (weight.sum() * length)
        pull = each[rows] * first(own) / long * values
        by_own = 2 * own * np.diag(by_matrix) + np.bincount(columns, pull, size)
        by_sums = 2 * sums @ by_matrix + (entries.T @ (each[:, None] * second / more)).T
        return float(value), np.concatenate((by_own, by_sums.ravel()))

    at = np.concatenate((np.ones(size), start.ravel()))
    for sharp in _SHARPNESS:
        limits = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": 1e-9}
        at = minimize(objective, at, args=(sharp,), jac=True, method="L-BFGS-B", options=limits).x
    return np.maximum(np.abs(at[:size]), 1e-6), at[size:].reshape(start.shape)
