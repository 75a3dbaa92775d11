"""Audits by drawing, of any mechanism: draw, learn an event that tells neighbours apart, test it on fresh draws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Guarantee

# From the counts of an event to a lower bound on the privacy loss, with a stated confidence.

_ORDERS = (1.05, 1.2, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def clopper_pearson(hits: ArrayLike, trials: int, failure: float) -> tuple[Floats, Floats]:
    """Bounds on a probability, each of which is wrong with probability at most ``failure``.

    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(float(low), 3), round(float(high), 3)
    (0.398, 0.602)
    """
    from scipy.special import betaincinv

    seen = np.asarray(hits, dtype=float)
    low = np.where(seen == 0, 0.0, betaincinv(np.maximum(seen, 1), trials - seen + 1, failure))
    high = np.where(seen == trials, 1.0, betaincinv(seen + 1, np.maximum(trials - seen, 1), 1 - failure))
    return low, high


def epsilon_bound(p_low: float, q_high: float, delta: float = 0.0) -> float:
    """A lower bound on ε from an event with probability at least ``p_low`` on one side, at most ``q_high`` on the other.

    (ε, δ)-DP says p ≤ e^ε·q + δ, so ε ≥ ln((p − δ)/q).
    """
    return math.log((p_low - delta) / q_high) if p_low > delta else 0.0


def rho_bound(p_low: float, q_high: float) -> float:
    """A lower bound on ρ from the same event.

    ρ-zCDP says that the Rényi divergence of every order α is at most ρ·α, and that of the event alone is no larger. It
    grows with p and falls with q while p > q, so the two bounds may be put in.
    """
    if not p_low > q_high > 0:
        return 0.0
    p, q = p_low, q_high
    best = 0.0
    for order in _ORDERS:
        terms = [order * math.log(p) + (1 - order) * math.log(q)]
        if p < 1:
            terms.append(order * math.log1p(-p) + (1 - order) * math.log1p(-q))
        top = max(terms)
        divergence = (top + math.log(sum(math.exp(term - top) for term in terms))) / (order - 1)
        best = max(best, divergence / order)
    return best


def violates(guarantee: Guarantee, p_low: float, q_high: float) -> tuple[float, float]:
    """The lower bound on ε or ρ, and the value that was claimed."""
    if guarantee.kind == "zcdp":
        return rho_bound(p_low, q_high), float(guarantee.rho)
    return epsilon_bound(p_low, q_high, float(guarantee.delta)), float(guarantee.epsilon)


# The outputs of two sides as rows of numbers.
#
# The mechanism may give vectors, numbers or words.
#
# Numbers and vectors stay what they are. Whole numbers too large for a float are counted from the first output, so that
# no digit is lost. Anything else (words, pairs, None) becomes a label, and labels are numbered.

_EXACT = 2**53  # floats hold every whole number up to here


@dataclass(frozen=True)
class Sides:
    """Draws from both sides, one output per row. ``labels`` says that numbers only name outputs."""

    first: Floats
    second: Floats
    labels: bool = False


def draw_both(
    release: Callable[..., Any],
    statistic: Any,
    neighbour: Any,
    trials: int,
    batch: bool,
    report: Callable[[float], None],
) -> Sides:
    """``trials`` outputs of each side. With ``batch``, ``release(statistic, size)`` gives many at once."""
    draw = _many if batch else _one_by_one
    first = draw(release, statistic, trials, lambda done: report(done / 2))
    second = draw(release, neighbour, trials, lambda done: report(0.5 + done / 2))
    one, other = _as_numbers(first), _as_numbers(second)
    if one is None or other is None:
        return _labelled(first, second)
    if one.shape[1] != other.shape[1]:
        raise InputError("The two sides have outputs of different lengths, which alone distinguishes them.")
    return Sides(*_as_floats(one, other))


def _one_by_one(
    release: Callable[..., Any], statistic: Any, trials: int, report: Callable[[float], None]
) -> list[Any]:
    outputs: list[Any] = []
    for i in range(trials):
        outputs.append(release(statistic))
        if i % 1024 == 0:
            report(i / trials)
    return outputs


def _many(
    release: Callable[..., Any], statistic: Any, trials: int, report: Callable[[float], None]
) -> Sequence[Any]:
    outputs = release(statistic, trials)
    if len(outputs) != trials:
        raise InputError(f"Asked for {trials} outputs at once, the mechanism gave {len(outputs)}.")
    report(1.0)
    return outputs


def _as_numbers(outputs: Sequence[Any]) -> NDArray[Any] | None:
    """One row of numbers per output. None if they are not numbers."""
    try:
        rows = np.asarray(outputs)
    except ValueError:
        if all(np.ndim(output) == 1 and np.asarray(output).dtype.kind in "iufb" for output in outputs[:50]):
            raise InputError(
                "The mechanism's outputs have different lengths; an audit needs vectors of one length."
            ) from None
        return None
    if rows.dtype.kind not in "iufb":
        return _big_integers(rows)
    return rows.reshape(len(rows), -1)


def _big_integers(rows: NDArray[Any]) -> NDArray[Any] | None:
    """Python integers beyond 64 bits, as objects. None if there is anything else among them."""
    flat = rows.reshape(len(rows), -1) if rows.dtype.kind == "O" else None
    if flat is None or not all(isinstance(x, (int, np.integer)) for x in flat.ravel().tolist()):
        return None
    return flat


def _as_floats(first: NDArray[Any], second: NDArray[Any]) -> tuple[Floats, Floats]:
    whole = first.dtype.kind in "iuO" and second.dtype.kind in "iuO"
    if whole and max(int(np.max(abs(side.astype(object)))) for side in (first[:100], second[:100])) > _EXACT:
        origin = first[:1].astype(object)
        first, second = first.astype(object) - origin, second.astype(object) - origin
    return first.astype(np.float64), second.astype(np.float64)


def _labelled(first: Sequence[Any], second: Sequence[Any]) -> Sides:
    names: dict[Hashable, int] = {}
    columns: list[Floats] = []
    for side in (first, second):
        try:
            codes = [names.setdefault(cast(Hashable, output), len(names)) for output in side]
        except TypeError:
            raise InputError(
                "Outputs must be numbers, vectors of numbers of one length, or labels that can be compared "
                f"(words, tuples), not {type(side[0]).__name__}."
            ) from None
        columns.append(np.array(codes, dtype=np.float64)[:, None])
    return Sides(columns[0], columns[1], labels=True)


# Scores that distinguish the outputs of two neighbours, learned from draws.
#
# A score is any function of the output; the larger, the more likely is the first side. The best one is the log
# ratio of the two densities. It is approximated by counting, where outputs repeat; by counting in the cells in which
# coordinates have one order and one sign, where densities shaped by an order jump; by a logistic regression on features
# in which the log ratio of most mechanisms is linear; and by the binary places that floating point leaves behind.

_FEW = 3  # so many coordinates can be counted jointly
_SHAPED = 4  # and so many sorted into cells by signs and order
_PAIRED = 8  # pairs of so many are features of the logistic score
_ENOUGH = 20_000  # draws for its few numbers
_HUGE = 1e100  # and numbers beyond are taken as this, so that squares stay finite


@dataclass(frozen=True)
class OutputScore:
    """A named function from outputs (one per row) to numbers."""

    name: str
    function: Callable[[Floats], Floats]

    def __call__(self, outputs: Floats) -> Floats:
        """The score of each output."""
        return self.function(outputs)


def learn_scores(sides: Sides) -> list[OutputScore]:
    """Scores learned from draws of both sides."""
    first, second = sides.first, sides.second
    if sides.labels:
        return [_counted("how often each output was seen", lambda rows: rows[:, 0].astype(np.int64), sides)]
    dimension = first.shape[1]
    scores = [_logistic(first, second), _scores_one_by_one(sides)]
    if dimension <= _FEW:
        scores.append(_counted("the ratio of cell counts", _boxes(np.concatenate([first, second])), sides))
    if 1 < dimension <= _SHAPED:
        scores.append(_counted("signs and order of the coordinates", _arrangement(first, second), sides))
    scores.append(OutputScore("the lowest binary digit", _lowest_bits))
    scores.append(OutputScore("the finest binary place", _finest_place))
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        scores.append(
            OutputScore("numbers that are not finite", lambda rows: (~np.isfinite(rows)).sum(axis=1) * 1.0)
        )
    return scores


def _counted(name: str, keys: Callable[[Floats], Ints], sides: Sides) -> OutputScore:
    """Log ratio of how often each key was seen."""
    one, other = keys(sides.first), keys(sides.second)
    seen, where = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(seen)) for part in (where[: len(one)], where[len(one) :])]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))

    def score(outputs: Floats) -> Floats:
        result = keys(outputs)
        place = np.minimum(np.searchsorted(seen, result), len(seen) - 1)
        return np.where(seen[place] == result, ratio[place], 0.0)

    return OutputScore(name, score)


def _boxes(both: Floats) -> Callable[[Floats], Ints]:
    """Keys of cells. Single outputs where they repeat, otherwise boxes between quantiles."""
    cells = max(4, int((len(both) / 40) ** (1 / both.shape[1])))
    edges: list[Floats] = []
    for column in both.T:
        values = np.unique(column)
        quantiles = np.quantile(column, np.linspace(0, 1, 2 * cells)[1:-1])
        edges.append(values if len(values) <= 4 * cells else quantiles)

    def keys(outputs: Floats) -> Ints:
        mixed = np.zeros(len(outputs), dtype=np.int64)
        for column, edge in zip(outputs.T, edges, strict=True):
            mixed = mixed * (len(edge) + 1) + np.searchsorted(edge, column, side="right")
        return mixed

    return keys


def _arrangement(first: Floats, second: Floats) -> Callable[[Floats], Ints]:
    """Keys of the cells that are cut out by signs, sums and differences of coordinates, seen from both centres."""
    centres = np.median(first, axis=0), np.median(second, axis=0)
    i, j = np.triu_indices(first.shape[1], 1)
    codes = 3 ** np.arange(2 * (first.shape[1] + 2 * len(i)), dtype=np.int64)

    def keys(outputs: Floats) -> Ints:
        parts: list[Floats] = []
        for centre in centres:
            y = outputs - centre
            parts += [y, y[:, i] - y[:, j], y[:, i] + y[:, j]]
        return (np.sign(np.concatenate(parts, axis=1)).astype(np.int64) + 1) @ codes

    return keys


def _scores_one_by_one(sides: Sides) -> OutputScore:
    """The sum of the scores of single coordinates.

    It is the right score where the coordinates are independent.
    """
    parts: list[OutputScore] = []
    for k in range(sides.first.shape[1]):
        column = Sides(sides.first[:, k : k + 1], sides.second[:, k : k + 1])
        parts.append(_counted("", _boxes(np.concatenate([column.first, column.second])), column))

    def score(outputs: Floats) -> Floats:
        return np.sum([part(outputs[:, k : k + 1]) for k, part in enumerate(parts)], axis=0)

    return OutputScore("the ratio of counts, coordinate by coordinate", score)


def _logistic(first: Floats, second: Floats) -> OutputScore:
    from scipy.optimize import minimize

    first, second = first[:_ENOUGH], second[:_ENOUGH]
    centres = np.nan_to_num(np.median(first, axis=0)), np.nan_to_num(np.median(second, axis=0))
    raw = _features(np.concatenate([first, second]), *centres)
    mean, spread = raw.mean(axis=0), raw.std(axis=0) + 1e-12
    X = (raw - mean) / spread
    signs = np.concatenate([np.ones(len(first)), -np.ones(len(second))])

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = signs * (X @ weights[:-1] + weights[-1])
        slope = -signs / (1 + np.exp(np.clip(margin, -500, 500)))
        gradient = np.append(X.T @ slope, slope.sum()) / len(X) + 1e-4 * weights
        return float(np.logaddexp(0, -margin).mean() + 0.5e-4 * weights @ weights), gradient

    weights = np.asarray(minimize(loss, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B").x)
    return OutputScore(
        "a logistic score",
        lambda outputs: ((_features(outputs, *centres) - mean) / spread) @ weights[:-1] + weights[-1],
    )


def _features(outputs: Floats, a: Floats, b: Floats) -> Floats:
    outputs = np.clip(np.nan_to_num(outputs), -_HUGE, _HUGE)
    to_a, to_b = outputs - a, outputs - b
    parts = [outputs, np.abs(to_a), np.abs(to_b)]
    n = outputs.shape[1]
    if 1 < n <= _PAIRED:
        i, j = np.triu_indices(n, 1)
        parts += [np.abs(to_a[:, i] - to_a[:, j]), np.abs(to_b[:, i] - to_b[:, j])]
    for shifted in (to_a, to_b):
        size = np.abs(shifted)
        parts.append(np.stack([size.max(axis=1), size.sum(axis=1), (size**2).sum(axis=1)], axis=1))
    return np.concatenate(parts, axis=1)


def _lowest_bits(outputs: Floats) -> Floats:
    """The last bit of each number's significand. Floating point can reveal the input there (Mironov 2012)."""
    bits = (np.ascontiguousarray(outputs).view(np.uint64) & np.uint64(1)).astype(float)
    return bits.sum(axis=1)


