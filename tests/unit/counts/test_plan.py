# pyright: reportArgumentType=false
from fractions import Fraction
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from tests.support.count_plans import plan

from isotone import Counts
from isotone.counts import CountPlan, Relaxation
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.calibration import largest_pure, sigma_squared
from isotone.privacy.guarantee import Guarantee


@pytest.fixture(scope="module")
def survey() -> Poset:
    return Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])


def names(p: CountPlan) -> list[str]:
    return [row.name for row in p]


def test_the_best_comes_first_and_is_ready_to_release(survey):
    p = plan(survey, epsilon=1)
    errors = [row.rmse for row in p.rows]
    assert errors == sorted(errors)
    assert names(p)[0] == "PosetMechanism"
    assert p.best is p.rows[0].mechanism
    assert p.best.release([120, 80, 33]).shape == (3,)
    assert set(names(p)) == {
        "PosetMechanism",
        "LaplaceMechanism",
        "DiscreteLaplaceMechanism",
        "LInfinityMechanism",
    }


def test_every_mechanism_keeps_the_guarantee(survey):
    guarantees: list[dict[str, Any]] = [
        {"epsilon": "0.7"},
        {"epsilon": "0.7", "delta": "1e-6"},
        {"rho": "0.3"},
    ]
    for guarantee, neighbours in zip(guarantees, ("add-remove", "replace", "replace"), strict=True):
        p = plan(survey, **guarantee, neighbours=neighbours, contributions=2, max_size=2)
        for row in p:
            assert row.mechanism.guarantee.within(p.guarantee)
            assert row.mechanism.contributions == 2


def test_rows_state_the_errors_of_their_mechanisms(survey):
    for row in plan(survey, epsilon=1, delta="1e-5"):
        error = row.mechanism.error()
        assert (row.rmse, row.worst) == (error.rmse, error.worst)
        assert row.half_width == row.mechanism.simultaneous_half_width(0.95)


def test_long_chains_are_for_sums_and_short_ones_for_the_poset_mechanism():
    assert names(plan(Poset.chain(range(7)), 1))[0] == "PosetMechanism"
    assert names(plan(Poset.chain(range(40)), 1))[0] == "MatrixMechanism"
    assert names(plan(Poset.chain(range(250)), 1))[0] == "HierarchicalMechanism"


def test_many_counts_with_a_delta_are_for_gaussian_noise():
    P = Poset.antichain(range(200))
    assert names(plan(P, 1))[0] == "PosetMechanism"
    assert names(plan(P, 1, delta="1e-6"))[0] == "OrderGaussianMechanism"


def test_a_bound_on_sizes_can_matter_more_than_the_order():
    P = Poset.antichain(range(60))
    bounded = plan(P, 1, max_size=3)
    assert bounded.best.max_size == 3
    assert "Laplace" in names(bounded)[0]
    assert bounded.rows[0].note == "records cut to 3"
    assert bounded["PosetMechanism"].note.count("cut") == 0


def test_a_relaxed_order_given_to_the_plan_is_the_one_it_keeps():
    P = Poset.chain("abc")
    p = plan(P, 1, relaxation=Relaxation((("a", "b"),)))
    row = p["PosetMechanism"]
    assert row.note.startswith(("rejection", "relaxed"))
    assert plan(P, 1)["PosetMechanism"].note == "drawn exactly"


def test_under_zcdp_a_pure_mechanism_gets_the_epsilon_that_rho_allows(survey):
    assert largest_pure(Guarantee.zcdp("1/8")) == Fraction(1, 2)
    epsilon = largest_pure(Guarantee.zcdp("0.3"))
    assert epsilon**2 / 2 <= Fraction("0.3") < (epsilon + Fraction(1, 10**14)) ** 2 / 2
    p = plan(survey, rho="1/8")
    assert p["PosetMechanism"].mechanism.epsilon == Fraction(1, 2)
    assert "GaussianMechanism" in names(p)


@pytest.mark.parametrize("simultaneous", [True, False])
@pytest.mark.parametrize(
    "guarantee", [{"epsilon": 2}, {"epsilon": "0.5", "delta": "1e-6"}, {"epsilon": 1, "max_size": 1}]
)
def test_epsilon_for_is_the_smallest_that_keeps_within_the_error(survey, guarantee, simultaneous):
    p = plan(survey, **guarantee)
    epsilon = p.epsilon_for(error=25, confidence=0.9, simultaneous=simultaneous)

    def width(e: float) -> float:
        best = plan(survey, **(guarantee | {"epsilon": e})).best  # what a release would draw
        return best.simultaneous_half_width(0.9) if simultaneous else max(best.half_widths(0.9))

    assert width(epsilon) <= 25
    assert width(epsilon * 0.98) > 25


