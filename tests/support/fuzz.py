"""What fuzzing shares: hostile specs, files and manifests, and what must hold whatever they say.

Checks, not tests: ``tests/fuzz`` runs them on a few examples, ``make audit`` on many.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import isotone as iso
from isotone.errors import IsotoneError
from isotone.ledger.ledger import Ledger
from isotone.release import load_release, load_spec, verify
from isotone.release.order_files import load_order, read_categories
from isotone.release.spec import Spec
from tests.support import flat

PEOPLE = (
    "person,hyp,twice,meds,county,age,risk\n"
    "1,yes,no,,A,30,0.1\n2,yes,yes,no,B,40,0.9\n3,no,,yes,A,50,0.5\n3,yes,,,Ω,x,-7\n,yes,yes,yes,A,60,1e99\n"
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.sampled_from(
    ["hyp", "twice", "meds", "person", "county", "age", "risk", "A", "B", "", "nobody", "Ω", " "]
)
numbers = st.one_of(
    st.sampled_from(
        [
            "1",
            "0.5",
            "1/3",
            "1e-6",
            "1e-300",
            "0",
            "-1",
            "1e400",
            "1e99999999",
            "nan",
            "inf",
            "x",
            "1/0",
            "0x1",
            "١",
        ]
    ),
    st.sampled_from([1, 2, 3, 0.5, 0, -1, 7, 1e308, 10**30, 2**63, True, 0.0]),
    st.integers(-3, 60),
    st.floats(allow_nan=True, allow_infinity=True),
)
scalars = st.one_of(names, numbers, texts, st.booleans(), st.just(date(2021, 1, 1)))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def _section(draw: Any, required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    """What belongs there, with a few of the optional entries."""
    chosen = draw(st.sets(st.sampled_from(sorted(optional)), max_size=2)) if optional else set()
    return {key: draw(good) for key, good in {**required, **{k: optional[k] for k in sorted(chosen)}}.items()}


@st.composite
def _spoiled(draw: Any, good: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """Half of the time a spec as it is, else with entries replaced by anything, taken away or added."""
    spec = draw(good)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        section = spec[draw(st.sampled_from(sorted(spec)))]
        if isinstance(section, dict) and section and draw(st.integers(0, 4)):
            key = draw(st.sampled_from(sorted(section)))
            if draw(st.integers(0, 3)):
                section[key] = draw(values)
            else:
                del section[key]
        else:
            spec[draw(texts)] = draw(values)
    return spec


_size = st.integers(1, 4)
_words = st.lists(names, min_size=1, max_size=4)
_amount = st.sampled_from(["1", "0.5", 1, 0.25, "1/3", "20"])
_data = _section(
    {"path": st.sampled_from(["people.csv", "people.csv", "people.csv", "none.csv", "people.*"])},
    {
        "unit": st.just("person"),
        "element": st.just("county"),
        "columns": st.dictionaries(names, names, max_size=2),
        "yes": _words,
        "missing": st.sampled_from(["no", "yes"]),
        "on_violation": st.sampled_from(["close", "drop"]),
        "contributions": _size,
        "by": st.just("county"),
        "groups": st.just(["A", "B"]),
    },
)
_privacy = _section(
    {"epsilon": _amount, "ledger": st.just("x.ledger"), "budget": st.just({"epsilon": "40"})},
    {
        "delta": st.sampled_from(["1e-6", 0]),
        "rho": _amount,
        "dataset": names,
        "unit": st.just("person"),
        "neighbours": st.sampled_from(["add-remove", "replace"]),
    },
)
_order = _section(
    {"parents": st.just({"twice": "hyp", "meds": "hyp"})},
    {
        "mechanism": st.sampled_from(
            [
                "best",
                "PosetMechanism",
                "LaplaceMechanism",
                "LInfinityMechanism",
                "GaussianMechanism",
                "L2Mechanism",
            ]
        ),
        "max_size": _size,
        "total": st.booleans(),
    },
)
_listed = _section(
    {
        "elements": st.just(["hyp", "twice", "meds"]),
        "relations": st.just([["twice", "hyp"], ["meds", "hyp"]]),
    },
    {},
)
_table = _section(
    {"category": st.just("county"), "categories": st.just(["A", "B", "C"]), "upper": st.integers(1, 9)},
    {
        "count": st.sampled_from(["age", "risk"]),
        "emphasis": st.sampled_from(["counts", "both", "distribution", 0, 0.3, 1]),
    },
)
_curve = _section(
    {
        "x": st.just("age"),
        "y": st.just("risk"),
        "bounds": st.sampled_from([[0, 100], ["-1e9", "1e9"], [0, "1/3"]]),
        "y_range": st.sampled_from([[0, 1], [-1, "0.5"]]),
    },
    {
        "increasing": st.sampled_from([True, False, "auto"]),
        "loss": st.sampled_from(["squared", "absolute", "logistic", "huber"]),
        "method": st.sampled_from(["additive", "bins", "threshold", "auto"]),
        "shape": st.sampled_from([["constant", 2], "convex", ["lipschitz", "0.5"]]),
        "public_n": st.integers(1, 9),
        "x_grid": st.integers(2, 9),
    },
)
_output = _section(
    {"folder": st.just("out")},
    {"confidence": st.sampled_from([0.9, 0.5]), "title": texts, "report": st.just(False)},
)


def _whole(release: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _spoiled(st.fixed_dictionaries({"data": _data, "privacy": _privacy, **release, "output": _output}))


specs: st.SearchStrategy[dict[str, Any]] = st.one_of(
    _whole({"order": _order}),
    _whole({"order": _listed}),
    _whole({"table": _table}),
    _whole({"curve": _curve}),
)


def toml(value: Any, top: bool = True) -> str:
    """Any value as TOML."""
    if isinstance(value, dict):
        pairs = [f"{json.dumps(str(key))} = {toml(item, False)}" for key, item in value.items()]
        return "\n".join(pairs) if top else "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item, False) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, date)):
        return str(value)
    return json.dumps(value).replace("\x7f", "\\u007f")


@contextmanager
def desk() -> Generator[Path]:
    """A folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="isotone-fuzz-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def charges_of(folder: Path) -> list[Any]:
    """What the ledgers in a folder say was charged."""
    found: list[Any] = []
    for path in folder.glob("*.ledger"):
        try:
            found += Ledger(path).charges()
        except IsotoneError:  # created under another name for the data set
            continue
    return found


