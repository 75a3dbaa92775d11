"""The manifest: its schema, its versions, and what is refused."""

import json
import shutil
from dataclasses import MISSING, FrozenInstanceError, fields, replace
from pathlib import Path

import pytest

from isotone.errors import InputError
from isotone.release import Manifest, load_release, verify
from isotone.release.kinds import KINDS
from isotone.release.kinds.parameters import stated_texts
from isotone.release.manifest import FORMAT, Stated, manifest_schema
from isotone.release.result import seal
from isotone.release.spec import Output

BEFORE = Path(__file__).parent / "folders" / "release1"
KIND_NAMES = [path.name for path in sorted(BEFORE.iterdir())]


def plain(kind: str) -> dict[str, object]:
    return json.loads((BEFORE / kind / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_release_of_the_version_before_loads_and_verifies(kind):
    """These folders were written by the version before this one."""
    release = load_release(BEFORE / kind)
    assert release.manifest["format"] == "isotone release 1"
    assert release.manifest.plain() == plain(kind)
    assert verify(BEFORE / kind).holds, str(verify(BEFORE / kind))


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_release_of_the_version_before_that_was_changed_is_noticed(tmp_path, kind):
    folder = tmp_path / kind
    shutil.copytree(BEFORE / kind, folder)
    text = (folder / "manifest.json").read_text(encoding="utf-8")
    (folder / "manifest.json").write_text(text.replace('"charge": ', '"charge": 1'), encoding="utf-8")
    assert not verify(folder).holds


def test_a_table_of_this_version_cannot_be_described_as_one_of_the_version_before(tmp_path):
    """Its errors and intervals would then not be computed again; a forger could state any."""
    folder = tmp_path / "table"
    shutil.copytree(BEFORE / "table", folder)
    verdict = verify(folder)
    assert not verdict["error"].checked
    assert "errors and intervals were not computed again" in verdict["error"].words
    before = load_release(folder)
    forged = before.manifest.plain() | {"format": FORMAT, "request": ""}
    forged.pop("spec")
    for entry in ("files", "content_hash"):
        forged.pop(entry)
    columns = {**before.columns, "sd": (0.1,) * len(before.columns["sd"])}
    seal(columns, Manifest.from_plain(forged)).save(folder, report=False)
    verdict = verify(folder)
    assert verdict["content"].holds
    assert "as in the version before" in verdict["error"].words
    assert not verdict["error"].holds


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_manifest_survives_being_written_and_read(kind):
    before = plain(kind)
    before["request"] = before.pop("spec")
    written = Manifest.from_plain({**before, "format": FORMAT})
    again = Manifest.from_plain(json.loads(written.text()))
    assert again == written
    assert type(again) is next(known.manifest for known in KINDS if known.name == kind)
    assert dict(again) == written.plain()


def test_what_a_steward_states_is_asked_for_in_a_spec_and_repeated_in_every_manifest():
    stated = {field.name: f"the {field.name}" for field in fields(Stated)}
    assert vars(Output.model_validate({"folder": "out", **stated}).stated) == stated
    assert stated.keys() <= {field.name for field in fields(Manifest)}


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


def test_a_manifest_is_frozen():
    manifest = Manifest.from_plain(plain("counts"))
    with pytest.raises(FrozenInstanceError):
        manifest.title = "other"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "survey"}, "kind 'survey'"),
        ({"format": "isotone release 3"}, "not written by this version"),
        ({"charge": "one"}, "charge"),
        ({"order": {"elements": ["a"]}}, r"order\.covers"),
        ({"rules": {}}, r"rules\.unit"),
        ({"extra": 1}, "extra"),
        ({"title": None}, "title"),
        ({"confidence": float("nan")}, "cannot be read"),
        ({"guarantee": []}, "guarantee"),
    ],
)
def test_a_manifest_with_a_wrong_entry_is_refused_with_its_name(change, message):
    with pytest.raises(InputError, match=message):
        Manifest.from_plain({**plain("counts"), **change})


@pytest.mark.parametrize("kind", ["counts", "table", "curve"])
def test_every_entry_but_the_hashes_themselves_is_sealed(kind):
    release = load_release(BEFORE / kind)
    manifest = replace(release.manifest, format=FORMAT)
    for entry in fields(manifest):
        if entry.name in ("files", "content_hash", "format"):
            continue
        said = getattr(manifest, entry.name)
        other = replace(manifest, **{entry.name: "other" if said != "other" else "another"})
        assert other.hash_with(release.columns) != manifest.hash_with(release.columns), entry.name


def test_the_content_hash_does_not_depend_on_how_the_file_is_laid_out():
    release = load_release(BEFORE / "counts")
    turned = dict(reversed(list(release.manifest.plain().items())))
    assert seal(release.columns, turned).manifest.content_hash == release.manifest.content_hash
    other = seal(release.columns, {**turned, "title": "other"})
    assert other.manifest.content_hash != release.manifest.content_hash


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name in KIND_NAMES], ids=lambda kind: kind.name
)
def test_the_schema_knows_every_entry_and_its_type(kind):
    schema = manifest_schema(kind.manifest)
    before = plain(kind.name)
    before["request"] = before.pop("spec")
    assert set(before) <= set(schema["properties"])
    assert set(schema["required"]) <= set(before)
    assert schema["properties"]["kind"]["const"] == kind.name
    assert schema["additionalProperties"] is False
    assert all(entry["description"] for entry in schema["properties"].values())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_entry_that_older_folders_lack_is_not_written_for_them(kind):
    """A default that were written would change what older folders are sealed with, and they would not verify."""
    given = {entry.name: entry.default for entry in fields(kind.manifest) if entry.default is not MISSING}
    assert {name: value for name, value in given.items() if value is not None} == {
        "request": "",
        "format": FORMAT,
    }
