import math
from fractions import Fraction

import numpy as np
import pytest
from tests.support.bipartitions import expected_squares
from tests.support.filters import changes, filters
from tests.support.posets import all_posets
from tests.support.rounded_plane import rounded_law

from isotone.counts import LaplaceMechanism, PosetMechanism
from isotone.errors import InputError, OrderError
from isotone.mechanism import Mechanism
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

SURVEY = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])


def test_it_has_the_shape_of_a_mechanism():
    m = PosetMechanism(SURVEY, epsilon="0.5")
    assert isinstance(m, Mechanism)
    assert m.guarantee == Guarantee.pure("1/2")
    assert m == PosetMechanism(SURVEY, epsilon=0.5)
    assert m.method.name == "exact"
    assert str(m.method) == "drawn exactly"
    assert isinstance(m.simulate(3, np.random.default_rng(0)), Simulated)
    assert m.simulate(3, np.random.default_rng(0)).shape == (3, 3)
    with pytest.raises(AttributeError):
        m.P = N_ORDER  # pyright: ignore[reportAttributeAccessIssue]


def test_a_release_is_integers_in_the_order_of_the_elements():
    released = PosetMechanism(SURVEY, epsilon=10**6).release({"meds": 33, "hyp": 120, "twice": 80})
    assert released.dtype == np.int64
    assert released.tolist() == [120, 80, 33]


def test_counts_that_break_the_order_are_refused_by_name_and_not_by_number():
    m = PosetMechanism(SURVEY, epsilon=1)
    with pytest.raises(OrderError, match="'twice' implies 'hyp'") as refusal:
        m.release([7123, 7124, 0])
    assert "712" not in str(refusal.value)
    with pytest.raises(InputError):
        m.release([120, 80])
    with pytest.raises(InputError):
        m.release([120, 80.5, 0])
    with pytest.raises(InputError, match="simulate"):
        m.release(m.simulate(1, np.random.default_rng(0))[0])


def test_parameters_are_checked():
    with pytest.raises(InputError, match="epsilon"):
        PosetMechanism(SURVEY, epsilon=0)
    with pytest.raises(InputError, match="contributions"):
        PosetMechanism(SURVEY, 1, contributions=0)
    with pytest.raises(InputError, match="neighbours"):
        PosetMechanism(SURVEY, 1, neighbours="both")  # pyright: ignore[reportArgumentType]


def test_the_rate_counts_the_records_that_a_unit_can_change():
    assert PosetMechanism(SURVEY, 1).rate == 1
    assert PosetMechanism(SURVEY, 1, "replace").rate == Fraction(1, 2)
    assert PosetMechanism(SURVEY, 1, "replace", contributions=3).rate == Fraction(1, 6)
    assert PosetMechanism(Poset.chain("a"), 1, "replace").rate == Fraction(1, 2)


def test_a_single_count_and_the_total_are_covered_together_when_a_record_is_replaced():
    """The pair (count, number of records) moves by (1, 0), whose norm in the order with a root is 2."""
    mechanism = PosetMechanism(Poset.chain("a"), 1, "replace")
    rooted = PosetMechanism(Poset.chain("ar"), 1)
    assert float(mechanism.rate) * float(rooted.norm([1, 0])) <= 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_density_is_private_for_every_change_on_every_small_order(neighbours):
    rng = np.random.default_rng(2)
    for P in [P for n in (1, 2, 3) for P in all_posets(n)]:
        m = PosetMechanism(P, "3/2", neighbours, contributions=2)
        y = rng.normal(scale=3, size=(200, len(P)))
        worst = 0.0
        for move in sorted(changes(P, neighbours, 2, None)):
            losses = m.log_density(y) - m.log_density(y - np.array(move))
            worst = max(worst, float(np.max(losses)))
        assert worst <= 1.5 + 1e-9
        # one count alone has slack under replace: its rate covers the number of records beside it
        assert worst > (0.7 if (len(P), neighbours) == (1, "replace") else 1.4)


def test_the_density_at_zero_is_that_of_the_volume():
    for P in all_posets(4):
        m = PosetMechanism(P, 2)
        expected = 4 * math.log(2) - math.log(P.count_extended_bipartitions())
        assert m.log_density(np.zeros(4)) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("P", all_posets(2), ids=str)
