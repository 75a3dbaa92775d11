"""Moves or merges modules of isotone, and rewrites whatever names them: imports, docs, stubs, planted faults.

    python tools/move.py isotone.order.bipartitions isotone.order.bipartitions.small isotone.order.bipartitions.walk --doc "What it holds."

The first name is the module to write, the others are merged into it, in the order that their imports ask for. One source is a
rename. No line of logic changes: imports are joined, docstrings of modules become comments, and a private name that two sources
define is refused unless ``--rename isotone.x.y:_old=_new`` says what one of them becomes.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TEXTS = ("src", "tests", "docs", "experiments", "benchmarks", "examples", "package", "tools")
ENDINGS = {".py", ".pyi", ".md", ".toml", ".yml", ".ipynb", ".txt", ".sh", ".html"}


def file_of(module: str) -> Path:
    """The file of a module or package."""
    stem = SOURCE.joinpath(*module.split("."))
    return stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")


@dataclass
class Module:
    """One source, taken apart."""

    name: str
    text: str
    doc: str = ""
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    typing: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    public: list[str] = field(default_factory=list)
    body: str = ""

    def __post_init__(self) -> None:
        tree = ast.parse(self.text)
        drop: set[int] = set()
        for node in tree.body:
            span = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if node is tree.body[0] and ast.get_docstring(tree, clean=False) is not None:
                self.doc = ast.get_docstring(tree) or ""
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._take(node, self.imports)
            elif isinstance(node, ast.If) and only_types(node):
                for inner in node.body:
                    if isinstance(inner, ast.Import | ast.ImportFrom):
                        self._take(inner, self.typing)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                self.public = [ast.literal_eval(item) for item in getattr(node.value, "elts", [])]
            else:
                self.names |= bound(node)
                continue
            drop |= span
        lines = self.text.splitlines(keepends=True)
        self.body = "".join(line for i, line in enumerate(lines, 1) if i not in drop).strip("\n") + "\n"

    @staticmethod
    def _take(node: ast.Import | ast.ImportFrom, into: dict[str, tuple[str, str | None]]) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                if node.module != "__future__":
                    into[alias.asname or alias.name] = (node.module or "", alias.name)
            else:
                into[alias.asname or alias.name] = (alias.name, None)


def only_types(node: ast.If) -> bool:
    """Whether a statement imports for the type checker and does nothing else."""
    return (
        ast.unparse(node.test) == "TYPE_CHECKING"
        and not node.orelse
        and all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in node.body)
    )


def bound(node: ast.stmt) -> set[str]:
    """Names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return {node.name}
    stored = (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return set(stored)


def rename(text: str, old: str, new: str, bare: bool = True) -> str:
    """The text with a name replaced where it is not an attribute."""
    lines = text.splitlines(keepends=True)
    previous, places = "", list[tuple[int, int]]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string == old and not (bare and previous == "."):
            places.append(token.start)
        previous = token.string
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


def inline(text: str, alias: str) -> str:
    """The text with ``alias.name`` written as ``name``: the module that the alias stood for is this one now."""
    lines = text.splitlines(keepends=True)
    nodes = [
        n
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == alias
    ]
    for node in sorted(nodes, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        raw = lines[node.lineno - 1].encode()
        start = raw[: node.col_offset]
        rest = raw[node.col_offset + len(alias.encode()) + 1 :]
        lines[node.lineno - 1] = (start + rest).decode()
    return "".join(lines)


def in_order(modules: list[Module]) -> list[Module]:
    """The sources, each after those that it imports when it is loaded."""
    by_name = {m.name: m for m in modules}
    done: list[Module] = []

    def visit(m: Module, above: tuple[str, ...]) -> None:
        if m in done:
            return
        if m.name in above:
            sys.exit(f"imports of {m.name} and {above[-1]} go round in a circle.")
        for home, name in m.imports.values():
            for other in (home, f"{home}.{name}"):
                if other in by_name and other != m.name:
                    visit(by_name[other], (*above, m.name))
        done.append(m)

    for m in modules:
        visit(m, ())
    return done


def merge(target: str, modules: list[Module], doc: str | None) -> str:
    """The text of the merged module."""
    inside = {m.name for m in modules}
    faults, seen = list[str](), dict[str, str]()
    drop_twins(modules)
    for m in modules:
        for name in m.names:
            if name in seen:
                faults.append(f"{name} is defined in {seen[name]} and {m.name}")
            seen[name] = m.name
    imports, typing = dict[str, tuple[str, str | None]](), dict[str, tuple[str, str | None]]()
    for m in modules:
        for kept, into in ((m.imports, imports), (m.typing, typing)):
            for local, (home, name) in kept.items():
                if home in inside and name is not None:
                    if name != local:
                        m.body = rename(m.body, local, name)
                elif name is not None and f"{home}.{name}" in inside:
                    m.body = inline(m.body, local)
                elif local in seen or into.get(local, (home, name)) != (home, name):
                    faults.append(f"{m.name} imports {local} from {home}, which is another thing elsewhere")
                else:
                    into[local] = (home, name)
        m.body = without_self_imports(m.body, inside, m.name)
    if faults:
        sys.exit("\n".join(faults))
    typing = {k: v for k, v in typing.items() if k not in imports}
    public = sorted({name for m in modules for name in m.public})
    head = [
        f'"""{(doc or modules[0].doc).strip()}'
        + ('\n"""' if "\n" in (doc or modules[0].doc).strip() else '"""')
    ]
    head.append("from __future__ import annotations")
    head.append("\n".join(written(imports)))
    if typing:
        head.append("if TYPE_CHECKING:\n" + "\n".join("    " + line for line in written(typing)))
    if public:
        head.append("__all__ = [\n" + "".join(f'    "{name}",\n' for name in public) + "]")
    parts = ["\n\n".join(part for part in head if part)]
    for m in modules:
        comment = "" if m is modules[0] and doc is None else commented(m.doc)
        parts.append((comment + "\n" if comment else "") + m.body.strip("\n"))
    return "\n\n\n".join(parts) + "\n"


def drop_twins(modules: list[Module]) -> None:
    """Definitions on one line that an earlier source has to the letter go."""
    known = set[str]()
    for m in modules:
        kept, drop = m.body.splitlines(keepends=True), set[int]()
        for node in ast.parse(m.body).body:
            line = ast.unparse(node)
            if isinstance(node, ast.Assign) and node.lineno == node.end_lineno and line in known:
                drop.add(node.lineno)
                m.names -= bound(node)
            known.add(line)
        m.body = "".join(text for i, text in enumerate(kept, 1) if i not in drop)


def without_self_imports(body: str, inside: set[str], module: str) -> str:
    """The body without imports in functions of what is in the same file now."""
    lines = body.splitlines(keepends=True)
    for node in ast.walk(ast.parse(body)):
        if isinstance(node, ast.ImportFrom) and node.module in inside:
            if any(a.asname for a in node.names):
                sys.exit(f"{module}: a function imports {node.module} under another name.")
            for i in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[i] = ""
        elif isinstance(node, ast.ImportFrom) and any(
            f"{node.module}.{a.name}" in inside for a in node.names
        ):
            sys.exit(f"{module}: a function imports a module that is merged: {ast.unparse(node)}")
    return "".join(lines)


def written(imports: dict[str, tuple[str, str | None]]) -> list[str]:
    """Import statements; the linter sorts and joins them."""
    lines = list[str]()
    for local, (home, name) in imports.items():
        if name is None:
            lines.append(f"import {home}" + (f" as {local}" if local != home else ""))
        else:
            lines.append(f"from {home} import {name}" + (f" as {local}" if local != name else ""))
    return lines


def commented(doc: str) -> str:
    """A docstring of a module as comments."""
    return "".join(f"# {line}".rstrip() + "\n" for line in doc.strip().splitlines())


def texts() -> list[Path]:
    """Files that can name a module."""
    found = [
        path for path in ROOT.iterdir() if path.suffix in (".md", ".toml", ".yml") or path.name == "Makefile"
    ]
    for folder in TEXTS:
        found += (p for p in (ROOT / folder).rglob("*") if p.suffix in ENDINGS and p.is_file())
    return [p for p in found if ".cache" not in p.parts]


def rewrite(moves: dict[str, str]) -> set[Path]:
    """Names the new modules wherever the old ones are named; the files that changed."""
    changed = set[Path]()
    dotted = sorted(moves, key=len, reverse=True)
    pattern = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, dotted)) + r")\b")
    paths = {module_path(old): module_path(new) for old, new in moves.items()}
    path_pattern = re.compile(
        r"(?<!\w)(" + "|".join(map(re.escape, sorted(paths, key=len, reverse=True))) + r")(?!\w)"
    )
    stems = {tuple(old.rsplit(".", 1)): tuple(new.rsplit(".", 1)) for old, new in moves.items()}
    for path in texts():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        new = text
        if path.suffix in (".py", ".pyi"):
            new = module_imports(path, new, stems)
        new = pattern.sub(lambda m: moves[m[1]], new)
        if not str(path).startswith(str(ROOT / "tests" / "mutants")) or path.suffix == ".toml":
            new = path_pattern.sub(lambda m: paths[m[1]], new)
        if path.is_relative_to(SOURCE):
            new = relative_roles(path, new, moves)
        if new != text:
            path.write_text(new)
            changed.add(path)
    return changed


