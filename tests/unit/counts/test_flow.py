"""Half-widths of counts read in one direction."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.calls import called_back

from isotone.counts import PosetMechanism
from isotone.counts import knorm as k_norm
from isotone.linear import mechanism as law
from isotone.order import Poset

FORK = Poset("abc", [("b", "a"), ("c", "a")])
ORDERS = {"plain": FORK, "choices": Poset(FORK.elements, FORK.covers, [("exclusive", ["b", "c"])])}


@pytest.mark.parametrize("name", ORDERS)
def test_the_base_of_a_mechanism_does_not_call_back_for_half_widths(name: str) -> None:
    mechanism: Any = PosetMechanism(ORDERS[name], 1)

    def run() -> None:
        for kind in ("half_widths", "simultaneous_half_width"):
            getattr(mechanism, kind)(0.9)
            getattr(mechanism, f"unrounded_{kind}")(0.9)

    assert not [call for call in called_back(k_norm.__file__, run) if call.endswith("mechanism.py")]
    assert [call for call in called_back(law.__file__, run) if call.endswith("knorm.py")], "calls are seen"
