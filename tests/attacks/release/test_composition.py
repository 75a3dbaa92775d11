"""Two processes, killed again and again, cannot spend more than the budget or release more than was charged."""

import signal

from tests.support.composition import spend_with_kills
from tests.support.ledger_worker import start

from isotone.ledger.ledger import Ledger


def test_two_processes_with_kills_cannot_exceed_the_budget(tmp_path):
    codes = spend_with_kills(tmp_path, seed=0)
    assert -signal.SIGKILL in codes
    assert 0 in codes


def test_what_is_finished_was_charged_first(tmp_path):
    where, marker = str(tmp_path / "x.ledger"), tmp_path / "released"
    marker.touch()
    Ledger(where, epsilon=2, dataset="x").create()
    crowd = [start(where, "x", "0.3", marker, kill) for kill in (0, 9, 0, 25, 0, 0, 31, 0, 0, 0, 0, 0)]
    for process in crowd:
        process.join()
    ledger = Ledger(where, dataset="x")
    finished = [charge for charge in ledger.charges() if charge.finished]
    assert len(finished) <= len(marker.read_bytes()) <= len(ledger.charges()) <= 6
    assert ledger.spent().epsilon <= 2
