"""The measurements in OpenDP's own accountants: compositors, odometers, filters and contexts."""

# OpenDP re-exports its names from the prelude without declaring them.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import pytest

import isotone.counts as counts
from isotone.curves import PrivateIsotonicRegression
from isotone.errors import InputError
from isotone.interop import opendp as bridge
from isotone.order import Poset
from isotone.tables import TwoStageMechanism

dp.enable_features("contrib", "honest-but-curious")
bridge.register()

P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
SPACE = bridge.table_domain(), dp.symmetric_distance()
QUICK = {"bounds": (1e-4, 10.0)}  # where to search for a budget; without it the search takes a second


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    hyp = rng.random(300) < 0.5
    return pd.DataFrame(
        {
            "person": np.arange(300) // 2,
            "hyp": hyp,
            "twice": hyp & (rng.random(300) < 0.5),
            "meds": hyp & (rng.random(300) < 0.3),
            "age": rng.integers(20, 90, 300).astype(float),
            "county": rng.choice(["a", "b", "c"], 300),
        }
    )


def context(loss, unit=None, **split) -> Any:
    return dp.Context.compositor(
        data=table(),
        domain=bridge.table_domain(),
        privacy_unit=unit or dp.unit_of(contributions=1),
        privacy_loss=loss,
        **split,
    )


def test_an_adaptive_compositor_answers_within_its_budget_and_no_further():
    compositor = dp.c.make_adaptive_composition(*SPACE, dp.max_divergence(), d_in=1, d_mids=[0.5, 0.25, 0.25])
    assert compositor.map(1) == 1.0
    answer = compositor(table())
    first = answer(bridge.make_counts(*SPACE, counts.PosetMechanism(P, "1/2")))
    assert first.shape == (3,)
    too_much = bridge.make_table(
        *SPACE, TwoStageMechanism(200, "1/2"), category="county", categories=["a", "b", "c"]
    )
    with pytest.raises(dp.OpenDPException, match="insufficient"):
        answer(too_much)
    model = PrivateIsotonicRegression("1/4", (0, 100), (0, 1))
    assert hasattr(answer(bridge.make_curve(*SPACE, model, x="age", y="hyp")), "X_thresholds_")
    small = TwoStageMechanism(200, "1/4")
    assert answer(bridge.make_table(*SPACE, small, category="county", categories=["a"])).shape == (1,)
    with pytest.raises(dp.OpenDPException):
        answer(bridge.make_counts(*SPACE, counts.PosetMechanism(P, "1/1000")))


def test_an_odometer_adds_up_and_a_filter_stops():
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, dp.zero_concentrated_divergence())
    answer = odometer(table())
    gaussian = bridge.make_counts(*SPACE, counts.OrderGaussianMechanism(P, rho="1/8"))
    pure = dp.c.make_pureDP_to_zCDP(bridge.make_counts(*SPACE, counts.PosetMechanism(P, "1/2")))
    answer(gaussian)
    answer(pure)
    assert answer.privacy_loss(1) == pytest.approx(1 / 8 + 1 / 8)
    assert answer.privacy_loss(2) == pytest.approx(4 / 8 + 4 / 8)
    limited = dp.c.make_privacy_filter(odometer, d_in=1, d_out=0.3)(table())
    limited(gaussian)
    limited(pure)
    with pytest.raises(dp.OpenDPException):
        limited(gaussian)


def test_a_context_spends_exactly_what_it_set_aside_for_each_release():
    c = context(dp.loss_of(epsilon=1.0), split_evenly_over=3)
    asked = c.query().isotone_counts(P)
    assert asked.resolve(**QUICK).map(1) == pytest.approx(1 / 3, rel=1e-12)
    assert asked.release(**QUICK).shape == (3,)
    shown = c.query().isotone_table(["a", "b", "c"], category="county", upper=200).release(**QUICK)
    assert shown.shape == (3,)
    curve = c.query().isotone_curve(x="age", y="hyp", bounds=(0, 100), y_range=(0, 1)).release(**QUICK)
    assert float(curve.epsilon_spent_) == pytest.approx(1 / 3, rel=1e-12)
    assert c.remaining_privacy_loss() == []
    with pytest.raises(ValueError, match="exhausted"):
        c.query()


