"""The order of records must not reach the statistic: with floats it does (Casacuberta, Shoemate, Vadhan, Wagaman 2022).

A sum of floats depends on the order of its terms, so that its sensitivity is larger than a proof says. Counts, tables
and curves are aggregated in whole numbers only. ``make audit`` does the same with ten million records.
"""

import numpy as np
import pytest
from tests.support.shuffles import people, shuffled, statistics


def test_the_attack_works_on_a_sum_of_floats():
    rng = np.random.default_rng(0)
    table = people(20_000, rng)
    sums = set()
    for _ in range(4):
        total = 0.0
        for value in shuffled(table, rng)["risk"].to_pylist():
            total += value
        sums.add(total)
    assert len(sums) > 1


@pytest.mark.parametrize("unit", [None, "person"])
def test_shuffled_records_have_one_statistic(unit):
    rng = np.random.default_rng(1)
    table = people(20_000, rng)
    first = statistics(table, unit)
    assert all(np.asarray(part).dtype == np.int64 for part in first)
    for _ in range(3):
        again = statistics(shuffled(table, rng), unit)
        for one, other in zip(first, again, strict=True):
            assert np.array_equal(one, other)