def _finest_place(outputs: Floats) -> Floats:
    """The exponent of the lowest nonzero bit of the coordinates.

    Sums end where their terms do (Haney et al. 2022).
    """
    mantissa, exponent = np.frexp(np.nan_to_num(outputs))
    digits = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.where(digits == 0, 1, digits & -digits)
    place = np.where(digits == 0, 0.0, np.log2(lowest.astype(float)) + exponent - 53)
    return place.min(axis=1)


# A black-box audit.
#
# Draw, learn an event that distinguishes two neighbours, test it on fresh draws.
#
# Nothing is assumed about the mechanism but that it can be run. Half of the draws are for learning: a quarter trains
# scores, a quarter picks the best of them and its threshold. The other half, untouched so far, tests that one event: the
# bound holds with the stated confidence whatever was learned. The audit can prove that a guarantee is broken; it can never
# prove that it is kept.

_LEAST = 300


@dataclass(frozen=True)
class Finding:
    """A lower bound on the privacy loss, with the claim."""

    claimed: float
    bound: float
    confidence: float
    trials: int
    event: str
    measure: str = "ε"
    delta: float = 0.0

    @property
    def broken(self) -> bool:
        """Whether the guarantee is proved to be broken, at this confidence."""
        return self.bound > self.claimed

    def __str__(self) -> str:
        level = f"{100 * self.confidence:g} %"
        claim = f"{self.measure} = {self.claimed:g}" + (f", δ = {self.delta:g}" if self.delta else "")
        if self.broken:
            return (
                f"claims {claim}; BROKEN: {self.measure} is at least {self.bound:.3f} "
                f"({level} confidence, {self.trials:,} draws of each side; the event: {self.event})"
            )
        return (
            f"claims {claim}; no evidence above {self.claimed:g} (lower bound {self.bound:.2f} at {level}, "
            f"{self.trials:,} draws of each side)"
        )


