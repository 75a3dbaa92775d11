"""Auditing a mechanism for counts on neighbouring statistics that the audit makes itself.

A guarantee is about all neighbours. Where the noise has an explicit density it is searched for the output that
reveals most; then the release itself is drawn from, on the neighbours that the search found worst, because a
density says nothing about the program that draws.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.audit.audit_report import AuditReport
from isotone.audit.black_box import Finding, audit
from isotone.audit.exact import ExactFinding, audit_exact
from isotone.errors import InputError
from isotone.mechanism import HasGroups, Progress
from isotone.order import Poset
from isotone.order.choices import some_record
from isotone.privacy.guarantee import Number

__all__ = ["audit_count_mechanism", "example_of"]

_FILTERS = 12  # records tried by an exact audit, besides the longest


def example_of(kind: type[Any], epsilon: Number) -> Any:
    """A mechanism of this class on a gate and two questions that it opens, on a chain, or on a hierarchy."""
    P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    asked = inspect.signature(kind).parameters
    given: dict[str, Any] = {"rho": Fraction(1, 2)} if "rho" in asked else {"epsilon": epsilon}
    given |= {"p": 3} if "p" in asked else {}
    given |= {"groups": 2} if "groups" in asked else {}
    settings: list[tuple[Poset, dict[str, Any]]] = [
        (P, {}),
        (P, {"max_size": 2}),
        (Poset.chain(P.elements), {}),
        (Poset.from_mapping(dict.fromkeys(("twice", "meds"), "hyp"), children="partition"), {}),
    ]
    if "catch_all" in asked:
        given |= {"records": 10, "catch_all": "meds"}
    for order, more in settings:
        with suppress(InputError):
            return kind(order, **given, **more)
    raise InputError(f"{kind.__name__} could not be built for an example. Audit it in a spec.")


def audit_count_mechanism(mechanism: Any, trials: int, progress: Progress) -> AuditReport:
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
    """Counts, and neighbouring counts. A unit has the same record in all its contributions."""
    P, size = mechanism.P, mechanism.max_size or len(mechanism.P)
    from_the_top = [P.elements[x] for x in P.linear_order[::-1][:size]]
    chosen = np.random.default_rng(0).permutation(len(P))[:_FILTERS]
    longest, *above = (
        np.array([x in record for x in P.elements], dtype=np.int64)
        for record in (
            some_record(P, names) for names in (from_the_top, *(P.up_set(P.elements[i]) for i in chosen))
        )
    )
    records = [mechanism.unit.changes * J for J in [longest, *above] if J.sum() <= size]
    nothing = np.zeros(len(P), dtype=np.int64)
    groups = mechanism.groups if isinstance(mechanism, HasGroups) else 1
    if groups > 1:  # a unit may also be in the second group
        rest = np.zeros((groups - 2) * len(P), dtype=np.int64)
        records = [np.concatenate((*pair, rest)) for J in records for pair in ((J, nothing), (nothing, J))]
        nothing = np.zeros(groups * len(P), dtype=np.int64)
    if not mechanism.guarantee.adjacency.exchanges:
        return [(nothing, records)]
    return [(base, [J for J in records if np.any(base != J)]) for base in [nothing, *records[:_FILTERS]]]
