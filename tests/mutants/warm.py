"""Tests that are collected once, in a process that then forks for each fault.

The fork gets the fault in two ways: in the copy's file, for modules that are loaded later and for processes that tests start, and in memory.
There a function gets the new code, and a constant of a module its new value, in whatever module it was imported by name. A fault in a class,
a decorator or a default needs a process that loads everything anew (``run_tests``), as does one that survives: what a file of tests computed
when it was loaded was computed without the fault.
"""

from __future__ import annotations
import __future__

import ast
import functools
import gc
import importlib
import inspect
import itertools
import json
import mmap
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutants.faults import Fault
from tests.mutants.trial import Trial, enter, plant, verdict_of

__all__ = ["Warm", "changed_functions", "collected", "ended"]

LAZY = (
    "duckdb",
    "ibis",
    "matplotlib.pyplot",
    "narwhals",
    "polars",
    "pyarrow.parquet",
    "sklearn.linear_model",
)
"""Libraries that the package loads when it needs them."""

_FORK = "a fork"
"""In place of the name of a test, where the fork itself failed."""

STUCK = 120
"""Seconds by the clock in which a fork does not compute, until it is taken for stuck."""


def _nothing() -> None: ...


def collected(
    copy: Path, files: Sequence[str], work: Callable[[Warm], None], prepare: Callable[[], None] = _nothing
) -> None:
    """Collect the tests of these files in a copy, and let ``work`` have them. It prints to the streams there were before.

    ``prepare`` is called before anything of the package is loaded.
    """
    shown = os.dup(1)

    class Loop:
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: Any) -> bool:
            os.dup2(shown, 1)
            work(Warm(copy, session.items))
            return True

    with tempfile.TemporaryFile() as output:
        enter(copy, output.fileno())
        prepare()
        _load_all(copy)
        options = ["-q", "-s", "-m", "not services", "-p", "no:xdist", "--continue-on-collection-errors"]
        pytest.main([*options, *files], plugins=[Loop()])


def _load_all(copy: Path) -> None:
    """Load the package, what it loads when it is asked for, and the compiler: forks need not do so again."""
    source = copy / "src"
    modules = [path.relative_to(source).with_suffix("").parts for path in source.glob("isotone/**/*.py")]
    names = [".".join(parts).removesuffix(".__init__") for parts in modules if parts[-1] != "__main__"]
    for name in [*LAZY, *sorted(names)]:
        with suppress(ImportError):
            importlib.import_module(name)
    with suppress(ImportError):
        importlib.import_module("numba").njit(_nothing)()


