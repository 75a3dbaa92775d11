"""The arrows of the house point down: what each package may import, lazy imports included."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import isotone
from isotone.privacy.guarantee import NEIGHBOURS

SOURCE = Path(isotone.__file__).parent

FLOORS: list[set[str]] = [
    {
        "array_types",
        "errors",
        "mechanism",
        "kernels",
        "lazy",
        "process",
        "svg",
        "privacy.checks",
    },  # checks of numbers know errors only
    {"noise", "order"},
    {"privacy"},
    {"linear"},
    {"planning"},
    {"reading"},
    {"counts", "tables", "curves", "distribution"},
    {"published"},
    {"inference"},
    {"ledger"},
    {"series"},
    {"audit", "interop", "forms"},
    {"release"},
    {"desk"},
    {"cli"},
    {"", "__main__"},  # the package itself
]
"""From the ground up. Rooms of one floor know nothing of each other, the ground floor excepted."""

DOORS: dict[tuple[str, str], str] = {
    ("counts", "published.counts"): "L2Mechanism and LpMechanism are public names of counts",
    (
        "tables",
        "published.tables",
    ): "scales and fixed_point(constructor=…) are public names of tables",
    (
        "curves.regression",
        "published.curves",
    ): "method='threshold' is a public option of estimators, which warns",
    (
        "curves.poset_regression",
        "published.curves",
    ): "method='threshold' and 'coupling' are public options of estimators, which warn",
}
"""Public names whose code lives in ``published``: the only arrows that may point up."""


def floor_of(module: str) -> int:
    """The floor of a module, written without the leading ``isotone``; the longest name decides."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        for height, rooms in enumerate(FLOORS):
            if ".".join(parts[:length]) in rooms:
                return height
    raise AssertionError(f"isotone.{module} stands on no floor: add its package to FLOORS.")


def imports(path: Path, source: str) -> Iterator[str]:
    """Every module of isotone that a file imports at any depth, but for types only."""
    here = path.relative_to(SOURCE).parts
    tree = ast.parse(source)
    types_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
    for node in ast.walk(tree):
        if node in types_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "isotone")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(["isotone", *here[: len(here) - node.level], *filter(None, [node.module])])
            if base == "isotone":
                yield from (f"isotone.{alias.name}" for alias in node.names)
            elif base.startswith("isotone."):
                yield base
        elif isinstance(node, ast.Constant) and re.fullmatch(r"isotone(\.\w+)+", str(node.value)):
            yield str(node.value)  # a name that is imported when asked for


def wrong(module: str, imported: str) -> bool:
    """Whether the arrow from one module to another points up, or to a neighbour on its floor."""
    if module.split(".")[0] == imported.split(".")[0]:
        return False
    if any(module.startswith(door) and imported.startswith(to) for door, to in DOORS):
        return False
    above, below = floor_of(module), floor_of(imported)
    return above < below or (above == below != 0)


def arrows() -> Iterator[tuple[str, str]]:
    stubs = SOURCE.rglob("*.pyi")  # they list the public names of packages
    for path in sorted([*SOURCE.rglob("*.py"), *stubs]):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for imported in imports(path, path.read_text()):
            known = SOURCE.joinpath(*imported.split(".")[1:])
            if known.exists() or known.with_suffix(".py").exists():
                yield module, imported.removeprefix("isotone.")


def test_no_arrow_points_up() -> None:
    found = list(arrows())
    assert len(found) > 500  # the walk sees the whole package
    assert [f"{module} -> {imported}" for module, imported in found if wrong(module, imported)] == []


def test_every_package_stands_on_a_floor() -> None:
    for path in SOURCE.iterdir():
        if path.name != "__pycache__" and path.name != "py.typed":
            floor_of("" if path.stem == "__init__" else path.stem)


def test_the_walk_sees_lazy_relative_and_named_imports() -> None:
    source = (
        "def f():\n    from isotone.release import spec\n"
        "from .. import errors\nfrom isotone import cli\n"
        "HOMES = {'x': 'isotone.ledger.ledger'}\n"
        "if TYPE_CHECKING:\n    from isotone.audit import exact\n"
    )
    seen = set(imports(SOURCE / "order" / "poset.py", source))
    assert seen == {"isotone.release", "isotone.errors", "isotone.cli", "isotone.ledger.ledger"}


def test_arrows_that_point_up_or_sideways_are_wrong() -> None:
    assert wrong("order.poset", "privacy.unit")
    assert wrong("counts.plan", "tables.plan")
    assert wrong("interop.opendp", "release.recipes")
    assert wrong("noise.bits", "order.poset")
    assert wrong("counts.plan", "published.tables.lp")
    assert not wrong("noise.simulate", "privacy.checks")
    assert not wrong("release.spec", "reading.sources")