def audit(
    mechanism: Any,
    statistic: Any,
    neighbour: Any,
    trials: int = 60_000,
    *,
    claimed: Guarantee | None = None,
    confidence: float = 0.999,
    suspicions: Sequence[Callable[[Floats], ArrayLike]] = (),
    batch: bool = False,
    progress: Progress = no_progress,
) -> Finding:
    """A lower bound on the privacy loss of ``mechanism`` between two neighbouring statistics.

    Parameters
    ----------
    mechanism
        Anything with ``release(statistic)`` and a ``guarantee``, or a plain callable (then give ``claimed``), so that
        mechanisms of other libraries can be audited. Outputs are numbers, vectors of one length, or labels.
    statistic, neighbour
        What the mechanism is run on: two inputs that the guarantee calls neighbours. Whether they are is not checked.
    trials
        Draws of each side. Half of them look for an event, half test it.
    claimed
        The guarantee to test: pure, approximate or zCDP. Default: the mechanism's own.
    confidence
        The probability with which the bound is true, whatever the mechanism does.
    suspicions
        Functions from outputs (one per row) to numbers that may distinguish the two sides, if you have an idea where the
        mechanism fails. They compete with the scores that the audit learns by itself; a bad one costs nothing.
    batch
        The mechanism is a callable that gives ``size`` outputs at once: ``mechanism(statistic, size)``.

    Examples
    --------
    Randomised response on words, at a right and at a wrong claim. More are in docs/how-to/auditors.md.

    >>> import numpy as np
    >>> from isotone.privacy.guarantee import Guarantee
    >>> rng = np.random.default_rng(1)
    >>> def respond(truth, size):
    ...     honest = rng.random(size) < 3 / 4                  # ln 3 = 1.0986…
    ...     return np.where(honest, truth, "no" if truth == "yes" else "yes")
    >>> print(audit(respond, "yes", "no", 20_000, claimed=Guarantee.pure("1.1"), batch=True))
    claims ε = 1.1; no evidence above 1.1 (lower bound 1.0... at 99.9 %, 20,000 draws of each side)
    >>> audit(respond, "yes", "no", 20_000, claimed=Guarantee.pure("0.9"), batch=True).broken
    True
    """
    guarantee = guarantee_of(mechanism, claimed)
    if trials < _LEAST:
        raise InputError(f"An audit needs at least {_LEAST} trials, not {trials}.")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be strictly between 0 and 1, not {confidence!r}.")
    release = mechanism.release if hasattr(mechanism, "release") and not batch else mechanism
    if not callable(release):
        raise InputError(
            f"A {type(mechanism).__name__} cannot be run: give a callable, or an object with release(statistic)."
        )
    report: Callable[[float], None] = lambda done: progress(0.9 * done, "drawing from both sides")  # noqa: E731
    sides = draw_both(release, statistic, neighbour, trials, batch, report)
    quarter, half = trials // 4, trials // 2
    progress(0.9, "learning an event")
    scores = learn_scores(_part(sides, slice(quarter)))
    scores += [_suspected(k, function) for k, function in enumerate(suspicions)]
    event = _best_event(scores, _part(sides, slice(quarter, half)), guarantee, confidence)
    progress(0.97, "testing the event on fresh draws")
    bound, number = _test(event, _part(sides, slice(half, None)), guarantee, 1 - confidence)
    progress(1.0, "done")
    measure = "ρ" if guarantee.kind == "zcdp" else "ε"
    return Finding(
        number, max(bound, 0.0), confidence, trials, event.words, measure, delta=float(guarantee.delta)
    )


