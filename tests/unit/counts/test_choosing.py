"""A release takes the plan's best without planning all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.count_plans import plan
from tests.support.effort import CLOSELY
from tests.support.posets import all_posets

from isotone.counts.count_plan import Setting, best_mechanism, candidates, choose_mechanism
from isotone.counts.independent import BoundedPosetMechanism
from isotone.counts.knorm import PosetMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.order_gaussian import OrderGaussianMechanism
from isotone.errors import InputError
from isotone.mechanism import no_progress
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit

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


def best(P: Poset, neighbours: Neighbours = "add-remove", care: str | None = None, **asked: Any) -> Any:
    """The best mechanism for what a plan is asked for."""
    setting = {name: asked.pop(name) for name in ("contributions", "max_size") if name in asked}
    return best_mechanism(Setting(P, **setting, care=care), Unit(neighbours=neighbours).guarantee(**asked))


def random_order(seed: int) -> Poset:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size) if rng.random() < rng.choice([0.1, 0.5])]
    return Poset(range(size), pairs)


ORDERS = [
    Poset.chain(range(40)),
    Poset.antichain(range(9)),
    Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")]),  # the smallest order that is not series-parallel
    *(random_order(seed) for seed in range(9)),
]


@pytest.mark.parametrize("P", ORDERS, ids=range(len(ORDERS)))
def test_the_choice_of_a_release_is_the_best_of_the_plan(P: Poset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AdditiveMechanism, "simultaneous_half_width", lambda *_: 1.0)  # decides nothing
    for number, budget in enumerate(BUDGETS):
        asked = budget | (SETTINGS[(number + len(P)) % len(SETTINGS)] if len(P) < 20 else {})
        criteria = (None, "worst")
        some = criteria if CLOSELY else criteria[number % 2 :][:1]
        for care in some:
            planned = plan(P, **asked, care=care).best
            chosen = best(P, **asked, care=care)
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
    found = choose_mechanism(Setting(P), Guarantee.pure(1), "best")
    assert type(found).__name__ == "PosetMechanism"


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 2, "delta": "1e-6"}, {"rho": "1/2"}], ids=str)
def test_on_all_small_orders_the_choice_is_the_best_of_the_plan(
    neighbours: Any, budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AdditiveMechanism, "simultaneous_half_width", lambda *_: 1.0)
    for P in (P for n in range(1, 5) for P in all_posets(n)):
        planned = plan(P, **budget, neighbours=neighbours).best
        assert type(best(P, **budget, neighbours=neighbours)) is type(planned)


def test_bounds_are_below_the_errors() -> None:
    guarantees = [
        Guarantee.pure(1),
        Guarantee.pure(1, neighbours="replace"),
        Guarantee.approximate(2, "1e-6"),
    ]
    orders = [*all_posets(3), *all_posets(4), Poset.chain(range(130)), Poset.antichain(range(120))]
    close = 0
    for P in orders:
        for guarantee in guarantees:
            for max_size in (None, 2) if len(P) < 4 else (None,):
                for candidate in candidates(Setting(P, 2, max_size), guarantee):
                    found = candidate.build_or_none(guarantee, no_progress)
                    if candidate.least is None or found is None:
                        continue
                    error = found.error()
                    total = error.total + 4 * float(np.sum(error.standard_error))
                    assert candidate.least(guarantee) <= total * (1 + 1e-9)
                    if isinstance(found, PosetMechanism):
                        assert found.least_total() <= total * (1 + 1e-9)
                        close += found.least_total() > 0.7 * total
    assert close > 30


def test_no_loser_that_a_bound_settles_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short chain with δ: no Gaussian is shaped. A long one without: no other noise is priced."""
    built: list[str] = []

    def seen(kind: type[Any]) -> None:
        init = kind.__init__

        def wrapped(self: Any, *args: Any, **named: Any) -> None:
            built.append(type(self).__name__)
            init(self, *args, **named)

        monkeypatch.setattr(kind, "__init__", wrapped)

    for kind in (OrderGaussianMechanism, PosetMechanism, BoundedPosetMechanism):
        seen(kind)
    N = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])  # its error is simulated
    assert type(best(N, epsilon=1, delta="1e-6")) is PosetMechanism
    assert built == ["PosetMechanism"]
    built.clear()
    crown = Poset(range(300), [(i, 150 + j) for i in range(150) for j in (i, (i + 1) % 150)])
    assert type(best(crown, rho="1/1000")).__name__ == "OrderGaussianMechanism"
    assert built == ["OrderGaussianMechanism"]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", 10**400])
@pytest.mark.parametrize("name", ["contributions", "max_size", "groups"])
def test_what_mechanisms_must_cover_is_counted_in_whole_numbers(name: str, wrong: Any) -> None:
    given: dict[str, Any] = {name: wrong}
    with pytest.raises(InputError, match=name):
        Setting(Poset.chain("ab"), **given)
