"""Auditing what a spec would release, or a mechanism by its name. The data is never opened.

The audit makes its own neighbouring statistics, because a promise is about all of them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from isotone.audit import ExactFinding, Finding, audit, audit_exact
from isotone.curves import PrivateIsotonicRegression
from isotone.guarantee import Guarantee
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.release.count_release import prepare_mechanism
from isotone.release.recipes import count_mechanism
from isotone.release.spec import Spec
from isotone.release.steward import order_of
from isotone.tables.two_stage import TwoStageMechanism

__all__ = ["audit_name", "audit_spec"]

_PAIRS = 12  # neighbours tried by an exact audit, besides the filter of everything


def audit_spec(spec: Spec, trials: int = 30_000, progress: Progress = no_progress) -> Finding | ExactFinding:
    """Audit the mechanism that a spec would use."""
    promise = spec.privacy.guarantee(spec.unit)
    if spec.order is not None:
        named = None if spec.order.mechanism == "best" else spec.order.mechanism
        options = (spec.data.contributions, spec.order.max_size, named)
        mechanism = prepare_mechanism(order_of(spec), promise, *options, grouped=spec.data.by is not None)
        return _audit_counts(mechanism, trials, progress)
    if spec.table is not None:
        table = spec.table
        mechanism = TwoStageMechanism(
            table.upper,
            promise.epsilon,
            table.split,
            table.remap,
            contributions=spec.data.contributions,
            neighbours=promise.neighbours,
        )
        low, high = min(2, table.upper - 1), min(3, table.upper)
        return audit(mechanism, [low, 0, high], [low + 1, 0, high], trials, progress=progress)
    assert spec.curve is not None
    options = spec.curve.model_dump(exclude={"x", "y"}, exclude_none=True)
    return _audit_curve(options, promise, trials, progress)


def audit_name(
    name: str, epsilon: Any = 1, trials: int = 60_000, progress: Progress = no_progress
) -> Finding | ExactFinding:
    """Audit a mechanism for counts by the name of its class, on a survey of three questions."""
    P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    kind = count_mechanism(name)
    if "Gaussian" in name:
        return _audit_counts(kind(P, rho=Fraction(1, 2)), trials, progress)
    return _audit_counts(kind(P, epsilon=epsilon), trials, progress)


def _audit_counts(mechanism: Any, trials: int, progress: Progress) -> Finding | ExactFinding:
    """By density where there is one (any number of elements), else by draws between nothing and a record of all yeses."""
    P = mechanism.P
    nothing = np.zeros(len(P), dtype=np.int64)
    changes = mechanism.contributions
    if mechanism.guarantee.kind == "pure" and hasattr(mechanism, "log_density"):
        rng = np.random.default_rng(0)
        chosen = rng.permutation(len(P))[:_PAIRS]
        bounded = mechanism.max_size or len(P)
        filters = [
            np.array([P.elements[x] in P.up_set(P.elements[i]) for x in range(len(P))]) for i in chosen
        ]
        filters = [J for J in [np.ones(len(P), dtype=bool), *filters] if J.sum() <= bounded]
        return audit_exact(mechanism, nothing, [changes * J.astype(np.int64) for J in filters])
    size = mechanism.max_size or len(P)
    record = np.zeros(len(P), dtype=np.int64)
    record[P.linear_order[::-1][:size]] = changes
    return audit(mechanism, nothing, record, trials, progress=progress)


def _audit_curve(options: dict[str, Any], promise: Guarantee, trials: int, progress: Progress) -> Finding:
    """A fit to a dozen records, with and without one more; seen at three points."""
    estimator = PrivateIsotonicRegression(promise.epsilon, neighbours=promise.neighbours, **options)
    setup = estimator.check()
    low, high = float(setup.grid.low), float(setup.grid.high)
    bottom, top = map(float, setup.y_range)
    x = np.linspace(low, high, 12)
    y = np.where(x < (low + high) / 2, bottom, top)
    seen = np.linspace(low, high, 5)[1:4]

    def release(extra: int) -> Any:
        added_x, added_y = np.append(x, [high] * extra), np.append(y, [bottom] * extra)
        return estimator.fit(added_x, added_y).predict(seen)

    return audit(release, 0, 1, min(trials, 6_000), claimed=promise, progress=progress)