@pytest.mark.parametrize("shrink", [0.5, 0.9, 3])
def test_gaussian_noise_is_scaled_by_the_budget_that_its_variance_takes(survey, shrink):
    p = plan(survey, epsilon=1, delta="1e-6")
    scaled = sigma_squared(p._scaled_budget(p.guarantee, shrink), Fraction("1e-6"))
    assert float(scaled) == pytest.approx(shrink**2 * float(sigma_squared(1, Fraction("1e-6"))), rel=1e-4)


def test_rho_for_inverts_a_plan_that_spends_rho(survey):
    p = plan(survey, rho=1)
    rho = p.rho_for(error=25)
    assert min(row.half_width for row in plan(survey, rho=rho)) <= 25
    assert min(row.half_width for row in plan(survey, rho=rho * 0.98)) > 25
    with pytest.raises(InputError, match="rho_for"):
        p.epsilon_for(error=25)
    with pytest.raises(InputError, match="epsilon_for"):
        plan(survey, epsilon=1).rho_for(error=25)


def test_it_prints_as_a_table_everywhere(survey):
    p = plan(survey, epsilon=1, max_size=2)
    console = Console(width=120, file=StringIO())
    with console.capture() as captured:
        console.print(p)
    for rendered in (str(p), captured.get(), p._repr_html_()):
        assert "3 counts, ε-DP with ε = 1" in rendered
        for row in p:
            assert row.name in rendered
            assert f"{row.rmse:.4g}" in rendered
        assert "records cut to 2" in rendered


def test_it_draws_itself(survey):
    p = plan(survey, epsilon=1)
    axes = p.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        row.name.removesuffix("Mechanism") for row in p
    ]
    assert p.plot(axes) is axes


def test_an_unknown_row_is_refused_with_the_known_ones(survey):
    with pytest.raises(InputError, match="It has: PosetMechanism"):
        plan(survey, 1)["Laplace"]


def test_progress_never_goes_back(survey):
    seen: list[float] = []
    plan(survey, 1, progress=lambda fraction, what: seen.append(fraction))
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        ({}, "Give epsilon|not both"),
        ({"epsilon": 1, "rho": 1}, "Give epsilon|not both"),
        ({"rho": 1, "delta": "1e-6"}, "not both"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": 1, "delta": 1}, "below 1"),
        ({"epsilon": 1, "max_size": 0}, "max_size"),
        ({"epsilon": 1, "contributions": 0}, "contributions"),
        ({"epsilon": 1, "neighbours": "swap"}, "neighbours"),
    ],
)
def test_a_guarantee_that_cannot_be_kept_is_refused(survey, guarantee, message):
    with pytest.raises(InputError, match=message):
        plan(survey, **guarantee)


@pytest.mark.parametrize("error", [0, -1, float("nan"), float("inf")])
def test_an_error_that_is_no_error_is_refused(survey, error):
    with pytest.raises(InputError, match="error must be"):
        plan(survey, 1).epsilon_for(error)


def test_a_plan_picks_by_the_worst_element_on_request() -> None:
    star = Poset(range(6), [(leaf, 5) for leaf in range(5)])
    by_total = plan(star, rho=0.5, max_size=3)
    by_worst = plan(star, rho=0.5, max_size=3, care="worst")
    assert type(by_total.best).__name__ == "OrderGaussianMechanism"
    assert type(by_worst.best).__name__ == "GaussianMechanism"
    assert by_worst.rows[0].worst == min(row.worst for row in by_total)
    assert "× 0." not in str(by_worst)  # squared errors are given relative to the least


def test_replace_plans_look_at_differences_of_records(survey: Poset) -> None:
    p = plan(survey, 2, neighbours="replace")
    assert names(p)[0] == "DifferenceBodyMechanism"
    assert p.best.release([12, 8, 3]).shape == (3,)
    assert "DifferenceBodyMechanism" not in names(plan(survey, 2))
    zcdp = plan(survey, rho=2, neighbours="replace")["DifferenceBodyMechanism"]
    assert zcdp.mechanism.epsilon == 2


