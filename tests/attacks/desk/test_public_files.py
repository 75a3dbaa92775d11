"""The desk opens as public what the steward named so there, and nothing that any spec may call its data."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.support.desk import Client

from isotone.desk import folder as places
from isotone.desk import folder as root
from isotone.desk.folder import _may_be  # pyright: ignore[reportPrivateUsage]

NAME = "Ann Miller"
DATA = f"child,parent\n{NAME},region\nBob Stone,region\n"
OWNER = '[data]\npath = "{path}"\n[order]\nelements = ["region"]\n[privacy]\nepsilon = "1"\nledger = "g.ledger"\n[output]\nfolder = "g"\n'
SPY = (
    '[data]\npath = "nothing.csv"\n[order]\nfile = "data-1.csv"\nlower = "child"\nupper = "parent"\n'
    '[privacy]\nepsilon = "1"\nledger = "s.ledger"\n[output]\nfolder = "s"\n'
)
PAGES = ("what", "people", "accuracy", "budget", "review")


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "data-1.csv").write_text(DATA)
    (tmp_path / "desk" / "spy.toml").write_text(SPY)
    return tmp_path / "desk"


def contents_seen(client: Client) -> bool:
    """Whether any page shows contents of data-1.csv, opened as an order that somebody says is public, or imported."""
    seen = False
    for asked in (
        {"open": "spy.toml", "public": "yes"},
        {"form": "data-1.csv", "name": "new", "kind": "order"},
    ):
        answer = client.post("/begin", **asked)
        seen |= NAME in answer.text
        if answer.status == 303:
            here = answer.headers["location"].rpartition("/")[0]
            seen |= any(NAME in client.get(f"{here}/{page}").text for page in PAGES)
    return seen


def owner(folder: Path, path: str, where: str = "real.toml") -> None:
    spec = folder / where
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(OWNER.format(path=path))


CASES = {
    "its name": lambda d: owner(d, "data-1.csv"),
    "another case": lambda d: owner(d, "DATA-?.csv"),
    "a pattern": lambda d: owner(d, "data-*.csv"),
    "a class": lambda d: owner(d, "data-[0-9].csv"),
    "braces": lambda d: owner(d, "data-{1,2}.csv"),
    "all folders": lambda d: owner(d, "../**/*.csv", "specs/real.toml"),
    "a way through a pattern": lambda d: owner(d, "sp*/../data-1.csv"),
    "dots": lambda d: owner(d, "../data-1.csv", "specs/real.toml"),
    "its folder": lambda d: owner(d, ".."),
    "an address": lambda d: owner(d, f"file://{d}/data-1.csv"),
    "a full path, deep": lambda d: owner(d, str(d / "data-1.csv"), "a/b/c/e/f/real.toml"),
    "a hidden folder": lambda d: owner(d, str(d / "data-1.csv"), ".project/real.toml"),
    "a name in capitals": lambda d: owner(d, "data-1.csv", "REAL.TOML"),
    "a folder of many": lambda d: [
        owner(d, str(d / "data-1.csv"), "specs/real.toml"),
        *[(d / "parts").mkdir(), *((d / "parts" / f"f{i}").touch() for i in range(1200))],
    ],
    "a link": lambda d: [(d / "data.csv").symlink_to("data-1.csv"), owner(d, "data.csv")],
    "a linked folder": lambda d: [(d / "x").symlink_to("."), owner(d, "x/data-1.csv")],
    "a second name": lambda d: [(d / "data.csv").hardlink_to(d / "data-1.csv"), owner(d, "data.*")],
    "a spec behind a link": lambda d: [
        owner(d.parent, str(d / "data-1.csv"), "elsewhere/real.toml"),
        (d / "linked").symlink_to(d.parent / "elsewhere"),
    ],
    "a spec that is a link": lambda d: [
        owner(d.parent, str(d / "data-1.csv"), "elsewhere/real.toml"),
        (d / "linked.toml").symlink_to(d.parent / "elsewhere" / "real.toml"),
    ],
    "a spec being written": lambda d: (d / "real.toml").write_text('[data]\npath = "data-1.csv"\nunit = '),
    "a spec that is too large": lambda d: (d / "real.toml").write_text(
        OWNER.format(path="data-1.csv") + "#" * (1 << 22)
    ),
    "a database": lambda d: (d / "real.toml").write_text(
        '[data]\nconnection = "sqlite:///data-1.csv"\ntable = "t"\n'
    ),
    "a draft on the disk": lambda d: owner(d, "data-1.csv", "other.draft.toml"),
    "what is typed in a draft": lambda d: (d / "other.draft.toml").write_text(
        '[desk.typed.data]\n"data.path" = "data-1.csv"\n'
    ),
    "what is typed as another path": lambda d: (d / "other.draft.toml").write_text(
        '[desk.typed.data]\nother_path = "data-*.csv"\n'
    ),
    "a list of paths": lambda d: (d / "real.toml").write_text('[data]\npath = ["x.csv", "data-1.csv"]\n'),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_spec_may_name_as_data_is_never_shown(folder, case):
    assert contents_seen(Client(folder).open()), "without another spec it is a public list"
    CASES[case](folder)
    assert not contents_seen(Client(folder).open())


def test_a_folder_that_is_too_large_to_look_through_is_refused(folder, monkeypatch):
    (folder / "parts").mkdir()
    for i in range(30):
        (folder / "parts" / f"f{i}").touch()
    monkeypatch.setattr(root, "_MOST_ENTRIES", 20)
    assert not contents_seen(Client(folder).open())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_refused(folder):
    (folder / "closed").mkdir(mode=0)
    assert not contents_seen(Client(folder).open())


def test_whatever_a_new_kind_opens_must_be_public(folder, monkeypatch):
    """Its entries are in no list: every file that it resolves is asked about."""
    monkeypatch.setattr(root, "PUBLIC", ())
    monkeypatch.setattr(root, "_KNOWN", ())
    assert contents_seen(Client(folder).open())
    owner(folder, "data-1.csv")
    client = Client(folder).open()
    assert not contents_seen(client)
    (folder / "real.toml").unlink()
    answer = Client(folder).open().post("/begin", open="spy.toml")
    assert "Say first that this is nobody" in answer.problems
    assert NAME not in answer.text


def test_a_draft_counts_as_a_spec(folder):
    client = Client(folder).open()
    here = client.post("/begin", kind="order", name="mine").headers["location"].rpartition("/")[0]
    (draft,) = client.desk.drafts.values()
    draft.change("data", path="data-1.csv")
    assert client.get(f"{here}/what").status == 200
    assert not contents_seen(client)


def test_a_file_is_public_once_the_steward_said_so_there(folder):
    client = Client(folder).open()
    answer = client.post("/begin", open="spy.toml")
    assert answer.status == 422
    assert "data-1.csv" in answer.problems
    assert NAME not in answer.text
    assert "Are these files public?" in answer.text
    assert client.post("/begin", open="spy.toml", public="yes").status == 303
    assert client.post("/begin", open="spy.toml").status == 303  # said for this run of the desk
    assert Client(folder).open().post("/begin", open="spy.toml").status == 422


def test_a_spec_that_was_changed_on_the_disk_opens_no_other_file(folder, monkeypatch):
    (folder / "order.csv").write_text("child,parent\ntwice,hyp\n")
    (folder / "good.toml").write_text(SPY.replace("data-1.csv", "order.csv"))
    client = Client(folder).open()
    here = client.post("/begin", open="good.toml", public="yes").headers["location"].rpartition("/")[0]
    client.post(f"{here}/review")
    (folder / "good.toml").write_text(SPY)
    opened: list[str] = []
    true = Path.open

    def told(self, *given, **options):
        opened.append(self.name)
        return true(self, *given, **options)

    monkeypatch.setattr(Path, "open", told)
    assert NAME not in client.get(f"{here}/release").text
    assert "data-1.csv" not in opened


@pytest.mark.parametrize(
    ("said", "hit"),
    [
        ("data-1.csv", True),
        ("data-2.csv", False),
        ("*.parquet", False),
        ("other/*.csv", False),
        ("s3://bucket/data-1.csv", False),
        ("data-1.csv.gz", False),
        ("[x]*.csv", True),  # a class may stand for anything: better too much
    ],
)
def test_paths_that_are_and_are_not_the_file(tmp_path, said, hit):
    odd = tmp_path / "a [b] *c"  # what a folder is called is no pattern
    odd.mkdir()
    (odd / "data-1.csv").write_text(DATA)
    assert _may_be(odd / "data-1.csv", odd, said) == hit
    assert places.PUBLIC  # pyright: ignore


def test_a_file_that_a_spec_or_draft_names_as_data_is_not_offered_as_a_questionnaire(tmp_path):
    for name in ("data.csv", "dictionary.csv", "other.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "one.toml").write_text(OWNER.format(path="data.csv"))
    (tmp_path / "two.draft.toml").write_text('[data]\npath = "part/*.csv"\n')
    client = Client(tmp_path).open()

    def offered() -> list[str]:
        return re.findall(r'<option value="([^"]+)"', client.get("/").text)

    assert offered() == ["dictionary.csv", "other.csv"]
    here = client.begin("order", name="new")
    client.post(f"{here}/data", **{"data.path": "other.csv", "data.unit": "a", "privacy.unit": "person"})
    assert offered() == ["dictionary.csv"]
