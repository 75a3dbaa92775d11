"""A black-box audit: draw, learn an event that tells two neighbours apart, test it on fresh draws.

Nothing is assumed about the mechanism but that it can be run. A third of the draws trains a score, a third picks the
threshold, and the last third, untouched so far, tests it: the bound holds with the stated confidence whatever was
learned. The audit can prove that a promise is broken; it can never prove that it is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.audit.bounds import clopper_pearson, violates
from isotone.audit.scores import Score, learn_scores
from isotone.errors import InputError
from isotone.guarantee import Guarantee
from isotone.mechanism import Progress, no_progress

__all__ = ["Finding", "audit"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """What an audit found: a lower bound on the privacy loss, beside what was claimed."""

    claimed: float
    bound: float
    confidence: float
    trials: int
    event: str
    measure: str = "ε"

    @property
    def broken(self) -> bool:
        """Whether the promise is proved to be broken, at this confidence."""
        return self.bound > self.claimed

    def __str__(self) -> str:
        level = f"{100 * self.confidence:g} %"
        if self.broken:
            return (
                f"claims {self.measure} = {self.claimed:g}; BROKEN: the true value is at least {self.bound:.3f} "
                f"({level} confidence, {self.trials:,} draws of each side; event: {self.event})"
            )
        return (
            f"claims {self.measure} = {self.claimed:g}; no evidence above it (lower bound {self.bound:.3f} at {level}, "
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
    seed: int = 0,
    progress: Progress = no_progress,
) -> Finding:
    """A lower bound on the privacy loss of ``mechanism`` between two neighbouring statistics.

    ``mechanism`` has ``release(statistic)`` and a ``guarantee``, or is a plain callable (then give ``claimed``), so
    that mechanisms of other libraries can be audited. Outputs are numbers or vectors of one length. ``seed`` only
    drives the search for an event; the draws are the mechanism's own.

    >>> import numpy as np
    >>> from isotone.guarantee import Guarantee
    >>> rng = np.random.default_rng(1)
    >>> weak = lambda x: x + rng.laplace(scale=0.5)            # claims ε = 1 and has ε = 2
    >>> audit(weak, 0, 1, 6000, claimed=Guarantee.pure(1)).broken
    True
    """
    promise = claimed or getattr(mechanism, "guarantee", None)
    if not isinstance(promise, Guarantee):
        raise InputError(
            "What is claimed? Give claimed=Guarantee.pure(…), or a mechanism that has a guarantee."
        )
    if trials < 300:
        raise InputError(f"An audit needs at least 300 trials, not {trials}.")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be strictly between 0 and 1, not {confidence!r}.")
    release: Callable[[Any], Any] = mechanism.release if hasattr(mechanism, "release") else mechanism
    first = _draws(release, statistic, trials, lambda done: progress(0.45 * done, "drawing from one side"))
    second = _draws(
        release, neighbour, trials, lambda done: progress(0.45 + 0.45 * done, "drawing from the other")
    )
    if first.shape[1] != second.shape[1]:
        raise InputError("The two sides have outputs of different lengths: that alone tells them apart.")
    thirds = [slice(0, trials // 3), slice(trials // 3, 2 * trials // 3), slice(2 * trials // 3, trials)]
    scores = learn_scores(first[thirds[0]], second[thirds[0]], np.random.default_rng(seed))
    event = _best_event(scores, first[thirds[1]], second[thirds[1]], promise, confidence)
    progress(0.95, "testing the event on fresh draws")
    bound, number = _test(event, first[thirds[2]], second[thirds[2]], promise, 1 - confidence)
    progress(1.0, "done")
    measure = "ρ" if promise.kind == "zcdp" else "ε"
    return Finding(number, max(bound, 0.0), confidence, trials, event.words, measure)


@dataclass(frozen=True)
class _Event:
    score: Score
    threshold: float
    swapped: bool

    @property
    def words(self) -> str:
        side = "second" if self.swapped else "first"
        return f"{self.score.name} speaks for the {side} side by at least {self.threshold:.3g}"

    def hits(self, outputs: Floats) -> int:
        values = self.score(outputs)
        return int(np.count_nonzero((-values if self.swapped else values) >= self.threshold))


def _best_event(
    scores: list[Score], first: Floats, second: Floats, promise: Guarantee, confidence: float
) -> _Event:
    """The event with the largest bound on these draws; they are not used again."""
    best, found = -np.inf, _Event(scores[0], 0.0, False)
    for score in scores:
        a, b = score(first), score(second)
        for swapped in (False, True):
            p, q = (np.sort(-b), np.sort(-a)) if swapped else (np.sort(a), np.sort(b))
            cuts = np.unique(np.quantile(p, np.linspace(0.0, 0.999, 120)))
            for cut in cuts:
                hits = [len(side) - int(np.searchsorted(side, cut)) for side in (p, q)]
                low = clopper_pearson(hits[0], len(p), (1 - confidence) / 2)[0]
                high = clopper_pearson(hits[1], len(q), (1 - confidence) / 2)[1]
                bound = violates(promise, low, high)[0]
                if bound > best:
                    best, found = bound, _Event(score, float(cut), swapped)
    return found


def _test(
    event: _Event, first: Floats, second: Floats, promise: Guarantee, failure: float
) -> tuple[float, float]:
    p, q = (second, first) if event.swapped else (first, second)
    low = clopper_pearson(event.hits(p), len(p), failure / 2)[0]
    high = clopper_pearson(event.hits(q), len(q), failure / 2)[1]
    return violates(promise, low, high)


def _draws(
    release: Callable[[Any], Any], statistic: Any, trials: int, report: Callable[[float], None]
) -> Floats:
    rows: list[ArrayLike] = []
    for i in range(trials):
        rows.append(np.ravel(np.asarray(release(statistic), dtype=float)))
        if i % 4096 == 0:
            report(i / trials)
    try:
        return np.asarray(rows, dtype=float)
    except ValueError:
        raise InputError(
            "The mechanism's outputs have different lengths; an audit needs vectors of one length."
        ) from None
