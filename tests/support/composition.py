"""Two processes that spend from one ledger and are killed again and again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from isotone.ledger.ledger import Ledger
from tests.support.ledger_worker import REFUSED, start


def spend_with_kills(
    folder: Path, seed: int, budget: Fraction = Fraction(3), each: Fraction = Fraction(1, 4)
) -> list[int]:
    """Pairs of processes until one is refused; the exit codes. Nothing exceeds the budget at any time."""
    where, marker = str(folder / "x.ledger"), folder / "released"
    marker.touch()
    ledger = Ledger(where, epsilon=budget, dataset="x").create()
    rng, codes = np.random.default_rng(seed), list[int]()
    while REFUSED not in codes[-2:]:
        # a kill beyond the last moment of a charge leaves the process to finish
        pair = [start(where, "x", str(each), marker, int(rng.integers(1, 240))) for _ in range(2)]
        for process in pair:
            process.join()
        codes += [process.exitcode or 0 for process in pair]
        released, spent = len(marker.read_bytes()), ledger.spent().epsilon
        assert each * released <= spent <= budget, "more was released than charged, or charged than there is"
        assert len(codes) < 400, "the budget is never used up"
    assert ledger.spent().epsilon == each * len(ledger.charges()) <= budget
    assert ledger.remaining().epsilon < each
    return codes
