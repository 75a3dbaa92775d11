from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.estimators import grouped

from isotone.curves import PrivateIsotonicRegression
from isotone.curves.cuts import ChainProblem, Curve, Reference, least_risk, planned, risk
from isotone.curves.losses import Absolute, Huber, Pinball, Squared, parse_loss
from isotone.curves.plan import CurvePlan
from isotone.curves.plan import plan as plan_of
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.regression import mechanism_for
from isotone.errors import InputError

ONE = (Fraction(0), Fraction(1))


def plan(
    epsilon: Any, n: Any, *, labels: Any = None, methods: Any = ("auto", "bins"), **given: Any
) -> CurvePlan:
    """A plan of an estimator with these parameters."""
    y = {"y_values": ONE} if labels else {"y_range": ONE}
    model = PrivateIsotonicRegression(**grouped(**{"epsilon": epsilon, **y, **given}))
    return plan_of(model, n, methods=methods, labels=labels)


def test_a_plan_ranks_methods_and_needs_no_data() -> None:
    found = plan(1, 600, methods=["auto", "bins"])
    assert found.rows[0].excess == min(row.excess for row in found.rows)
    assert found.best.method == found.rows[0].name
    assert found.best.set_params(bounds=(0, 1)).check().guarantee.epsilon == found.guarantee.epsilon
    for row in found.rows:
        assert 0 < row.low < row.excess < row.high
        assert row.high <= row.bound or not row.proved
    assert "epsilon = 1, 600 records" in str(found)
    assert plan(1, 600, methods="bins") == plan(1, 600, methods="bins")


def test_more_budget_and_a_smaller_range_of_y_cost_less() -> None:
    little, much = (plan(epsilon, 500, methods=["bins"]).rows[0].excess for epsilon in (1, 10))
    assert much < little
    wide = plan(1, 500, methods=["bins"], y_range=(0, 10)).rows[0].excess
    assert wide == pytest.approx(100 * little)


def test_large_data_are_simulated_by_smaller_ones_of_the_same_strength() -> None:
    large = plan("1/10", 1_000_000, methods=["bins"]).rows[0].excess
    assert large == pytest.approx(plan(1, 100_000, methods=["bins"]).rows[0].excess)


def test_a_plan_says_where_no_bound_is_proved() -> None:
    means, quantiles = (plan(1, 200, loss=loss, methods=["bins"]) for loss in ("squared", "absolute"))
    assert "at most" in str(means)
    assert "no proved bound" in str(quantiles)


def test_a_plan_predicts_what_is_then_measured() -> None:
    """Against other records of the reference populations; a plan off by a factor of two would fail."""
    for loss, n in (("squared", 1_000), ("absolute", 8_000)):
        predicted = plan(1, n, loss=loss, labels=False, methods=["auto"]).rows[0]
        built = mechanism_for(
            ChainProblem(parse_loss(loss), ONE, Grid(*ONE, 4096)).sized(n, CurveSetting(Fraction(1)))
        )
        found: list[float] = []
        for seed, population in enumerate(planned(labels=False)):
            rng = np.random.default_rng([seed, 77])
            records = population.sample(n, 4096, rng)
            drawn = [risk(built.simulate(records, rng), records, parse_loss(loss)) for _ in range(2)]
            found.append(float(np.mean(drawn)) - least_risk(records, parse_loss(loss)))
        assert 0.6 < predicted.excess / np.exp(np.mean(np.log(found))) < 1.7
        assert np.mean((predicted.low <= np.array(found)) & (np.array(found) <= predicted.high)) >= 0.6


CALIBRATION = Path(__file__).parents[3] / "data" / "curves" / "calibration_breast_cancer.csv"


