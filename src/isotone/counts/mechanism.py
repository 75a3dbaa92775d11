"""What all mechanisms of counts share: checked counts, records cut to a size, sensitivity, what error is to be small, and bases of classes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.consistency import consistent
from isotone.errors import InputError, OrderError
from isotone.linear.mechanism import AdditiveNoise, LinearMechanism
from isotone.mechanism import Error
from isotone.noise.simulate import refuse_simulated
from isotone.order import Poset
from isotone.order.bipartitions.small import is_small, part_of
from isotone.order.closure import Options, innermost_first, partitions_upward
from isotone.privacy.calibration import sigma_squared, sigma_squared_zcdp
from isotone.privacy.checks import Number, exact, shown, whole_number
from isotone.privacy.draws import ExactDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit

# One checked count for each element of an order.
#
# Counts of closed records are integers, not negative, and grow along the order: whoever says yes to ``a`` says
# yes to everything above ``a``. :func:`check_counts` refuses anything else. Its messages name elements, which
# are public, and never quote a count, which is not.

Counts = Any
"""Counts as a user gives them: a mapping (or a data-frame column) by name, or a sequence or array in the order
of ``P.elements``. No static type covers all of these; :func:`check_counts` does."""

_LARGEST = 2**62
"""Counts stay below this, so that a count plus noise cannot overflow 64 bits."""


def check_counts(P: Poset, counts: Counts) -> NDArray[np.int64]:
    """``counts`` as an integer vector in the order of ``P.elements``, or an error that names no count.

    A mapping must name every element of ``P`` exactly once; a sequence must have one entry per element, in
    the order of ``P.elements``. Whole numbers of any type are accepted, floats included.

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice"], [("twice", "hyp")])
    >>> check_counts(P, {"twice": 80, "hyp": 120})
    array([120,  80])
    """
    refuse_simulated(counts)
    values = _as_integers(P, _in_order(P, counts))
    negative = np.flatnonzero(values < 0)
    if negative.size:
        raise InputError(
            f"The count of {P.elements[negative[0]]!r} is below 0. Pass the number of records that say yes."
        )
    pairs = P.cover_pairs
    broken = np.flatnonzero(values[pairs[:, 0]] > values[pairs[:, 1]])
    if broken.size:
        lower, upper = (P.elements[i] for i in pairs[broken[0]])
        raise OrderError(
            f"{lower!r} implies {upper!r}, but the counts given break that order. Counts of closed records "
            "never do: pass the records through close() first."
        )
    if P.choices:
        _check_choices(P, values)
    return values


def _check_choices(P: Poset, values: NDArray[np.int64]) -> None:
    """Refuse counts that no records with at most one option of each choice can have."""
    sums: dict[Hashable, tuple[str, int]] = {}
    for choice in P.choices:
        total = sum(int(values[P.index(option)]) for option in choice.options)
        sums[choice.options[0]] = choice.kind, total
    for option, upper in P.covers:
        kind, total = sums.get(option, ("any", 0))
        count = int(values[P.index(upper)])
        if total > count or (kind == "partition" and total < count):
            more = "add up to" if kind == "partition" else "are together at most"
            raise OrderError(
                f"{option!r} and its siblings exclude each other, so their counts {more} that of {upper!r}. The "
                "counts given do not. Give each record one option first."
            )


def _in_order(P: Poset, counts: Any) -> ArrayLike:
    """The raw counts, one for each element, in the order of ``P.elements``."""
    if hasattr(counts, "keys"):  # a mapping, or a data-frame column with names as its index
        named = cast("Mapping[Hashable, int]", counts)
        keys = list(named.keys())
        _check_names(P, keys)
        refuse_simulated([named[name] for name in keys])
        return [named[name] for name in P.elements]
    if isinstance(counts, (str, bytes)) or not (
        hasattr(counts, "__len__") and hasattr(counts, "__getitem__")
    ):
        raise InputError(
            f"Counts must be a mapping from element to count or a sequence of counts, not a "
            f"{type(counts).__name__}."
        )
    if len(counts) != len(P):
        raise InputError(
            f"The order has {len(P)} elements, but {len(counts)} counts were given. Pass one count for each "
            "element, in the order of P.elements, or a mapping by name."
        )
    return cast("ArrayLike", counts)


def _check_names(P: Poset, keys: Sequence[Hashable]) -> None:
    known = set(P.elements)
    unknown = [key for key in keys if key not in known]
    if unknown:
        guesses = get_close_matches(str(unknown[0]), [str(name) for name in P.elements], n=1)
        hint = f" Did you mean {guesses[0]!r}?" if guesses else ""
        raise InputError(f"{unknown[0]!r} is not an element of the order.{hint}")
    missing = known - set(keys)
    if missing or len(keys) != len(P):
        first = next((name for name in P.elements if name in missing), None)
        problem = f"No count is given for {first!r}." if missing else "An element is named more than once."
        raise InputError(f"{problem} Pass one count for each of the {len(P)} elements (0 is a count).")


def _as_integers(P: Poset, raw: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers as int64. Anything else raises an error that names the element."""
    try:
        array = np.asarray(raw)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise InputError("Counts must be one number for each element: a flat sequence, not a table.")
    if array.dtype.kind in "iu" and np.all(array < _LARGEST):  # the quick path: no loop in Python
        return np.ascontiguousarray(array, dtype=np.int64)
    values = np.empty(len(array), dtype=np.int64)
    for i, item in enumerate(array.tolist()):
        whole = _whole(item)
        if whole is None:
            raise InputError(
                f"The count of {P.elements[i]!r} is not a whole number below 2**62. Counts are numbers of "
                "records: pass integers."
            )
        values[i] = whole
    return values


