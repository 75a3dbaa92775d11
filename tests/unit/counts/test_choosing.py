"""A release takes the plan's best without planning all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isotone.counts import plan
from isotone.counts.choosing import choose_mechanism
from isotone.counts.count_plan import best_mechanism
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

BUDGETS: list[dict[str, Any]] = [
    {"epsilon": "1/10"},
    {"epsilon": 3},
    {"epsilon": "1/2", "delta": "1e-6"},
    {"epsilon": 4, "delta": "1e-3"},
    {"rho": "1/8"},
    {"rho": 2},
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"max_size": 1},
    {"max_size": 2, "contributions": 3, "neighbours": "replace"},
]


def random_order(seed: int) -> Poset:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size) if rng.random() < rng.choice([0.1, 0.5])]
    return Poset(range(size), pairs)


ORDERS = [
    Poset.chain(range(40)),
    Poset.antichain(range(12)),
    Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")]),  # the smallest order that is not series-parallel
    *(random_order(seed) for seed in range(9)),
]


@pytest.mark.parametrize("P", ORDERS, ids=range(len(ORDERS)))
def test_the_choice_of_a_release_is_the_best_of_the_plan(P: Poset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AdditiveMechanism, "simultaneous_half_width", lambda *_: 1.0)  # decides nothing
    for number, budget in enumerate(BUDGETS):
        asked = budget | SETTINGS[(number + len(P)) % len(SETTINGS)]
        for by in ("total", "worst"):
            planned, chosen = plan(P, **asked, by=by).best, best_mechanism(P, **asked, by=by)
            assert type(chosen) is type(planned)
            assert (chosen.guarantee, chosen.max_size) == (planned.guarantee, planned.max_size)
            assert np.array_equal(chosen.error().variance, planned.error().variance)


def test_a_release_computes_no_width_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a width was computed")

    for kind in (AdditiveMechanism, *AdditiveMechanism.__subclasses__()):
        for name in ("simultaneous_half_width", "half_widths", "quantiles"):
            if name in vars(kind):
                monkeypatch.setattr(kind, name, refuse)
    P = Poset.antichain("abc")
    with pytest.raises(AssertionError, match="a width was computed"):
        plan(P, epsilon=1)
    found = choose_mechanism(P, Guarantee.pure(1), 1, None, "best", grouped=False)
    assert type(found).__name__ == "PosetMechanism"
