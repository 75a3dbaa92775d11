"""Prints how large the house is: files, lines, imports and parameters of ``src``.

    python tools/house.py

``tools/flows.py`` walks the releases and prints files, switches and modules of each.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from statistics import median, quantiles

SOURCE = Path(__file__).parents[1] / "src" / "isotone"


def import_lines(tree: ast.Module) -> int:
    """Lines of imports and of ``__all__``, at any depth."""
    spans = set[int]()
    for node in ast.walk(tree):
        listed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (listed and isinstance(node, ast.Assign)):
            spans |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(spans)


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters of a function, without ``self`` and ``cls``."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(one.arg not in ("self", "cls") for one in given)


def fields(name: str, classes: dict[str, ast.ClassDef]) -> set[str]:
    """Fields of a dataclass or a description, with those of its bases: the parameters of its constructor."""
    node = classes.get(name)
    if node is None:
        return set()
    own = {
        ast.unparse(one.target)
        for one in node.body
        if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one.annotation)
    }
    inherited = (fields(ast.unparse(base).partition("[")[0], classes) for base in node.bases)
    return (own - {"_"}).union(*inherited)


def is_built_from_fields(node: ast.ClassDef) -> bool:
    """Whether a class is a dataclass or a description, without a constructor of its own."""
    marks = [ast.unparse(one) for one in node.decorator_list]
    marked = any(("dataclass" in mark or mark == "described") and "init=False" not in mark for mark in marks)
    return marked and not any(getattr(one, "name", "") == "__init__" for one in node.body)


def sort(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """What kind of function it is. A compiled kernel takes its arrays one by one, and a command its options."""
    marks = [ast.unparse(one) for one in node.decorator_list]
    if any(mark.partition("(")[0] == "kernel" for mark in marks):
        return "compiled kernels"
    written = "typer" in path.read_text() and path.parent.name == "cli" and not node.name.startswith("_")
    return "commands" if written else "others"


def public_names() -> set[str]:
    """Names that packages list for their users."""
    stubs = (path.read_text() for path in SOURCE.rglob("__init__.pyi"))
    return {name for text in stubs for name in re.findall(r"import (\w+) as \1$", text, re.MULTILINE)}


def main() -> None:
    """The command line."""
    texts = {path: path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    lines = sorted(text.count("\n") for text in texts.values())
    public = public_names()
    total, imports, callables = sum(lines), 0, list[tuple[int, str]]()
    wide, classes = {"compiled kernels": 0, "commands": 0, "others": 0}, dict[str, ast.ClassDef]()
    for path, text in texts.items():
        tree = ast.parse(text)
        imports += import_lines(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                kind = sort(path, node)
                wide[kind] += parameters(node) >= 8
                if kind != "commands" and node in tree.body and node.name in public:
                    callables.append((parameters(node), node.name))
            elif isinstance(node, ast.ClassDef):
                classes[node.name] = node
                callables += [
                    (parameters(one), f"{node.name}.{one.name}")
                    for one in node.body
                    if isinstance(one, ast.FunctionDef)
                    and node.name in public
                    and (one.name == "__init__" or not one.name.startswith("_"))
                ]
    callables += [
        (len(fields(name, classes)), name)
        for name, node in classes.items()
        if (name in public or name.endswith("Manifest")) and is_built_from_fields(node)
    ]
    widest = sorted((one for one in callables if not one[1].endswith("Manifest")), reverse=True)[:3]
    document = max(one for one in callables if one[1].endswith("Manifest"))
    written = [n for n in lines if n > 10]
    rows = [
        ("lines / files", f"{total:,} / {len(lines)}", "60,000 / 240"),
        ("imports and __all__, share of lines", f"{100 * imports / total:.1f} %", "9 %"),
        (
            "lines a file: median / p90 / most",
            f"{median(written):.0f} / {quantiles(written, n=10)[-1]:.0f} / {lines[-1]}",
            "200-300 / 650 / 900",
        ),
        (
            "functions with 8 parameters or more",
            f"{sum(wide.values())} ({', '.join(f'{count} {kind}' for kind, count in wide.items())})",
            "20",
        ),
        ("most parameters of a public callable", ", ".join(f"{n} {name}" for n, name in widest), "15"),
        ("most entries of a manifest, a document that nobody calls", f"{document[0]} {document[1]}", "none"),
    ]
    width = max(len(row[0]) for row in rows)
    for name, value, aim in rows:
        print(f"{name:<{width}}  {value}  (aim {aim})")


if __name__ == "__main__":
    main()
