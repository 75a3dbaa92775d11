"""Releases on a fixed tape of bits: the numbers and the statements stay what they were when the tape was made.

``python -m tests.unit.release.test_same_tape`` writes the tape again; do so only where a release is meant to change.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from contextlib import suppress
from fractions import Fraction
from importlib import util
from pathlib import Path
from typing import Any

import pytest

import isotone as iso
from isotone.ledger import Ledger

ROOT = Path(__file__).resolve().parents[3]
STORED = ROOT / "tests" / "fixtures" / "same_tape.json"


class Tape:
    """Bytes of a hash of a counter in the place of the operating system's. It starts again with every attempt."""

    def __init__(self) -> None:
        self.used, self.rest = 0, b""

    def urandom(self, size: int) -> bytes:
        while len(self.rest) < size:
            self.rest += hashlib.sha512(b"isotone tape %d" % self.used).digest()
            self.used += 1
        found, self.rest = self.rest[:size], self.rest[size:]
        return found


def on_tape(patch: pytest.MonkeyPatch) -> None:
    tape, attempt = Tape(), Ledger.attempt

    def begin(self: Ledger, *args: Any, **kwargs: Any) -> Any:
        tape.used, tape.rest = 0, b""
        return attempt(self, *args, **kwargs)

    patch.setattr(os, "urandom", tape.urandom)
    patch.setattr(Ledger, "attempt", begin)