def test_more_rows_of_a_unit_mean_more_noise():
    one = context(dp.loss_of(epsilon=1.0), split_evenly_over=1).query().isotone_counts(P)
    four = context(dp.loss_of(epsilon=1.0), dp.unit_of(contributions=4), split_evenly_over=1)
    assert one.param(**QUICK) == pytest.approx(1.0)
    assert four.query().isotone_counts(P).param(**QUICK) == pytest.approx(0.25)


def test_gaussian_noise_lives_in_contexts_of_concentrated_and_approximate_privacy():
    shaped = {"mechanism": "OrderGaussianMechanism"}
    c = context(dp.loss_of(rho=0.5), split_evenly_over=2)
    assert c.query().isotone_counts(P, **shaped).param(**QUICK) == pytest.approx(0.25)
    assert c.query().isotone_counts(P, **shaped).release(**QUICK).shape == (3,)
    assert c.query().isotone_counts(P).release(**QUICK).shape == (3,)  # pure, converted by OpenDP
    c = context(dp.loss_of(epsilon=1.0, delta=1e-6), split_evenly_over=2)
    assert c.query().isotone_counts(P, delta="1/4000000", **shaped).param(**QUICK) == pytest.approx(0.5)
    assert c.query().isotone_counts(P, delta="1/4000000", **shaped).release(**QUICK).shape == (3,)
    assert c.query().isotone_counts(P, **shaped).release(**QUICK).shape == (3,)  # rho, converted by OpenDP


def test_people_with_several_rows_are_protected_by_their_identifier():
    unit = dp.unit_of(contributions=1, identifier="person")
    c = context(dp.loss_of(epsilon=2.0e6), unit, split_evenly_over=2)
    released = c.query().isotone_counts(P, 1e6).release()
    people = table().groupby("person")[list(P.elements)].any().sum()
    assert released.tolist() == people.tolist()
    assert c.query().isotone_counts(P, 2.5e5, contributions=2).release().shape == (3,)


def test_opendps_own_mean_and_our_counts_share_a_budget():
    c = context(dp.loss_of(epsilon=2.0), split_by_weights=[3, 1])
    released = c.query().isotone_counts(P).release(**QUICK)
    ages = c.query().isotone_column("age").impute_constant(50.0).clamp((0.0, 100.0)).resize(300, 50.0).mean()
    mean = ages.laplace().release()
    assert released.shape == (3,)
    assert abs(mean - table()["age"].mean()) < 40  # noise of scale 100 / 300 / 0.5, so sixty times that
    assert c.current_privacy_loss() == pytest.approx([1.5, 0.5])


def test_a_context_may_lack_only_the_budget():
    c = context(dp.loss_of(epsilon=1.0), split_evenly_over=1)
    with pytest.raises(ValueError, match="missing"):
        c.query().isotone_counts()
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="above 0"):
            bridge.make_isotone_counts(*SPACE, P, wrong)
    with pytest.raises(InputError, match="did you mean 'PosetMechanism'"):
        bridge.make_isotone_counts(*SPACE, P, 1.0, mechanism="PosetMechanisms")


def test_registering_twice_does_no_harm():
    bridge.register()
    bridge.register()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (counts.PosetMechanism, {}),
        (counts.OrderGaussianMechanism, {}),
        (counts.OrderGaussianMechanism, {"delta": "1/1024"}),
    ],
)
def test_counts_are_released_with_the_budget_that_the_map_tells(kind, options, monkeypatch):
    used: list[Any] = []

    def release(self, values):
        used.append(self.guarantee)
        return np.zeros(3, np.int64)

    monkeypatch.setattr(kind, "release", release)
    made = bridge.make_isotone_counts(*SPACE, P, 0.375, mechanism=kind.__name__, **options)
    made(table())
    told = made.map(1)[0] if options else made.map(1)
    assert [guarantee.rho or guarantee.epsilon for guarantee in used] == [told] == [0.375]
