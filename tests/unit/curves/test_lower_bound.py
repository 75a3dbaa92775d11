"""The lower bound of Ghazi et al., Appendix B (Lemma 9), on private fits to unrelated elements.

A vector of ``m`` symbols out of ``D`` becomes one record an element. A mechanism that is epsilon-DP when a record is
replaced gives back each symbol with probability at most ``e^epsilon / D`` on average over all vectors, so at least the
share ``1 - e^epsilon / D`` is wrong. Elements are independent here, so Hoeffding's bound tells how many may be right.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support.estimators import grouped

from isotone.curves import PrivatePosetRegression
from isotone.order import Poset

M, D = 400, 8
FALSE_ALARM = 1e-8


def share_wrong(epsilon: str) -> float:
    """How many symbols of a random vector a fit does not give back."""
    P = Poset.antichain(range(M))
    symbols = np.random.default_rng(1).integers(0, D, M)
    fit = PrivatePosetRegression(
        P,
        **grouped(epsilon=epsilon, loss="absolute", levels=3, neighbours="replace"),
        y_range=(0, 1),
        public_n=M,
    ).fit(list(range(M)), (symbols + 0.5) / D)
    found = np.floor(np.asarray(fit.predict(list(range(M)))) * D)
    return float(np.mean(np.clip(found, 0, D - 1) != symbols))


@pytest.mark.parametrize("epsilon", ["0.2", "1", "1.38"])
def test_no_private_fit_gives_back_more_symbols_than_the_lower_bound_allows(epsilon: str) -> None:
    least = 1 - math.exp(float(epsilon)) / D
    assert least > 0.5 - 0.01  # epsilon is at most ln(D/2), as in the lemma
    slack = math.sqrt(math.log(1 / FALSE_ALARM) / (2 * M))
    assert share_wrong(epsilon) > least - slack


def test_with_a_budget_beyond_the_lemma_its_bound_is_undercut() -> None:
    assert share_wrong("20") < 0.25
