"""The heuristic constructor: against the printed algorithm in exact arithmetic, and at the limits of floats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.support.tables_exact import exact_heuristic, shapes

from isotone.errors import InputError
from isotone.published.tables.lp import is_extreme
from isotone.published.tables.row_by_row import Selector, fill_order
from isotone.published.tables.scales import ScaleMechanism, values_by_row
from isotone.tables import fixed_point

SELECTORS: tuple[Selector, ...] = ("max", "min", "sandwich")


def build(z: np.ndarray, epsilon: float, selector: Selector) -> ScaleMechanism:
    t = fixed_point(z, epsilon, constructor="heuristic", selector=selector)
    assert isinstance(t, ScaleMechanism)
    return t


@pytest.mark.parametrize("selector", SELECTORS)
def test_it_is_the_printed_algorithm_in_exact_arithmetic(selector: Selector) -> None:
    rng = np.random.default_rng(1)
    for _ in range(25):
        n = int(rng.integers(1, 8))
        parts = [int(v) for v in rng.integers(0, 9, n)]
        parts[int(rng.integers(n))] += 1
        z = [Fraction(v, sum(parts)) for v in parts]
        order = fill_order(np.array([float(p) for p in z]), selector)
        exact = exact_heuristic(z, order.tolist(), Fraction(1, 2))
        mine = build(np.array([float(p) for p in z]), float(np.log(2)), selector).matrix()
        # at ties the printed order of events is not that of floats, but their end is the same
        assert np.abs(mine - np.array([[float(t) for t in row] for row in exact])).max() <= 1e-9


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.7, 3.0, 20.0])
def test_it_is_sound_to_a_millionth_of_a_millionth(epsilon: float) -> None:
    for n in (1, 2, 3, 60, 200):
        for name, z in shapes(n, np.random.default_rng(n)).items():
            for selector in SELECTORS:
                t = build(z, epsilon, selector)
                assert len(t.terms.values) <= 2 * n - 1, name
                sums = [float(np.sum(values)) for values in values_by_row(t.terms, epsilon)]
                assert np.abs(np.array(sums) - 1).max() <= 1e-12, (name, selector)
                assert t.fixed_point_error(z) <= 1e-12, (name, selector)
                assert float(t.rest) <= 1e-8


def test_the_whole_mechanism_is_private_in_logarithms() -> None:
    for epsilon in (0.01, 0.5, 5.0):
        for name, z in shapes(50, np.random.default_rng(5)).items():
            assert build(z, epsilon, "sandwich").privacy_loss() <= epsilon * (1 + 1e-12) + 1e-12, name


def test_two_thousand_counts_are_as_sound_as_fifty() -> None:
    z = np.random.default_rng(6).exponential(size=2000)
    z /= z.sum()
    t = build(z, 1.0, "sandwich")
    sums = [float(np.sum(values)) for values in values_by_row(t.terms, 1.0)]
    assert np.abs(np.array(sums) - 1).max() <= 1e-12
    assert t.fixed_point_error(z) <= 1e-12
    assert fixed_point(z, 1).count_error(z) <= t.count_error(z)


def test_it_is_an_extreme_point_of_the_polytope() -> None:
    rng = np.random.default_rng(7)
    for selector in SELECTORS:
        z = rng.dirichlet(np.ones(6))
        assert is_extreme(build(z, 1.0, selector).matrix(), 1.0, z, tolerance=1e-7)


def test_it_meets_another_target_too() -> None:
    rng = np.random.default_rng(8)
    z, target = rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(30))
    t = fixed_point(z, "0.4", target=target, constructor="heuristic", selector="max")
    assert np.abs(t.output(z) - target).max() <= 1e-12
    assert fixed_point(z, "0.4", target=target).count_error(z) <= t.count_error(z)


def test_the_best_selector_is_the_best_of_the_three_for_the_loss_given() -> None:
    z = shapes(40, np.random.default_rng(9))["rough"]
    for loss in ("absolute", "squared"):
        best = fixed_point(z, "0.5", constructor="heuristic", loss=loss)
        assert best.count_error(z, loss) == min(build(z, 0.5, s).count_error(z, loss) for s in SELECTORS)


def test_orders_are_as_described() -> None:
    z = np.array([0.1, 0.4, 0.0, 0.3, 0.2])
    assert fill_order(z, "max").tolist() == [1, 3, 4, 0]
    assert fill_order(z, "min").tolist() == [0, 4, 3, 1]
    assert fill_order(z, "sandwich").tolist() == [0, 4, 1, 3]
    with pytest.raises(InputError, match="selector"):
        fixed_point([0.5, 0.5], 1, constructor="heuristic", selector="middle")  # type: ignore[arg-type]


def test_an_epsilon_beyond_what_floats_allow_is_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match="constructor='optimal'"):
        fixed_point(np.full(50, 0.02), "1e-10", constructor="heuristic", selector="max")
    for constructor in ("heuristic", "lp"):
        with pytest.raises(InputError, match="constructor='optimal'"):
            fixed_point([0.5, 0.5], 1000, constructor=constructor)  # type: ignore[arg-type]
    assert fixed_point([0.5, 0.5], 1000).count_error([0.5, 0.5]) == 0
