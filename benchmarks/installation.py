"""How large an installation is: isotone alone, and what each extra adds."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from isotone.mechanism import Progress

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
MOST_BASE = 500e6
"""The most that isotone alone may take, in bytes."""


def requirements() -> tuple[list[str], dict[str, list[str]]]:
    """What isotone alone needs, and what each extra needs."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return project["dependencies"], project["optional-dependencies"]


def closure(wanted: Iterable[str], place: Path | None = None) -> dict[str, Distribution]:
    """Every package that these need, however deep, as installed here or in a folder. PackageNotFoundError if one is missing."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in wanted]
    while waiting:
        need = waiting.pop()
        name = canonicalize_name(need.name)
        if name not in found:
            found[name] = _installed(name, place)
        for text in found[name].requires or ():
            inner = Requirement(text)
            asked = (
                any(inner.marker.evaluate({"extra": extra}) for extra in need.extras or {""})
                if inner.marker
                else True
            )
            if asked and canonicalize_name(inner.name) not in found:
                waiting.append(inner)
    return found


def _installed(name: str, place: Path | None) -> Distribution:
    if place is None:
        return distribution(name)
    for found in Distribution.discover(name=name, path=[str(place)]):
        return found
    raise PackageNotFoundError(name)


def size(packages: Iterable[Distribution]) -> int:
    """Bytes on the disk, without the byte code that Python writes."""
    files = [Path(str(file.locate())) for package in packages for file in package.files or ()]
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())


def run(quick: bool, progress: Progress) -> str:
    del quick
    base, extras = requirements()
    held = closure(base)
    largest = sorted(held, key=lambda name: -size([held[name]]))[:6]
    total = size(held.values())
    files = (PROJECT.parent / "src").rglob("*")
    own = sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
    lines = [
        "Bytes of the installed files, from the lists that packages keep of them, without byte code.",
        "Sizes differ between systems: these are of the versions in `requirements.lock`.",
        "",
        f"isotone itself has {own / 1e6:.0f} MB. What it needs without any extra has {total / 1e6:.0f} MB, of which "
        + ", ".join(f"{name} {size([held[name]]) / 1e6:.0f}" for name in largest)
        + ".",
        "",
        "| extra | what for | adds, MB |",
        "|---|---|---|",
    ]
    for at, (name, needs) in enumerate(extras.items()):
        progress(at / len(extras), name)
        try:
            more = {key: one for key, one in closure(needs).items() if key not in held}
            lines.append(f"| `{name}` | {PURPOSES[name]} | {size(more.values()) / 1e6:.0f} |")
        except PackageNotFoundError:
            lines.append(f"| `{name}` | {PURPOSES[name]} | not installed here |")
    progress(1.0, "done")
    return "\n".join(lines)


PURPOSES = {
    "fast": "compiled code for large orders, large counts and curves with a shape",
    "plot": "pictures by matplotlib (`.plot()`, `isotone order plot`); reports need none",
    "networkx": "orders from and to networkx",
    "frames": "pandas, polars and ibis frames as data and results",
    "sklearn": "estimators for pipelines of scikit-learn",
    "programs": "published linear programs over scales, which releases do not need",
    "opendp": "measurements of OpenDP",
    "accounting": "privacy loss distributions of dp_accounting",
    "postgres": "a ledger that several machines share",
    "warehouse": "counting in PostgreSQL and other databases, through ibis",
    "spark": "counting on a Spark cluster",
    "sign": "signatures of releases",
    "desk": "the desk in the browser, `isotone serve`",
}
