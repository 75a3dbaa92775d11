"""Which tests reach which blocks of the code, measured once for a commit, so that a fault meets the tests that run its line.

The package is loaded with a mark at the start of every block of its functions, which costs a few hundredths of a second a test.
A block is what runs as a whole: a body, and what follows an ``if``, a loop or a ``try``. Compiled kernels have one block each, which is
reached when the kernel, or one that calls it, is called. What is measured is kept file by file: a run that was cut off goes on where it was.
"""

from __future__ import annotations

import ast
import base64
import builtins
import json
import math
import os
import resource
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import pytest

from tests.mutants.warm import Warm, collected, ended

__all__ = ["Blocks", "Reach", "measure"]

CASES = 0.1
"""Seconds of processor time of the cases of one test. The first one is always measured."""

LONGEST = 25
"""Seconds of processor time for the tests of one file. What comes later is not known to reach anything."""

_NAME = "__reached__"
_SUITES = ("body", "orelse", "finalbody")


@dataclass
class Blocks:
    """The blocks of all modules, numbered: the block of every line, by module."""

    number: int = 0
    lines: dict[str, list[int]] = field(default_factory=dict)
    kernels: dict[tuple[str, int], int] = field(default_factory=dict)
    """By module and the first line of the function."""

    def marked(self, module: str, text: str) -> ast.Module:
        """The module with marks. Lines outside functions have block 0, which is never reached."""
        tree = ast.parse(text)
        self.lines[module] = [0] * (text.count("\n") + 2)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.Module):
                self._functions(node.body, module)
        return ast.fix_missing_locations(tree)

    def _functions(self, body: Iterable[ast.stmt], module: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if any("kernel" in ast.unparse(d) for d in node.decorator_list):
                    first = min(d.lineno for d in node.decorator_list)
                    self.kernels[module, first] = self._fill(node, module, self._new())
                else:
                    node.body = self._suite(node.body, module)
            elif isinstance(node, ast.If | ast.Try | ast.With):  # of a module or a class
                self._functions([*node.body, *getattr(node, "orelse", [])], module)

    def _new(self) -> int:
        self.number += 1
        return self.number

    def _fill(self, node: ast.stmt, module: str, block: int) -> int:
        lines = self.lines[module]
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            lines[line] = block
        return block

    def _suite(self, body: list[ast.stmt], module: str) -> list[ast.stmt]:
        """The statements with a mark before the first and after every statement that has statements of its own."""
        found, open_block = list[ast.stmt](), 0
        for place, node in enumerate(body):
            docstring = place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not open_block and not docstring and not isinstance(node, ast.Nonlocal | ast.Global):
                open_block = self._new()
                found.append(ast.copy_location(_mark(open_block), node))
            found.append(node)
            self._fill(node, module, open_block)
            if self._inside(node, module):
                open_block = 0
        return found

    def _inside(self, node: ast.stmt, module: str) -> bool:
        """Mark the suites of a statement. Whether there are any."""
        parts = [node, *getattr(node, "handlers", []), *getattr(node, "cases", [])]
        seen = False
        for part in parts:
            for name in _SUITES:
                suite = getattr(part, name, None)
                if isinstance(suite, list) and suite and not isinstance(node, ast.ClassDef):
                    setattr(part, name, self._suite(suite, module))
                    seen = True
        return seen and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _mark(block: int) -> ast.stmt:
    return ast.parse(f"{_NAME}[{block}] = 1").body[0]


class _Marked(SourceFileLoader):
    """Loads a module with marks, and never from bytecode."""

    blocks: Blocks
    source: Path

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.path)
        module = path.relative_to(self.source).as_posix()
        tree = self.blocks.marked(module, path.read_text(encoding="utf-8"))
        return compile(tree, str(path), "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if module.__name__ == "isotone.kernels":
            _watch_kernels(module, self.blocks, self.source)


class _Finder:
    """Finds the modules of the package in the copy, and marks them."""

    def __init__(self, copy: Path, blocks: Blocks) -> None:
        source = copy / "src" / "isotone"
        self.loader = type("Loader", (_Marked,), {"blocks": blocks, "source": source})

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "isotone":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin and isinstance(spec.loader, SourceFileLoader):
            spec.loader = self.loader(name, spec.origin)
            spec.cached = None
        return spec


def _watch_kernels(module: ModuleType, blocks: Blocks, source: Path) -> None:
    """Mark a kernel, and those that it calls, when it is used in any way."""
    kernel: Any = module.Kernel
    known: dict[int, list[int]] = {}

    def below(one: Any) -> list[int]:
        if id(one) not in known:
            code = one.function.__code__
            path = Path(code.co_filename)
            at = (
                (path.relative_to(source).as_posix(), code.co_firstlineno)
                if path.is_relative_to(source)
                else None
            )
            known[id(one)] = [blocks.kernels[at]] if at in blocks.kernels else []
            for called in module._used(one.function).values():
                if isinstance(called, kernel):
                    known[id(one)] = [*known[id(one)], *below(called)]
        return known[id(one)]

    def watched(name: str) -> None:
        before = kernel.__dict__[name]
        inner: Any = before.fget if isinstance(before, property) else before

        def after(self: Any, *args: Any, **kwargs: Any) -> Any:
            for block in below(self):
                getattr(builtins, _NAME)[block] = 1
            return inner(self, *args, **kwargs)

        setattr(kernel, name, property(after) if isinstance(before, property) else after)

    for name in ("__call__", "plain", "compiled"):
        watched(name)


def measure(copy: Path, files: Sequence[str], kept: Path) -> None:
    """Run cases of every test of these files, and write down what they reach, and how long they take."""
    kept.mkdir(parents=True, exist_ok=True)
    missing = [file for file in files if not _kept_at(kept, file).exists()]
    blocks = Blocks()
    marks = bytearray(1 << 17)
    setattr(builtins, _NAME, marks)

    def prepare() -> None:
        sys.meta_path.insert(0, _Finder(copy, blocks))

    def work(warm: Warm) -> None:
        _add_blocks(kept / "blocks.json", blocks, marks)
        for file, items in warm.files.items():
            path = _kept_at(kept, file)
            if not path.exists():
                _measure_file(_first(items), warm.caches, marks, path)
                print(f"{file} {sum(row['cpu'] for row in _rows(path)):.1f} s", flush=True)

    if missing:
        collected(copy, missing, work, prepare)
        for file in missing:  # folders, and files without tests
            _kept_at(kept, file).touch()


def _kept_at(kept: Path, file: str) -> Path:
    return kept / (file.replace("/", "-") + ".jsonl")


def _add_blocks(path: Path, blocks: Blocks, marks: bytearray) -> None:
    """Write down the blocks, which are the same every time, and which of them ran while tests were collected."""
    if path.exists():
        for block in _unpacked(json.loads(path.read_text(encoding="utf-8"))["loaded"]):
            marks[block] = 1
    text = json.dumps({"lines": blocks.lines, "loaded": _packed(marks)})
    path.write_text(text, encoding="utf-8")


def _first(items: Sequence[Any]) -> list[Any]:
    """The first case of every test, then the second of every one, and so on."""
    rank: Counter[str] = Counter()
    ranked: list[tuple[int, Any]] = []
    for item in items:
        ranked.append((rank[_test_of(item.nodeid)], item))
        rank[_test_of(item.nodeid)] += 1
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]


