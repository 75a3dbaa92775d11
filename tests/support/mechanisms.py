"""Every mechanism that can release, found in the packages and not in a list."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["concrete_classes", "functions", "mechanisms"]


@cache
def concrete_classes(package: str) -> tuple[type, ...]:
    """All classes that a package defines, in all of its modules, and that have nothing abstract left."""
    found: dict[str, type] = {}
    for name in _modules(package):
        for _, member in inspect.getmembers(import_module(name), inspect.isclass):
            if member.__module__ == name and not inspect.isabstract(member):
                found[f"{name}.{member.__qualname__}"] = member
    return tuple(found[name] for name in sorted(found))


def mechanisms(package: str, *members: str) -> dict[str, type[Any]]:
    """The classes of a package that can release, by name: they have ``guarantee`` and all of these members.

    What has no way to be built is a part of others.
    """
    return {
        kind.__name__: kind
        for kind in concrete_classes(package)
        if all(_has(kind, name) for name in ("guarantee", *members)) and getattr(kind, "can_release", True)
        if not getattr(kind, "_is_protocol", False) and kind.__init__ is not object.__init__
    }


def _has(kind: type, name: str) -> bool:
    return hasattr(kind, name) or name in getattr(kind, "__dataclass_fields__", {})


def functions(package: str) -> list[Callable[..., Any]]:
    """All functions of a package, and all methods of its classes, abstract ones, those of the class itself and those that keep results included."""
    found: list[Callable[..., Any]] = []
    for name in _modules(package):
        for _, member in inspect.getmembers(import_module(name)):
            if getattr(member, "__module__", None) != name:
                continue
            own = vars(member).values() if inspect.isclass(member) else [member]
            plain = (getattr(one, "__func__", getattr(one, "__wrapped__", one)) for one in own)
            found += [one for one in plain if inspect.isfunction(one)]
    return found


def _modules(package: str) -> list[str]:
    root = import_module(package)
    paths = getattr(root, "__path__", ())  # none where a package is one file
    return [package, *(module.name for module in pkgutil.walk_packages(paths, package + "."))]