def module_path(module: str) -> str:
    """The path of a module below the package, as planted faults and pages write it."""
    return "/".join(module.split(".")[1:]) + ".py"


def relative_roles(path: Path, text: str, moves: dict[str, str]) -> str:
    """Docstrings that name a neighbour, as in :mod:`.poset`."""
    package = ".".join(path.relative_to(SOURCE).parts[:-1])

    def absolute(found: re.Match[str]) -> str:
        old = f"{package}{found[1]}"
        return f":mod:`{moves[old]}`" if old in moves else found[0]

    return re.sub(r":mod:`(\.[\w.]+)`", absolute, text)


def module_imports(path: Path, text: str, stems: dict[tuple[str, ...], tuple[str, ...]]) -> str:
    """``from package import module`` with the module's new home."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    lines = text.splitlines(keepends=True)
    nodes = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.ImportFrom) and any((n.module or "", a.name) in stems for a in n.names)
    ]
    for node in sorted(nodes, key=lambda n: n.lineno, reverse=True):
        indent = lines[node.lineno - 1][: node.col_offset]
        stay = [a for a in node.names if (node.module or "", a.name) not in stems]
        out = [f"{indent}from {node.module} import {', '.join(map(ast.unparse, stay))}\n"] if stay else []
        for alias in node.names:
            if (node.module or "", alias.name) in stems:
                home, stem = stems[(node.module or "", alias.name)]
                local = alias.asname or alias.name
                out.append(
                    f"{indent}from {home} import {stem}" + (f" as {local}" if local != stem else "") + "\n"
                )
        lines[node.lineno - 1 : node.end_lineno] = out
    return "".join(lines)


def mend_faults(target: str, before: dict[str, str]) -> None:
    """Quotations of planted faults that stand twice in the merged module get the lines before them."""
    merged = file_of(target).read_text()
    for table in (ROOT / "tests" / "mutants").glob("*.toml"):
        blocks = re.split(r"(?m)^(?=\[\[fault\]\])", table.read_text())
        for i, block in enumerate(blocks):
            if not block.startswith("[[fault]]"):
                continue
            row = tomllib.loads(block)["fault"][0]
            if row["module"] != module_path(target) or merged.count(row["old"]) == 1:
                continue
            homes = [whole for whole in before.values() if whole.count(row["old"]) == 1]
            old, new = longer(row["old"], row["new"], homes[0], merged) if len(homes) == 1 else ("", "")
            if old:
                blocks[i] = (
                    "[[fault]]\n" + "".join(map(entry, (row | {"old": old, "new": new}).items())) + "\n"
                )
            else:
                print(f"{table.name}: look at the fault of {row['module']}: {row['old']!r}")
        table.write_text("".join(blocks))


def entry(pair: tuple[str, str | list[str]]) -> str:
    """One line of a planted fault."""
    key, value = pair
    if isinstance(value, list):
        return f"{key} = [{', '.join(map(repr, value))}]\n"
    if "\n" in value:
        quote = "'''" if not value.endswith("'") else '"""'
        return f"{key} = {quote}\n{value}{quote}\n"
    return f"{key} = '{value}'\n" if "'" not in value else f"{key} = '''{value}'''\n"


