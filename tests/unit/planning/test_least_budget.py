"""The least budget for an error, by trying."""
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import pytest

import isotone as iso
from isotone.errors import InputError
from isotone.planning import least_budget
from isotone.release.kinds.counts.columns import known_errors


def test_the_least_budget_is_found_where_a_larger_one_is_not_enough():
    assert 1 <= least_budget(lambda budget: 1 <= budget <= 5) <= 1.02


@pytest.mark.parametrize("near", [0.2, 3, 19])
def test_a_guess_changes_nothing_but_the_way(near):
    assert 3 <= least_budget(lambda budget: budget >= 3, near) <= 3.06


def test_no_budget_is_enough():
    with pytest.raises(InputError, match="Not even a budget of 20"):
        least_budget(lambda budget: False)


@pytest.mark.parametrize("guarantee", [iso.Guarantee.pure(1), iso.Guarantee.zcdp("0.5")])
def test_the_budget_for_an_error_of_a_breakdown_agrees_with_its_plan(guarantee):
    by = {"region": ["north", "south"], "sex": ["f", "m"]}
    survey = iso.Counts(iso.Poset.chain("ab"), by=by, margins=["", "region", "*"])
    name = "rho" if guarantee.kind == "zcdp" else "epsilon"
    budget, of = survey.least_budget(guarantee, 40, None, 0.9)
    assert of == {"of": "every number by itself", "confidence": 0.9}
    for share, keeps in ((1, True), (0.9, False)):
        mechanism = survey.plan(**{name: share * budget}).best
        assert all(half.max() <= 40 for half in known_errors(mechanism, 0.9).half) == keeps
