"""Public classes of categories, and the populations of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isotone.errors import InputError
from isotone.privacy.checks import exact, positive, require_list, shown
from isotone.release.kinds.parameters import public_names

__all__ = ["PER", "Strata", "checked_population", "checked_strata"]

Strata = tuple[tuple[str, tuple[int, ...]], ...]
"""The name of each class and the positions of its categories."""

PER = 100_000
"""Rates are cases for so many people."""


def checked_strata(strata: Any, names: Sequence[str]) -> Strata | None:
    """Strata as a list of class names, one for each category, or as a mapping from a class to its categories.

    They must follow from the public category alone. A class may be empty or hold one category.
    """
    if strata is None:
        return None
    if isinstance(strata, Mapping):
        return _of_mapping(strata, names)  # pyright: ignore[reportUnknownArgumentType]
    classes = public_names(strata, "strata")
    if len(classes) != len(names):
        raise InputError(
            f"strata must name the class of each of the {len(names):,} categories in their order, not of {len(classes):,}."
        )
    places: dict[str, list[int]] = {}
    for at, name in enumerate(classes):
        places.setdefault(name, []).append(at)
    return tuple((name, tuple(members)) for name, members in places.items())


def _of_mapping(strata: Mapping[Any, Any], names: Sequence[str]) -> Strata:
    place = {name: at for at, name in enumerate(names)}
    found: list[tuple[str, tuple[int, ...]]] = []
    seen: set[str] = set()
    classes = public_names(list(strata), "strata")
    if len(set(classes)) < len(classes):
        twice = next(name for name in classes if classes.count(name) > 1)
        raise InputError(f"strata has the class {twice!r} twice: 1 and '1' are one name. Name each once.")
    for name, held in zip(classes, strata.values(), strict=True):
        members = public_names(held, f"the class {name!r} of strata")
        for member in members:
            if member not in place:
                raise InputError(
                    f"strata has {shown(member)} in {name!r}, which is not one of the categories."
                )
            if member in seen:
                raise InputError(f"strata has {shown(member)} twice: each category belongs to one class.")
            seen.add(member)
        found.append((name, tuple(place[member] for member in members)))
    missing = [name for name in names if name not in seen]
    if missing:
        raise InputError(f"strata has no class for {shown(missing[0])}: each category belongs to one class.")
    return tuple(found)


def checked_population(population: Any, names: Sequence[str]) -> tuple[float, ...] | None:
    """The public population of each category, in their order or by their names, above 0."""
    if population is None:
        return None
    if isinstance(population, Mapping):
        by_name: dict[str, Any] = {str(name): value for name, value in population.items()}  # pyright: ignore
        missing = [name for name in names if name not in by_name]
        if missing:
            raise InputError(f"population has no entry for {shown(missing[0])}.")
        population = [by_name[name] for name in names]
    require_list(population, "population", "numbers")
    values = [_people(value) for value in population]
    if len(values) != len(names):
        raise InputError(
            f"population must have {len(names):,} entries, one for each category, not {len(values):,}."
        )
    return tuple(values)


def _people(value: Any) -> float:
    if exact(value, "each population") <= 0:
        raise InputError(
            f"each population must be above 0, not {shown(value)}: there is no rate without people."
        )
    return float(positive(value, "each population"))
