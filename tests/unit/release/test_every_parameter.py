"""Every parameter of every description is hashed into its request and written in its manifest, but for one list with reasons."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import isotone as iso
from isotone.release.description import fields_of, given_name
from isotone.release.kinds.kind import all_kinds

P = iso.Poset.from_mapping({"all": None, "a": "all", "b": "all"})
Q = iso.Poset.from_mapping({"all": None, "a": "all", "b": "a"})
BY = {"g": ["x", "y"]}
UNIT = iso.Unit("who")
LINE: dict[str, Any] = {"unit": UNIT, "confidence": 0.9, "by": BY, "public_n": 9}
OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "counts": (
        {"order": P},
        {
            "order": Q,
            "unit": UNIT,
            "confidence": 0.9,
            "answers": iso.Answers(missing="yes"),
            "by": BY,
            "margins": ["", "g"],
            "importance": "cells",
            "unlisted": "other",
            "mechanism": "LaplaceMechanism",
            "care": "worst",
            "relaxation": None,
            "max_size": 2,
            "root": {"records": 7, "catch_all": "b"},
            "total": True,
            "waves": 2,
        },
    ),
    "table": (
        {"category": "c", "categories": ["x", "y"], "upper": 5},
        {
            "category": "d",
            "categories": ["x", "z"],
            "unit": UNIT,
            "confidence": 0.9,
            "upper": 6,
            "count": "n",
            "counts": ["m", "n"],
            "kind": "k",
            "emphasis": 0.3,
            "strata": ["s", "t"],
            "population": [10, 20],
        },
    ),
    "curve": (
        {"x": "x", "y": "y", "bounds": (0, 1), "y_range": (0, 1)},
        {
            "x": "z",
            "y": "w",
            "bounds": (0, 2),
            "y_range": (0, 2),
            "y_values": (0, 1),
            "unit": UNIT,
            "confidence": 0.9,
            "increasing": False,
            "loss": "absolute",
            "method": "baseline",
            "output": "records",
            "shape": "convex",
            "x_grid": 9,
            "public_n": 9,
            "band": "none",
        },
    ),
    "distribution": (
        {"column": "x", "bounds": (0, 8)},
        {"column": "z", "bounds": (0, 9), "grid": "integers", "cells": 4, "band": "population", **LINE},
    ),
    "survival": (
        {"time": "t", "event": "e", "horizon": 8},
        {"time": "u", "event": "f", "horizon": 9, "yes": ["died"], "no": ["lives"], "cells": 4, **LINE},
    ),
    "series": (
        {"survey": iso.Counts(P, unit=UNIT), "periods": ["May", "June"]},
        {
            "survey": iso.Counts(Q, unit=UNIT),
            "periods": ["May", "July"],
            "unit": iso.Unit("who"),
            "confidence": 0.95,
            "matters": "last",
            "record": "r",
            "date": "d",
        },
    ),
}
"""For each kind a description, and another value of each of its parameters."""
TOGETHER: dict[tuple[str, str], dict[str, Any]] = {
    ("counts", "margins"): {"by": BY},
    ("counts", "importance"): {"by": BY},
    ("counts", "unlisted"): {"by": BY},
    ("counts", "root"): {
        "order": iso.Poset.from_mapping({"all": None, "a": "all", "b": "all"}, children="partition"),
        "unit": iso.Unit(neighbours="replace"),
        "answers": iso.Answers(element="e"),
    },
    ("table", "counts"): {"unit": iso.Unit("who", contributions=1)},
    ("table", "kind"): {"unit": iso.Unit("who", contributions=1), "counts": ["m", "n"]},
    ("survival", "no"): {"yes": ["died"]},
    ("series", "record"): {"survey": iso.Counts(P, unit=iso.Unit("who", contributions=2)), "record": "q"},
    ("series", "date"): {"periods": ["2024-05-31", "2024-06-30"]},
}
"""Parameters that go with others, or with none that stand in the first description."""
NOT_IN_MANIFEST = {
    ("counts", "relaxation"): "the mechanism has it",
    ("table", "categories"): "the column category has them",
    ("table", "strata"): "the column stratum and the entry strata have them",
    ("table", "population"): "the column population has it",
    ("series", "survey"): "its parameters stand there one by one",
    ("series", "unit"): "that of the counts",
    ("series", "confidence"): "that of the counts",
}
NOT_HASHED = {
    (
        "counts",
        "relaxation",
    ): "a relaxation takes an order out of reach; tests/unit/release/test_relaxed.py hashes one",
    ("series", "unit"): "that of the counts",
    ("series", "confidence"): "that of the counts",
}


def described(kind: type[Any], given: dict[str, Any]) -> Any:
    """A description from its parameters by name."""
    rest = dict(given)
    first = [rest.pop(field.name) for field in dataclasses.fields(kind) if not field.kw_only]
    return kind(*first, **rest)


CASES = [(kind.name, name) for kind in all_kinds() for name in fields_of(kind.described)]


@pytest.mark.parametrize(("name", "field"), CASES, ids=lambda part: part)
def test_a_parameter_is_hashed_and_stands_in_the_manifest(name: str, field: str) -> None:
    kind = next(one.described for one in all_kinds() if one.name == name)
    usual, others = OTHERS[name]
    entry = given_name(kind, field)
    with_it = usual | TOGETHER.get((name, field), {})
    before, after = described(kind, with_it), described(kind, with_it | {entry: others[entry]})
    if (name, field) not in NOT_HASHED:
        assert before.identity() != after.identity()
    if (name, field) not in NOT_IN_MANIFEST:
        assert before.in_manifest() != after.in_manifest()
        assert entry in after.in_manifest()


def test_what_the_manifest_does_not_repeat_is_listed() -> None:
    stated = {(kind.name, name) for kind in all_kinds() for name in kind.described.elsewhere}
    own = {("series", name) for name in ("survey", "unit", "confidence")}
    assert stated | own == set(NOT_IN_MANIFEST)


@pytest.mark.parametrize("kind", [iso.Unit, iso.Answers, iso.Labels], ids=lambda kind: kind.__name__)
def test_every_part_of_a_value_is_hashed_with_it(kind: type[Any]) -> None:
    parts: dict[type[Any], tuple[dict[str, Any], dict[str, Any]]] = {
        iso.Unit: (
            {"column": "id"},
            {"column": "who", "contributions": 2, "neighbours": "replace", "name": "adult"},
        ),
        iso.Answers: (
            {},
            {
                "element": "e",
                "columns": {"a": "b"},
                "yes": ["ja"],
                "no": ["nein"],
                "missing": "yes",
                "on_violation": "drop",
                "on_conflict": "drop",
                "questions": [iso.Question("a", yes=["2"])],
            },
        ),
        iso.Labels: (
            {"y_values": (0, 1), "yes": ["ja"]},
            {"y_values": (0, 2), "yes": ["si"], "no": ["nein"]},
        ),
    }
    usual, others = parts[kind]
    assert set(others) == set(fields_of(kind))

    def identity(**given: Any) -> Any:
        if kind is iso.Labels:
            return iso.Curve("x", y="y", bounds=(0, 1), y_values=iso.Labels(**given)).identity()
        parts: dict[str, Any] = {"unit": UNIT} | {"unit" if kind is iso.Unit else "answers": kind(**given)}
        return iso.Counts(P, **parts).identity()

    for part, other in others.items():
        assert identity(**usual) != identity(**usual | {part: other}), part
