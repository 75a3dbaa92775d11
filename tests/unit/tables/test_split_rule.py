"""Rules for the share of ε that goes to the distribution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from isotone.published.tables.row_by_row import PUBLISHED, WHOLE_TABLE, Rule


@pytest.mark.parametrize(("epsilon", "share"), [("0.1", 0.506), ("0.48", 0.240), ("1", 0.136), ("5", 0.106)])
def test_the_published_rule_has_the_published_values(epsilon: str, share: float) -> None:
    assert float(PUBLISHED(Fraction(epsilon))) == pytest.approx(share, abs=6e-4)


@pytest.mark.parametrize("rule", [PUBLISHED, WHOLE_TABLE, Rule(0.0, 0.0, 1.0), Rule(1.0, 1.0, 0.0)])
def test_a_share_is_exact_and_strictly_between_zero_and_one(rule: Rule) -> None:
    for epsilon in (Fraction(1, 10**6), Fraction(1), Fraction(10**6)):
        share = rule(epsilon)
        assert 0 < share < 1
        assert 10_000 % share.denominator == 0


def test_shares_fall_with_epsilon() -> None:
    shares = [WHOLE_TABLE(Fraction(e, 10)) for e in range(1, 60)]
    assert shares == sorted(shares, reverse=True)


def test_a_rule_is_found_again_from_its_own_shares() -> None:
    epsilons = np.geomspace(0.1, 5, 11)
    found = Rule.fitted(epsilons.tolist(), [PUBLISHED.share(e) for e in epsilons])
    assert (found.floor, found.rise, found.decay) == pytest.approx((0.106, 0.533, 2.87), abs=1e-4)


def test_the_published_rule_follows_from_the_published_table_of_best_shares() -> None:
    epsilons = [0.10, 0.15, 0.22, 0.32, 0.48, 0.71, 1.05, 1.55, 2.29, 3.38, 5.00]
    best = [
        [0.8, 0.8, 0.4, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1],
        [0.4, 0.3, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1],
        [0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1],
        [0.7, 0.8, 0.5, 0.4, 0.3, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1],
        [0.3, 0.3, 0.3, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1],
        [0.4, 0.3, 0.3, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1],
    ]
    found = Rule.fitted(epsilons * 6, [share for row in best for share in row])
    assert (found.floor, found.rise, found.decay) == pytest.approx((0.106, 0.533, 2.87), rel=0.01)