def _test_of(name: str) -> str:
    return name.partition("[")[0]


def _measure_file(items: Sequence[Any], caches: Sequence[Any], marks: bytearray, path: Path) -> None:
    """In a fork, which may end before the last test: the file is complete when it has its name."""
    unfinished = path.with_suffix(".part")
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            resource.setrlimit(
                resource.RLIMIT_CPU, (int(time.process_time()) + LONGEST, resource.RLIM_INFINITY)
            )
            with Path(os.devnull).open("w") as nothing:
                os.dup2(nothing.fileno(), 1)
                os.dup2(nothing.fileno(), 2)
            with unfinished.open("w", encoding="utf-8") as file:
                _measure(items, caches, marks, lambda row: print(json.dumps(row), file=file, flush=True))
        finally:
            os._exit(0)
    ended(child, math.inf)
    if unfinished.exists():
        unfinished.rename(path)


def _measure(
    items: Sequence[Any], caches: Sequence[Any], marks: bytearray, tell: Callable[[Any], None]
) -> None:
    shared = _Shared(marks)
    items[0].config.pluginmanager.register(shared)
    spent: dict[str, float] = defaultdict(float)
    for place, item in enumerate(items):
        test = _test_of(item.nodeid)
        if spent[test] > CASES:
            continue
        for cache in caches:  # what an earlier test computed is computed again
            cache.cache_clear()
        marks[:] = bytes(len(marks))
        shared.failed, began = False, time.process_time()
        following = items[place + 1] if place + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        cpu = time.process_time() - began
        spent[test] += cpu
        shared.add_fixtures(item)
        if not shared.failed:
            tell({"test": item.nodeid, "cpu": round(cpu, 4), "reached": _packed(marks)})


