"""Compiled kernels, of which nothing is compiled or imported before the first call.

A function marked with :func:`kernel` stays plain Python until it is called; then numba is imported and the
function and the kernels that it calls are compiled. Compiled code is kept in a directory named after a
fingerprint of everything it was built from: the code of the kernel and of the kernels it calls, however
deep, and the constants that they use. So a change anywhere gives a new directory, and nothing stale is used.

``plain`` is the same code, run by Python. A kernel that says how many steps it takes runs plainly where they
are few, so that small problems never compile. The number of steps must follow from public numbers, such as the
elements of an order or the cells of a table, and never from the rows of private data.

numba is the extra ``fast``. Without it, or if it does not fit the numpy there is, the plain code runs, which has the same law, up to ``MOST_PLAIN_STEPS``. What takes
more steps, or does not say how many, is refused; but not within :func:`committed`, where a release has been paid for.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from isotone.errors import MissingExtraError
from isotone.lazy import install

# Names for what kernels work with. Indexing an array gives a machine scalar in compiled code, which numpy's
# own annotations cannot say: to a type checker they are Any.
Flag = Any  # bool
Int = Any  # int64
Word = Any  # uint64
Real = Any  # float64
Ints = Any  # array of int64
Words = Any  # array of uint64
Floats = Any  # array of float64

P = ParamSpec("P")
R = TypeVar("R")

PLAIN_STEPS = 1 << 14
"""Steps that Python takes within a few hundredths of a second."""

MOST_PLAIN_STEPS = 1 << 18
"""Steps that Python takes within a second; without numba there are no more."""

log = logging.getLogger(__name__)

_announced = False
_committed: ContextVar[bool] = ContextVar("committed", default=False)


@cache
def has_compiler() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


def can_compile() -> bool:
    """Whether numba is installed and can be imported: one for another numpy raises an error."""
    if not has_compiler():
        return False
    try:
        import_module("numba")
    except ImportError:
        return False
    return True


@contextmanager
def committed() -> Generator[None]:
    """Refuse nothing for its size within, since the charge has been made and a refusal could tell something of the data."""
    token = _committed.set(True)
    try:
        yield
    finally:
        _committed.reset(token)


class Kernel(Generic[P, R]):
    """A function that is compiled when it is first called."""

    def __init__(
        self, function: Callable[P, R], options: dict[str, Any], steps: Callable[P, int] | None = None
    ) -> None:
        """Keep the function as it is. ``options`` are numba's, and ``leaf``."""
        if not isinstance(function, FunctionType):
            raise TypeError(f"A kernel is made of a function, not of {function!r}.")
        self.function, self.options, self.steps = function, options, steps
        self.name = function.__name__.strip("_")
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the plain code if it takes few steps, and otherwise the compiled code."""
        few = self.steps is not None and self.steps(*args, **kwargs) <= most_steps()
        if few:
            return self.plain(*args, **kwargs)
        try:
            return self.compiled(*args, **kwargs)
        except (ImportError, AttributeError):
            # what is kept names a module or a type of an argument that has moved since, as after an update
            self._forget()
            return self.compiled(*args, **kwargs)

    def _forget(self) -> None:
        """Throw away the compiled code, in memory and on disk, and that of the kernels it calls."""
        for called in _used(self.function).values():
            if isinstance(called, Kernel):
                called._forget()
        self.__dict__.pop("_machine_code", None)
        directory = cache_directory(self)
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def plain(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same code, run by Python, with the kernels that it calls, as silent as if it were compiled."""
        with np.errstate(all="ignore"):
            return self._interpreted(*args, **kwargs)

    @cached_property
    def _interpreted(self) -> Callable[P, R]:
        return _rebound(self.function, lambda called: called._interpreted)

    @property
    def compiled(self) -> Callable[P, R]:
        """The compiled code. Nothing is compiled before it is called with arguments of some type."""
        if can_compile():
            return self._machine_code
        if _committed.get():
            return self.plain
        raise MissingExtraError(
            f"A problem of this size needs compiled code: {install('fast')}. Nothing was charged."
        )

    @cached_property
    def _machine_code(self) -> Callable[P, R]:
        directory = cache_directory(self)
        if directory is not None and not directory.exists():
            _announce(self.name)
        return _compile(_rebound(self.function, lambda called: called._machine_code), self.options, directory)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything the compiled code is made of."""
        parts: list[Any] = [sys.version_info[:2], sorted(self.options.items()), _code(self.function.__code__)]
        for name, value in sorted(_used(self.function).items()):
            parts.append((name, value.fingerprint if isinstance(value, Kernel) else _constant(value)))
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def most_steps() -> int:
    """The most steps that plain code takes."""
    return PLAIN_STEPS if has_compiler() else MOST_PLAIN_STEPS


@overload
def kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...


@overload
def kernel(
    *, steps: Callable[..., int] | None = None, **options: Any
) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...


def kernel(
    function: Callable[P, R] | None = None, /, *, steps: Callable[..., int] | None = None, **options: Any
) -> Any:
    """Mark a function as a kernel.

    ``steps`` tells from the arguments about how often the innermost loop runs, from public numbers only; up
    to ``PLAIN_STEPS`` nothing is compiled. Other options are those of numba's ``njit``. ``leaf=True`` is for code that allocates nothing, not even views:
    it does without counting references, which would take half of its time.

    >>> @kernel
    ... def double(x: float) -> float:
    ...     return 2 * x
    >>> double.plain(4)
    8
    """
    if function is not None:
        return Kernel(function, {})
    return lambda function: Kernel(function, options, steps)


def cache_directory(of: Kernel[..., Any]) -> Path | None:
    """Where the compiled code of a kernel is kept, or None if there is no such place."""
    for base in _bases():
        if os.access(next(place for place in (base, *base.absolute().parents) if place.exists()), os.W_OK):
            return base / f"isotone-{of.name}-{of.fingerprint}"
    return None


def _bases() -> list[Path]:
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return [Path(folder)]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [Path(__file__).parent / "__pycache__", home, home.parent]


def _announce(name: str) -> None:
    """Say what is compiled. The first time in a process it is a warning, which Python shows on stderr by itself."""
    global _announced
    level = logging.INFO if _announced else logging.WARNING
    log.log(level, "compiling %s: this takes some seconds, once, and is kept", name)
    _announced = True


def _compile(function: FunctionType, options: dict[str, Any], directory: Path | None) -> Any:
    import numba  # here and nowhere else: it takes as long as everything else together
    from numba.core import config as settings
    from numba.core.options import DefaultOptions

    config: Any = settings

    chosen = {name: value for name, value in options.items() if name != "leaf"}
    if options.get("leaf"):
        chosen["error_model"] = "numpy"
        if hasattr(DefaultOptions, "_nrt"):
            chosen["_nrt"] = False
    if directory is None:
        return numba.njit(**chosen)(function)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(directory)  # read when the dispatcher is made; other users of numba keep theirs
    try:
        return numba.njit(cache=True, **chosen)(function)
    finally:
        config.CACHE_DIR = before


def _rebound(function: FunctionType, replace: Callable[[Kernel[..., Any]], Any]) -> Any:
    """A copy of the function in which the kernels it calls are replaced."""
    names = dict(function.__globals__)
    for name, value in _used(function).items():
        if isinstance(value, Kernel):
            names[name] = replace(value)
    copy = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return update_wrapper(copy, function)


def _used(function: FunctionType) -> dict[str, Any]:
    """The globals that a function uses."""
    return {
        name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__
    }


def _names(code: CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _code(code: CodeType) -> tuple[Any, ...]:
    consts = [_code(const) if isinstance(const, CodeType) else const for const in code.co_consts]
    return code.co_code, consts, code.co_names, code.co_varnames


def _constant(value: Any) -> Any:
    """What a global means to compiled code. Arrays and numbers count by value, modules and functions by name."""
    if isinstance(value, ModuleType) and value.__name__.startswith("isotone."):
        raise TypeError(f"A kernel must import what it uses of {value.__name__} by name, so that it is seen.")
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or repr(value)