class Warm:
    """The tests that were collected, and the functions of the package that are in memory."""

    def __init__(self, copy: Path, items: Sequence[Any]) -> None:
        self.copy = copy
        self.items = {item.nodeid: item for item in items}
        self.files: dict[str, list[Any]] = defaultdict(list)
        for item in items:
            self.files[item.nodeid.partition("::")[0]].append(item)
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        self.caches: list[Any] = []
        self.kernels: list[Any] = []
        gc.unfreeze()
        for thing in gc.get_objects():
            kind = type(thing)  # of weak references that are dead, isinstance raises an error
            if kind is FunctionType:
                self.functions[_key(thing.__code__)].append(thing)
            elif kind is functools._lru_cache_wrapper:
                if (thing.__module__ or "").partition(".")[0] in ("isotone", "tests"):
                    self.caches.append(thing)
            elif kind.__name__ == "Kernel" and kind.__module__ == "isotone.kernels":
                self.kernels.append(thing)
        gc.freeze()

    def chosen(self, tests: Iterable[str]) -> list[Any]:
        """The items of these names, files or functions, each once. Of a file the first case of every test comes first."""
        chosen: dict[str, Any] = {}
        for test in tests:
            if test in self.items:
                chosen[test] = self.items[test]
                continue
            own = [item for item in self.files[test.partition("::")[0]] if _is_of(item.nodeid, test)]
            first = {item.nodeid.partition("[")[0]: item for item in reversed(own)}
            chosen |= {
                item.nodeid: item for item in (*reversed(first.values()), *own) if item.nodeid not in chosen
            }
        return list(chosen.values())

    def run(
        self, items: Sequence[Any], fault: Fault | None, seconds: float, limits: Mapping[str, float]
    ) -> Trial | None:
        """Run items in a fork until one fails. None if the fault cannot be planted in memory.

        ``limits`` are seconds of processor time for some of the items, ``seconds`` by the clock for all.
        """
        if fault is None:
            return self._forked(items, lambda: True, seconds, limits)
        path = self.copy / "src" / "isotone" / fault.module
        old = path.read_text(encoding="utf-8")
        with plant(fault, self.copy):
            new = path.read_text(encoding="utf-8")
            return self._forked(items, lambda: self._plant(path, old, new), seconds, limits)

    def _forked(
        self, items: Sequence[Any], prepare: Callable[[], bool], seconds: float, limits: Mapping[str, float]
    ) -> Trial | None:
        reading, writing = os.pipe()
        at = mmap.mmap(-1, 4)  # shared: the place of the item that runs
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._in_fork(items, prepare, writing, at, limits)
        os.close(writing)
        code, usage = ended(child, seconds)
        os.set_blocking(reading, False)  # what a test has left behind may hold the other end
        with os.fdopen(reading, "rb") as pipe:
            told = (pipe.read() or b"").decode()
        cpu = usage.ru_utime + usage.ru_stime
        test = items[int.from_bytes(at[:], "little")].nodeid if items else ""
        if code == "stuck":
            return None  # a lock that a thread held when the process forked: no fault of the code
        if code == "long":
            return Trial("error", f"the tests did not end within {seconds:.0f} s", cpu)
        if told == "anew":
            return None
        if not told and code == -signal.SIGXCPU:
            return Trial("error", f"{test} did not end within its time of the processor", cpu, test)
        if not told:
            return Trial("error", f"{test} ended the process with {code}", cpu, test)
        test, exception = json.loads(told)
        if test == _FORK:
            return Trial("error", f"the fork failed: {exception}", cpu)
        return verdict_of(test, exception, cpu) if test else Trial("passed", "", cpu)

    def _in_fork(
        self,
        items: Sequence[Any],
        prepare: Callable[[], bool],
        pipe: int,
        at: mmap.mmap,
        limits: Mapping[str, float],
    ) -> None:
        """Never returns."""
        told: list[list[str]] = []
        fork, answer = os.getpid(), ["", ""]
        try:
            os.setsid()
            with Path(os.devnull).open("w") as nothing:
                os.dup2(nothing.fileno(), 1)
                os.dup2(nothing.fileno(), 2)
            if not prepare():
                os.write(pipe, b"anew")
                os._exit(0)
            if items:
                items[0].config.pluginmanager.register(_Failures(told))
            for place, item in enumerate(items):
                at[:] = place.to_bytes(4, "little")
                given = limits.get(item.nodeid) or limits.get(item.nodeid.partition("[")[0])
                if given is not None:
                    limit = int(time.process_time() + given) + 1
                    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
                following = items[place + 1] if place + 1 < len(items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if told:
                    break
            answer = told[0] if told else answer
        except BaseException:
            answer = [_FORK, traceback.format_exc()[-300:]]
        finally:
            if os.getpid() == fork:  # and not one that a test has forked
                os.write(pipe, json.dumps(answer).encode())
            os._exit(0)

    def _plant(self, path: Path, old_text: str, new_text: str) -> bool:
        """Put the fault in memory. False if that takes a process that loads the module anew."""
        parts = path.relative_to(self.copy / "src").with_suffix("").parts
        module = sys.modules.get(".".join(parts).removesuffix(".__init__"))
        if module is None:
            return True  # it is loaded from the file
        functions, constants = changed_functions(old_text, new_text, str(path))
        if functions is None:
            return False
        compiled = {_key(one.function.__code__) for one in self.kernels}
        of_kernels = bool(constants) or any(_key(old) in compiled for old, _ in functions)
        for old, new in functions:
            for function in self.functions.get(_key(old), []):
                if len(function.__code__.co_freevars) != len(new.co_freevars):
                    return False
                function.__code__ = new
        for statement in constants:
            names = [
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            ]
            before = {name: vars(module).get(name) for name in names}
            exec(_compiled(statement, str(path)), vars(module))
            for other in list(sys.modules.values()):
                for each, value in before.items():
                    if getattr(other, "__dict__", {}).get(each) is value and other is not module:
                        vars(other)[each] = vars(module)[each]
        self._forget(of_kernels)
        return True

    def _forget(self, kernels: bool) -> None:
        """What was kept of earlier calls, and what was compiled."""
        for cache in self.caches:
            cache.cache_clear()
        kept = ("fingerprint", "_interpreted", "_machine_code") if kernels else ()
        for kernel, name in itertools.product(self.kernels, kept):
            kernel.__dict__.pop(name, None)


class _Failures:
    """The first failure: the test, and the type of the exception."""

    def __init__(self, told: list[list[str]]) -> None:
        self.told = told

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        if report.failed:
            self.told.append([item.nodeid, call.excinfo.type.__name__ if call.excinfo else "strict xfail"])
        return report


def ended(child: int, seconds: float) -> tuple[int | str, resource.struct_rusage]:
    """Wait for a fork, and end what it left behind. Its exit code, or "long" or "stuck", and what it used."""
    end, worked, last = time.monotonic() + seconds, 0.0, time.monotonic()
    while not (found := os.wait4(child, os.WNOHANG))[0] and time.monotonic() < min(end, last + STUCK):
        time.sleep(0.01)
        if (now := _computed(child)) > worked:
            worked, last = now, time.monotonic()
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if found[0]:
        return os.waitstatus_to_exitcode(found[1]), found[2]
    return "long" if time.monotonic() >= end else "stuck", os.wait4(child, 0)[2]


def _computed(pid: int) -> float:
    """The processor time of a process, as far as the system tells: otherwise the time by the clock."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return float(numbers[11]) + float(numbers[12]) + float(numbers[13]) + float(numbers[14])


def _is_of(nodeid: str, test: str) -> bool:
    return nodeid == test or nodeid.startswith((f"{test}::", f"{test}["))


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def changed_functions(
    old: str, new: str, path: str
) -> tuple[list[tuple[CodeType, CodeType]] | None, list[ast.stmt]]:
    """The codes of functions that differ, and the statements of the module that give a name another value.

    None instead of codes if something else differs: a class, a decorator, a default.
    """
    trees = ast.parse(old).body, ast.parse(new).body
    if len(trees[0]) != len(trees[1]):
        return None, []
    statements = [b for a, b in zip(*trees, strict=True) if ast.dump(a) != ast.dump(b)]
    constants: list[ast.stmt] = [
        s for s in statements if isinstance(s, ast.Assign | ast.AnnAssign | ast.AugAssign)
    ]
    codes, others = ([_compiled(s, path) for s in tree] for tree in trees)
    found: list[tuple[CodeType, CodeType]] = []
    for one, other, statement in zip(codes, others, trees[1], strict=True):
        if statement in constants:
            continue
        pairs = _pairs(one, other)
        if pairs is None:
            return None, []
        found += pairs
    return found, constants


def _compiled(statement: ast.stmt, path: str) -> CodeType:
    flags = __future__.annotations.compiler_flag
    return compile(ast.Module([statement], []), path, "exec", flags, dont_inherit=True)


def _pairs(one: CodeType, other: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (one, other)]
    found: list[tuple[CodeType, CodeType]] = []
    if one.co_flags & inspect.CO_OPTIMIZED:
        if one == other:
            return []
        found.append((one, other))
        if len(inner[0]) != len(inner[1]):
            return found
    else:
        plain = [[repr(c) for c in code.co_consts if not isinstance(c, CodeType)] for code in (one, other)]
        if one.co_code != other.co_code or one.co_names != other.co_names or plain[0] != plain[1]:
            return None
        if len(inner[0]) != len(inner[1]):
            return None
    for a, b in zip(*inner, strict=True):
        pairs = _pairs(a, b)
        if pairs is None:
            return None
        found += pairs
    return found