def people(folder: Path) -> None:
    """Answers of 400 people, wide and long, with groups, numbers and doses."""
    wide, long, visits = ["id,a,b,c,region,sex,age,dose,ill,score"], ["id,item,region"], ["id,place,sort,n"]
    for k in range(400):
        h = hashlib.sha256(b"%d" % k).digest()
        a, b, c = h[0] < 180, h[0] < 90, h[1] < 60
        region, sex = ["north", "south", "east"][h[2] % 3], "fm"[h[3] % 2]
        age, dose = 18 + h[4] % 70, h[5] % 10
        ill, score = int(h[6] < 3 * age), round(age / 100 + h[7] / 2000, 4)
        wide.append(f"{k // 2},{int(a)},{int(b)},{int(c)},{region},{sex},{age},{dose},{ill},{score}")
        long += [f"{k // 2},{item},{region}" for item, yes in zip("abc", (a, b, c), strict=True) if yes]
        visits += [f"{k % 150},p{h[8] % 40},{'xy'[h[9] % 2]},{h[10] % 9}" for _ in range(1 + h[11] % 3)]
    for name, lines in (("wide", wide), ("long", long), ("visits", visits)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    places = [f"p{k},{'town' if k % 3 else 'city'},{1000 + k}" for k in range(40)]
    (folder / "places.csv").write_text("\n".join(["place,class,people", *places]) + "\n")
    pairs = [f"p{k},{k % 7},{k % 5}" for k in range(40)]
    (folder / "pairs.csv").write_text("\n".join(["place,old,new", *pairs]) + "\n")


CHAIN = '[order]\nelements = ["a", "b", "c"]\nrelations = [["b", "a"]]\n'
TREE = '[order]\nchildren = "partition"\n[order.parents]\na = "all"\nb = "all"\nc = "all"\n'
PLACES = '[table]\ncategory = "place"\ncategories_file = "places.csv"\n'
LINE = '[curve]\nx = "age"\ny = "ill"\nbounds = [18, 88]\n'

CELLS = (
    'by = { region = ["north", "south"], sex = ["f", "m"] }\n'
    'margins = ["", "region", "*"]\nunlisted = "other"\n'
)

SPECS: dict[str, tuple[str, str, str, str]] = {
    "wide": ("wide.csv", 'unit = "id"', "epsilon = 1", CHAIN),
    "several": ("wide.csv", 'unit = "id"\ncontributions = 2', "epsilon = 1", CHAIN),
    "long": ("long.csv", 'unit = "id"\nelement = "item"', "epsilon = 1", CHAIN),
    "dropped": ("wide.csv", 'on_violation = "drop"\nmissing = "yes"', "epsilon = 1", CHAIN + "total = true\n"),
    "short": ("wide.csv", "", 'epsilon = 1\nneighbours = "replace"', CHAIN + "max_size = 2\n"),
    "approximate": ("wide.csv", "", "epsilon = 1\ndelta = 1e-6", CHAIN),
    "waves": ("wide.csv", "", "rho = 0.1", CHAIN + 'waves = 3\nmechanism = "OrderGaussianMechanism"\n'),
    "tree": ("long.csv", 'unit = "id"\nelement = "item"', "epsilon = 1", TREE.replace("[order]\n", '[order]\ncare = "levels"\n', 1)),
    "root": ("long.csv", 'element = "item"', 'epsilon = 1\nneighbours = "replace"',
             TREE.replace("[order]\n", '[order]\nroot = { records = 500, catch_all = "c" }\n', 1)),
    "asked": ("wide.csv", 'columns = { c = "sex" }', "epsilon = 1",
              CHAIN + '[questions.a]\nlabel = "Old?"\ncolumn = "age"\nyes = ">= 50"\n[questions.c]\nyes = ["f"]\n'),
    "groups": ("wide.csv", 'unit = "id"', "epsilon = 1", CHAIN + 'total = true\nby = { region = ["north", "south"] }\n'),
    "cells": ("wide.csv", 'unit = "id"', "epsilon = 1", CHAIN + CELLS),
    "table": ("visits.csv", 'unit = "id"\ncontributions = 2', "epsilon = 1", PLACES + "upper = 30\n"),
    "strata": ("visits.csv", 'unit = "id"', "epsilon = 0.8", PLACES + 'upper = 30\nstrata = "class"\npopulation = "people"\n'),
    "sorts": ("visits.csv", 'unit = "id"\ncontributions = 2', "epsilon = 1", PLACES + 'upper = 20\ncounts = ["x", "y"]\nkind = "sort"\n'),
    "pairs": ("pairs.csv", "contributions = 1", "epsilon = 1", PLACES + 'upper = 9\ncounts = ["old", "new"]\n'),
    "normal": ("visits.csv", 'unit = "id"\ncontributions = 20', "epsilon = 1\ndelta = 1e-6", PLACES + "upper = 30\n"),
    "band": ("wide.csv", 'unit = "id"', "epsilon = 1", LINE + 'y_range = [0, 1]\nband = "records"\noutput = "records"\n'),
    "labels": ("wide.csv", "", "rho = 0.1", LINE + 'y_values = [0, 1]\nx_grid = "integers"\nloss = "logistic"\n'),
    "median": ("wide.csv", "", "epsilon = 1", LINE.replace('"ill"', '"score"') + 'y_range = [0, 1]\nloss = "absolute"\npublic_n = 400\n'),
    "bent": ("wide.csv", "", "epsilon = 2", LINE + 'y_range = [0, 1]\nshape = ["lipschitz", 0.1]\nincreasing = "auto"\n'),
    "surface": ("wide.csv", 'unit = "id"\ncontributions = 2', "epsilon = 1",
                '[curve]\nx = ["age", "dose"]\ny = "ill"\nbounds = [[18, 88], [0, 9]]\ny_range = [0, 1]\nx_grid = [4, 3]\nincreasing = [true, false]\n'),
}  # fmt: skip


def spec_text(name: str) -> str:
    path, data, privacy, asked = SPECS[name]
    return (
        f'[data]\npath = "{path}"\n{data}\n[privacy]\n{privacy}\nledger = "{name}.ledger"\n'
        f"budget = {{ {'rho = 1' if 'rho' in privacy else 'epsilon = 9, delta = 0.1'} }}\n"
        f'{asked}\n[output]\nfolder = "{name}"\nconfidence = 0.9\n'
    )


def gallery() -> Any:
    found = util.spec_from_file_location("gallery_on_tape", ROOT / "docs" / "gallery.py")
    assert found is not None
    assert found.loader is not None
    module = util.module_from_spec(found)
    sys.modules[module.__name__] = module
    found.loader.exec_module(module)
    return module


EXAMPLES = ("health-survey", "homicides", "calibration", "two-features")


def released(name: str, folder: Path) -> iso.Release:
    if name in SPECS:
        people(folder)
        (folder / "spec.toml").write_text(spec_text(name))
        return iso.load_spec(folder / "spec.toml").release()
    if name in EXAMPLES:
        place = folder / "examples" / name
        shutil.copytree(ROOT / "examples" / name, place, ignore=shutil.ignore_patterns("out", "*.ledger*"))
        (folder / "data").symlink_to(ROOT / "data")
        return iso.load_spec(place / "spec.toml").release()
    _, _, budget, make = next(entry for entry in gallery().ENTRIES if entry[3].__name__ == name)
    return make(iso.Ledger(folder / "gallery.ledger", **budget))


def facts(release: iso.Release) -> dict[str, Any]:
    """The numbers, and what the manifest says about noise and guarantee."""
    manifest = release.manifest
    named = {
        key: manifest.get(key) for key in ("total", "total_sd", "law", "waves", "finer", "sums", "measured")
    }
    return {
        "columns": {key: digest(column) for key, column in release.columns.items()},
        "value": [round(float(x), 6) for x in release.columns["value"][:12]],
        "guarantee": manifest.guarantee,
        "mechanism": digest(manifest.mechanism),
        "name": manifest.mechanism["name"],
        "drawn": {key: digest(said) for key, said in named.items() if said is not None},
    }  # fmt: skip


def digest(said: Any) -> str:
    plain = json.dumps(_rounded(said), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def _rounded(said: Any) -> Any:
    """Numbers to nine digits, and exact ones as fractions, however they are written."""
    if isinstance(said, str) and said[:1] in "-0123456789":
        with suppress(ValueError, ZeroDivisionError):
            return str(Fraction(said))
    if isinstance(said, dict):
        return {key: _rounded(value) for key, value in said.items()}
    if isinstance(said, (list, tuple)):
        return [_rounded(value) for value in said]
    return float(f"{said:.9g}") if isinstance(said, float) else said


CASES = (
    *SPECS,
    *EXAMPLES,
    "survey",
    "gaussian",
    "breakdown",
    "debian",
    "states",
    "teachers",
    "diabetes",
    "tumours",
)


@pytest.mark.parametrize("name", CASES)
def test_a_release_on_the_same_tape_says_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    on_tape(monkeypatch)
    made = released(name, tmp_path)
    assert facts(made) == json.loads(STORED.read_text())[name]
    assert iso.verify(made.save(tmp_path / "saved", report=False)).holds


def main() -> None:
    import tempfile

    found: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        on_tape(patch)
        for name in CASES:
            with tempfile.TemporaryDirectory() as folder:
                found[name] = facts(released(name, Path(folder)))
                print(name, found[name]["name"], found[name]["value"][:6])
    STORED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