@pytest.mark.parametrize("epsilon", ["1/2", "5"])
def test_the_range_of_a_plan_has_room_for_real_scores_that_crowd_at_both_ends(epsilon: str) -> None:
    """Up to a third for the chance in both."""
    x, y = np.loadtxt(CALIBRATION, delimiter=",", skiprows=1, usecols=(0, 1)).T
    records = Records(
        Grid(*ONE, 4096).snap(x), Grid(*ONE, FINE + 1).snap(y), np.ones(x.size, np.int64)
    ).sorted()
    built = mechanism_for(
        ChainProblem(Squared(), ONE, Grid(*ONE, 4096), labels=True).sized(
            x.size, CurveSetting(Fraction(epsilon))
        )
    )
    rng = np.random.default_rng(1)
    drawn = [risk(built.simulate(records, rng), records, Squared()) for _ in range(15)]
    measured = float(np.mean(drawn)) - least_risk(records, Squared())
    found = plan(epsilon, x.size, labels=True, methods="auto").rows[0]
    assert 0.75 * found.low < measured < 4 / 3 * found.high


def test_labels_that_are_not_known_give_a_plan_for_both_kinds() -> None:
    values, unknown, known = (
        plan(1, 500, labels=labels, methods=["bins"]).rows[0] for labels in (False, None, True)
    )
    assert values.excess < known.excess
    assert unknown.excess not in (values.excess, known.excess)
    assert (known.mechanism.y_values, known.mechanism.y_range) == ((0, 1), None)
    assert unknown.mechanism.y_values is None


def test_the_populations_of_a_plan_have_every_kind_of_y() -> None:
    kinds = {labels: [(each.labels, each.wide) for each in planned(labels)] for labels in (None, False, True)}
    assert all(labels for labels, _ in kinds[True])
    assert {wide for _, wide in kinds[False]} == {False, True}
    assert [labels for labels, _ in kinds[None]] == [False, True] * 10
    wide = Reference("constant", "uniform", labels=False, wide=True).sample(
        4000, 64, np.random.default_rng(3)
    )
    y = wide.levels / FINE
    assert abs(y.mean() - 0.4) < 0.02
    assert abs(y.var() - 0.4 * 0.6 / 5) < 0.005


def test_the_width_of_a_huber_loss_is_in_the_units_of_y() -> None:
    wide = plan(1, 500, loss=("huber", 2), y_range=(0, 10), methods=["bins"]).rows[0]
    unit = plan(1, 500, loss=("huber", "1/5"), methods=["bins"]).rows[0]
    assert (wide.excess, wide.high, wide.bound) == pytest.approx(
        (10 * unit.excess, 10 * unit.high, 10 * unit.bound)
    )


def test_a_plan_names_its_columns() -> None:
    lines = str(plan(1, 200, methods="bins")).splitlines()
    assert lines[1].split() == ["mechanism", "typical", "10", "%", "90", "%"]
    assert lines[1].index("10 %") + len("10 %") == lines[2].index(lines[2].split()[2]) + len(
        lines[2].split()[2]
    )


def test_the_best_estimator_of_a_plan_is_a_new_one_each_time() -> None:
    found = plan(1, 200, methods="bins")
    found.best.set_params(bounds=(0, 1), epsilon=5)
    assert found.best.bounds is None
    assert found.best.epsilon == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 0},
        {"n": 1e3},
        {"n": True},
        {"n": "many"},
        {"epsilon": 0},
        {"contributions": 0},
        {"contributions": 1.5},
        {"neighbours": "friends"},
        {"methods": ["magic"]},
        {"methods": []},
    ],
)
def test_unusable_questions_are_refused(arguments: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"epsilon": 1, "n": 100} | arguments
    with pytest.raises(InputError):
        plan(**settings)


@pytest.mark.parametrize("loss", [Squared(), Absolute(), Pinball(Fraction(3, 4)), Huber(Fraction(1, 8))])
def test_the_least_risk_is_below_the_risk_of_every_curve(loss: Any) -> None:
    rng = np.random.default_rng(0)
    records = Reference("logistic", "uniform", labels=False).sample(300, 8, rng)
    least = least_risk(records, loss)
    for _ in range(30):
        values = np.sort(rng.random(8))
        assert risk(Curve(np.arange(8), values, 8), records, loss) >= least - 1e-6
    perfect = Records(np.arange(8), np.arange(8) * (FINE // 8), np.ones(8, np.int64))
    assert least_risk(perfect, loss) == pytest.approx(0, abs=1e-9)
