"""The framework as published: kept for the record, private, and no part of a release."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from isotone import noise
from isotone.errors import InputError
from isotone.published.tables.row_by_row import RowByRowMechanism, even_split_table

TABLE = np.random.default_rng(0).poisson(4, 300)


def test_its_stages_add_up_and_follow_the_published_rule() -> None:
    assert RowByRowMechanism(9, 1).stages()[0] == Fraction("0.1362")
    for steps in (1, 3):
        mechanism = RowByRowMechanism(9, steps, contributions=steps)
        assert sum(mechanism.stages()) == steps == mechanism.guarantee.epsilon
        assert mechanism.stages()[0] / steps == Fraction("0.1362")


def test_its_noise_is_drawn_at_the_rate_of_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[Fraction] = []
    monkeypatch.setattr(
        noise, "two_sided_geometrics", lambda rate, size: rates.append(rate) or np.zeros(size, np.int64)
    )
    mechanism = RowByRowMechanism(9, "0.5", "0.3", neighbours="replace")
    mechanism.release(TABLE)
    assert rates == [Fraction(15, 200), Fraction(35, 200)]


def test_it_publishes_counts_within_range_with_the_private_distribution() -> None:
    counts = np.repeat(np.arange(6), [300, 200, 150, 100, 50, 20])
    published = RowByRowMechanism(5, 8, "0.5").release(counts)
    assert published.min() >= 0
    assert published.max() <= 5
    np.testing.assert_allclose(np.bincount(published, minlength=6), np.bincount(counts), atol=80)


@pytest.mark.parametrize("split", [0, 1, -1, "1.5"])
def test_a_share_outside_is_refused_with_its_value(split: object) -> None:
    with pytest.raises(InputError, match=str(split)):
        RowByRowMechanism(9, 1, split)  # pyright: ignore[reportArgumentType]


def test_the_even_split_is_simulated_only() -> None:
    drawn = even_split_table(TABLE, 12, 50, np.random.default_rng(1))
    assert isinstance(drawn, noise.Simulated)
    np.testing.assert_array_equal(np.asarray(drawn), np.minimum(TABLE, 12))
