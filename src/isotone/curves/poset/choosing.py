"""Which mechanism fits values on an order. A table of public conditions and classes, as for chains."""

from __future__ import annotations

from dataclasses import replace

from isotone.curves.poset.baseline import PosetBaseline
from isotone.curves.poset.measured_elements import MeasuredElements, many_records
from isotone.curves.poset.problem import PosetProblem
from isotone.curves.poset.tree import MeasuredPosetTree, OrderMechanism, PosetTree
from isotone.curves.problem import MechanismRule, choose

__all__ = ["TABLE", "mechanism_for", "rule_for"]


def _threshold_tree(problem: PosetProblem) -> OrderMechanism:
    from isotone.published.curves.poset_threshold import PosetThresholdTree

    return PosetThresholdTree.of(problem)


def _all_elements(problem: PosetProblem) -> bool:
    return problem.loss.by_means and problem.levels is None and many_records(problem)


TABLE: tuple[MechanismRule[PosetProblem, OrderMechanism], ...] = (
    MechanismRule("threshold", ("threshold",), lambda problem: True, _threshold_tree),
    MechanismRule("baseline", ("baseline",), lambda problem: True, PosetBaseline.of),
    MechanismRule("all elements", ("auto",), _all_elements, MeasuredElements.of),
    MechanismRule("coupling", ("coupling",), lambda problem: problem.loss.by_means, MeasuredPosetTree.of),
    MechanismRule("coupling", ("coupling",), lambda problem: True, PosetTree.of),
    MechanismRule(
        "additive", ("additive", "auto"), lambda problem: problem.loss.by_means, MeasuredPosetTree.of
    ),
    MechanismRule("additive", ("additive", "auto"), lambda problem: True, PosetTree.of),
)


def rule_for(problem: PosetProblem) -> MechanismRule[PosetProblem, OrderMechanism]:
    """The row of the table for a problem."""
    return choose(TABLE, problem)


def mechanism_for(problem: PosetProblem) -> OrderMechanism:
    """The mechanism for a problem, for rising values. Falling ones rise with ``y`` upside down."""
    seen = problem if problem.increasing else replace(problem, loss=problem.loss.flipped())
    return rule_for(seen).build(seen)