@pytest.mark.parametrize("epsilon", ["1/4", 1, 3])
def test_released_integers_are_private_by_integration(P, epsilon):
    m = PosetMechanism(P, epsilon)
    law = rounded_law(m, reach=8)
    worst = 0.0
    for record in filters(P)[1:]:
        for (a, b), p in law.items():
            q = law.get((a - int(record[0]), b - int(record[1])))
            worst = max(worst, abs(math.log(p / q)) if q else 0.0)
    assert worst <= float(m.epsilon) * (1 + 1e-9)
    assert worst > 0.9 * float(m.epsilon)  # so a scale wrong by a tenth would show


def test_the_error_is_exact_on_series_parallel_orders_and_close_on_others():
    for P in [P for n in (3, 4) for P in all_posets(n)]:
        error = PosetMechanism(P, 2).error()
        exact = expected_squares(P) / 4
        if error.method == "exact":
            assert error.variance == pytest.approx(exact, rel=1e-7)
        else:
            assert np.all(np.abs(error.variance - exact) < 6 * error.standard_error)
            assert np.all(error.standard_error < 0.02 * exact)
    assert PosetMechanism(N_ORDER, 1).error().method == "simulated"


def test_the_survey_has_the_errors_of_the_theory():
    relations = [(1, 0), (2, 1), (3, 0), *((k, 4) for k in range(5, 11)), *((k, 11) for k in range(12, 15))]
    for n, ratio in ((4, 91 / 160), (11, 0.4624537), (15, 0.4181981)):
        P = Poset(range(n), [pair for pair in relations if max(pair) < n])
        assert PosetMechanism(P, 1).error().total / (n * (n + 1) * (n + 2) / 3) == pytest.approx(
            ratio, abs=1e-6
        )


def test_errors_and_intervals_scale_with_epsilon_and_repeat():
    narrow, wide = PosetMechanism(SURVEY, 4), PosetMechanism(SURVEY, 1)
    assert wide.error().sd == pytest.approx(4 * narrow.error().sd)
    assert wide.unrounded_half_widths() == pytest.approx(4 * narrow.unrounded_half_widths())
    assert wide.simultaneous_half_width(0.9) == wide.simultaneous_half_width(0.9)
    assert wide.simultaneous_half_width(0.9) >= wide.half_widths(0.9).max()
    assert wide.unrounded_simultaneous_half_width(0.9) > wide.unrounded_half_widths(0.9).max()
    low, middle, high = wide.quantiles([0.05, 0.5, 0.95])
    assert np.all(low < -1)
    assert np.all(np.abs(middle) < 0.2)
    assert np.all(high > 1)


def test_the_total_is_released_with_the_counts():
    m = PosetMechanism(SURVEY, epsilon=10**6)
    values, total = m.release_with_total([120, 80, 33], records=500)
    assert (values.tolist(), total) == ([120, 80, 33], 500)
    with pytest.raises(InputError, match="fewer records") as refusal:
        m.release_with_total([7123, 80, 33], records=7122)
    assert "712" not in str(refusal.value)
    with pytest.raises(InputError, match="whole number"):
        m.release_with_total([120, 80, 33], records=500.5)  # pyright: ignore[reportArgumentType]


def test_the_total_has_the_error_of_a_root():
    rooted = Poset.series(N_ORDER, Poset.chain(["all"]))
    forest = Poset.series(SURVEY, Poset.chain(["all"]))
    assert PosetMechanism(SURVEY, 1).total_variance() == pytest.approx(
        PosetMechanism(forest, 1).error().variance[-1], rel=1e-7
    )
    simulated = PosetMechanism(rooted, 1).error()
    assert abs(PosetMechanism(N_ORDER, 1).total_variance() - simulated.variance[-1]) < (
        6 * simulated.standard_error[-1]
    )


def test_an_order_with_a_root_gives_the_same_noise_to_the_others():
    rooted = Poset.series(SURVEY, Poset.chain(["all"]))
    with_root = PosetMechanism(rooted, 1).error().variance[:-1]
    assert with_root == pytest.approx(PosetMechanism(SURVEY, 1).error().variance, rel=1e-7)


def test_one_count_gets_laplace_noise():
    P = Poset.chain(["only"])
    y = np.linspace(-5, 5, 21)[:, None]
    assert PosetMechanism(P, 2).log_density(y) == pytest.approx(
        LaplaceMechanism(P, 2).log_density(y), abs=1e-8
    )
    assert PosetMechanism(P, 2).error().variance == pytest.approx(LaplaceMechanism(P, 2).error().variance)