def guarantee_of(mechanism: Any, claimed: Guarantee | None) -> Guarantee:
    """The guarantee to be tested. It is ``claimed``, or what the mechanism says of itself."""
    guarantee = claimed if claimed is not None else getattr(mechanism, "guarantee", None)
    if not isinstance(guarantee, Guarantee):
        raise InputError(
            "What is claimed? Give claimed=Guarantee.pure(…), or a mechanism that has a guarantee."
        )
    return guarantee


def _part(sides: Sides, part: slice) -> Sides:
    return Sides(sides.first[part], sides.second[part], sides.labels)


def _suspected(k: int, function: Callable[[Floats], ArrayLike]) -> OutputScore:
    def score(outputs: Floats) -> Floats:
        values = np.asarray(function(outputs), dtype=float)
        if values.shape != (len(outputs),):
            raise InputError(
                f"Suspicion {k} gave numbers of shape {values.shape} for {len(outputs)} outputs: it must give "
                "one number for each."
            )
        return np.nan_to_num(values)

    return OutputScore(
        getattr(function, "__name__", f"suspicion {k}").replace("<lambda>", f"suspicion {k}"), score
    )


@dataclass(frozen=True)
class _Event:
    """The event that a score is at least (or, ``turned``, at most) a threshold.

    It should happen on the first side, or the second.
    """

    score: OutputScore
    threshold: float
    turned: bool
    swapped: bool

    @property
    def words(self) -> str:
        side, bound = "second" if self.swapped else "first", "at most" if self.turned else "at least"
        cut = -self.threshold if self.turned else self.threshold
        return f"{self.score.name} is {bound} {cut:.3g}, which is evidence for the {side} side"

    def hits(self, outputs: Floats) -> int:
        values = self.score(outputs)
        return int(np.count_nonzero((-values if self.turned else values) >= self.threshold))


