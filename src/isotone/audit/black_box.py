"""A black-box audit.

Draw, learn an event that distinguishes two neighbours, test it on fresh draws.

Nothing is assumed about the mechanism but that it can be run. Half of the draws are for learning: a quarter trains
scores, a quarter picks the best of them and its threshold. The other half, untouched so far, tests that one event: the
bound holds with the stated confidence whatever was learned. The audit can prove that a guarantee is broken; it can never
prove that it is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotone.array_types import Floats
from isotone.audit.bounds import clopper_pearson, violates
from isotone.audit.outputs import Sides, draw_both
from isotone.audit.scores import OutputScore, learn_scores
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Guarantee

__all__ = ["Finding", "audit", "guarantee_of"]

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
    best, found = -np.inf, _Event(scores[0], 0.0, False, False)
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
                    best, found = bound, _Event(score, float(cut), turned, swapped)
    return found


def _test(event: _Event, sides: Sides, guarantee: Guarantee, failure: float) -> tuple[float, float]:
    p, q = (sides.second, sides.first) if event.swapped else (sides.first, sides.second)
    low = clopper_pearson(event.hits(p), len(p), failure / 2)[0]
    high = clopper_pearson(event.hits(q), len(q), failure / 2)[1]
    return violates(guarantee, float(low), float(high))