def _whole(item: Any) -> int | None:
    """``item`` as an int if it is a whole number of moderate size, else None."""
    if isinstance(item, bool) or not hasattr(item, "__int__") or isinstance(item, (str, bytes)):
        return None
    try:
        whole = int(item)
    except (ValueError, OverflowError, TypeError):  # NaN and infinities
        return None
    return whole if whole == item and abs(whole) < _LARGEST else None


def check_records(records: int, values: NDArray[np.int64]) -> int:
    """The number of records as an int. The message quotes neither it nor a count."""
    try:
        number = int(records.__index__())
    except (AttributeError, TypeError):
        raise InputError("The number of records must be a whole number.") from None
    if number >= 2**62:
        raise InputError("The number of records must be below 2**62.")
    if number < values.max():
        raise InputError("There are fewer records than one of the counts: pass the number of all records.")
    return number


def deviation(P: Poset, output: ArrayLike, counts: Counts | None) -> NDArray[np.float64]:
    """``output - counts`` (or ``output`` itself, as noise), with one entry per element in the last axis."""
    noise = np.asarray(output, dtype=float)
    if noise.ndim == 0 or noise.shape[-1] != len(P):
        raise InputError(f"The last axis must have one entry for each of the {len(P)} elements.")
    return noise if counts is None else noise - check_counts(P, counts).astype(float)


# Cutting records to at most k yeses, by a rule that looks at nothing but the order.
#
# Walk the canonical linear extension (by level, then name) from the top and keep the first k yeses of the record. What is kept of a filter
# is a filter: everything above a kept element is a yes and was met before it, so it was kept too
# (docs/theory/baselines.md, section 7). A yes whose partition has lost its option is taken back, with all below it. The rule depends on the order alone, so one record is cut the same way
# whatever the others are.


def cut(P: Poset, record: Any, max_size: int) -> Any:
    """A record cut to at most ``max_size`` yeses.

    It keeps its own form, a mapping, a set of names or an array.

    The record is closed upward first; the first ``max_size`` of its yeses from the top are kept.

    >>> from isotone.order import Poset
    >>> P = Poset(["app", "toolkit", "libc"], [("app", "toolkit"), ("toolkit", "libc")])
    >>> sorted(cut(P, {"app"}, 2))
    ['libc', 'toolkit']
    """
    closed = P.close(record)
    if isinstance(closed, Mapping):
        answers = np.array([bool(closed[name]) for name in P.elements])
        kept = cut_all(P, answers[None, :], max_size)[0]
        return dict(zip(P.elements, kept.tolist(), strict=True))
    if isinstance(closed, Set):
        answers = np.array([name in closed for name in P.elements])
        kept = cut_all(P, answers[None, :], max_size)[0]
        return frozenset(name for name, keep in zip(P.elements, kept, strict=True) if keep)
    return cut_all(P, np.asarray(closed)[None, :], max_size)[0]