def check_release(spec: Spec, folder: Path) -> bool:
    """Release a spec: our errors only; a release is charged and recorded, a refusal is not. Says if it was released."""
    before = len(charges_of(folder))
    try:
        made, where, fresh = flat.with_spec(spec)
    except IsotoneError:
        assert len(charges_of(folder)) == before, "refused after the charge"
        assert not (folder / "out" / "manifest.json").exists(), "a release without a charge"
        return False
    assert fresh
    charges = (
        charges_of(folder)
        or Ledger(spec.resolve(spec.privacy.ledger), dataset=spec.privacy.dataset).charges()
    )
    assert len(charges) == before + 1
    assert charges[-1].release == made.manifest["content_hash"], "a charge without its record"
    assert charges[-1].guarantee.within(spec.guarantee)
    assert verify(where).holds
    return True


def check_spec_text(text: str) -> bool:
    """A spec in any words: load, plan and release raise our errors only. Says if it was released."""
    with desk() as folder:
        (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
        (folder / "spec.toml").write_text(text, encoding="utf-8", errors="replace")
        try:
            spec = load_spec(folder / "spec.toml")
        except IsotoneError:
            return False
        try:
            spec.plan()
        except IsotoneError:
            assert not charges_of(folder)
        return check_release(spec, folder)


COUNTS = {
    "data": {"path": "data.csv", "unit": "person"},
    "privacy": {"epsilon": "1", "ledger": "x.ledger", "budget": {"epsilon": "40"}},
    "order": {"parents": {"twice": "hyp", "meds": "hyp"}, "mechanism": "PosetMechanism"},
    "output": {"folder": "out", "report": False},
}
TABLE = {
    **{key: COUNTS[key] for key in ("data", "privacy", "output")},
    "table": {"category": "county", "categories": ["A", "B"], "upper": 3},
}
CURVE = {
    **{key: COUNTS[key] for key in ("data", "privacy", "output")},
    "curve": {"x": "age", "y": "risk", "bounds": [0, 100], "y_range": [0, 1], "public_n": 10, "x_grid": 8},
}


def check_data(content: bytes, spec: dict[str, Any]) -> bool:
    """Data of any contents: refused before the charge for what its header says, or released. Says if it was released."""
    with desk() as folder:
        (folder / "data.csv").write_bytes(content)
        (folder / "spec.toml").write_text(toml(spec), encoding="utf-8")
        return check_release(load_spec(folder / "spec.toml"), folder)


def check_order_file(content: bytes, ending: str) -> None:
    """An order file, or a list of categories, of any contents."""
    with desk() as folder:
        path = folder / f"order{ending}"
        path.write_bytes(content)
        for read in (lambda: load_order(path), lambda: read_categories(path, "child")):
            try:
                read()
            except IsotoneError:
                continue


def saved_release(folder: Path) -> Path:
    """A small release on disk."""
    import pandas as pd

    P = iso.Poset(["hyp", "twice"], [("twice", "hyp")])
    table = pd.DataFrame({"hyp": [1, 1, 0], "twice": [1, 0, 0]})
    made = flat.counts(
        table, P, epsilon=1, ledger=iso.Ledger(folder / "x.ledger", epsilon=1), mechanism="PosetMechanism"
    )
    return made.save(folder / "release", report=False)


def check_manifest(folder: Path, path: list[Any], value: Any) -> None:
    """A manifest with one entry changed: reading and verifying raise our errors only, and the change is noticed."""
    text = (folder / "manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    place: Any = manifest
    for step in path[:-1]:
        place = place[step]
    changed = place[path[-1]] != value or type(place[path[-1]]) is not type(value)
    place[path[-1]] = value
    with desk() as copy:
        shutil.copy(folder / "release.csv", copy)
        (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        try:
            load_release(copy)
            verdict = verify(copy)
        except IsotoneError:
            return
        assert verdict.holds != changed or not changed, f"{path} may be changed unnoticed"
        str(verdict)
