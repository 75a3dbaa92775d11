"""The budgets of the house: files and switches of each flow, modules, parameters, and what a new parameter touches."""

from __future__ import annotations

import filecmp
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import isotone

ROOT = Path(__file__).parents[2]
SOURCE = Path(isotone.__file__).parent


@pytest.fixture(scope="module", autouse=True)
def tools() -> Iterator[None]:
    """The folder of tools can be imported from."""
    sys.path.insert(0, str(ROOT / "tools"))
    yield
    sys.path.remove(str(ROOT / "tools"))


def test_a_release_enters_no_more_files_than_its_budget(tmp_path: Path) -> None:
    budgets, flows = import_module("budgets"), import_module("flows")
    walked = flows.flows(tmp_path)
    assert set(walked) == set(budgets.FLOWS)
    assert all(files > 20 and switches > 200 for files, switches in walked.values())  # the walk sees calls
    over = {
        name: (found, budgets.FLOWS[name])
        for name, found in walked.items()
        if any(one > most for one, most in zip(found, budgets.FLOWS[name], strict=True))
    }
    assert over == {}
    assert 50 < flows.modules(tmp_path) <= budgets.MODULES


def parameters() -> Iterator[tuple[str, int]]:
    """Public functions, classes and their methods, with how many parameters each has."""
    for package in (
        "isotone",
        *(f"isotone.{name}" for name in ("counts", "tables", "curves", "order", "audit")),
    ):
        module = import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            own = [(name, value)] if inspect.isroutine(value) or inspect.isclass(value) else []
            inside = vars(value).items() if inspect.isclass(value) else ()
            own += [
                (f"{name}.{key}", one)
                for key, one in inside
                if inspect.isfunction(one) and not key.startswith("_")
            ]
            for label, one in own:
                if inspect.isclass(one) and issubclass(one, Exception):
                    continue
                given = inspect.signature(one).parameters.values()
                yield (
                    f"{package}.{label}",
                    sum(p.name != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in given),
                )


def test_public_callables_have_few_parameters() -> None:
    budgets, found = import_module("budgets"), dict(parameters())
    assert len(found) > 150
    assert {name: count for name, count in found.items() if count > budgets.PARAMETERS} == {}


FIELD = '''    """Where the answers are and what counts as a yes."""
'''
ADDED = '''    trial: int = 0
    """A parameter that a test adds."""
'''
LOOK = """
import inspect, json, sys
from pathlib import Path
import isotone as iso
from isotone.release.spec import spec_schema
folder = Path(sys.argv[1])
(folder / "people.csv").write_text("a,b\\n1,0\\n1,1\\n")
(folder / "spec.toml").write_text('''
[data]
path = "people.csv"
[privacy]
epsilon = 1
ledger = "people.ledger"
[order]
elements = ["a", "b"]
relations = [["b", "a"]]
trial = 7
[output]
folder = "out"
''')
iso.Ledger(folder / "people.ledger", epsilon=2).create()
assert "trial" in inspect.signature(iso.Counts).parameters
assert "A parameter that a test adds." in json.dumps(spec_schema())
iso.load_spec(folder / "spec.toml").release()
manifest = json.loads((folder / "out" / "manifest.json").read_text())
assert manifest["description"]["trial"] == 7, manifest["description"]
verdict = iso.verify(folder / "out")
assert verdict.holds, str(verdict)
print("seen")
"""


def test_a_new_parameter_of_counts_touches_few_files(tmp_path: Path) -> None:
    budgets = import_module("budgets")
    copy = tmp_path / "isotone"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    described = copy / "release" / "kinds" / "counts" / "description.py"
    text = described.read_text()
    assert text.count(FIELD) == 1
    described.write_text(text.replace(FIELD, FIELD + ADDED))
    seen = subprocess.run(
        [sys.executable, "-c", LOOK, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert seen.stdout == "seen\n", seen.stderr
    changed = [
        path
        for path in copy.rglob("*.py")
        if not filecmp.cmp(path, SOURCE / path.relative_to(copy), shallow=False)
    ]
    users = 1  # the reader or the mechanism that does something with it
    assert len(changed) + users <= budgets.TOUCHED
