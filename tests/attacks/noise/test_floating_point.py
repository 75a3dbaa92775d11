"""The public audit convicts floating-point noise by its binary places; noise in whole numbers passes.

The sum of a count and a textbook Laplace variable ends at a binary place that depends on the count (Mironov 2012; Haney,
Desfontaines, Hartman, Shrestha and Hay 2022): few draws prove a loss far above ε.
"""

import numpy as np
import pytest

from isotone.audit import audit
from isotone.counts import DiscreteLaplaceMechanism, LaplaceMechanism, PosetMechanism
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

P = Poset.chain("ab")
DRAWS = 1_500


@pytest.mark.parametrize(
    "noise",
    [
        lambda rng, size: rng.laplace(size=size),
        lambda rng, size: rng.choice([-1.0, 1.0], size) * -np.log(1 - rng.random(size)),
        lambda rng, size: rng.standard_exponential(size) - rng.standard_exponential(size),
    ],
    ids=["numpy", "inverse", "difference"],
)
def test_textbook_laplace_noise_is_convicted_by_its_binary_places(noise):
    rng = np.random.default_rng(0)
    found = audit(
        lambda x, size: x + noise(rng, size), 0.0, 1.0, DRAWS, claimed=Guarantee.pure(1), batch=True
    )
    assert found.bound > 2
    assert "binary" in found.event


@pytest.mark.parametrize("kind", [PosetMechanism, LaplaceMechanism, DiscreteLaplaceMechanism])
def test_noise_in_whole_numbers_passes(kind):
    """Cryptographic bits: a kept guarantee is called broken with probability below 1e-6."""
    found = audit(kind(P, epsilon=1), [0, 0], [1, 1], DRAWS, confidence=1 - 1e-6)
    assert not found.broken
