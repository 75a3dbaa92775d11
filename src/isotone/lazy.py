"""Names and libraries that are imported when they are first asked for.

A package lists where its public names live; ``import isotone`` then costs no more than reading the lists.
"""

from __future__ import annotations

import ast
import pkgutil
import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from types import ModuleType
from typing import TYPE_CHECKING, Any

from isotone.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def from_extra(module: str, extra: str) -> Any:
    """A module of a library that is not part of every installation, or an error that says how to get it.

    >>> from_extra("no_such_library.inner", "plot")
    Traceback (most recent call last):
    isotone.errors.MissingExtraError: This needs the library no_such_library: pip install 'matplotlib>=3.8'
    """
    try:
        return import_module(module)
    except ImportError:
        library = module.split(".")[0]
        raise MissingExtraError(f"This needs the library {library}: {install(extra, library)}") from None


def install(extra: str, library: str = "") -> str:
    """The command that installs what an extra brings, or one library of it, wherever isotone itself came from: a clone or a wheel.

    >>> install("networkx")
    "pip install 'networkx>=3.2'"
    """
    mark = re.compile(f"extra == ['\"]{extra}['\"]")
    try:
        required = [text.split(";")[0].strip() for text in requires("isotone") or () if mark.search(text)]
    except PackageNotFoundError:  # a folder with the source, which was not installed
        required = [f".[{extra}]"]
    alone = [text for text in required if library and text.startswith(library)]
    return " ".join(["pip install", *(f"'{text}'" for text in alone or required or [library])])


def new_axes(**options: Any) -> Axes:
    """The axes of a new figure of matplotlib, which the extra ``plot`` brings."""
    return from_extra("matplotlib.pyplot", "plot").subplots(**options)[1]


def public_names(package: str) -> tuple[list[str], Callable[[str], Any]]:
    """The ``__all__`` and the ``__getattr__`` of a package, whose names are listed once, in its ``__init__.pyi``.

    Type checkers read the list there, which has lines ``from module import Name as Name``. What was found stays in the package.

    >>> names, find = public_names("isotone.order")
    >>> "Poset" in names, find("Poset").__name__
    (True, 'Poset')
    """
    homes: dict[str, str] = {}
    for node in ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"").body:
        if isinstance(node, ast.ImportFrom) and node.module:
            homes |= dict.fromkeys((alias.name for alias in node.names), node.module)

    class Package(ModuleType):
        """A package whose function keeps its name beside a file of the same name, whoever imports that file first."""

        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and homes.get(name) == value.__name__:
                value = getattr(value, name, value)
            super().__setattr__(name, value)

    sys.modules[package].__class__ = Package

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(homes[name])
        result = getattr(home, name) if hasattr(home, name) else import_module(f"{homes[name]}.{name}")
        setattr(sys.modules[package], name, result)
        return result

    return sorted(homes), find
