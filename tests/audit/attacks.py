"""Attacks at length: the published sampler, scales wrong by five percent, ten million records in shuffled orders."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from isotone.audit import audit, audit_exact
from isotone.counts import LaplaceMechanism, OrderGaussianMechanism, PosetMechanism
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from tests.support.composition import spend_with_kills
from tests.support.published import (
    CASES,
    FINE,
    exact_mechanism,
    published_mechanism,
    suspicion,
    telling_record,
)
from tests.support.shuffles import people, shuffled, statistics

ONE = Guarantee.pure(1)
SURE = 1 - 1e-6  # for what must not be called broken, from bits that no seed repeats


def audit_the_published_sampler_is_caught_and_ours_is_not() -> str:
    draws, found = 300_000, []
    for name, (P, elements) in CASES.items():
        rng, record = np.random.default_rng(0), telling_record(P, elements)
        sides = np.zeros(len(P)), record
        options: dict[str, Any] = {"claimed": ONE, "batch": True, "suspicions": [suspicion(P, record)]}
        theirs = audit(published_mechanism(P, rng), *sides, draws, **options)
        ours = audit(exact_mechanism(P, rng), *sides, draws, confidence=SURE, **options)
        assert theirs.bound > 1.1, (name, str(theirs))
        assert 0.8 < ours.bound <= 1, (name, str(ours))
        found.append(f"{name}: theirs at least {theirs.bound:.2f}, ours {ours.bound:.2f}")
    return f"{draws:,} draws of each side; " + "; ".join(found)


def audit_whole_releases_of_ours_pass_where_the_published_sampler_fails() -> str:
    draws, found = 60_000, []
    for name, (P, elements) in CASES.items():
        record = telling_record(P, elements).astype(np.int64)
        mechanism = PosetMechanism(P, epsilon=1, contributions=FINE)
        ours = audit(
            mechanism,
            np.zeros(len(P), np.int64),
            record,
            draws,
            confidence=SURE,
            suspicions=[suspicion(P, record.astype(float))],
        )
        assert 0.6 < ours.bound <= 1, (name, str(ours))
        found.append(f"{name} {ours.bound:.2f}")
    return f"{draws:,} releases of each side, lower bounds: " + ", ".join(found)


def audit_a_scale_wrong_by_five_percent_is_caught_up_to_three_dimensions() -> str:
    draws, found = 2_000_000, []
    for dimension in (1, 2, 3):
        record = np.full(dimension, float(FINE))

        def laplace(scale: float, dimension: int = dimension) -> Any:
            rng = np.random.default_rng(dimension)
            return lambda x, size: np.rint(x + FINE * dimension * scale * rng.laplace(size=(size, dimension)))

        options: dict[str, Any] = {"claimed": ONE, "batch": True}
        small = audit(laplace(1 / 1.05), np.zeros(dimension), record, draws, **options)
        right = audit(laplace(1.0), np.zeros(dimension), record, draws, **options)
        assert small.broken, str(small)
        assert not right.broken, str(right)
        found.append(f"{dimension}: at least {small.bound:.3f}, right scale {right.bound:.3f}")
    return f"{draws:,} draws of each side; dimension " + "; ".join(found)


def audit_a_scale_wrong_by_five_percent_is_caught_exactly_in_fifty_dimensions() -> str:
    tree = Poset(range(50), [(k, (k - 1) // 3) for k in range(1, 50)])
    records = [[int(tree.leq(k, x)) for x in range(50)] for k in (0, 7, 49)]
    nothing = [0] * 50
    for kind in (PosetMechanism, LaplaceMechanism):
        assert not audit_exact(kind(tree, epsilon=1), nothing, records).broken
        assert audit_exact(kind(tree, epsilon="1.05"), nothing, [*records, [1] * 50], claimed=ONE).broken
    gaussian = OrderGaussianMechanism(tree, rho="1.1025")
    assert audit_exact(gaussian, nothing, records, claimed=Guarantee.zcdp(1)).broken
    assert not audit_exact(gaussian, nothing, records).broken
    return "poset, Laplace and order-shaped Gaussian noise, with a witness each"


def audit_two_processes_with_kills_cannot_overspend() -> str:
    kills = finished = 0
    for seed in range(20):
        with tempfile.TemporaryDirectory() as folder:
            codes = spend_with_kills(Path(folder), seed)
        kills, finished = kills + codes.count(-signal.SIGKILL), finished + codes.count(0)
    return f"20 budgets, {kills} processes killed, {finished} finished; never more released than charged"


def audit_ten_million_records_have_one_statistic_in_another_order() -> str:
    rng = np.random.default_rng(0)
    table = people(10_000_000, rng)
    risk = table["risk"].to_numpy()
    naive = {float(np.add.accumulate(risk[rng.permutation(len(risk))])[-1]) for _ in range(3)}
    assert len(naive) > 1, "the attack does not work on a sum of floats"
    first = {unit: statistics(table, unit) for unit in (None, "person")}
    table = shuffled(table, rng)
    for unit, expected in first.items():
        for one, again in zip(expected, statistics(table, unit), strict=True):
            assert np.array_equal(one, again)
    return f"counts, tables and curves are the same; {len(naive)} different sums of floats in three orders"
