"""Plans of counts and breakdowns from one flat list of parameters, which tests vary."""

from __future__ import annotations

from typing import Any

from isotone.counts.breakdown import read_breakdown
from isotone.counts.count_plan import CountPlan, Setting
from isotone.counts.count_plan import plan as plan_of
from isotone.counts.margins import MarginsPlan, margins_mechanism, plan_margins
from isotone.mechanism import no_progress
from isotone.order import Poset
from isotone.privacy.guarantee import Unit

__all__ = ["plan", "plan_breakdown"]


def plan(
    P: Poset,
    epsilon: Any = None,
    delta: Any = 0,
    rho: Any = None,
    neighbours: Any = "add-remove",
    **given: Any,
) -> CountPlan:
    """The plan of counts over an order. ``records`` and ``catch_all`` fix the root."""
    progress = given.pop("progress", no_progress)
    fixed = {name: given.pop(name) for name in ("records", "catch_all") if name in given}
    setting = Setting(P, **given, fixed=fixed or None)
    return plan_of(setting, Unit(neighbours=neighbours).guarantee(epsilon, delta, rho), progress)


def plan_breakdown(P: Poset, by: Any, groups: Any, margins: Any = None, **budget: Any) -> MarginsPlan:
    """The plan of a breakdown."""
    breakdown = read_breakdown(by, groups, margins, "drop")
    return plan_margins(margins_mechanism(Setting(P), breakdown, Unit().guarantee(**budget)))
