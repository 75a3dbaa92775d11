"""Noise over time: its shape in time, its exact identity, its sensitivity, and what a plan says."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.counts import OrderGaussianMechanism, PosetMechanism
from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.series import (
    CausalGaussianMechanism,
    SeriesMechanism,
    TwoScaleMechanism,
    plan_series,
    series_mechanism,
)
from isotone.series.series_mechanism import rebuild
from isotone.series.two_scale import GAIN_BITS, Scales, over_time

TINY = [(Poset.chain("ab"), 2), (Poset.chain("ab"), 3), (Poset.chain("abc"), 2), (Poset.antichain("ab"), 2)]
FORK = Poset(["root", "left", "right"], [("left", "root"), ("right", "root")])


def filters(P: Poset) -> list[np.ndarray]:
    """Indicators of all filters, as rows."""
    leq = P.leq_matrix()
    rows = [np.array(bits) for bits in itertools.product((0, 1), repeat=len(P))]
    return [row for row in rows if all(row[y] for x in np.flatnonzero(row) for y in np.flatnonzero(leq[x]))]


@pytest.mark.parametrize(("stages", "periods"), TINY)
def test_filters_of_the_product_are_growing_sequences_of_filters(stages: Poset, periods: int) -> None:
    found = {tuple(row) for row in filters(over_time(stages, periods))}
    growing = {
        tuple(np.concatenate(steps))
        for steps in itertools.product(filters(stages), repeat=periods)
        if all(np.all(a <= b) for a, b in itertools.pairwise(steps))
    }
    assert found == growing


def test_a_product_of_three_orders_compares_in_every_place() -> None:
    orders = Poset.chain("ab"), FORK, Poset.antichain("xy")
    product = Poset.product(*orders)
    names: list[Any] = list(product.elements)
    for one, two in itertools.product(names, repeat=2):
        assert product.leq(one, two) == all(P.leq(a, b) for P, a, b in zip(orders, one, two, strict=True))


def two_scale(stages: Poset, periods: int, **more: Any) -> TwoScaleMechanism:
    made: dict[str, Any] = {"anchors": [periods - 1], "share": "0.3", "fine": "product", **more}
    scales = Scales(*(made.pop(name) for name in Scales._fields))
    guarantee = Guarantee.pure(1, neighbours=made.pop("neighbours", "add-remove"))
    return TwoScaleMechanism(stages, periods, guarantee, scales, **made)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_change_of_the_counts_passes_through_two_scales_unchanged(data: st.DataObject) -> None:
    periods = data.draw(st.integers(2, 4))
    anchors = sorted(data.draw(st.sets(st.integers(0, periods - 1), min_size=1)))
    size, places = 2 * periods, [2 * t + s for t in anchors for s in (0, 1)]
    big = st.integers(-(10**12), 10**12)
    gain = np.array(
        data.draw(
            st.lists(st.integers(-(2**21), 2**21), min_size=size * len(places), max_size=size * len(places))
        )
    )
    m = two_scale(Poset.chain("ab"), periods, anchors=anchors, gain=gain.reshape(size, -1))
    fine, change = (
        np.array(data.draw(st.lists(big, min_size=size, max_size=size)), object) for _ in range(2)
    )
    coarse = np.array(data.draw(st.lists(big, min_size=len(places), max_size=len(places))), object)
    exact = m.gain.astype(object)
    shown = m._combined(fine, coarse, exact)
    assert list(m._combined(fine + change, coarse + change[places], exact)) == list(shown + change)
    real = [
        Fraction(int(f))
        + sum(
            Fraction(int(k), 2**GAIN_BITS) * int(c - fine[p])
            for k, c, p in zip(row, coarse, places, strict=True)
        )
        for f, row in zip(fine, exact, strict=True)
    ]
    assert list(shown) == [math.floor(x + Fraction(1, 2)) for x in real]


def loss_of_law(m: TwoScaleMechanism, rounded: object) -> float:
    """The largest loss over a box of outputs, for parts with a law that is exactly known on a box."""
    reach = 5
    n, k = len(m.P), m.anchored.size

    def law(size: int, rate: float) -> dict[tuple[int, ...], float]:
        points = itertools.product(range(-reach, reach + 1), repeat=size)
        return {y: math.exp(-rate * max(0, *y) - rate * max(0, *(-x for x in y))) for y in points}

    total: dict[tuple[int, ...], float] = {}
    rest = float(1 - m.scales.share)
    gain = m.gain / 2**GAIN_BITS
    coarse = law(k, float(m.scales.share))
    for fine, p in law(n, rest).items():
        for anchor, q in coarse.items():
            real = np.array(fine) + gain @ (np.array(anchor) - np.array(fine)[m.anchored])
            shown = tuple(rounded(real))  # pyright: ignore[reportCallIssue]
            total[shown] = total.get(shown, 0.0) + p * q
    effects = [row for row in filters(m.P) if row.any()]
    inner = [y for y in total if max(map(abs, y)) <= 1]
    return max(
        abs(math.log(total[y] / total[tuple(np.array(y) + sign * row)]))
        for y in inner
        for row in effects
        for sign in (1, -1)
    )


def test_the_law_of_two_scales_keeps_epsilon_pointwise_and_half_even_does_not() -> None:
    # the parts' law loses at most their share over a filter; one stage, two periods, an anchor at the last
    m = two_scale(Poset.chain("a"), 2, gain=[[2 ** (GAIN_BITS - 1)], [2 ** (GAIN_BITS - 1)]])
    assert (
        loss_of_law(m, lambda x: np.floor(x + 0.5).astype(int).tolist()) <= 1 + 0.05
    )  # the box is cut at its edge
    assert loss_of_law(m, lambda x: np.rint(x).astype(int).tolist()) > 1.2


@pytest.mark.parametrize("fine", ["product", "chains"])
@pytest.mark.parametrize(("neighbours", "contributions", "steps"), [("add-remove", 1, 1), ("replace", 2, 4)])
def test_the_parts_of_two_scales_spend_epsilon_together(
    fine: str, neighbours: str, contributions: int, steps: int
) -> None:
    m = two_scale(FORK, 3, fine=fine, neighbours=neighbours, contributions=contributions, anchors=[0, 2])
    assert m.coarse_noise.rate + m.fine_noise.rate == Fraction(1, steps)
    for row in filters(m.P):
        assert m.fine_noise.norm(row) <= 1 + 1e-9
        assert m.coarse_noise.norm(row[m.anchored]) <= 1 + 1e-9


def test_stated_errors_are_those_of_simulated_and_of_exact_draws() -> None:
    m = two_scale(Poset.chain("abc"), 6, fine="chains", anchors=[2, 5])
    for drawn in (
        m.simulate(40_000, np.random.default_rng(1)),
        m.simulate_independent(40_000, np.random.default_rng(2)),
    ):
        variance = np.mean(np.asarray(drawn) ** 2, axis=0)
        assert np.allclose(variance, m.error().variance, rtol=0.1)  # 6 standard errors are about 0.07
    released = np.array([m.release([0] * 18) for _ in range(1500)])
    ratio = np.mean(released**2) / np.mean(m.error().variance)
    assert (
        0.8 < ratio < 1.25
    )  # the mean of 18 squares has a relative error of 0.02 at most; wrong by 10 % in scale is 0.21 off
    assert np.array_equal(
        m.simulate_released(3, np.random.default_rng(0)),
        np.rint(m.simulate_released(3, np.random.default_rng(0))),
    )


CAUSAL = {"zcdp": {"rho": "0.5"}, "delta": {"epsilon": 1, "delta": "1e-6"}}


def earlier_noise_alone(m: OrderGaussianMechanism, periods: int) -> bool:
    """Whether the noise of each period is a function of what is drawn for the rows of it and of earlier periods."""
    within = m.strategy.within
    stages, size = len(m.P) // periods, within.rows
    active = m.strategy.active
    rng = np.random.default_rng(3)
    drawn = rng.integers(-(2**40), 2**40, size)
    first = within.solve_integers(drawn)
    for t in range(1, periods):
        later = (
            np.flatnonzero(active // stages >= t)
            if size == active.size
            else np.arange(size)[np.append(active // stages >= t, True)]
        )
        other = drawn.copy()
        other[later] = rng.integers(-(2**40), 2**40, later.size)
        known = np.flatnonzero(active // stages < t)
        if not np.array_equal(within.solve_integers(other)[known], first[known]):
            return False
    return True


@pytest.mark.parametrize("given", CAUSAL.values(), ids=CAUSAL)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(("stages", "periods"), [*TINY, (FORK, 4), (Poset.chain("a"), 5)])
def test_gaussian_noise_over_time_never_looks_ahead(
    stages: Poset, periods: int, neighbours: str, given: dict[str, object]
) -> None:
    m = CausalGaussianMechanism(stages, periods, Unit(neighbours=neighbours).guarantee(**given))  # pyright: ignore[reportArgumentType]
    assert earlier_noise_alone(m, periods)
    # rows that look at their own period and back: a lower triangle of blocks, and no number of records
    looks = m.strategy.within.multiply(np.eye(len(m.P)))  # column x as seen by each row
    time = m.strategy.active // len(stages)
    assert not np.any(looks[time[:, None] > time[None, :]])
    assert not m.has_total


def test_the_factor_of_one_release_looks_ahead() -> None:
    assert not earlier_noise_alone(OrderGaussianMechanism(over_time(FORK, 4), rho="0.5"), 4)


@pytest.mark.parametrize(("stages", "periods"), TINY)
def test_a_reacting_person_stays_within_rho(stages: Poset, periods: int) -> None:
    """Backward induction: given the past, one row loses what its own shift says; the worst path is that of some history."""
    m = CausalGaussianMechanism(stages, periods, Guarantee.zcdp("0.5"))
    within = m.strategy.within
    Q = np.rint(within.multiply(np.eye(len(m.P)))).astype(object)  # row x: what element x adds to all rows
    longest = 0
    for row in filters(m.P):
        shifts = [int(s) for s in row[m.strategy.active].astype(object) @ Q]
        longest = max(longest, sum(s * s for s in shifts))
        # the exact moment of one discrete Gaussian shifted by s is at most exp(α(α−1)s²/2σ²), with equality for whole α·s
        assert Fraction(sum(s * s for s in shifts)) <= 2 * Fraction("0.5") * m.variance
    assert (
        longest <= within.sensitivity_squared <= longest * (1 + 1e-3)
    )  # the row of the root is not measured, and counted


def test_replacing_a_history_is_covered_by_the_bound() -> None:
    m = CausalGaussianMechanism(FORK, 3, Guarantee.zcdp("0.5", neighbours="replace"))
    Q = np.rint(m.strategy.within.multiply(np.eye(len(m.P)))).astype(object)
    rows = [row[m.strategy.active].astype(object) @ Q for row in filters(m.P)]
    longest = max(int((a - b) @ (a - b)) for a, b in itertools.combinations(rows, 2))
    assert longest <= m.strategy.within.sensitivity_squared <= 1.5 * longest


def test_the_causal_factor_costs_nothing() -> None:
    one, causal = (
        OrderGaussianMechanism(over_time(FORK, 5), rho="0.5"),
        CausalGaussianMechanism(FORK, 5, Guarantee.zcdp("0.5")),
    )
    assert causal.error().total <= one.error().total * 1.001
    assert np.allclose(causal.covariance(), one.covariance(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("matters", ["all", "last", "changes"])
def test_a_plan_puts_first_what_is_best_for_what_matters(matters: str) -> None:
    plan = plan_series(FORK, 5, Guarantee.pure(1), matters=matters)  # pyright: ignore[reportArgumentType]
    assert [row.name for row in plan] == [
        row.name for row in sorted(plan, key=lambda row: getattr(row, matters))
    ]
    assert {"product", "two scales"} == {row.name for row in plan}
    for row in plan:
        C = row.mechanism.covariance()
        places = np.arange(15).reshape(5, 3)
        new = [np.diag(C)[places[0]]] + [
            np.diag(C)[b] + np.diag(C)[a] - 2 * C[b, a] for a, b in itertools.pairwise(places)
        ]
        assert row.changes == pytest.approx(float(np.sqrt(np.mean(new))))
        assert row.last == pytest.approx(float(np.sqrt(row.mechanism.error().variance[-3:].mean())))


def test_a_series_with_options_is_noise_on_running_totals() -> None:
    options = Poset.from_mapping(
        {"mail": "reached", "phone": "reached", "reached": None}, children={"reached": "exclusive"}
    )
    m = plan_series(options, 3, Guarantee.pure(1)).best
    drawn = m.draw()
    assert drawn.shape == (3, 3)
    assert np.allclose(np.diag(m.covariance()), m.error().variance, rtol=0.1)


@pytest.mark.parametrize(
    "guarantee", [Guarantee.pure(1), Guarantee.zcdp("0.5"), Guarantee.approximate(1, "1e-6")], ids=str
)
def test_a_recipe_makes_the_mechanism_again(guarantee: Guarantee) -> None:
    for row in plan_series(FORK, 4, guarantee, contributions=2):
        again = rebuild(FORK, 4, row.mechanism.recipe())
        assert again.guarantee == row.mechanism.guarantee
        assert again.contributions == 2
        assert np.allclose(again.covariance(), row.mechanism.covariance(), rtol=1e-9)


def slow_series(stages: Poset, periods: int) -> SeriesMechanism:
    """One of whose draws few are kept, as in long products."""
    order = over_time(stages, periods)
    alone = over_time(Poset.antichain(stages.elements), periods)
    relaxation = Relaxation.of(alone.covers, restored=order.covers)
    return SeriesMechanism(stages, periods, PosetMechanism(order, 1, relaxation=relaxation))


def test_a_recipe_is_the_same_before_and_after_errors_were_asked_for() -> None:
    stages = Poset.chain("abc")
    mechanism = slow_series(stages, 5)
    assert not mechanism.noise.sampler.source.quick  # pyright: ignore[reportAttributeAccessIssue]
    before = mechanism.recipe()
    mechanism.half_widths(0.95)
    assert mechanism.recipe() == before
    again = rebuild(stages, 5, json.loads(json.dumps(before)))
    assert again.recipe() == before
    again.half_widths(0.95)
    assert again.recipe() == before


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(InputError, match="coarser periods"):
        plan_series(Poset.chain(range(20)), 52, Guarantee.pure(1))
    with pytest.raises(InputError, match="periods"):
        plan_series(FORK, 0, Guarantee.pure(1))
    with pytest.raises(InputError, match="anchors"):
        two_scale(FORK, 4, anchors=[2, 1])
    with pytest.raises(InputError, match="whole numbers"):
        two_scale(FORK, 2, gain=[[0.5] * 3] * 6)
    made = [two_scale(FORK, 2), CausalGaussianMechanism(FORK, 2, Guarantee.zcdp(1))]
    for mechanism in made:
        with pytest.raises(InputError, match="no parts"):
            mechanism.part(Fraction(1, 2))
    with pytest.raises(InputError, match="these stages"):
        SeriesMechanism(FORK, 3, PosetMechanism(over_time(FORK, 2), 1))


def test_a_recipe_that_would_have_to_be_searched_for_is_refused_and_no_other(monkeypatch) -> None:
    """The fine part needs its relaxation where it is a product, and has none where it is not."""
    asked: list[Any] = []
    monkeypatch.setattr(
        series_mechanism, "_require_known", lambda P, relaxation: asked.append((len(P), relaxation))
    )
    for row in plan_series(FORK, 4, Guarantee.pure(1)):
        recipe = row.mechanism.recipe()
        asked.clear()
        rebuild(FORK, 4, recipe)
        if recipe["name"] == "causal Gaussian":
            assert asked == []
        elif recipe["name"] == "product":
            assert [size for size, _ in asked] == [4 * 3]
        else:
            assert len(asked) == 1 + (recipe["fine"] == "product")
