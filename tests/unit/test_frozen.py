"""What was checked stays as it was: dataclasses are frozen, but for those that count work, and those are named here."""

import ast
from pathlib import Path

import isotone

SOURCE = Path(isotone.__file__).parent
AT_WORK = {
    "counts/ellipse_forest.py",
    "counts/relaxation.py",
    "counts/tree_field.py",
    "desk/desk.py",
    "desk/drafts.py",
    "desk/jobs.py",
    "forms/formats.py",
    "ledger/stores/sqlite.py",
    "order/bipartitions/steps.py",
    "order/layout.py",
    "process.py",
}
"""Modules with a dataclass that is filled step by step and never leaves its function, or one with a lock of its own."""


def is_open(decorator: ast.expr) -> bool:
    """Whether it makes a dataclass that can be changed."""
    call = decorator if isinstance(decorator, ast.Call) else None
    name = call.func if call else decorator
    if not (isinstance(name, ast.Name) and name.id == "dataclass"):
        return False
    given = {word.arg: ast.unparse(word.value) for word in call.keywords} if call else {}
    return given.get("frozen") != "True"


def test_dataclasses_are_frozen() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and any(map(is_open, node.decorator_list))
    }
    assert found == AT_WORK
