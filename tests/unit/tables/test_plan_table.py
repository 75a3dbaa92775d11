"""Plans without data: what they say and how they print."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from rich.console import Console

import isotone as iso
from isotone.errors import InputError
from isotone.tables import TwoStageMechanism
from isotone.tables import plan as table_plan
from isotone.tables.matrices.fixed_point import fixed_point
from isotone.tables.plan import TablePlan, apportioned, families, guessed, plan

SHAPES = ("uniform", "binomial", "skewed", "zero-inflated", "constant")


@pytest.fixture(scope="module")
def skewed() -> TablePlan:
    return plan("skewed", upper=20, size=2000, epsilon="0.5", draws=3)


def test_the_best_mechanism_comes_first_and_is_ready_to_release(skewed: TablePlan) -> None:
    products = [row.count_error * row.wasserstein for row in skewed]
    assert products == sorted(products)
    assert isinstance(skewed.best, TwoStageMechanism)
    assert {row.name for row in skewed} == {"counts", "both", "distribution", "geometric noise only"}
    assert len(skewed.best.release([1, 2, 3])) == 3


def test_keeping_the_distribution_gains_distance(skewed: TablePlan) -> None:
    by_name = {row.name: row for row in skewed}
    assert by_name["counts"].count_error < by_name["distribution"].count_error
    assert by_name["geometric noise only"].wasserstein > 3 * by_name["distribution"].wasserstein


def test_the_trade_off_runs_from_the_least_count_error_to_the_fixed_point(skewed: TablePlan) -> None:
    curve = skewed.trade_off
    assert np.all(np.diff(curve.count_error) >= -1e-12)
    assert np.all(np.diff(curve.wasserstein) <= 1e-12)
    assert curve.wasserstein[-1] == pytest.approx(0, abs=1e-9)
    assert curve.wasserstein[0] > 0.1
    z = guessed("skewed", 20)
    assert curve.count_error[-1] == pytest.approx(fixed_point(z, "0.5").count_error(z))


def test_a_plan_prints_as_a_table_in_a_terminal_and_in_a_notebook(skewed: TablePlan) -> None:
    text, markup = str(skewed), skewed._repr_html_()
    assert "2000 categories, counts 0..20, ε = 0.5" in text
    for row in skewed:
        assert row.name in text
        assert row.name in markup
    assert markup.count("<tr>") == 5
    console = Console(record=True, width=140, file=io.StringIO())
    console.print(skewed)
    assert "geometric noise only" in console.export_text()


def test_a_guess_comes_with_the_range_over_other_shapes(skewed: TablePlan) -> None:
    assert skewed.others is not None
    assert skewed.others.shapes == len(families(21)) == 8
    for low, high in (skewed.others.count_error, skewed.others.wasserstein):
        assert 0 < low < high
    assert f"Over 8 others '{skewed.rows[0].name}' has: {skewed.others}" in str(skewed)
    assert plan([0.7, 0.2, 0.1], size=60, epsilon=1, draws=1).others is None


@pytest.mark.parametrize("n", [2, 3, 7, 200])
def test_the_other_shapes_are_distributions(n: int) -> None:
    for name, p in families(n).items():
        assert p.shape == (n,), name
        assert np.all(p >= 0), name
        assert p.sum() == pytest.approx(1), name


def test_a_plan_with_the_true_shape_predicts_what_a_release_does() -> None:
    """The table that a plan makes of the true shape is the true table, so both are means over draws of one law."""
    counts = np.random.default_rng(3).binomial(12, 0.3, 300)
    truth = np.bincount(counts, minlength=13) / 300
    np.testing.assert_array_equal(apportioned(truth, 300), np.sort(counts))


def test_a_plan_draws_its_curve_and_its_mechanisms(skewed: TablePlan) -> None:
    axes = skewed.plot()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]  # pyright: ignore[reportOptionalMemberAccess]
    assert labels[1:] == [row.name for row in skewed]
    plt.close("all")


def test_a_plan_is_the_same_again_with_the_same_seed() -> None:
    one, two = (plan("uniform", upper=5, size=200, epsilon=1, draws=2, seed=4) for _ in range(2))
    assert str(one) == str(two)


def test_a_public_prior_takes_the_place_of_a_guess() -> None:
    found = plan([0.7, 0.2, 0.1], size=500, epsilon=1, draws=2, contributions=2)
    assert found.upper == 2
    assert found.best.guarantee.epsilon == 1


def test_progress_is_told() -> None:
    told: list[float] = []
    plan("uniform", upper=3, size=50, epsilon=1, draws=1, progress=lambda f, _: told.append(f))
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upper", [1, 2, 50])
def test_guessed_shapes_are_distributions(shape: Any, upper: int) -> None:
    p = guessed(shape, upper)
    assert p.shape == (upper + 1,)
    assert p.sum() == pytest.approx(1)
    assert np.all(p >= 0)
    table = apportioned(p, 997)
    assert len(table) == 997
    np.testing.assert_allclose(
        np.cumsum(np.bincount(table, minlength=upper + 1)) / 997, np.cumsum(p), atol=1e-3
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": "spiral"}, "shape"),
        ({"shape": "uniform", "upper": None}, "upper"),
        ({"shape": "uniform", "upper": 0}, "upper"),
        ({"shape": [0.5, 0.5], "upper": 3}, "probabilities"),
        ({"shape": [0.5, 0.6], "upper": None}, "sum to 1"),
        ({"size": 0}, "size"),
        ({"epsilon": -1}, "epsilon"),
        ({"draws": 0}, "draws"),
    ],
)
def test_a_plan_checks_what_it_is_given(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "shape": "uniform",
        "upper": 4,
        "size": 100,
        "epsilon": 1,
        "draws": 1,
        **arguments,
    }
    with pytest.raises(InputError, match=message):
        plan(given.pop("shape"), **given)


def test_runs_go_on_until_distances_are_known_but_not_forever() -> None:
    """With alternating 1 and 3 the standard error is about half of the mean over the root of the number of runs."""
    wild = [(1.0 + 2 * (at % 2), 0.0) for at in range(40)]
    goes_on = table_plan._goes_on  # pyright: ignore[reportPrivateUsage]
    assert [goes_on(wild[:number]) for number in (0, 11, 12, 39, 40)] == [True, True, True, True, False]
    assert [goes_on([(2.0, 0.0)] * number) for number in (0, 11, 12)] == [True, True, False]
    slight = [(2.0 + 0.3 * (-1) ** at, 0.0) for at in range(12)]  # 0.045 of the mean after 12 runs
    assert not goes_on(slight)


def test_a_category_that_is_there_twice_is_refused_before_a_release_would() -> None:
    for names in (["A", "B", "A"], ["1", 1.0]):
        with pytest.raises(InputError, match="categories must be distinct"):
            iso.Table("county", names, upper=5).plan(epsilon=1)
