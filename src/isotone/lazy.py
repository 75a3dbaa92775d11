"""Names of a package that are imported when they are first asked for.

A package lists where its public names live; ``import isotone`` then costs no more than reading the lists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names live in the modules ``homes``.

    A home may also be the package of a module of that name. What was found stays in the package.

    >>> find = lazy_names("isotone.order", {"Poset": "isotone.order.poset"})
    >>> find("Poset").__name__
    'Poset'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(homes[name])
        found = getattr(home, name) if hasattr(home, name) else import_module(f"{homes[name]}.{name}")
        setattr(sys.modules[package], name, found)
        return found

    return find
