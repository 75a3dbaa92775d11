import numpy as np
import pytest
from tests.support.filters import changes
from tests.support.posets import all_posets

from isotone.counts.independent import LaplaceMechanism
from isotone.counts.mechanism import Sensitivity
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import REPLACING, Unit

REPLACED = Unit(neighbours=REPLACING)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_no_unit_moves_the_counts_further_than_the_sensitivity(n, neighbours):
    for P in all_posets(n):
        for contributions in (1, 2):
            for max_size in (None, *range(1, n + 1)):
                reach = Sensitivity.of(P, Unit(contributions, neighbours), max_size)
                moves = np.array(sorted(changes(P, neighbours, contributions, max_size)))
                assert np.abs(moves).sum(axis=1).max() <= reach.l1
                assert (moves**2).sum(axis=1).max() <= reach.l2_squared
                assert np.abs(moves).max() <= reach.linf


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_under_add_remove_the_sensitivity_is_attained(n):
    for P in all_posets(n):
        for max_size in (None, *range(1, n + 1)):
            reach = Sensitivity.of(P, Unit(2), max_size)
            moves = np.array(sorted(changes(P, "add-remove", 2, max_size)))
            assert np.abs(moves).sum(axis=1).max() == reach.l1
            assert (moves**2).sum(axis=1).max() == reach.l2_squared
            assert np.abs(moves).max() == reach.linf


def test_replacing_a_record_moves_no_more_counts_than_there_are():
    P = Poset.antichain(range(6))
    assert Sensitivity.of(P, REPLACED).coordinates == 6
    assert Sensitivity.of(P, REPLACED, max_size=2).coordinates == 4
    assert Sensitivity.of(P, REPLACED, max_size=5).coordinates == 6


def test_on_a_chain_replacing_moves_no_more_than_removing():
    assert Sensitivity.of(Poset.chain(range(6)), REPLACED, max_size=3).coordinates == 3


def test_below_a_common_top_two_records_share_it():
    star = Poset.series(Poset.antichain("abcde"), Poset.chain(["top"]))
    assert Sensitivity.of(star, REPLACED, max_size=3).coordinates == 4


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"contributions": 0}, "contributions must be a whole number"),
        ({"contributions": 1.5}, "contributions must be a whole number"),
        ({"max_size": 0}, "max_size must be a whole number"),
        ({"max_size": True}, "max_size must be a whole number"),
        ({"neighbours": "swap", "max_size": 1}, "neighbours must be"),
        ({"neighbours": "swap"}, "neighbours must be"),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting, message):
    with pytest.raises(InputError, match=message):
        LaplaceMechanism(Poset.chain("ab"), 1, **setting)
