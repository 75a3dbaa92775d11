"""Two processes, killed again and again, cannot spend more than the budget or release more than was charged."""

import signal
from fractions import Fraction

import numpy as np
from tests.support.ledger_worker import REFUSED, start

from isotone.release.ledger import Ledger


def test_two_processes_with_kills_cannot_exceed_the_budget(tmp_path):
    budget, each = Fraction(3), Fraction(1, 4)
    where, marker = str(tmp_path / "x.ledger"), tmp_path / "released"
    marker.touch()
    ledger = Ledger(where, epsilon=budget, dataset="x")
    rng, codes = np.random.default_rng(0), []
    while REFUSED not in codes[-2:]:
        # moments of a charge go to about thirty; a kill beyond the last leaves the process to finish
        pair = [start(where, "x", str(each), marker, int(rng.integers(1, 60))) for _ in range(2)]
        for process in pair:
            process.join()
        codes += [process.exitcode for process in pair]
        released, spent = len(marker.read_bytes()), ledger.spent().epsilon
        assert each * released <= spent <= budget
        assert len(codes) < 400, "the budget is never used up"
    assert -signal.SIGKILL in codes
    assert 0 in codes
    assert ledger.spent().epsilon == each * len(ledger.charges()) <= budget
    assert ledger.remaining().epsilon < each


def test_what_is_finished_was_charged_first(tmp_path):
    where, marker = str(tmp_path / "x.ledger"), tmp_path / "released"
    marker.touch()
    Ledger(where, epsilon=2, dataset="x")
    crowd = [start(where, "x", "0.3", marker, kill) for kill in (0, 9, 0, 25, 0, 0, 31, 0, 0, 0, 0, 0)]
    for process in crowd:
        process.join()
    ledger = Ledger(where, dataset="x")
    finished = [charge for charge in ledger.charges() if charge.finished]
    assert len(finished) <= len(marker.read_bytes()) <= len(ledger.charges()) <= 6
    assert ledger.spent().epsilon <= 2
