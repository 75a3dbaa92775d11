"""A recipe is a mechanism as plain values, from which a stranger can rebuild what made a release.

A recipe is the name of the mechanism's class and the arguments of its constructor. Every mechanism keeps its
arguments as attributes of the same names, which is all that this needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from isotone.errors import InputError

if TYPE_CHECKING:
    from isotone.counts import PosetMechanism
    from isotone.order import Poset
    from isotone.tables.two_stage import TableMechanism

__all__ = [
    "rebuild_count_mechanism",
    "rebuild_curve_mechanism",
    "rebuild_table_mechanism",
    "recipe_of",
]


def recipe_of(mechanism: Any) -> dict[str, Any]:
    """The name and the arguments that make this mechanism again (the order apart)."""
    plain: dict[str, Any] = {"name": type(mechanism).__name__}
    for name in _arguments(type(mechanism)):
        value = _argument(mechanism, name)
        if value is not None:
            plain[name] = value
    return plain


def rebuild_count_mechanism(P: Poset, recipe: Mapping[str, Any]) -> Any:
    """The mechanism that a recipe describes, over the order ``P``."""
    from isotone.counts.count_plan import count_mechanism
    from isotone.counts.relaxation import Relaxation
    from isotone.order.bipartitions.counting import within_reach

    kind = count_mechanism(str(recipe.get("name")))
    given = _given(kind, recipe)
    if "relaxation" in given:
        given["relaxation"] = Relaxation.from_plain(given["relaxation"])
    elif "relaxation" in _arguments(kind) and P.height > 2 and not within_reach(P.canonical.order):
        # A release of such an order names its relaxation; to search for another could take hours.
        raise InputError("The order is beyond exact reach, and the recipe names no relaxation of it.")
    return kind(P, **given)


def rebuild_table_mechanism(recipe: Mapping[str, Any]) -> TableMechanism:
    """The mechanism of a table that a recipe describes."""
    from isotone.tables.two_stage import GaussianTableMechanism, TwoStageMechanism

    if recipe.get("name") == GaussianTableMechanism.__name__:
        return GaussianTableMechanism(**_given(GaussianTableMechanism, recipe))
    _require_named(recipe, TwoStageMechanism, "tables")
    return TwoStageMechanism(**_given(TwoStageMechanism, recipe))


def rebuild_curve_mechanism(recipe: Mapping[str, Any]) -> Any:
    """The checked public parameters of a curve's estimator, with the guarantee they make."""
    from isotone.curves import PrivateIsotonicRegression  # here: it brings scikit-learn

    _require_named(recipe, PrivateIsotonicRegression, "curves")
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in _given(PrivateIsotonicRegression, recipe).items()
    }
    return PrivateIsotonicRegression(**given).check()


def _require_named(recipe: Mapping[str, Any], kind: type[Any], what: str) -> None:
    if recipe.get("name") != kind.__name__:
        raise InputError(f"There is no mechanism {recipe.get('name')!r} for {what}.")


def _given(kind: type[Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in recipe.items() if key != "name"}
    unknown = sorted(set(given) - set(_arguments(kind)))
    if unknown:
        raise InputError(f"{kind.__name__} has no argument {unknown[0]!r}; the recipe is of another version.")
    return given


def _arguments(kind: type[Any]) -> list[str]:
    return [name for name in inspect.signature(kind).parameters if name not in ("P", "progress", "ledger")]


def _argument(mechanism: Any, name: str) -> Any:
    """An argument as plain values. Epsilon, delta and rho are those of the guarantee, and exact."""
    if name in ("epsilon", "delta", "rho"):
        number: Fraction = getattr(mechanism.guarantee, name)
        return str(number) if number else None
    if name == "relaxation":
        return _relaxation(mechanism)
    holder = mechanism if hasattr(mechanism, name) else mechanism.unit
    value = getattr(holder, name)
    return str(value) if isinstance(value, Fraction) else value


def _relaxation(mechanism: PosetMechanism) -> dict[str, Any] | None:
    """What a search found for an order beyond exact reach, so that nobody has to search again."""
    found = mechanism.sampler.described(mechanism.law_draws)
    return None if found is None else found.plain()
