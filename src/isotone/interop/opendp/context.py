"""Constructors for OpenDP's ``Context``.

They take public parameters and leave the budget to the context.

``context.query().isotone_counts(P)`` lacks one number, the budget, which OpenDP then finds by search. The privacy map
needs no mechanism, so none is built until the query is released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np
from opendp import context as opendp_context

from isotone.counts.count_plan import count_mechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.curves import PrivateIsotonicRegression
from isotone.errors import InputError
from isotone.interop.opendp.columns import InputMetric, make_column
from isotone.interop.opendp.measurements import RowRules, counts_measurement, curve_measurement, make_table
from isotone.order import Poset
from isotone.privacy.checks import exact, frozen, plain_text, shown, whole_number
from isotone.privacy.guarantee import Guarantee, Neighbours, Number
from isotone.tables import TwoStageMechanism
from isotone.tables.thresholds import Emphasis


def register() -> None:
    """Make ``isotone_counts``, ``isotone_table``, ``isotone_curve`` and ``isotone_column`` known to ``Context``.

    Safe to call more than once. A search for the budget tries about a thousand numbers, which takes a second or two;
    ``release(bounds=(1e-3, 10.0))`` narrows it.
    """
    for make in (make_isotone_counts, make_isotone_table, make_isotone_curve, make_isotone_column):
        if make.__name__.removeprefix("make_") not in opendp_context.constructors:
            opendp_context.register(make)


def make_isotone_column(input_domain: Any, input_metric: Any, column: str) -> Any:
    """One column for OpenDP's own mechanisms. See :func:`make_column`."""
    return make_column(input_domain, input_metric, column)


def make_isotone_counts(
    input_domain: Any,
    input_metric: Any,
    P: Poset,
    budget: float,
    *,
    mechanism: str = "PosetMechanism",
    delta: Number | None = None,
    contributions: int = 1,
    max_size: int | None = None,
    rules: RowRules | None = None,
) -> Any:
    """Counts over ``P`` by the mechanism of this name.

    See :func:`make_counts`.

    ``budget`` is epsilon for pure mechanisms and where ``delta`` is given, and rho for Gaussian ones without it; as
    a float at its binary value.
    """
    amount, neighbours = _amount(budget), InputMetric.of(input_metric).neighbours
    mechanism = plain_text(mechanism, "mechanism")
    delta = None if delta is None else exact(delta, "delta")
    contributions = whole_number(contributions, "contributions")
    max_size = None if max_size is None else whole_number(max_size, "max_size")
    build = _builder(mechanism, P, P.elements, delta, neighbours, contributions, max_size)
    like = build(Fraction(1))
    return counts_measurement(
        input_domain,
        input_metric,
        like,
        _guarantee(like.guarantee, amount),
        lambda counts, _: build(amount).release(counts),
        rules,
    )


def make_isotone_table(
    input_domain: Any,
    input_metric: Any,
    categories: Sequence[str],
    budget: float,
    *,
    category: str,
    upper: int,
    contributions: int = 1,
    emphasis: Number | Emphasis | None = None,
) -> Any:
    """A table of counts by the two-stage mechanism.

    See :func:`make_table` and :class:`~isotone.tables.TwoStageMechanism`. ``budget`` is epsilon.
    """
    neighbours = InputMetric.of(input_metric).neighbours
    settings: dict[str, Any] = {"contributions": contributions, "neighbours": neighbours}
    mechanism = TwoStageMechanism(upper, _amount(budget), emphasis, **settings)
    return make_table(input_domain, input_metric, mechanism, category=category, categories=categories)


def make_isotone_curve(
    input_domain: Any,
    input_metric: Any,
    budget: float,
    *,
    x: str,
    y: str,
    bounds: Any,
    y_range: Any,
    contributions: int = 1,
    **options: Any,
) -> Any:
    """A monotone curve by private isotonic regression.

    See :func:`make_curve` and :class:`~isotone.curves.PrivateIsotonicRegression`. ``budget`` is epsilon, and
    ``options`` are the estimator's.
    """
    amount = _amount(budget)
    settings: dict[str, Any] = {
        "bounds": bounds,
        "y_range": y_range,
        "contributions": contributions,
        **options,
    }
    settings = {name: frozen(value) for name, value in settings.items()}

    def build(epsilon: Fraction) -> PrivateIsotonicRegression:
        neighbours = InputMetric.of(input_metric).neighbours
        return PrivateIsotonicRegression(Guarantee.pure(epsilon, neighbours=neighbours), **settings)

    trial = build(Fraction(1))
    return curve_measurement(
        input_domain, input_metric, trial, lambda: build(amount), x=x, y=y, epsilon=amount
    )


def _amount(budget: float) -> Fraction:
    """OpenDP's float at its binary value. What its compositors compare is then met exactly."""
    try:
        binary = isinstance(budget, (float, np.floating))
        amount = Fraction(float(budget)) if binary else exact(budget, "budget")
    except (ValueError, OverflowError):
        amount = Fraction(0)
    if amount <= 0:
        raise InputError(f"The budget must be a number above 0, not {shown(budget)}.")
    return amount


@lru_cache(maxsize=32)
def _builder(
    name: str,
    P: Poset,
    elements: tuple[Any, ...],
    delta: Number | None,
    neighbours: Neighbours,
    contributions: int,
    max_size: int | None,
) -> Callable[[Fraction], AdditiveMechanism]:
    """A function from a budget to the mechanism.

    The last mechanism is kept, so that a search over budgets builds hardly any.

    ``elements`` is part of the key: equal orders may list their elements in another sequence, and counts come in it.
    """
    kind = count_mechanism(name)
    if {"groups", "catch_all"} & set(signature(kind).parameters):
        raise InputError(
            f"{name} is for several groups, or for a public number of records, which no metric has. Use iso.Counts."
        )
    common: dict[str, Any] = {"neighbours": neighbours, "contributions": contributions}
    if max_size is not None:
        common["max_size"] = max_size

    @lru_cache(maxsize=2)
    def build(budget: Fraction) -> AdditiveMechanism:
        if delta is not None:
            return kind(P, epsilon=budget, delta=delta, **common)
        return kind(P, rho=budget, **common) if "Gaussian" in name else kind(P, epsilon=budget, **common)

    return build


def _guarantee(at_one: Guarantee, budget: Fraction) -> Guarantee:
    """The guarantee of the same mechanism with another budget."""
    return replace(at_one, rho=budget) if at_one.kind == "zcdp" else replace(at_one, epsilon=budget)