class _Shared:
    """Whether a test failed, and what was reached to set up what tests share: it counts for all of them."""

    def __init__(self, marks: bytearray) -> None:
        self.marks, self.failed = marks, False
        self.fixtures: dict[int, int] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        result = yield
        if fixturedef.scope != "function":
            self.fixtures[id(fixturedef)] = int.from_bytes(self.marks, "little")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        self.failed = self.failed or not report.passed
        return report

    def add_fixtures(self, item: Any) -> None:
        info = getattr(item, "_fixtureinfo", None)
        for definitions in info.name2fixturedefs.values() if info else ():
            for one in definitions:
                if id(one) in self.fixtures:
                    together = int.from_bytes(self.marks, "little") | self.fixtures[id(one)]
                    self.marks[:] = together.to_bytes(len(self.marks), "little")


def _packed(marks: bytes | bytearray) -> str:
    places = map(str, np.flatnonzero(np.frombuffer(marks, np.uint8)))
    return base64.b85encode(zlib.compress(",".join(places).encode(), 1)).decode()


def _unpacked(text: str) -> set[int]:
    places = zlib.decompress(base64.b85decode(text)).decode()
    return {int(place) for place in places.split(",") if place}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Reach:
    """What was measured: the tests of a line, the quickest first."""

    def __init__(self, kept: Path) -> None:
        blocks = json.loads((kept / "blocks.json").read_text(encoding="utf-8"))
        self.lines: dict[str, list[int]] = blocks["lines"]
        self.loaded = _unpacked(blocks["loaded"])
        self.cpu: dict[str, float] = {}
        self.tests: dict[int, list[str]] = defaultdict(list)
        for path in sorted(kept.glob("*.jsonl")):
            for row in _rows(path):
                self.cpu[row["test"]] = row["cpu"]
                for block in _unpacked(row["reached"]):
                    self.tests[block].append(row["test"])

    def of(self, module: str, line: int) -> list[str]:
        """The tests that reach a line, the quickest first; one case of each test before the others.

        A line outside functions is reached by all tests that reach some function of its module, of which one for each block comes first.
        """
        lines = self.lines.get(module, [])
        block = lines[line] if line < len(lines) else 0
        if block:
            return self._ranked(self.tests[block])
        by_block = [self._ranked(self.tests[b]) for b in sorted(set(lines) - {0}) if self.tests[b]]
        first = self._ranked({tests[0] for tests in by_block})
        return list(dict.fromkeys([*first, *self._ranked({test for tests in by_block for test in tests})]))

    def _ranked(self, tests: Iterable[str]) -> list[str]:
        ranked, seen = list[tuple[int, float, str]](), defaultdict[str, int](int)
        for test in sorted(tests, key=lambda test: (self.cpu[test], test)):
            name = _test_of(test)
            ranked.append((seen[name], self.cpu[test], test))
            seen[name] += 1
        return [test for _, _, test in sorted(ranked)]

    def is_loaded(self, module: str, line: int) -> bool:
        """Whether the line ran while tests were collected, or may have."""
        lines = self.lines.get(module, [])
        block = lines[line] if line < len(lines) else 0
        return not block or block in self.loaded