KINDS = {"counts", "table", "curve", "order"}
"""What manifests and specs call the kinds of release."""


def switches(source: str, names: Collection[str]) -> Iterator[int]:
    """Lines that compare something with one of the names, match it, or look it up in a table of them."""

    def named(node: ast.AST | None) -> bool:
        return isinstance(node, ast.Constant) and node.value in names

    for node in ast.walk(ast.parse(source)):
        asked: list[ast.AST | None] = []
        if isinstance(node, ast.Compare):
            for part in (node.left, *node.comparators):
                asked += part.elts if isinstance(part, (ast.Tuple, ast.List, ast.Set)) else [part]
        elif isinstance(node, ast.MatchValue):
            asked = [node.value]
        elif isinstance(node, ast.Dict) and sum(map(named, node.keys)) > 1:
            asked = list(node.keys)
        if any(map(named, asked)):
            yield getattr(node, "lineno", 0)


def test_only_the_kinds_know_which_kind_a_release_is() -> None:
    above = ("reading", "ledger", "audit", "interop", "release", "desk", "cli")
    files = [path for room in above for path in (SOURCE / room).rglob("*.py")]
    assert len(files) > 60
    kinds = SOURCE / "release" / "kinds"
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in files
        if kinds not in path.parents
        for line in switches(path.read_text(), KINDS)
    ]
    assert found == []


def test_switches_on_the_kind_are_seen() -> None:
    seen = (
        "a = release.kind == 'counts'",
        "a = 'order' not in manifest",
        "a = kind in ('table', 'curve')",
        "a = {'counts': f, 'table': g}[release.kind]",
        "match kind:\n    case 'curve':\n        pass",
    )
    assert all(list(switches(source, KINDS)) for source in seen)
    assert not list(switches("a = {'order': entries}\nb = guarantee.kind == 'pure'", KINDS))


def test_neighbours_are_asked_for_what_they_are_and_not_for_their_name() -> None:
    known = SOURCE / "privacy" / "guarantee.py"
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        if path != known
        for line in switches(path.read_text(), NEIGHBOURS)
    ]
    assert found == []
    assert list(switches("a = guarantee.neighbours == 'replace'", NEIGHBOURS))


DESCRIBED = {"Answers", "Curve", "Distribution", "Unit"}
"""What people describe has the name of what it becomes: a unit with its neighbours, the words of an answer, a fitted curve."""


def test_a_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name.strip("_"), []).append(str(path.relative_to(SOURCE)))
    assert len(homes) > 200  # the walk sees the whole package
    homes.pop("Series")  # orders in series, as everybody calls them, and a series over time
    described = SOURCE / "release"
    for name in DESCRIBED:
        assert sum(described in (SOURCE / home).parents for home in homes[name]) == 1
    twice = {name: found for name, found in homes.items() if len(found) > (2 if name in DESCRIBED else 1)}
    assert twice == {}


def test_files_that_the_guide_names_exist() -> None:
    guide = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:\w+/)+\w+\.pyi?)`", guide))
    roots = (SOURCE, SOURCE.parents[1])
    missing = {path for path in named if not any((root / path).exists() for root in roots)}
    assert len(named) > 30
    assert all("/KIND/" in path for path in missing), missing


def unknown_names(path: Path, text: str) -> Iterator[str]:
    """Modules of isotone, and names in them, that a text refers to and that do not exist."""
    package = path.relative_to(SOURCE).parts[:-1]
    for role, target in re.findall(r":(mod|class|func|meth|attr|data):`~?([\w.]+)`", text):
        if role == "mod" and target.startswith("."):
            parts = [*package, *target.split(".")[1:]]
        elif target.startswith("isotone."):
            parts = target.split(".")[1:]
        else:
            continue  # a name of the same module, or of another library
        *parts, name = (
            parts[:-1] if role in ("meth", "attr") else parts
        )  # a member is looked for in its class alone
        here = SOURCE.joinpath(*parts)
        module = here.with_suffix(".py") if here.with_suffix(".py").exists() else here / "__init__.py"
        texts = [path.read_text() for path in (module, module.with_suffix(".pyi")) if path.exists()]
        named = role != "mod" and re.search(rf"\b{name}\b", "".join(texts))
        if not (named or (here / name).exists() or (here / f"{name}.py").exists()):
            yield target


def test_what_docstrings_refer_to_exists() -> None:
    found = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if (names := list(unknown_names(path, path.read_text())))
    }
    assert found == {}
    wrong = ":mod:`.bipartition_tree` :class:`~isotone.order.Posset` :func:`isotone.order.poset.no_such_name`"
    assert len(list(unknown_names(SOURCE / "order" / "x.py", wrong))) == 3
