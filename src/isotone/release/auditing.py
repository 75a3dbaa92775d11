"""Auditing what a spec would release, or a mechanism by its name. The data is never opened.

The audit makes its own neighbouring statistics, because a promise is about all of them. Where the noise has an explicit
density it is searched for the output that reveals most; then the release itself is drawn from, on the neighbours that the
search found worst, because a density says nothing about the program that draws.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.audit import ExactFinding, Finding, audit, audit_exact
from isotone.curves import PrivateIsotonicRegression
from isotone.errors import InputError, SpecError
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.count_release import prepare_mechanism
from isotone.release.recipes import count_mechanism
from isotone.release.spec import Spec
from isotone.release.steward import order_of
from isotone.tables.two_stage import TwoStageMechanism

__all__ = ["AuditReport", "audit_name", "audit_spec"]

_FILTERS = 12  # records tried by an exact audit, besides the longest
_FITS = 6_000  # a curve is drawn at most so often: a fit takes milliseconds


@dataclass(frozen=True)
class AuditReport:
    """What was found about one mechanism: by its density where there is one, and by draws."""

    findings: tuple[Finding | ExactFinding, ...]

    @property
    def broken(self) -> bool:
        """Whether any finding proves the promise broken."""
        return any(finding.broken for finding in self.findings)

    def plain(self) -> dict[str, Any]:
        """The findings as plain values."""
        return {
            "broken": self.broken,
            "findings": [{**vars(finding), "broken": finding.broken} for finding in self.findings],
        }

    def __str__(self) -> str:
        return "\n".join(
            f"{'by its density' if isinstance(finding, ExactFinding) else 'by draws'}: {finding}"
            for finding in self.findings
        )


def audit_spec(spec: Spec, trials: int = 30_000, progress: Progress = no_progress) -> AuditReport:
    """Audit the mechanism that a spec would use."""
    promise = spec.privacy.guarantee(spec.unit)
    if spec.order is not None:
        named = None if spec.order.mechanism == "best" else spec.order.mechanism
        options = (spec.data.contributions, spec.order.max_size, named)
        mechanism = prepare_mechanism(order_of(spec), promise, *options, grouped=spec.data.by is not None)
        return _audit_counts(mechanism, trials, progress)
    if promise.kind != "pure":
        raise SpecError("Tables and curves promise pure ε: give epsilon alone in [privacy].")
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
        return _audit_table(mechanism, trials, progress)
    assert spec.curve is not None
    options = spec.curve.model_dump(exclude={"x", "y"}, exclude_none=True)
    return _audit_curve(options, spec.data.contributions, promise, trials, progress)


def audit_name(
    name: str, epsilon: Number = 1, trials: int = 60_000, progress: Progress = no_progress
) -> AuditReport:
    """Audit a mechanism by the name of its class, on a survey of three questions or a table of three counts."""
    if name == TwoStageMechanism.__name__:
        return _audit_table(TwoStageMechanism(20, epsilon), trials, progress)
    if name == PrivateIsotonicRegression.__name__:
        options = {"bounds": (0, 100), "y_range": (0, 1)}
        return _audit_curve(options, 1, Guarantee.pure(epsilon), trials, progress)
    return _audit_counts(_example(count_mechanism(name), epsilon), trials, progress)


def _example(kind: type[Any], epsilon: Number) -> Any:
    """A mechanism of this class on a survey of three questions, a gate and two that it opens, or on a chain."""
    P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    asked = inspect.signature(kind).parameters
    given: dict[str, Any] = {"rho": Fraction(1, 2)} if "rho" in asked else {"epsilon": epsilon}
    given |= {"p": 3} if "p" in asked else {}
    settings: list[tuple[Poset, dict[str, Any]]] = [
        (P, {}),
        (P, {"max_size": 2}),
        (Poset.chain(P.elements), {}),
    ]
    for order, more in settings:
        with suppress(InputError):
            return kind(order, **given, **more)
    raise InputError(f"{kind.__name__} could not be built for an example. Audit it in a spec.")


def _audit_counts(mechanism: Any, trials: int, progress: Progress) -> AuditReport:
    """By density where there is one (any number of elements), and by draws on the neighbours found worst."""
    pairs = [(base, others) for base, others in _neighbouring_counts(mechanism) if others]
    statistic, neighbour = pairs[0][0], pairs[0][1][0]
    findings: list[Finding | ExactFinding] = []
    pure = mechanism.guarantee.kind == "pure"
    if hasattr(mechanism, "log_density") or (pure and hasattr(mechanism, "log_probability")):
        progress(0.0, "searching the density")
        found = max((audit_exact(mechanism, *pair) for pair in pairs), key=lambda finding: finding.loss)
        statistic, neighbour = (np.array(v, dtype=np.int64) for v in (found.statistic, found.neighbour))
        findings.append(found)
    try:
        mechanism.release(statistic)
    except InputError:  # for comparison only: there is nothing to draw
        if findings:
            return AuditReport(tuple(findings))
        raise
    by_draws = audit(
        mechanism, statistic, neighbour, trials, progress=lambda done, what: progress(0.1 + 0.9 * done, what)
    )
    return AuditReport((*findings, by_draws))


def _neighbouring_counts(
    mechanism: Any,
) -> Iterable[tuple[NDArray[np.int64], list[NDArray[np.int64]]]]:
    """Counts, and counts that one unit can turn them into: a unit has the same record in all its contributions."""
    P, size = mechanism.P, mechanism.max_size or len(mechanism.P)
    longest = np.zeros(len(P), dtype=np.int64)
    longest[P.linear_order[::-1][:size]] = 1
    chosen = np.random.default_rng(0).permutation(len(P))[:_FILTERS]
    above = [np.array([P.leq(P.elements[i], x) for x in P.elements], dtype=np.int64) for i in chosen]
    records = [mechanism.contributions * J for J in [longest, *above] if J.sum() <= size]
    nothing = np.zeros(len(P), dtype=np.int64)
    if mechanism.guarantee.neighbours == "add-remove":
        return [(nothing, records)]
    return [(base, [J for J in records if np.any(base != J)]) for base in [nothing, *records[:_FILTERS]]]


def _audit_table(mechanism: TwoStageMechanism, trials: int, progress: Progress) -> AuditReport:
    """One unit more in the first of three categories, or (replace) moved from the first to the second.

    Looked at are the published value of that category and the noisy numbers that it was made of.
    """
    units, replaced = mechanism.unit.contributions, mechanism.guarantee.neighbours == "replace"
    low = min(2, max(mechanism.upper - units, 0))
    other = min(3, mechanism.upper)
    first = np.array([min(low + units, mechanism.upper), 0, other])
    second = np.array([low, units if replaced else 0, other])

    def release(table: Any) -> Any:
        made = mechanism.release_in_full(table)
        return made.values[0], made.noisy_counts[0], made.noisy_cumulative[low]

    found = audit(release, first, second, trials, claimed=mechanism.guarantee, progress=progress)
    return AuditReport((found,))


def _audit_curve(
    options: dict[str, Any], contributions: int, promise: Guarantee, trials: int, progress: Progress
) -> AuditReport:
    """A fit to a dozen records, with and without one unit more (or with one replaced); seen at three points."""
    estimator = PrivateIsotonicRegression(
        promise.epsilon, neighbours=promise.neighbours, contributions=contributions, **options
    )
    setup = estimator.check()
    low, high = float(setup.grid.low), float(setup.grid.high)
    bottom, top = map(float, setup.y_range)
    x = np.linspace(low, high, 12)
    y = np.where(x < (low + high) / 2, bottom, top)
    seen = np.linspace(low, high, 5)[1:4]
    owners = np.append(np.arange(12), [12] * contributions)

    def release(extra: float | None) -> Any:
        count = 0 if extra is None else contributions
        more_x, more_y = np.append(x, [high] * count), np.append(y, [extra or 0.0] * count)
        return estimator.fit(more_x, more_y, groups=owners[: 12 + count]).predict(seen)

    sides = (top, bottom) if promise.neighbours == "replace" else (None, bottom)
    found = audit(release, *sides, trials=min(trials, _FITS), claimed=promise, progress=progress)
    return AuditReport((found,))
