"""Prints how large the house is: files, lines, imports and parameters of ``src``.

    python tools/house.py

``tools/flows.py`` walks the releases and prints files, switches and modules of each.
"""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median, quantiles

SOURCE = Path(__file__).parents[1] / "src" / "isotone"


def import_lines(tree: ast.Module) -> int:
    """Lines of imports and of ``__all__``, at any depth."""
    spans = set[int]()
    for node in ast.walk(tree):
        listed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if isinstance(node, ast.Import | ast.ImportFrom) or listed:
            spans |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(spans)


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters of a function, without ``self`` and ``cls``."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(one.arg not in ("self", "cls") for one in given)


def fields(node: ast.ClassDef) -> int:
    """Fields of a dataclass, which are the parameters of its constructor."""
    marked = any("dataclass" in ast.unparse(one) for one in node.decorator_list)
    return sum(isinstance(one, ast.AnnAssign) for one in node.body) if marked else 0


def main() -> None:
    """The command line."""
    texts = {path: path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    lines = sorted(text.count("\n") for text in texts.values())
    total, imports, wide, callables = sum(lines), 0, 0, list[tuple[int, str]]()
    for path, text in texts.items():
        tree = ast.parse(text)
        imports += import_lines(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                wide += parameters(node) >= 8
                if not node.name.startswith("_"):
                    callables.append((parameters(node), f"{path.relative_to(SOURCE)}:{node.name}"))
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                callables.append((fields(node), f"{path.relative_to(SOURCE)}:{node.name}"))
    most = max(callables)
    written = [n for n in lines if n > 10]
    rows = [
        ("lines / files", f"{total:,} / {len(lines)}", "60,000 / 240"),
        ("imports and __all__, share of lines", f"{100 * imports / total:.1f} %", "9 %"),
        (
            "lines a file: median / p90 / most",
            f"{median(written):.0f} / {quantiles(written, n=10)[-1]:.0f} / {lines[-1]}",
            "200-300 / 650 / 900",
        ),
        ("functions with 8 parameters or more", str(wide), "20"),
        ("most parameters of a public callable", f"{most[0]} ({most[1]})", "15"),
    ]
    width = max(len(row[0]) for row in rows)
    for name, value, aim in rows:
        print(f"{name:<{width}}  {value}  (aim {aim})")


if __name__ == "__main__":
    main()
