"""Compiled kernels are made when first called, and kept under everything they were built from."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from isotone.kernels import Kernel, cache_directory, kernel
from isotone.order import closure

STEP = 1


@kernel
def callee(x: int) -> int:
    return x + STEP


@kernel(leaf=True)
def caller(x: int) -> int:
    return 2 * callee(x)


def test_plain_and_compiled_code_agree() -> None:
    assert caller.plain(3) == caller(3) == 8


def _in_module(source: str, **names: Any) -> dict[str, Any]:
    module: dict[str, Any] = {"kernel": kernel, "np": np, **names}
    exec(source, module)
    return module


SOURCE = """
@kernel
def deepest(x):
    return x + {constant}

@kernel
def middle(x):
    return deepest(x) * FACTOR

@kernel
def top(x):
    return middle(x) + TABLE[0]
"""


def _fingerprint(constant: int = 1, factor: Any = 2, table: Any = (5, 6)) -> str:
    module = _in_module(SOURCE.format(constant=constant), FACTOR=factor, TABLE=np.array(table))
    found: Kernel[..., Any] = module["top"]
    return found.fingerprint


def test_the_cache_knows_all_that_the_code_was_built_from() -> None:
    changed = [
        _fingerprint(),
        _fingerprint(constant=3),
        _fingerprint(factor=4),
        _fingerprint(factor=np.uint64(2)),
        _fingerprint(table=(5, 7)),
        _fingerprint(table=(5.0, 6.0)),
    ]
    assert len(set(changed)) == len(changed)
    assert _fingerprint() == _fingerprint()


def test_options_are_part_of_the_fingerprint() -> None:
    function = callee.function
    assert Kernel(function, {}).fingerprint != Kernel(function, {"leaf": True}).fingerprint


def test_the_directory_of_the_cache_carries_the_fingerprint(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "not yet" / "there"))
    fresh: Kernel[[int], int] = Kernel(caller.function, {})
    directory = cache_directory(fresh)
    assert directory is not None
    assert fresh.fingerprint in directory.name
    assert not directory.exists()
    assert fresh(1) == 4
    assert any(directory.rglob("*.nbi"))


def test_kept_code_that_names_a_type_that_has_moved_is_made_again(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delitem(
        vars(callee), "_machine_code", raising=False
    )  # what is called has kept code of its own
    assert Kernel(caller.function, {})(1) == 4
    monkeypatch.delitem(vars(callee), "_machine_code", raising=False)
    for index in tmp_path.rglob("*.nbi"):
        version = pickle.loads(index.read_bytes())
        index.write_bytes(pickle.dumps(version) + b"cno_such_module\nPosterior\n.")
    assert Kernel(caller.function, {})(1) == 4


def test_the_first_compilation_is_announced(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with caplog.at_level("INFO", logger="isotone.kernels"):
        Kernel(caller.function, {})(1)
        Kernel(caller.function, {})(1)
    assert [record.message.split()[1].rstrip(":") for record in caplog.records].count("caller") == 1


def test_a_first_compilation_is_told_on_stderr(tmp_path: Any) -> None:
    """Without any setting of logging: whoever waits sees why."""
    script = "from tests.unit.test_kernels import caller; print(caller(1), caller(1))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert done.stdout.split() == ["4", "4"]
    assert done.stderr.count("compiling") == 1


def test_a_callee_hidden_in_a_module_is_refused() -> None:
    module = _in_module("@kernel\ndef top(x):\n    return closure.lowest_bit(x)", closure=closure)
    with pytest.raises(TypeError, match="by name"):
        module["top"](np.uint64(4))


def test_only_functions_are_kernels() -> None:
    with pytest.raises(TypeError, match="made of a function"):
        kernel(len)
    assert isinstance(callee.function, FunctionType)


HEAVY = ("numba", "scipy.stats", "matplotlib", "duckdb", "pyarrow")


@pytest.mark.parametrize(
    "program",
    [
        "import isotone",
        "import sys; sys.argv = ['isotone', '--help']\n"
        "from isotone.cli import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass",
    ],
)
def test_starting_loads_nothing_heavy(program: str) -> None:
    code = f"{program}\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
