"""Walks the releases and prints how many files of isotone each passes through, and how often it changes file.

    python tools/flows.py

Each flow runs once to load everything, and is walked the second time. Modules are counted in a process of its own. What a new
parameter of counts touches is counted by the test of descriptions, which adds one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import isotone as iso

SOURCE = str(Path(iso.__file__).parent)
PEOPLE = 200
DATA = pa.table(
    {
        "person": range(PEOPLE),
        "a": [k % 2 for k in range(PEOPLE)],
        "b": [int(k % 4 == 0) for k in range(PEOPLE)],
        "c": [int(k % 3 == 0) for k in range(PEOPLE)],
        "region": ["north", "south"] * (PEOPLE // 2),
        "sex": ["f", "f", "m", "m"] * (PEOPLE // 4),
        "place": [f"p{k * k % 60}" for k in range(PEOPLE)],
        "age": [18 + k % 70 for k in range(PEOPLE)],
        "ill": [k % 2 for k in range(PEOPLE)],
    }
)
P = iso.Poset(["a", "b", "c"], [("b", "a")])
LISTS = {"region": ["north", "south"], "sex": ["f", "m"]}
FLOWS: dict[str, tuple[Any, int, int]] = {
    "counts": (iso.Counts(P, unit="person"), 35, 300),
    "table": (iso.Table("place", [f"p{k}" for k in range(60)], upper=20, unit="person"), 30, 500),
    "curve": (iso.Curve("age", y="ill", bounds=(18, 90), y_range=(0, 1), unit="person"), 32, 350),
    "breakdown": (iso.Counts(P, unit="person", by=LISTS, margins=["", "region", "*"]), 40, 450),
}
SPEC = """
[data]
path = "people.csv"
unit = "person"
[privacy]
epsilon = {epsilon}
ledger = "people.ledger"
[order]
elements = ["a", "b", "c"]
relations = [["b", "a"]]
[output]
folder = "{folder}"
report = false
"""
MODULES = """
import sys
import isotone as iso
import pyarrow as pa
with iso.Ledger({ledger!r}, epsilon=1) as ledger:
    data = pa.table({{"a": [1, 0], "b": [1, 0]}})
    iso.Counts(iso.Poset(["a", "b"], [("b", "a")])).release(data, epsilon=1, ledger=ledger)
print(sum(name.partition(".")[0] == "isotone" for name in sys.modules))
"""


def walked(run: Callable[[], Any]) -> tuple[int, int]:
    """How many files of isotone a run enters, and how often it goes from one into another."""
    files: set[str] = set()
    switches = 0

    def seen(frame: FrameType, event: str, _: Any) -> None:
        nonlocal switches
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(SOURCE):
            return
        files.add(file)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(SOURCE):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != file:
            switches += 1

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(before)
    return len(files), switches


def flows(folder: Path) -> dict[str, tuple[int, int]]:
    """Files and switches of each flow, warm."""
    found: dict[str, tuple[int, int]] = {}
    with iso.Ledger(folder / "flows.ledger", epsilon=1_000, unit="person") as ledger:
        for name, (described, _, _) in FLOWS.items():
            described.release(DATA, epsilon=1, ledger=ledger)
            found[name] = walked(lambda d=described: d.release(DATA, epsilon=1, ledger=ledger))
    names = DATA.column_names
    rows = [",".join(str(row[name]) for name in names) for row in DATA.to_pylist()]
    (folder / "people.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    iso.Ledger(folder / "people.ledger", epsilon=10, unit="person").create()
    for name, epsilon in (("cold", 1), ("warm", 2)):
        (folder / f"{name}.toml").write_text(SPEC.format(folder=name, epsilon=epsilon))
    iso.load_spec(folder / "cold.toml").release()
    found["spec, counts"] = walked(lambda: iso.load_spec(folder / "warm.toml").release())
    return found


def modules(folder: Path) -> int:
    """How many modules of isotone a release of counts loads in a new process."""
    code = MODULES.format(ledger=str(folder / "modules.ledger"))
    return int(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    )


def main() -> None:
    """The command line."""
    targets = {name: (files, switches) for name, (_, files, switches) in FLOWS.items()}
    targets["spec, counts"] = (50, 1_000)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        print(f"{'flow':<16}{'files':>8}{'target':>8}{'switches':>10}{'target':>8}")
        for name, (files, switches) in flows(folder).items():
            print(f"{name:<16}{files:>8}{targets[name][0]:>8}{switches:>10,}{targets[name][1]:>8,}")
        print(f"modules of isotone that a release of counts loads: {modules(folder)} (target 120)")


if __name__ == "__main__":
    main()
