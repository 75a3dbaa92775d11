"""The manifest: its schema, its versions, and what is refused."""
# pyright: reportArgumentType=false

import json
from dataclasses import FrozenInstanceError, fields, replace

import pandas as pd
import pytest

import isotone as iso
from isotone.errors import InputError
from isotone.release import Manifest
from isotone.release.kinds.kind import all_kinds
from isotone.release.manifest import Stated, manifest_schema, stated_texts
from isotone.release.result import seal
from isotone.release.spec import OutputEntries

DATA = pd.DataFrame({"a": [1, 0, 1], "b": [0, 0, 1], "g": ["x", "y", "x"]})


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[str, iso.Release]:
    ledger = iso.Ledger(tmp_path_factory.mktemp("ledger") / "a.ledger", epsilon=100)
    described = {
        "counts": iso.Counts(iso.Poset.chain("ba")),
        "table": iso.Table("g", ["x", "y"], upper=5),
        "curve": iso.Curve("a", y="b", bounds=(0, 1), y_range=(0, 1)),
        "distribution": iso.Distribution("a", bounds=(0, 9), by={"g": ["x", "y"]}),
        "survival": iso.Survival("b", event="a", horizon=9, by={"g": ["x", "y"]}),
        "series": iso.Series(
            iso.Counts(iso.Poset.chain("ba"), unit=iso.Unit("g", name="record")),
            periods=["2024-01-07", "2024-01-14"],
            date="g",
        ),
    }
    return {name: one.release(DATA, epsilon=1, ledger=ledger) for name, one in described.items()}


KIND_NAMES = [kind.name for kind in all_kinds()]


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_manifest_survives_being_written_and_read(kind, releases):
    written = releases[kind].manifest
    again = Manifest.from_plain(json.loads(written.text()))
    assert again == written
    assert type(again) is next(known.manifest for known in all_kinds() if known.name == kind)
    assert dict(again) == written.plain()


def test_what_a_steward_states_is_asked_for_in_a_spec_and_repeated_in_every_manifest():
    stated = {field.name: f"the {field.name}" for field in fields(Stated)}
    assert vars(OutputEntries.model_validate({"folder": "out", **stated}).stated) == stated


@pytest.mark.parametrize(
    ("text", "message"),
    [("x" * 1_001, "at most 1,000 characters, not 1,001"), ("a\x1b[2J", "control characters"), (7, "")],
)
def test_what_is_stated_must_be_a_text_that_can_be_published(text, message):
    assert stated_texts(Stated(title="x" * 1_000), "").title == "x" * 1_000
    assert (
        stated_texts(Stated(title=""), "Counts") == stated_texts(Stated(), "Counts") == Stated(title="Counts")
    )
    for name in vars(Stated()):
        with pytest.raises(InputError, match=rf"^{name}.*{message}"):
            stated_texts(Stated(**{name: text}), "Counts")


def test_a_manifest_is_frozen(releases):
    manifest = releases["counts"].manifest
    with pytest.raises(FrozenInstanceError):
        manifest.stated = "other"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "survey"}, "kind of release 'survey'"),
        ({"format": "isotone release 2"}, "not written by this version"),
        ({"charge": "one"}, "charge"),
        ({"charge": -1}, "charge"),
        ({"time": "x"}, "time"),
        ({"description": 3}, "description"),
        ({"extra": 1}, "extra"),
        ({"stated": {"title": 1}}, "title"),
        ({"stated": {"extra": "x"}}, "extra"),
        ({"total": float("nan")}, "cannot be read"),
        ({"guarantee": []}, "guarantee"),
    ],
)
def test_a_manifest_with_a_wrong_entry_is_refused_with_its_name(change, message, releases):
    with pytest.raises(InputError, match=message):
        Manifest.from_plain({**releases["counts"].manifest.plain(), **change})


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_every_entry_but_the_hashes_themselves_is_sealed(kind, releases):
    release = releases[kind]
    manifest = release.manifest
    for entry in fields(manifest):
        if entry.name in ("files", "content_hash", "format"):
            continue
        said = getattr(manifest, entry.name)
        text = "other" if said != "other" else "another"
        other = replace(manifest, **{entry.name: Stated(title=text) if entry.name == "stated" else text})
        assert other.hash_with(release.columns) != manifest.hash_with(release.columns), entry.name


def test_the_content_hash_does_not_depend_on_how_the_file_is_laid_out(releases):
    release = releases["counts"]
    turned = dict(reversed(list(release.manifest.plain().items())))
    assert seal(release.columns, turned).manifest.content_hash == release.manifest.content_hash
    other = seal(release.columns, {**turned, "stated": {"title": "other"}})
    assert other.manifest.content_hash != release.manifest.content_hash


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.name)
def test_the_schema_knows_every_entry_and_its_type(kind, releases):
    schema = manifest_schema(kind.manifest)
    written = set(releases[kind.name].manifest.plain())
    assert written <= set(schema["properties"])
    assert set(schema["required"]) <= written
    assert schema["properties"]["kind"]["const"] == kind.name
    assert schema["additionalProperties"] is False
    assert all(entry["description"] for entry in schema["properties"].values())


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.name)
def test_the_manifest_says_every_parameter_but_those_that_stand_elsewhere(kind, releases):
    """A description can be built again from what is published, and every exclusion has a place that says it."""
    release = releases[kind.name]
    described = kind.described.from_manifest(release.manifest, release.columns)
    assert set(release.manifest.description) == set(described.plain()) - set(kind.described.elsewhere)
    assert described.in_manifest() == release.manifest.description
    assert all(kind.described.elsewhere.values())
    assert {
        name: sorted(each.described.elsewhere) for name, each in zip(KIND_NAMES, all_kinds(), strict=True)
    } == {
        "counts": ["relaxation"],
        "table": ["categories", "population", "strata"],
        "curve": [],
        "distribution": [],
        "survival": [],
        "series": [],
    }
