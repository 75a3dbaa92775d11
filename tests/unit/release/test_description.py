"""Descriptions: frozen, built without data, checked again wherever they are used, and written once."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isotone as iso
from isotone.audit.exact import example_of
from isotone.counts.count_plan import count_mechanism, count_mechanisms
from isotone.errors import InputError
from isotone.release.description import FrozenMapping, described, fields_of, section_of
from isotone.release.kinds.counts.columns import margins_recipe
from isotone.release.kinds.counts.description import Counts
from isotone.release.kinds.kind import all_kinds
from isotone.release.manifest import recipe_of
from isotone.release.spec import parse_spec, spec_schema

P = iso.Poset(["a", "b"], [("b", "a")])
SECRET = 987654321
ROWS = {
    "a": [1, 0],
    "b": [1, 0],
    "g": ["x", "y"],
    "who": [SECRET, 2],
    "day": ["2024-01-01", "2024-01-02"],
}
FRAMES = [
    pd.DataFrame(ROWS),
    pl.DataFrame(ROWS),
    pl.DataFrame(ROWS).lazy(),
    pa.table(ROWS),
    pd.DataFrame(ROWS).values,
]
MADE: dict[str, Any] = {
    "counts": iso.Counts(P, unit=iso.Unit("who", contributions=2), by={"g": ["x", "y"]}, care={"a": 2}),
    "margins": iso.Counts(P, by={"g": ["x", "y"]}, margins=["", "g"], importance={"g": 2}),
    "table": iso.Table("g", ["x", "y"], upper=5, strata={"s": ["x"], "t": ["y"]}, population=[10, 20]),
    "curve": iso.Curve("a", y="b", bounds=(0, 1), y_range=(0, "1.5"), loss=("pinball", 0.9)),
    "surface": iso.Curve(("a", "b"), y="who", bounds=((0, 1), (0, 1)), y_range=(0, 1), x_grid=(2, 3)),
    "distribution": iso.Distribution("a", bounds=(0, 1), cells=4, by={"g": ["x", "y"]}),
    "survival": iso.Survival("who", event="a", horizon=4, cells=4),
    "series": iso.Series(iso.Counts(P, unit="who"), periods=("2024-01-01", "2024-01-02"), date="day"),
}


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__module__)
def test_a_description_with_data_in_it_is_refused_without_a_word_of_the_data(frame: Any) -> None:
    given: list[tuple[Any, dict[str, Any]]] = [
        (iso.Counts, {"order": frame}),
        (iso.Counts, {"order": P, "unit": frame}),
        (iso.Counts, {"order": P, "answers": frame}),
        (iso.Counts, {"order": P, "by": {"g": frame}}),
        (iso.Counts, {"order": P, "care": {"a": frame}}),
        (iso.Table, {"category": frame, "categories": ["x"], "upper": 3}),
        (iso.Table, {"category": "g", "categories": frame, "upper": 3}),
        (iso.Table, {"category": "g", "categories": ["x"], "upper": frame}),
        (iso.Curve, {"x": frame, "y": "b", "bounds": (0, 1), "y_range": (0, 1)}),
        (iso.Curve, {"x": "a", "y": "b", "bounds": (frame, 1), "y_range": (0, 1)}),
        (iso.Curve, {"x": "a", "y": "b", "bounds": (0, 1), "y_range": [[frame]]}),
        (iso.Unit, {"column": frame}),
        (iso.Answers, {"columns": {"a": frame}}),
    ]
    for kind, entries in given:
        first = [entries.pop("order")] if "order" in entries else []
        with pytest.raises(InputError) as caught:
            kind(*first, **entries)
        assert str(SECRET) not in str(caught.value)
        assert caught.value.__cause__ is None
        assert str(SECRET) not in str(caught.value.__context__ or "")


@pytest.mark.parametrize("column", [[SECRET, 1.5, 2.5], [SECRET], [1, "Ann Miller"], [f"{SECRET}"] * 3])
@pytest.mark.parametrize("library", [np.array, pd.Series, pa.array], ids=["numpy", "pandas", "Arrow"])
def test_no_entry_of_a_column_given_for_bounds_is_shown(library: Any, column: list[Any]) -> None:
    """Parameters that are lists may be given as arrays. One that is no list of them could be a column of the data."""
    held = library(column) if library is not pa.array else pa.array(list(map(str, column)))
    for entry in ("bounds", "y_range"):
        given: dict[str, Any] = {"y": "b", "bounds": (0, 1), "y_range": (0, 1), entry: held}
        with pytest.raises(InputError) as caught:
            iso.Curve("a", **given)
        assert not any(str(value) in str(caught.value) for value in column)


@pytest.mark.parametrize("name", MADE)
def test_a_description_is_the_same_built_again_copied_or_pickled(name: str) -> None:
    made = MADE[name]
    assert made.checked() == made == copy.deepcopy(made) == pickle.loads(pickle.dumps(made))
    assert hash(made.checked()) == hash(made)
    assert eval(repr(made.checked().privacy_unit), {"Unit": iso.Unit}) == made.privacy_unit
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.confidence = 0.5


@pytest.mark.parametrize("name", MADE)
def test_nothing_inside_a_description_can_be_changed(name: str) -> None:
    def changeable(value: Any) -> bool:
        if isinstance(value, (list, dict, set)):
            return True
        parts = (
            value.values() if isinstance(value, FrozenMapping) else value if isinstance(value, tuple) else ()
        )
        return any(map(changeable, parts))

    for field in fields_of(type(MADE[name])):
        assert not changeable(getattr(MADE[name], field)), field
    with pytest.raises(TypeError):
        FrozenMapping({"a": 1})["a"] = 2  # pyright: ignore[reportIndexIssue]


def test_what_gets_round_a_check_gets_no_further(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "l", epsilon=9)
    for name, wrong in (
        ("unit", "who"),
        ("confidence", 7),
        ("max_size", -1),
        ("order", None),
        ("by", {"g": 3}),
    ):
        bent = copy.copy(iso.Counts(P))
        object.__setattr__(bent, name, wrong)
        if name == "unit":  # shorthand is read again, as when it is given
            assert bent.checked().privacy_unit == iso.Unit("who")
            continue
        for use in (
            lambda b=bent: b.plan(epsilon=1),
            lambda b=bent: b.release(pa.table(ROWS), epsilon=1, ledger=ledger),
            lambda b=bent: b.audit(epsilon=1),
            lambda b=bent: b.check(pa.table(ROWS)),
        ):
            with pytest.raises(InputError):
                use()
    inner = iso.Counts(P, unit=iso.Unit("who"))
    object.__setattr__(inner.unit, "contributions", 0.5)
    with pytest.raises(InputError, match="contributions"):
        inner.release(pa.table(ROWS), epsilon=1, ledger=ledger)
    assert not ledger.charges()


@pytest.mark.parametrize(
    "build",
    [
        lambda: iso.Counts(P, mechanism="Laplace"),
        lambda: iso.Table("g", ["x"], upper=4, emphasis=3),
        lambda: iso.Curve("a", y="b", bounds=(0, 1), y_range=(0, 1), loss="square"),
        lambda: iso.Curve("a", y="b", bounds=(0, 1), y_range=(0, 1), shape=("bent", 3)),
        lambda: iso.Curve("a", y="b", y_range=(0, 1), **dict[str, Any](bounds=int)),
        lambda: iso.Answers(questions={"a": {"colum": "b"}}),
        lambda: iso.Answers(questions={"a": 5}),
        lambda: iso.Answers(questions=[{"yes": ["1"], "bogus": 1}]),
    ],
)
def test_a_parameter_that_means_nothing_is_refused_when_it_is_given(build: Any) -> None:
    with pytest.raises(InputError):
        build()


def test_a_parameter_is_called_as_it_is_given() -> None:
    with pytest.raises(InputError, match="it is called 'mechanism'"):
        dataclasses.replace(iso.Counts(P), confidence=0.9)


@pytest.mark.parametrize("name", MADE)
def test_the_plan_is_the_release(name: str, tmp_path: Path) -> None:
    made = MADE[name]
    ledger = iso.Ledger(tmp_path / "l", epsilon=9, unit=made.privacy_unit.words)
    best = made.plan(epsilon=1).best
    release = made.release(pa.table(ROWS), epsilon=1, ledger=ledger)
    recipes: dict[str, Any] = {"margins": margins_recipe, "series": lambda one: one.recipe()}
    if name in ("curve", "surface"):  # whose recipe is written from the description
        assert release.manifest.mechanism["name"] == type(best).__name__
    else:
        assert release.manifest.mechanism == recipes.get(name, recipe_of)(best)


def test_every_mechanism_for_counts_has_a_hash() -> None:
    """What is worked out about one, such as the law of the noise on margins, is kept by it."""
    for name in count_mechanisms():
        hash(example_of(count_mechanism(name), 1))


def test_a_breakdown_of_a_hierarchy_is_released_under_zcdp(tmp_path: Path) -> None:
    tree = iso.Poset.from_mapping({"a": "b", "who": "b"}, children="partition")
    made = iso.Counts(tree, by={"g": ["x", "y"], "day": ["2024-01-01", "2024-01-02"]})
    release = made.release(pa.table(ROWS), rho=1, ledger=iso.Ledger(tmp_path / "l", rho=1))
    assert release.manifest.mechanism == margins_recipe(made.plan(rho=1).best)


def test_counts_without_a_bound_are_planned() -> None:
    """A plan guesses counts up to a hundred, and such a table may publish more."""
    plan = iso.Table("g", [f"c{k}" for k in range(60)]).plan(epsilon=1)
    assert type(plan.best).__name__ == "TwoStageMechanism"


def test_a_named_mechanism_is_first_in_its_plan() -> None:
    plan = iso.Counts(P, mechanism="LaplaceMechanism").plan(epsilon=1)
    assert type(plan.best).__name__ == "LaplaceMechanism"
    assert len({row.name for row in plan}) == len(plan.rows) > 2


def test_every_parameter_has_a_sentence_and_stands_in_the_spec() -> None:
    schema = spec_schema()["$defs"]
    for kind in all_kinds():
        for name, info in fields_of(kind.described).items():
            assert info.description, (kind.name, name)
    assert schema["CountsSection"]["properties"]["waves"]["minimum"] == 1
    assert schema["Data"]["properties"]["contributions"]["anyOf"][0]["minimum"] == 1


def test_a_new_parameter_is_one_field() -> None:
    """Signature, plain values, request, spec, schema and checks follow from the field alone: no other file is touched."""

    @described
    class Longer(Counts):
        """Counts with one parameter more."""

        _: dataclasses.KW_ONLY
        patience: Annotated[int, "no more than a day"] = 3
        """How long to wait."""

    made = Longer(P, patience=5)
    assert "patience" in inspect.signature(Longer).parameters
    assert made.plain()["patience"] == made.identity()["patience"] == made.in_manifest()["patience"] == 5
    assert made.checked() == made != Longer(P)
    assert "patience=5" in repr(made)
    with pytest.raises(InputError, match="patience"):
        Longer(P, patience="long")  # pyright: ignore[reportArgumentType]
    section = section_of("Section", Longer.entries, Longer.key, Longer, leave=Longer.leaves())
    assert section.model_json_schema()["properties"]["patience"]["description"] == "How long to wait."


def test_a_kind_is_loaded_when_it_is_asked_for(tmp_path: Path) -> None:
    code = f"""
