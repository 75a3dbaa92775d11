"""An audit of a kept guarantee: how often it cries wolf, and that its test has not seen what it learned from."""

import numpy as np
import pytest
from scipy.stats import binom

from isotone.audit import audit, black_box
from isotone.privacy.guarantee import Guarantee

ONE = Guarantee.pure(1)


def words(half, rng):
    """Half of the words are e times as likely on one side, and half on the other: the loss is exactly 1."""
    names = np.array([f"word {k}" for k in range(2 * half)])

    def draw(side, size):
        usual = rng.random(size) < np.e / (1 + np.e)
        return names[rng.integers(0, half, size) + half * (usual == bool(side))].tolist()

    return draw


@pytest.mark.parametrize(("half", "confidence"), [(1, 0.99), (30, 0.8)])
def test_kept_guarantees_are_called_broken_no_more_often_than_the_confidence_says(half, confidence):
    """1,000 audits exactly at ε, of the one best event or of one that many words can make up (false alarm 1e-6)."""
    rng = np.random.default_rng(1)
    alarms = sum(
        audit(words(half, rng), 0, 1, 300, claimed=ONE, confidence=confidence, batch=True).broken
        for _ in range(1_000)
    )
    assert alarms <= binom.ppf(1 - 1e-6, 1_000, 1 - confidence)


def test_the_half_that_tests_is_untouched_by_learning(monkeypatch):
    """Every draw has a number of its own; the numbers that each stage saw are compared."""
    seen = {}

    def spy(name, place):
        true = getattr(black_box, name)

        def spied(*arguments):
            sides = arguments[place]
            seen[name] = {*sides.first.ravel(), *sides.second.ravel()}
            return true(*arguments)

        monkeypatch.setattr(black_box, name, spied)

    spy("learn_scores", 0)
    spy("_best_event", 1)
    spy("_test", 1)
    numbers = iter(np.arange(4_000.0).reshape(2, 2_000))
    audit(lambda side, size: next(numbers), 0, 1, 2_000, claimed=ONE, batch=True)
    assert [len(seen[name]) for name in ("learn_scores", "_best_event", "_test")] == [1_000, 1_000, 2_000]
    assert len(seen["learn_scores"] | seen["_best_event"] | seen["_test"]) == 4_000
