"""Count mechanisms that keep a distribution at the least count error.

If true counts are drawn from ``z``, so are the published ones.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from isotone.errors import InputError
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, one_of, positive, whole_number
from isotone.privacy.guarantee import Unit
from isotone.published.tables.lp import Solver, linear_program
from isotone.published.tables.row_by_row import Selector, heuristic
from isotone.tables.distribution.distribution import DistributionLike, is_simulated, probabilities_of
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.matrices.coupling import comonotone, deterministic
from isotone.tables.matrices.factored import FactoredMechanism
from isotone.tables.matrices.geometric import push_through
from isotone.tables.matrices.losses import Loss
from isotone.tables.matrices.soft_target import soft_target

__all__ = ["Constructor", "fixed_point", "truncated_geometric"]

Constructor = Literal["optimal", "heuristic", "lp"]


def fixed_point(
    z: DistributionLike,
    epsilon: Number,
    *,
    target: DistributionLike | None = None,
    price: Number | None = None,
    loss: Loss = "absolute",
    constructor: Constructor = "optimal",
    selector: Selector = "best",
    solver: Solver = "auto",
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
) -> CountMechanism:
    """A count mechanism that publishes counts with distribution ``z`` when the true ones have it.

    Guarantee: epsilon-DP for adding or removing one person, given ``z``; if ``z`` is private, the two add up
    (docs/theory/tables.md, section 3).

    Parameters
    ----------
    z
        The distribution of true counts, private or public.
    target
        Another distribution for the published counts; by default ``z`` itself.
    price
        A soft target: minimise count error + price · W1(published distribution, target) in place of meeting
        the target (section 4). 0 is the least count error of all; larger prices approach the fixed point.
    loss
        What ``price`` and the constructor ``lp`` minimise, and what chooses the best selector. The closed
        form is the optimum for all Monge losses at once and does not look at it.
    constructor
        ``optimal``: the closed form, O(n). ``heuristic``: Algorithm 1 of Kohli and Laskowski 2026. ``lp``: a
        linear program over scales, for losses that are not Monge (section 8).
    selector
        In which order the heuristic fills columns: ``max``, ``min``, ``sandwich``, or the ``best`` of them.
    solver
        How the linear program is started: ``simplex`` or ``interior-point`` on the full program in n² entries
        (small n), or ``column-generation``.

    >>> t = fixed_point([0.5, 0.3, 0.2], epsilon=1)
    >>> bool(t.fixed_point_error([0.5, 0.3, 0.2]) < 1e-15), round(t.count_error([0.5, 0.3, 0.2]), 6)
    (True, 0.434883)
    """
    p = probabilities_of(z)
    goal = p if target is None else probabilities_of(target, "target")
    if len(goal) != len(p):
        raise InputError(f"target has {len(goal)} probabilities and z has {len(p)}: they must be as many.")
    constructor = one_of(constructor, "constructor", get_args(Constructor))
    if price is not None and constructor != "optimal":
        raise InputError(f"A price goes with the constructor 'optimal' only, not with {constructor!r}.")
    unit, total = Unit(contributions, neighbours), positive(epsilon, "epsilon")
    simulated = is_simulated(z) or (target is not None and is_simulated(target))
    if constructor == "heuristic":
        return heuristic(p, goal, total, unit, selector, loss, simulated)
    if constructor == "lp":
        return linear_program(p, goal, total, unit, loss, solver, simulated)
    step = float(unit.per_step(total))
    if price is not None:
        goal = soft_target(p, step, goal, price, loss)
    remap = comonotone(push_through(p, step), goal)
    return FactoredMechanism(len(p), total, unit, simulated, remap=remap)


def truncated_geometric(
    n: int, epsilon: Number, *, contributions: int = 1, neighbours: Neighbours = "add-remove"
) -> FactoredMechanism:
    """Two-sided geometric noise, clamped to ``0..n-1`` (Ghosh, Roughgarden and Sundararajan 2012).

    Guarantee: epsilon-DP for adding or removing one person (docs/theory/tables.md, section 3, Lemma 0).

    >>> truncated_geometric(3, epsilon=1).matrix().round(3)
    array([[0.731, 0.17 , 0.099],
           [0.269, 0.462, 0.269],
           [0.099, 0.17 , 0.731]])
    """
    size = whole_number(n, "n")
    total, unit = positive(epsilon, "epsilon"), Unit(contributions, neighbours)
    return FactoredMechanism(size, total, unit, remap=deterministic(np.arange(size)))
