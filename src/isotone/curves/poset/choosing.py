"""Which mechanism fits values on an order. A table of public conditions and classes, as for chains."""

from __future__ import annotations

from dataclasses import replace

from isotone.curves.curve import MechanismRule
from isotone.curves.poset.baseline import PosetBaseline
from isotone.curves.poset.measured_elements import MeasuredElements, many_records
from isotone.curves.poset.problem import PosetProblem
from isotone.curves.poset.tree import MeasuredPosetTree, OrderMechanism, PosetTree

__all__ = ["TABLE", "mechanism_for", "rule_for"]


def _threshold_tree(problem: PosetProblem) -> OrderMechanism:
    from isotone.published.curves.poset_threshold import PosetThresholdTree

    return PosetThresholdTree.of(problem)


Row = MechanismRule[PosetProblem, OrderMechanism]

TABLE = (
    Row("threshold", ("threshold",), lambda problem: True, _threshold_tree),
    Row("baseline", ("baseline",), lambda problem: True, PosetBaseline.of),
    Row("all elements", ("auto",), many_records, MeasuredElements.of),
    Row("coupling", ("coupling",), lambda problem: problem.loss.by_means, MeasuredPosetTree.of),
    Row("coupling", ("coupling",), lambda problem: True, PosetTree.of),
    Row("additive", ("additive", "auto"), lambda problem: problem.loss.by_means, MeasuredPosetTree.of),
    Row("additive", ("additive", "auto"), lambda problem: True, PosetTree.of),
)


def rule_for(problem: PosetProblem) -> Row:
    """The first row of the table that applies."""
    return next(row for row in TABLE if problem.method in row.methods and row.when(problem))


def mechanism_for(problem: PosetProblem) -> OrderMechanism:
    """The mechanism for a problem, for rising values. Falling ones rise with ``y`` upside down."""
    seen = problem if problem.increasing else replace(problem, loss=problem.loss.flipped())
    return rule_for(seen).build(seen)
