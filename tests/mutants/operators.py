"""Draws faults at random with the operators of cosmic-ray, and prints them as lines of JSON.

Run by ``make mutants RANDOM=…`` in an environment that has cosmic-ray and nothing of this project:

    python tests/mutants/operators.py NUMBER SEED MODULE …

A module is drawn by its length, then a place in it, each with the same chance, and then one of the operators that can change it. Places in annotations
are left out, and texts are never changed: no operator knows them. Its own runner is not used, since it starts a process for each
fault and runs all tests; ours forks a process that has the libraries loaded, and runs those of the module first.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from pathlib import Path

LEFT_OUT = ("RemoveDecorator", "Variable")
"""A decorator that is taken away mostly leaves what is the same, slower; the others need arguments."""

Span = tuple[tuple[int, int], tuple[int, int]]


def types_of(text: str) -> list[Span]:
    """Where annotations stand, and the unions of types that have a name."""
    found: list[Span] = []
    tree = ast.parse(text)
    for node in ast.walk(tree):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        if (
            isinstance(node, ast.Assign)
            and node in tree.body
            and isinstance(node.value, ast.BinOp | ast.Subscript)
        ):
            parts.append(node.value)
        found += [
            ((part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0))
            for part in parts
            if isinstance(part, ast.expr)
        ]
    return found


def places(path: Path) -> dict[Span, list[tuple[str, int]]]:
    """The places of a module that operators can change, with the operators and their numbers there."""
    from cosmic_ray.ast import ast_nodes, get_ast  # pyright: ignore[reportMissingImports]
    from cosmic_ray.plugins import get_operator, operator_names  # pyright: ignore[reportMissingImports]

    text = path.read_text(encoding="utf-8")
    types, found = types_of(text), dict[Span, list[tuple[str, int]]]()
    nodes = list(ast_nodes(get_ast(text)))
    for name in operator_names():
        if any(part in name for part in LEFT_OUT):
            continue
        operator, number = get_operator(name)(), 0
        for node in nodes:
            for start, stop in operator.mutation_positions(node):
                if not any(first <= start < last for first, last in types):
                    found.setdefault((start, stop), []).append((name, number))
                number += 1
    return found


def is_python(text: str) -> bool:
    """Whether a module can be compiled. A star of parameters is no multiplication, which cosmic-ray does not know."""
    try:
        compile(text, "changed", "exec")
    except SyntaxError:
        return False
    return True


def main() -> None:
    """Print as many faults as asked for, each once. A module is drawn by its length: to look at all places takes minutes."""
    from cosmic_ray.mutating import mutate_code  # pyright: ignore[reportMissingImports]
    from cosmic_ray.plugins import get_operator  # pyright: ignore[reportMissingImports]

    number, seed, *modules = sys.argv[1:]
    rng, paths = random.Random(seed), sorted(map(Path, modules))
    lengths = [path.stat().st_size for path in paths]
    left: dict[Path, list[tuple[Span, list[tuple[str, int]]]]] = {}
    printed = 0
    while printed < int(number):
        (path,) = rng.choices(paths, lengths)
        if path not in left:
            left[path] = sorted(places(path).items())
            rng.shuffle(left[path])
        if not left[path]:
            continue
        span, ways = left[path].pop()
        operator, occurrence = rng.choice(ways)
        text = path.read_text(encoding="utf-8")
        try:
            changed = mutate_code(text, get_operator(operator)(), occurrence)
        except AttributeError:  # an exception of a module, as in "except tomllib.TOMLDecodeError"
            continue
        if changed is not None and changed != text and is_python(changed):
            printed += 1
            row = {"module": str(path), "line": span[0][0], "operator": operator, "new": changed}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