def cut_all(P: Poset, records: ArrayLike, max_size: int) -> NDArray[np.bool_]:
    """Each row of a 0/1 matrix of *filters* (records × elements) cut to at most ``max_size`` yeses.

    Rows must be closed upward already (``P.close_all``); this is not checked again.
    """
    largest = whole_number(max_size, "max_size")
    answers = np.asarray(records, dtype=np.bool_)
    if answers.ndim != 2 or answers.shape[1] != len(P):
        raise InputError(f"Records must be a matrix with one column for each of the {len(P)} elements.")
    from_the_top = P.canonical.positions[::-1]
    kept = np.zeros_like(answers)
    walked = answers[:, from_the_top]
    kept[:, from_the_top] = walked & (np.cumsum(walked, axis=1) <= largest)
    for top, options, others in partitions_upward(P):
        lost = kept[:, P.index(top)] & ~np.any(kept[:, [P.index(x) for x in options]], axis=1)
        kept[np.ix_(lost, [P.index(x) for x in (top, *others)])] = False
    return kept


# How far one privacy unit can move the vector of counts, in the ℓ1, ℓ2 and ℓ∞ norms.
#
# One record moves the counts by the indicator of a filter; replacing it by another moves them by the
# difference of two, whose entries are -1, 0 or 1. So one number decides all three norms: the largest number of
# coordinates that can move (docs/theory/baselines.md, section 1).


_ONE_RECORD = Unit()


@dataclass(frozen=True)
class Sensitivity:
    """How far one privacy unit can move the counts.

    ``records`` records change (:attr:`~isotone.privacy.guarantee.Unit.changes`), each moving at most ``coordinates`` counts by one.

    >>> from isotone.order import Poset
    >>> Sensitivity.of(Poset.antichain("abcdef"), max_size=4)
    Sensitivity(records=1, coordinates=4)
    >>> Sensitivity.of(Poset.antichain("abcdef"), Unit(2, "replace")).l1
    12
    """

    records: int
    coordinates: int

    @classmethod
    def of(cls, P: Poset, unit: Unit = _ONE_RECORD, max_size: int | None = None) -> Sensitivity:
        """The sensitivity of the counts over ``P`` when a record of a unit has at most ``max_size`` yeses (None: no bound)."""
        largest = largest_record(P)
        if max_size is not None:
            largest = min(largest, whole_number(max_size, "max_size"))
        changes, size = unit.changes, len(P)
        if not unit.adjacency.exchanges or largest == size:
            return cls(changes, largest)
        top = _top_chain(P)
        return cls(changes, max(largest, min(2 * (largest - top), size - top)))

    @property
    def l1(self) -> int:
        """The largest ℓ1 norm of a unit's change."""
        return self.records * self.coordinates

    @property
    def l2_squared(self) -> int:
        """The largest squared ℓ2 norm of a unit's change."""
        return self.records**2 * self.coordinates

    @property
    def linf(self) -> int:
        """The largest ℓ∞ norm of a unit's change."""
        return self.records


def largest_record(P: Poset) -> int:
    """The largest number of elements in one record.

    Of the options of a choice only the one with the largest part of a record below it counts.

    >>> from isotone.order import Poset
    >>> largest_record(Poset.from_mapping({"a": "q", "b": "q", "b1": "b"}, children={"q": "exclusive"}))
    3
    """
    if not P.choices:
        return len(P)
    options = Options.of(P)
    most = Counter(options.nearest.values())  # elements whose lowest option this is, itself included
    for choice in innermost_first(P):
        most[options.enclosing[choice.options[0]]] += max(most[option] for option in choice.options)
    return most[None]


def _top_chain(P: Poset) -> int:
    """The number of elements that form a chain above all the rest.

    Every filter that is not among them holds them all.
    """
    below = np.sort(np.sum(P.leq_matrix(), axis=0))[::-1]
    expected = len(P) - np.arange(len(P))
    differs = np.flatnonzero(below != expected)
    return int(differs[0]) if differs.size else len(P)