import sys
import isotone as iso
import pyarrow as pa
with iso.Ledger({str(tmp_path / "l")!r}, epsilon=9) as ledger:
    made = iso.Counts(iso.Poset("a")).release(pa.table({{"a": [1]}}), epsilon=1, ledger=ledger)
    made.save({str(tmp_path / "out")!r}, report=False)
loaded = {{name for name in sys.modules if name.startswith("isotone.")}}
assert not [name for name in loaded if name.startswith(("isotone.curves.", "isotone.tables."))], loaded
iso.load_release({str(tmp_path / "out")!r})
assert not [name for name in sys.modules if name.startswith("isotone.release.kinds.table")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_spec_holds_a_description_its_data_and_its_guarantee(tmp_path: Path) -> None:
    text = (
        '[data]\npath = "d.csv"\nunit = "who"\ncontributions = 2\n[privacy]\nrho = 1\nunit = "adult"\nledger = "l"\n'
        '[order]\nelements = ["a", "b"]\nrelations = [["b", "a"]]\nmax_size = 1\n[output]\nfolder = "o"\nconfidence = 0.9\n'
    )
    spec = parse_spec(text, tmp_path, "s.toml")
    unit = iso.Unit("who", contributions=2, name="adult")
    assert spec.description == iso.Counts(P, unit=unit, max_size=1, confidence=0.9)
    assert str(spec.guarantee) == "ρ-zCDP with ρ = 1, add-remove one adult"
    assert spec.plan().view is not None