def _best_event(scores: list[OutputScore], sides: Sides, guarantee: Guarantee, confidence: float) -> _Event:
    """The event with the largest bound on these draws. The draws are not used again."""
    best, result = -np.inf, _Event(scores[0], 0.0, False, False)
    for score in scores:
        a, b = np.sort(score(sides.first)), np.sort(score(sides.second))
        for turned, swapped in itertools.product((False, True), repeat=2):
            p, q = (b, a) if swapped else (a, b)
            if turned:
                p, q = -p[::-1], -q[::-1]
            cuts = np.unique(np.quantile(p, np.linspace(0.0, 0.999, 120), method="higher"))
            hits = [len(side) - np.searchsorted(side, cuts) for side in (p, q)]
            lows = clopper_pearson(hits[0], len(p), (1 - confidence) / 2)[0]
            highs = clopper_pearson(hits[1], len(q), (1 - confidence) / 2)[1]
            for cut, low, high in zip(cuts, lows, highs, strict=True):
                bound = violates(guarantee, float(low), float(high))[0]
                if bound > best:
                    best, result = bound, _Event(score, float(cut), turned, swapped)
    return result


def _test(event: _Event, sides: Sides, guarantee: Guarantee, failure: float) -> tuple[float, float]:
    p, q = (sides.second, sides.first) if event.swapped else (sides.first, sides.second)
    low = clopper_pearson(event.hits(p), len(p), failure / 2)[0]
    high = clopper_pearson(event.hits(q), len(q), failure / 2)[1]
    return violates(guarantee, float(low), float(high))