# What mechanisms that add noise to the counts have in common.
#
# The noise never depends on the counts. So its law is known before any data is read: error, quantiles and
# simultaneous intervals are properties of the mechanism.


@dataclass(frozen=True, init=False)
class AdditiveMechanism(AdditiveNoise):
    """Counts over ``P`` plus noise.

    The common part of the mechanisms that do not follow the order.

    ``neighbours`` and ``contributions`` say what is protected: adding or removing, or replacing, one unit
    that gives up to ``contributions`` records. ``max_size`` states that no record has more yeses than
    that after closing (``cut`` makes it true); None sets no limit.
    """

    can_release: ClassVar[bool] = True
    """False for mechanisms that exist for comparison and have no exact sampler."""

    P: Poset
    guarantee: Guarantee
    contributions: int
    max_size: int | None
    sensitivity: Sensitivity
    unit: Unit = field(repr=False, compare=False)
    """The privacy unit."""
    neighbours: Neighbours = field(repr=False, compare=False)
    """The adjacency, adding or removing one unit, or replacing it."""
    epsilon: Fraction = field(repr=False, compare=False)
    """The epsilon of the guarantee (0 under zCDP)."""

    def _settle(self, P: Poset, guarantee: Guarantee, contributions: int, max_size: int | None) -> None:
        """Check the public parameters and store them as plain values. Every mechanism does this first.

        Mechanisms go on with the stored values, never with the arguments, which may be numpy scalars that wrap.
        """
        unit = Unit(contributions, guarantee.neighbours, guarantee.unit)
        largest = None if max_size is None else whole_number(max_size, "max_size")
        self._set(
            P=P,
            guarantee=guarantee,
            contributions=unit.contributions,
            max_size=largest,
            sensitivity=Sensitivity.of(P, unit, largest),
            unit=unit,
            neighbours=unit.neighbours,
            epsilon=guarantee.epsilon,
        )

    @property
    def size(self) -> int:
        """One number for each count."""
        return len(self.P)

    @property
    def adds_up(self) -> bool:
        """Whether there are partitions, whose counts add up in every draw."""
        return any(choice.kind == "partition" for choice in self.P.choices)

    @abstractmethod
    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        """One exact draw of the noise, rounded to integers."""

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers. Exactly private, from cryptographic bits."""
        return check_counts(self.P, counts) + self._integer_noise(require_exact(ExactDraws()))

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        released = [self.release(row) for row in rows]
        return np.array(released, np.int64).reshape(rows.shape)

    def part(self, share: Fraction) -> Self:
        """One of several draws from the same records.

        With shares that add up to 1, all of them together guarantee what this does. Epsilon is divided; for Gaussian
        noise the variance is. Under (ε, δ) a part of it says no more than the whole does, and keeps more.
        """
        result, guarantee = self._copy(), self.guarantee
        if guarantee.kind != "approximate":
            parts = {"epsilon": guarantee.epsilon * share, "rho": guarantee.rho * share}
            result._set(guarantee=replace(guarantee, **parts), epsilon=parts["epsilon"])
        result._widen(share)
        return result

    def _widen(self, share: Fraction) -> None:
        """Go on with the noise of a part of the budget. By default it follows from the guarantee."""

    def consistent(
        self, values: ArrayLike, upper: float | None = None, integers: bool = False
    ) -> NDArray[np.float64] | NDArray[np.int64]:
        """Released ``values`` made monotone and nonnegative.

        Each is weighted by its variance. See :func:`consistent`.
        """
        variance = self.error().variance
        weights = 1 / np.maximum(variance, 1e-9 * variance.max()) if np.any(variance > 0) else None
        return consistent(self.P, values, weights, upper, integers)

    def __str__(self) -> str:
        return f"{type(self).__name__} over {len(self.P)} elements, {self.guarantee}"


@dataclass(frozen=True, init=False)
class PureMechanism(AdditiveMechanism):
    """A mechanism that is given by ``epsilon`` and the unit alone."""

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        self._prepare()

    def _prepare(self) -> None:
        """Refuse what the mechanism cannot do. By default it can do everything."""


@dataclass(frozen=True, init=False)
class LinearCounts(LinearMechanism, AdditiveMechanism):
    """Counts over ``P``, estimated from sums of them with independent noise."""

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers.

        Exactly private, from cryptographic bits: noise is added to integers, and what follows is a function of the
        noisy integers alone.
        """
        return self._released(check_counts(self.P, counts), require_exact(ExactDraws()))

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return self._released(np.zeros(len(self.P), np.int64), draws)

    def _release_at_once(self, rows: Ints) -> Ints:
        """Release the counts of each row, with all noise drawn at once."""
        refuse_simulated(rows)
        return self._released_rows(rows, require_exact(ExactDraws()))