def test_a_plan_says_what_a_public_number_of_records_changes(survey: Poset) -> None:
    half = plan(survey, 1)["PosetMechanism"].rmse
    for rendered in (
        str(plan(survey, 2, neighbours="replace")),
        plan(survey, 2, neighbours="replace")._repr_html_(),
    ):
        assert f"with ε = 1 protects answers just as well, with rms error {half:.4g}" in rendered
        assert "hides it with ε = 2 only" in rendered
    whole = plan(survey, 2, neighbours="replace").rows[0].rmse
    assert (
        f'neighbours = "replace" with ε = 2 protects answers just as well, with rms error {whole:.4g}'
        in plan(survey, 1).advice
    )
    cases: tuple[tuple[dict[str, Any], dict[str, Any], str, str], ...] = (
        ({"rho": 1}, {"rho": 4}, "ρ = 1", "ρ = 4"),
        (
            {"epsilon": 1, "delta": "1e-6"},
            {"epsilon": 2, "delta": "3.718282e-6"},
            "ε = 1, δ = 1e-06",
            "ε = 2, δ = 3.72e-06",
        ),
    )
    for asked, other, adding, replacing in cases:
        found, same = plan(survey, **asked), plan(survey, **other, neighbours="replace")
        best, rmse = found.rows[0].rmse, same.rows[0].rmse
        assert rmse < 0.9 * best  # or there would be nothing to say
        assert (
            f'neighbours = "replace" with {replacing} protects answers just as well, with rms error {rmse:.4g}'
            in found.advice
        )
        assert f"who took part is hidden at {replacing} only" in found.advice
        assert (
            f'neighbours = "add-remove" with {adding} protects answers just as well, with rms error {best:.4g}'
            in same.advice
        )
    assert "who took part is hidden at ε = 2 only" in str(plan(survey, 1))
    tree = plan(
        Poset.from_mapping({"a": "all", "b": "all"}, children="partition"), 1, care={"all": 5, "a": 1, "b": 1}
    )
    assert 'If the number of records is public anyway: neighbours = "replace" with ε = 2' in str(tree)


def test_bounded_records_are_looked_at_where_draws_are_kept() -> None:
    p = plan(Poset.antichain(range(10)), 1, max_size=3)
    assert names(p)[0] == "BoundedPosetMechanism"
    assert "records cut to 3" in p.rows[0].note
    assert p.best.max_size == 3
    assert "BoundedPosetMechanism" not in names(plan(Poset.antichain(range(10)), 1))
    assert "BoundedPosetMechanism" not in names(plan(Poset.antichain(range(60)), 1, max_size=3))


def test_long_chains_side_by_side_are_for_a_tree_each() -> None:
    pair = Poset.disjoint_union(Poset.chain(range(300)), Poset.chain(range(300, 600)))
    p = plan(pair, 1)
    assert names(p)[0] == "HierarchicalMechanism"
    assert "HierarchicalMechanism" not in names(plan(Poset.antichain(range(5)), 1))


@pytest.mark.parametrize(
    "order",
    [
        Poset.from_mapping({"a": "all", "b": "all", "c": "all", "d": "a"}, children="partition"),
        Poset(["t", "a", "b", "q", "r"], [("a", "t"), ("b", "t"), ("r", "q")], [("partition", ["a", "b"])]),
        Poset.chain(range(8)),
    ],
    ids=["partition", "mixed", "chain"],
)
@pytest.mark.parametrize("asked", [{"epsilon": 1}, {"epsilon": 1, "neighbours": "replace"}, {"rho": "0.5"}])
def test_a_plan_at_the_budget_that_an_error_takes_keeps_that_error(order, asked) -> None:
    found = plan(order, **asked)
    budget = found.rho_for(10) if "rho" in asked else found.epsilon_for(10)
    again = plan(order, **{**asked, "rho" if "rho" in asked else "epsilon": budget})
    assert again.rows[0].half_width == 10


@pytest.mark.parametrize(
    ("parents", "pair"),
    [
        ({"weekly": "bikee", "helmet": "bike"}, "'bikee' and 'bike'"),
        ({"weekly": "bike", "to_work": "weelky"}, "'weelky' and 'weekly'"),
        ({"a_few": "item_a", "b_few": "item_b"}, ""),  # a letter is the whole word
        ({"told twice": "told 1", "two": "told 2"}, ""),
        ({"smoked": "smoke"}, ""),  # one implies the other, and is no slip
    ],
)
def test_a_plan_names_a_parent_that_may_be_misspelt(parents, pair) -> None:
    order = Poset.from_mapping(parents)
    for text in (str(plan(order, 1)), str(Counts(order, by={"sex": ["f", "m"]}).plan(epsilon=1))):
        assert (f"Nearly the same name, but two elements: {pair}. " in text) == bool(pair)
        assert ("Nearly" in text) == bool(pair)


@pytest.mark.parametrize("stated", [1, 30, 1000])
def test_the_budget_for_an_error_does_not_depend_on_the_budget_of_the_plan(stated) -> None:
    """At a large budget all noise is rounded away, and no mechanism is best."""
    order = Poset.from_mapping({"weekly": "bike", "to_work": "weekly", "helmet": "bike", "daily": "card"})
    assert plan(order, stated).epsilon_for(error=15) == plan(order, 1).epsilon_for(error=15)
    assert plan(order, rho=stated).rho_for(error=15) == plan(order, rho=1).rho_for(error=15)
