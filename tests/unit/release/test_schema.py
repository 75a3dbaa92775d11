"""The JSON Schema of a spec accepts every spec of the repository, and refuses what the spec itself refuses."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from isotone.errors import SpecError
from isotone.release import spec_schema
from isotone.release.kinds.kind import SECTIONS
from isotone.release.spec import parse_spec, sections

ROOT = Path(__file__).resolve().parents[3]
VALIDATOR = Draft202012Validator(spec_schema())


def shown() -> dict[str, str]:
    """Every spec in the examples and on the pages."""
    found = {
        str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "examples").rglob("*.toml"))
    }
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = re.findall(
            r'^```toml title="[^"]*"\n(.*?)^```', page.read_text(encoding="utf-8"), flags=re.M | re.S
        )
        found |= {f"{page.name} {at}": block for at, block in enumerate(blocks)}
    return {name: text for name, text in found.items() if "[privacy]" in text and "[output]" in text}


def test_every_spec_of_the_repository_is_accepted():
    texts = shown()
    assert len(texts) >= 10
    used = set[str]()
    for name, text in texts.items():
        entries = tomllib.loads(text)
        used |= set(entries)
        assert [error.message for error in VALIDATOR.iter_errors(entries)] == [], name
    assert set(SECTIONS) <= used


def test_a_breakdown_is_accepted():
    spec = copy.deepcopy(GOOD)
    spec["order"] |= {
        "by": {"state": ["A"], "county": {"a1": "A"}},
        "margins": ["", "state", ["state", "county"], "*"],
        "importance": [["", 2], [["state", "county"], "0.5"]],
    }
    assert list(VALIDATOR.iter_errors(spec)) == []
    spec["order"]["importance"] = [["", 2, 3]]
    assert list(VALIDATOR.iter_errors(spec)) != []


GOOD: dict[str, Any] = {
    "data": {"path": "rows.csv", "types": {"a": "integer"}},
    "privacy": {"epsilon": "1/3", "ledger": "l", "budget": {"epsilon": 1}},
    "order": {"elements": ["a", "b"], "relations": [["b", "a"]]},
    "output": {"folder": "out"},
}


def changed(section: str, **entries: Any) -> Callable[[dict[str, Any]], None]:
    return lambda spec: spec.setdefault(section, {}).update(entries)


BAD: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no ledger": lambda spec: spec["privacy"].pop("ledger"),
    "no output": lambda spec: spec.pop("output"),
    "no kind": lambda spec: spec.pop("order"),
    "two kinds": changed("table", category="c", categories=["x"], upper=3),
    "an unknown section": changed("ordr", elements=["a"]),
    "an unknown entry": changed("data", pth="rows.csv"),
    "an empty path": changed("data", path=""),
    "a number for a path": changed("data", path=3),
    "no number for epsilon": changed("privacy", epsilon="much"),
    "epsilon of zero": changed("privacy", epsilon=0),
    "epsilon below zero": changed("privacy", epsilon="-1"),
    "no such neighbours": changed("privacy", neighbours="swap"),
    "contributions of zero": changed("data", contributions=0),
    "a text for a whole number": changed("data", contributions="2"),
    "an unknown type of a column": changed("data", types={"a": "date"}),
    "confidence of one": changed("output", confidence=1.0),
    "a relation of three": changed("order", relations=[["a", "b", "c"]]),
    "a text for a switch": changed("order", total="yes"),
}


def test_a_good_spec_is_good():
    assert list(VALIDATOR.iter_errors(GOOD)) == []


@pytest.mark.parametrize("name", BAD)
def test_what_the_spec_refuses_the_schema_refuses(name, monkeypatch, tmp_path):
    spec = copy.deepcopy(GOOD)
    BAD[name](spec)
    assert list(VALIDATOR.iter_errors(spec)) != []
    monkeypatch.setattr(tomllib, "loads", lambda _: spec)
    with pytest.raises(SpecError):
        parse_spec("", tmp_path, "spec.toml")


def test_every_entry_is_described():
    schema = spec_schema()
    for name, section in sections().items():
        entries = schema["$defs"][section.__name__]["properties"]
        assert set(entries) == set(section.model_fields)
        assert all(entry.get("description") for entry in entries.values()), name