# What mechanisms with Gaussian noise have in common, a guarantee with delta or rho.


@dataclass(frozen=True, init=False)
class ConcentratedMechanism(AdditiveMechanism):
    """A mechanism that is given by ``epsilon`` and ``delta``, or by ``rho``, and the unit."""

    def __init__(
        self,
        P: Poset,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> None:
        self._settle(P, gaussian_guarantee(epsilon, delta, rho, neighbours), contributions, max_size)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Calibrate the noise to the settled guarantee and sensitivity."""


def gaussian_guarantee(
    epsilon: Number | None, delta: Number | None, rho: Number | None, neighbours: Neighbours
) -> Guarantee:
    """The guarantee for (epsilon, delta), or for rho.

    Exactly one of the two forms must be given.
    """
    if rho is None and (epsilon is None or delta is None):
        raise InputError("Gaussian noise needs epsilon and delta, or rho. With delta = 0 use PosetMechanism.")
    guarantee = Unit(neighbours=neighbours).guarantee(epsilon, delta, rho)
    if guarantee.kind == "pure":
        raise InputError("delta must be above 0 for Gaussian noise. With delta = 0 use PosetMechanism.")
    return guarantee


def gaussian_variance(guarantee: Guarantee, sensitivity_squared: Number = 1) -> Fraction:
    """The variance of Gaussian noise at this squared sensitivity."""
    if guarantee.kind == "zcdp":
        return sigma_squared_zcdp(guarantee.rho, sensitivity_squared)
    return sigma_squared(guarantee.epsilon, guarantee.delta, sensitivity_squared)


# What error is to be small, and the least error that noise of a kind can have.

# The objective that a plan minimises over many counts.
#
# All counts alike, all levels alike, the worst count, or weights. Weights are public: they stand in the manifest,
# and must not come from the data; an earlier private release may fill them in.

Care = str | Mapping[Any, Any]
"""What matters: the mean square over all counts ("nodes"), its mean over "levels", the "worst", or weights by element."""

_WORDS = ("nodes", "levels", "worst")
_LEAST = Fraction(1, 10**100)
_UNNAMED = 1e-6
"""The weight of elements without one, against the largest."""


def care_of(P: Poset, care: Any) -> str | dict[str, str]:
    """``care`` as plain values, with exact weights as text by the name of the element."""
    if isinstance(care, str) and str.__str__(care) in _WORDS:
        return str.__str__(care)
    if not isinstance(care, Mapping):
        raise InputError(f"care is 'nodes', 'levels', 'worst' or weights by element, not {shown(care)}.")
    known = {str(x) for x in P.elements}
    weights: dict[str, str] = {}
    for name, value in care.items():
        if str(name) not in known:
            raise InputError(f"care= names {name!r}, which is not an element of this order.")
        weight = exact(value, f"the weight of {name!r}")
        if weight and not _LEAST <= weight <= 1 / _LEAST:
            raise InputError(
                f"The weight of {name!r} must be 0 or between 1e-100 and 1e100, not {shown(value)}."
            )
        weights[str(name)] = str(weight)
    if not any(exact(weight) for weight in weights.values()):
        raise InputError("care= needs at least one weight above 0.")
    return weights


def care_weights(P: Poset, care: str | Mapping[str, str]) -> Floats:
    """The weight of each element's variance. They add up to 1."""
    if isinstance(care, Mapping):
        weights = np.array([float(exact(care.get(str(x), "0"))) for x in P.elements])
        # what nobody cares for has some weight still: it is published too, and should be worth it
        weights = np.where(weights > 0, weights, _UNNAMED * weights.max())
    elif care == "levels":
        depth = _depths(P)
        weights = 1 / np.bincount(depth)[depth]
    else:
        weights = np.ones(len(P))
    return weights / weights.sum()


def cared_error(P: Poset, care: str | Mapping[str, str]) -> Callable[[Error], float]:
    """The root of what is to be small, of an error."""
    if care == "worst":
        return lambda error: error.worst
    weights = care_weights(P, care)
    return lambda error: math.sqrt(math.fsum(weights * error.variance))


def relative_to(guesses: Mapping[Any, Any]) -> dict[Hashable, Any]:
    """Weights for relative errors, given guessed counts.

    The guesses are public, like all weights: never take them from the data itself.

    >>> relative_to({"a": 10, "b": 0})
    {'a': Fraction(1, 100), 'b': Fraction(1, 1)}
    """
    return {
        name: 1 / max(exact(guess, f"the guess of {name!r}"), exact(1)) ** 2
        for name, guess in guesses.items()
    }


def _depths(P: Poset) -> NDArray[np.int64]:
    """The length of the longest way up from each element."""
    depth = np.zeros(len(P), np.int64)
    place = np.empty(len(P), np.int64)
    place[P.linear_order] = np.arange(len(P))
    pairs = P.cover_pairs[np.argsort(-place[P.cover_pairs[:, 0]], kind="stable")]
    for low, high in pairs.tolist():
        depth[low] = max(depth[low], depth[high] + 1)
    return depth


# Lower bounds of squared errors without simulation, to skip mechanisms that cannot be the best.
#
# Noise with density ``exp(−rate·‖y‖)`` has the squared error ``(n+1)(n+2)/rate²`` times that of a uniform point of the
# unit ball of its norm, and no body of a given volume is closer to its centre than a Euclidean ball. The ellipse of a
# Gaussian contains all changes, and a matrix of given determinant has its least trace when it is a multiple of the
# identity (docs/theory/baselines.md, section 8).

LARGEST = 2_000
"""The sizes of all down-sets are looked at in orders of up to so many elements."""


def k_norm_total(size: int, rate: float, log_volume: float) -> float:
    """The least total squared error of noise with density ``exp(−rate·‖y‖)`` whose unit ball has this volume."""
    return (size + 1) * gaussian_total(size, 1.0, log_volume) / rate**2


def gaussian_total(size: int, variance: float, log_volume: float) -> float:
    """The least total variance of Gaussian noise whose ellipse contains a body of this volume.

    ``variance`` is that of the noise at sensitivity 1.
    """
    log_ball = size / 2 * math.log(math.pi) - math.lgamma(size / 2 + 1)
    return size * variance * math.exp(2 / size * (log_volume - log_ball))


def log_hull(P: Poset) -> float:
    """A lower bound of the logarithm of the volume of the hull of all records and their negatives.

    It is exact for a small order, where the extended bipartitions can be counted.
    """
    if is_small(P):
        return math.log(sum(part_of(P).counts)) - math.lgamma(len(P) + 1)
    return math.log(2) + _log_polytope(P)


def log_differences(P: Poset) -> float:
    """A lower bound of the logarithm of the volume of the hull of all differences of two records.

    It is exact for a small order. Elsewhere the sum of a body and its negative has at least the volume of twice the
    body (Brunn and Minkowski).
    """
    n = len(P)
    if is_small(P):
        pairs = sum(count * math.comb(n, a) for a, count in enumerate(part_of(P).counts))
        return math.log(pairs) - math.lgamma(n + 1)
    return n * math.log(2) + _log_polytope(P)


def _log_polytope(P: Poset) -> float:
    """A lower bound of the logarithm of the volume of the order polytope, which holds all records.

    An order has at least ``n! / Π|↓x|`` linear extensions, and at least one.
    """
    if len(P) > LARGEST:
        return -math.lgamma(len(P) + 1)
    return -sum(math.log(below) for below in P.leq_matrix().sum(axis=0).tolist())
