"""Descriptions for catalogues: every kind of release has them, and they say nothing that is not on the list."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.forgeries import edited, forged

import isotone as iso
from isotone.errors import InputError
from isotone.release import export, load_release, load_spec, verify
from isotone.release.export import DESCRIPTIONS, REGISTRY, PublisherWords, described
from isotone.release.manifest import digest

UNIT = "schoolchild"
RNG, N = np.random.default_rng(0), 1_009
ROWS = pd.DataFrame(
    {
        UNIT: range(N),
        "a": RNG.integers(0, 2, N),
        "b": RNG.integers(0, 2, N),
        "all": 1,
        "place": RNG.choice(["n", "s"], N),
        "u": RNG.uniform(0, 4, N),
        "v": RNG.uniform(0, 4, N),
        "y": RNG.uniform(0, 1, N),
    }
)
PLACES: dict[str, Any] = {"category": "place", "categories": ["n", "s", "w"], "upper": 30}
KINDS = ["counts", "hierarchy", "breakdown", "table", "pairs", "curve", "surface", "consistent"]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    """One release of each kind, from a file, a ledger and columns whose names must not appear."""
    folder = tmp_path_factory.mktemp("shelf")
    rows = folder / "clinic.csv"
    ROWS.to_csv(rows, index=False)
    os.utime(rows, (1e9, 1e9))
    ledger = iso.Ledger(folder / "vault.ledger", epsilon=100)
    common: dict[str, Any] = {"epsilon": 1, "ledger": ledger, "unit": UNIT}
    P = iso.Poset("ab", [("b", "a")])
    tree = iso.Poset(["all", "a", "b"], [("a", "all"), ("b", "all")], [("partition", ["a", "b"])])
    two: dict[str, Any] = {"counts": ["n1", "n2"], "contributions": 1, "unit_name": "adult", **PLACES}
    sums = pd.DataFrame({"place": ["n", "s"], "n1": [3, 4], "n2": [1, 2]})
    ends: dict[str, Any] = {"bounds": (0, 4), "y_range": (0, 1)}
    made = {
        "counts": flat.counts(rows, P, **common, title="Two questions"),
        "hierarchy": flat.counts(rows, tree, **common),
        "breakdown": flat.counts(rows, P, **common, by=["place"], groups={"place": ["n", "s"]}, margins=["", "*"]),
        "table": flat.table(rows, **PLACES, **common),
        "pairs": flat.table(sums, **two, epsilon=1, ledger=iso.Ledger(folder / "other.ledger", epsilon=1, unit="adult")),
        "curve": flat.curve(rows, x="u", y="y", public_n=N, **ends, **common),
        "surface": flat.surface(
            rows, x=("u", "v"), y="y", bounds=((0, 4), (0, 4)), y_range=(0, 1), bins=2, **common
        ),
    }  # fmt: skip
    made["consistent"] = made["counts"].consistent()
    for name, release in made.items():
        release.save(folder / name, report=False)
    return folder


@pytest.fixture
def copy(shelf, tmp_path):
    return lambda name: Path(shutil.copytree(shelf / name, tmp_path / name))


def texts(folder: Path) -> str:
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in DESCRIPTIONS)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_described_and_still_verifies(copy, name):
    folder = copy(name)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert [path.name for path in export(folder)] == list(DESCRIPTIONS)
    first = texts(folder)
    export(folder)
    assert texts(folder) == first  # again gives the same
    assert all((folder / name).read_bytes() == content for name, content in before.items())
    verdict = verify(folder)
    assert verdict["metadata"].holds
    assert verdict["metadata"].checked
    assert verdict.holds
    manifest = load_release(folder).manifest
    assert manifest.kind in first


@pytest.mark.parametrize("name", KINDS)
def test_nothing_of_the_source_or_the_ledger_is_in_a_description(shelf, copy, name):
    """No path, size, hash, number of rows, date or column of the source; no address, charge or rest of the ledger."""
    folder, source = copy(name), shelf / "clinic.csv"
    export(folder)
    content, manifest = source.read_bytes(), load_release(folder).manifest
    rows = [] if name == "curve" else [f"{N}", f"{N:,}"]  # the curve's spec states it
    size = [f"{len(content)}", f"{len(content):,}"]
    of_source = ["clinic", str(shelf), str(folder), *rows, *size, digest(content)[7:], "2001-09-09", UNIT]
    of_ledger = [
        "vault",
        "other.ledger",
        "ledger",
        "remaining",
        "budget",
        "spent",
        "charge",
        manifest.request,
    ]
    found = texts(folder).casefold()
    for word in (*of_source, *of_ledger):
        assert not word or word.casefold() not in found, word


def test_what_the_three_say(shelf):
    said = described(
        load_release(shelf / "curve"),
        PublisherWords("A bureau", "CC-BY-4.0", "https://example.org/x", "pupil"),
    )
    record, card, entry = said["deployment.json"], said["croissant.json"], said["dcat.jsonld"]
    assert record["privacy"] == {
        "flavour": "pure differential privacy",
        "epsilon": "1",
        "neighbours": "add-remove",
        "unit": "pupil",
        "contributions": 1,
        "model": "central",
        "scope": "this release alone",
    }
    assert record["product"]["population"] == N  # stated by the steward as public
    assert record["product"]["mechanism"] == "PrivateIsotonicRegression"
    assert [field["name"] for field in card["recordSet"][0]["field"]] == list(
        load_release(shelf / "curve").columns
    )
    assert card["license"] == entry["dct:license"] == "CC-BY-4.0"
    assert (
        entry["dcat:distribution"][0]["spdx:checksum"]["spdx:checksumValue"]
        == card["distribution"][0]["sha256"]
    )
    others = described(load_release(shelf / "counts"))["deployment.json"]
    assert others["product"]["population"] is None
    assert others["privacy"]["unit"] is None  # known by the name of its column alone
    assert others["title"] == "Two questions"


HOSTILE = "postgresql://steward:pw@db.internal/ledger?table=/srv/raw/pupils.csv"


@pytest.mark.parametrize("name", KINDS)
def test_nothing_of_a_hostile_manifest_gets_through(copy, name):
    """Every text of the manifest that may be any text is an address, but for what a release could not be read without."""

    def poison(entries: dict[str, Any], columns: dict[str, Any]) -> None:
        entries["stated"]["title"] = HOSTILE
        entries |= {"dataset": HOSTILE, "request": HOSTILE}
        entries["guarantee"]["unit"] = HOSTILE
        entries["description"]["unit"] |= {"column": HOSTILE, "name": HOSTILE}
        if name != "breakdown":  # whose mechanism says which draws there were
            entries["mechanism"] |= {"name": HOSTILE, "public_n": HOSTILE, HOSTILE: HOSTILE}
        entries["versions"] = {HOSTILE: HOSTILE}
        if name in ("counts", "hierarchy", "consistent"):
            asked = [{"name": "a", "label": HOSTILE, "column": HOSTILE}]
            entries["description"]["answers"]["questions"] = asked
        last = columns[list(columns)[-1]]
        columns |= {HOSTILE: last, UNIT: last, "e" + "3b0c" * 15: last}

    folder = forged(copy(name), poison)
    assert HOSTILE in (folder / "manifest.json").read_text()
    export(folder)
    found = texts(folder)
    for part in ("postgresql", "steward", "internal", "srv", "pupils", "table=", "3b0c3b0c"):
        assert part not in found, part
    assert json.loads((folder / "deployment.json").read_text())["product"]["population"] is None


@pytest.mark.parametrize(
    "title",
    [
        "/srv/a",
        "a/b",
        "C:\\data",
        "rows.csv",
        "who@host",
        "host:5432",
        "~ada",
        "x" * 201,
        f"By {UNIT}",
        "<b>",
        "a_b",
        "a3f9" * 16,
        "Rows E3B0C44298FC1C14",
        "550e8400-e29b-41d4-a716-446655440000",
        "k9" * 12,
    ],
)
def test_a_title_that_is_not_words_is_replaced(copy, title):
    folder = forged(copy("counts"), lambda entries, _: entries["stated"].update(title=title))
    assert described(load_release(folder))["deployment.json"]["title"] == "Differentially private counts"


@pytest.mark.parametrize(
    "title",
    ["Größe, in 2024: 3.5 % more?", "Health survey (wave 2)", "Yes & no.", "COVID-19 vaccinations 2021-2022"],
)
def test_a_title_in_words_stays(copy, title):
    folder = forged(copy("counts"), lambda entries, _: entries["stated"].update(title=title))
    assert described(load_release(folder))["deployment.json"]["title"] == title


@pytest.mark.parametrize("public_n", [True, 0, -5, 1.5, "1e9", "40 rows", [40]])
def test_a_population_is_a_whole_number(copy, public_n):
    folder = forged(copy("counts"), lambda entries, _: entries["mechanism"].update(public_n=public_n))
    assert described(load_release(folder))["deployment.json"]["product"]["population"] is None


def test_a_changed_release_is_not_described(copy):
    folder = edited(copy("counts"), "manifest.json", "Two questions", "Ten questions")
    with pytest.raises(InputError, match="changed after the release"):
        export(folder)
    assert not any((folder / name).exists() for name in DESCRIPTIONS)


@pytest.mark.parametrize("kind", ["text", "json", "folder", "link"])
def test_files_of_others_are_not_overwritten(copy, tmp_path, kind):
    folder, other = copy("counts"), tmp_path / "other"
    other.write_text("{}")
    mine = folder / "deployment.json"
    {
        "text": lambda: mine.write_text("mine"),
        "json": lambda: mine.write_text('{"generator": "another"}'),
        "folder": mine.mkdir,
        "link": lambda: mine.symlink_to(other),
    }[kind]()
    with pytest.raises(InputError, match="not overwritten"):
        export(folder)
    assert not (folder / "dcat.jsonld").exists()
    check = verify(folder)["metadata"]
    assert check.holds
    assert not check.checked
    written = export(folder, tmp_path / "new" / "place")
    assert written[0].parent == tmp_path / "new" / "place"
    assert other.read_text() == "{}"


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_verify_sees_a_description_of_something_else(copy, name):
    folder = copy("counts")
    export(folder, words=PublisherWords(publisher="A bureau"))
    assert verify(folder)["metadata"].holds  # the publisher's words are the publisher's
    edited(folder, name, "epsilon = 1", "epsilon = 0.1")
    verdict = verify(folder)
    assert not verdict["metadata"].holds
    assert not verdict.holds


ASKED = {
    "": {"url_slug", "status", "tier", "deployment"},
    "basic": {
        "name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description", "publication_date",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {"model_name", "release_type", "data_source_type", "access_type"},
    "implementation": {"mechanisms"},
    "administrative": {"sources", "notes", "registry_authors"},
}  # fmt: skip
"""What the public registry of deployments knew in November 2026, section by section; any other entry is refused there."""
NEEDED = {
    "basic": ASKED["basic"],
    "administrative": {"registry_authors"},
}
WORDS = {"publisher": "A bureau", "intended_use": "Planning of schools.", "region": "Our town"}


@pytest.mark.parametrize("name", KINDS)
def test_the_entry_of_the_registry_has_what_is_asked_and_no_more(copy, name):
    folder = copy(name)
    assert REGISTRY not in [path.name for path in export(folder)]
    export(folder, words=PublisherWords(**WORDS))
    entry = json.loads((folder / REGISTRY).read_text(encoding="utf-8"))
    assert set(entry) == ASKED[""]
    assert (entry["status"], entry["tier"]) == ("Draft", 2)
    for section, said in entry["deployment"].items():
        assert NEEDED.get(section, set()) <= set(said) <= ASKED[section], section
    basic, variant = entry["deployment"]["basic"], entry["deployment"]["dp_variant"]["variant_name"]
    assert basic["data_curators"] == ["A bureau"] == entry["deployment"]["administrative"]["registry_authors"]
    assert basic["data_product_type"] == "Summary statistics"
    assert variant in ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Custom")
    assert all(
        type(number) is float for number in entry["deployment"]["privacy_loss"]["privacy_parameters"].values()
    )
    assert verify(folder)["metadata"].checked
    assert verify(folder).holds
    edited(folder, REGISTRY, "Our town", "Everywhere")
    assert not verify(folder)["metadata"].holds


def test_words_of_the_spec_are_sealed_and_exported(tmp_path):
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    said = "\n".join(f'{name} = "{text}"' for name, text in WORDS.items())
    (tmp_path / "spec.toml").write_text(
        f'[data]\npath = "rows.csv"\nunit = "{UNIT}"\n[privacy]\nepsilon = 1\nledger = "x.ledger"\nbudget = {{ epsilon = 1 }}\n'
        f'[order.parents]\nb = "a"\n[output]\nfolder = "out"\n{said}\n'
    )
    release = load_spec(tmp_path / "spec.toml").release()
    assert release.manifest.stated.region == "Our town"
    assert (tmp_path / "out" / REGISTRY) in export(tmp_path / "out")
    assert "Planning of schools." in (tmp_path / "out" / REGISTRY).read_text()


def test_every_column_is_described_in_its_place(shelf):
    release = load_release(shelf / "counts")
    said = described(release)
    csvw, package = said["release.csv-metadata.json"], said["datapackage.json"]
    assert [column["titles"] for column in csvw["tableSchema"]["columns"]] == list(release.columns)
    fields = package["resources"][0]["schema"]["fields"]
    assert [field["name"] for field in fields] == list(release.columns)
    assert [field["type"] for field in fields][:2] == ["string", "integer"]


def test_words_are_plain_text():
    for wrong in ("", " ", "a\nb", "x" * 201, 3):
        with pytest.raises(InputError, match="publisher"):
            PublisherWords(publisher=wrong)  # pyright: ignore[reportArgumentType]