def longer(old: str, new: str, whole: str, merged: str) -> tuple[str, str]:
    """A quotation with as many lines before it as make it unique."""
    start = whole.index(old)
    while start > 0:
        start = whole.rfind("\n", 0, start - 1) + 1
        prefix = whole[start : whole.index(old)]
        if merged.count(prefix + old) == 1:
            return prefix + old, prefix + new
    return "", ""


def tidy(paths: set[Path]) -> None:
    """Imports sorted and joined, unused ones removed, by the linter."""
    python = [str(p) for p in paths if p.suffix in (".py", ".pyi") and p.exists()]
    ruff = str(ROOT / ".venv" / "bin" / "ruff")
    subprocess.run(
        [ruff, "check", "-q", "--fix", "--select", "I,F401,F811,RUF022", *python], cwd=ROOT, check=False
    )
    subprocess.run([ruff, "format", "-q", *python], cwd=ROOT, check=False)


def move(target: str, sources: list[str], doc: str | None, renames: list[str]) -> None:
    """Writes the target, removes the sources and rewrites every name."""
    before = {name: file_of(name).read_text() for name in sources}
    for row in renames:
        module, pair = row.split(":")
        old, new = pair.split("=")
        before[module] = rename(before[module], old, new)
    modules = in_order([Module(name, text) for name, text in before.items()])
    text = modules[0].text if len(modules) == 1 and doc is None else merge(target, modules, doc)
    stem = SOURCE.joinpath(*target.split("."))
    for name in sources:
        file_of(name).unlink()
    folder = stem if stem.is_dir() else None
    if folder and all(p.name in ("__init__.py",) or "__pycache__" in p.parts for p in folder.rglob("*.py")):
        init = folder / "__init__.py"
        if (
            init.exists()
            and ast.get_docstring(ast.parse(init.read_text()))
            and len(ast.parse(init.read_text()).body) > 1
        ):
            sys.exit(f"{init} has more than a docstring: name it as a source.")
        subprocess.run(["rm", "-r", str(folder)], check=True)
    path = SOURCE.joinpath(*target.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for name in sources:
        empty = SOURCE.joinpath(*name.split(".")[:-1])
        rest = (
            [p for p in empty.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
            if empty.is_dir()
            else []
        )
        if empty.is_dir() and all(
            p.name == "__init__.py" and len(ast.parse(p.read_text()).body) <= 1 for p in rest
        ):
            subprocess.run(["rm", "-r", str(empty)], check=True)
    moves = {name: target for name in sources if name != target}
    changed = rewrite(moves) if moves else set[Path]()
    tidy(changed | {path})
    mend_faults(target, before)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--doc", help="what the module holds, which a merged one needs a new sentence for")
    parser.add_argument("--rename", action="append", default=[], help="MODULE:OLD=NEW, before merging")
    given = parser.parse_args()
    if len(given.sources) > 1 and given.doc is None:
        parser.error("say with --doc what the merged module holds")
    move(given.target, given.sources, given.doc, given.rename)


if __name__ == "__main__":
    main()
