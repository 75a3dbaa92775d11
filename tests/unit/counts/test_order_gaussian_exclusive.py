"""Gaussian noise shaped by an order in which options exclude each other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.support.andxor import all_forests, records_of

from isotone.counts import OrderGaussianMechanism
from isotone.order import Poset

SMALL = [P for n in (2, 3, 4) for P in all_forests(n) if P.choices]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_no_record_is_longer_than_the_noise_covers(neighbours: Any) -> None:
    for P in SMALL[::2]:
        m = OrderGaussianMechanism(P, rho="1/2", neighbours=neighbours)
        records = np.array(records_of(P))
        replaced = neighbours == "replace"
        moves = np.array([a - b for a, b in product(records, repeat=2)]) if replaced else records
        padded = np.zeros((len(moves), m.strategy.rows))
        padded[:, : m.strategy.active.size] = moves[:, m.strategy.active]
        if m.strategy.within.rooted:
            padded[:, -1] = 0 if replaced else 1
        longest = np.max(np.sum(m.strategy.within.multiply(padded) ** 2, axis=1))
        assert longest <= m.strategy.sensitivity * (1 + 1e-12)


def test_pairs_that_never_meet_make_the_noise_smaller() -> None:
    survey = [-1, 0, 1, 0, -1, *[4] * 6, -1, *[11] * 3]
    parents = {x: None if up < 0 else up for x, up in enumerate(survey)}
    P = Poset.from_mapping(parents, children={4: "exclusive", 11: "exclusive"})
    assert OrderGaussianMechanism(P, rho="1/2").error().total == pytest.approx(51.94, abs=0.02)
    assert OrderGaussianMechanism(P.forget_choices(), rho="1/2").error().total == pytest.approx(
        77.76, abs=0.02
    )
    star = Poset.from_mapping({f"c{i}": "q" for i in range(6)}, children="exclusive")
    assert OrderGaussianMechanism(star, rho="1/2").error().total == pytest.approx(9.931, abs=0.005)


def test_released_noise_has_the_stated_variance() -> None:
    P = Poset.from_mapping({"a": "q", "b": "q", "c": "q"}, children="exclusive")
    m = OrderGaussianMechanism(P, rho="1/50")
    drawn = np.array([m.release(np.zeros(4, int)) for _ in range(400)], dtype=float) ** 2
    assert np.all(np.abs(drawn.mean(axis=0) - m.error().variance) < 6 * drawn.std(axis=0) / 20)
