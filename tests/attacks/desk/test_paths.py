"""Paths that leave the folder of the desk, or are no regular files."""

from __future__ import annotations

import os

import pytest
from tests.support.desk import Client
from tests.support.desk_survey import PAGES, draft, saved, write_answers

from isotone.desk.folder import PLACES, PRIVATE, PUBLIC, PathError, Root
from isotone.errors import InputError

OUTSIDE = ["../secret.toml", "a/../../secret.toml", "/etc/passwd", "..", "", " ", "~/x", "*.toml", "a?.toml", "[a].toml",
           "{a}.toml", "file:///etc/passwd", "https://x/y", "postgresql://x/y", "a\0b", "a\nb", "a\\b", "x" * 1001,
           "link.toml", "linked/secret.toml"]  # fmt: skip


@pytest.fixture
def root(tmp_path):
    inside = tmp_path / "desk"
    inside.mkdir()
    (tmp_path / "secret.toml").write_text("secret")
    (inside / "link.toml").symlink_to(tmp_path / "secret.toml")
    (inside / "linked").symlink_to(tmp_path)
    (inside / "inner").mkdir()
    (inside / "inner" / "file.toml").write_text("")
    (inside / "own.toml").symlink_to(inside / "inner" / "file.toml")
    os.mkfifo(inside / "pipe.toml")
    return Root(inside)


def test_paths_that_leave_the_folder_are_refused_in_the_same_words(root):
    said = set()
    for path in OUTSIDE:
        with pytest.raises(PathError) as error:
            root.inside(path)
        said.add(str(error.value))
    assert len(said) == 1
    assert said.pop().startswith("This path cannot be used.")


@pytest.mark.parametrize("path", ["pipe.toml", "inner", "none.toml", "."])
def test_what_is_no_regular_file_is_refused_without_waiting(root, path):
    with pytest.raises(PathError, match="no regular file"):
        root.file(path)


def test_devices_are_refused():
    with pytest.raises(PathError, match="no regular file"):
        Root("/dev").file("null")


def test_files_and_links_inside_the_folder_are_found(root):
    file = root.folder / "inner" / "file.toml"
    assert root.file("inner/file.toml") == root.file(str(file)) == root.file("own.toml") == file
    assert root.inside("new/one.toml") == root.folder / "new" / "one.toml"
    assert list(root.walk("*.toml")) == [file]  # no links and no pipes


def test_a_root_is_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for path in ("none", "file"):
        with pytest.raises(InputError):
            Root(tmp_path / path)


def test_no_screen_takes_such_a_path(root):
    write_answers(root.folder)
    client = Client(root.folder).open()
    here = draft(client)
    for path in OUTSIDE:
        assert client.post("/begin", open=path, kind="", name=path).status == 422
        for page, field in (("data", "data.path"), ("budget", "ledger")):
            answer = client.post(f"{here}/{page}", **{**PAGES[page], field: path})
            assert answer.status == 422, (page, path)
            refused = (
                "This path cannot be used",
                "Choose the file",
                "missing",
                "give path, or connection",
                "is the path of a file",
            )
            assert any(words in answer.problems for words in refused)
        for page in ("one", "report", "zip"):
            assert client.raw("GET", f"/releases/{page}?folder={path}", client.headers()).status == 422
        assert client.post("/releases/redraw", folder=path).status == 422
    for path in ("../secret.toml", "linked", "inner"):
        assert client.post(f"{here}/accuracy", amount="1", earlier=path).status == 422


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("data", 'path = "../secret.csv"'),
        ("data", 'path = "part-*.csv"'),
        ("privacy", 'ledger = "../other.ledger"'),
        ("privacy", 'ledger = "postgresql://u:p@h/d"'),
        ("output", 'folder = "/tmp/elsewhere"'),
        ("order", 'file = "../secret.toml"'),
        ("order", 'file = "linked/secret.toml"'),
        ("order", 'file = "answers.csv"'),
        ("order", 'file = "same.csv"'),
        ("order", 'file = "pipe.toml"'),
        ("order", 'relaxation = "../secret.toml"\nelements = ["a"]'),
    ],
)
def test_a_spec_that_leaves_the_folder_is_not_opened(root, section, line):
    """The data do not serve as a public file either: a plan would show what is in them."""
    write_answers(root.folder)
    os.link(root.folder / "answers.csv", root.folder / "same.csv")
    sections = {
        "data": 'path = "answers.csv"',
        "privacy": 'ledger = "a.ledger"',
        "output": 'folder = "out"',
        "order": 'elements = ["hyp"]',
    } | {section: line}
    sections["privacy"] += '\nepsilon = "1"'
    text = "\n".join(f"[{name}]\n{lines}" for name, lines in sections.items())
    (root.folder / "spec.toml").write_text(text)
    answer = Client(root.folder).open().post("/begin", open="spec.toml")
    assert answer.status == 422
    assert not [word for word in ("secret", "hyp", "twice", "person", "answers") if word in answer.problems]


ORDER = {
    "elements",
    "relations",
    "parents",
    "lower",
    "upper",
    "choice",
    "children",
    "mechanism",
    "care",
    "max_size",
    "root",
    "total",
    "by",
    "margins",
    "importance",
    "unlisted",
    "waves",
}


def test_every_entry_that_may_be_a_path_is_known():
    """A new text entry of a spec must be sorted into these lists, or said to be no path."""
    from isotone.release.spec import sections

    no_paths = {
        "data": {"unit", "element", "columns", "yes", "no", "types", "missing", "on_violation", "on_conflict", "contributions",
                 "weights", "connection", "table", "separator", "encoding", "header", "names", "newline"},
        "privacy": {"epsilon", "delta", "rho", "dataset", "unit", "neighbours", "budget"},
        "output": {"confidence", "title", "report", "publisher", "intended_use", "registry_author", "region"},
        "order": ORDER,
        "questions": {"any_of", "column", "label", "missing", "no", "refusal", "refused", "separator", "word", "yes"},
        "table": {"category", "categories", "upper", "count", "counts", "kind", "emphasis", "strata", "population", "shape"},
        "curve": {"band", "x", "y", "bounds", "y_range", "y_values", "increasing", "loss", "method", "output", "shape", "public_n",
                  "x_grid", "yes", "no"},
        "distribution": {"column", "bounds", "grid", "cells", "by", "public_n", "band"},
        "survival": {"time", "event", "horizon", "yes", "no", "cells", "by", "public_n"},
        "series": {"secrets", "periods", "matters", "record", "date"},  # the desk refuses it
    }  # fmt: skip
    for name, section in sections().items():
        paths = {entry for place, entry in (*PRIVATE, *PLACES, *PUBLIC) if place == name}
        assert set(section.model_fields) == no_paths[name] | paths, name


def test_a_spec_is_saved_over_no_other(root):
    write_answers(root.folder)
    client = Client(root.folder).open()
    here = draft(client)
    (root.folder / "survey.toml").write_text("# somebody else's\n")
    assert client.post("/begin", kind="order", name="survey").status == 422
    assert client.post(f"{here}/review").status == 422
    assert (root.folder / "survey.toml").read_text() == "# somebody else's\n"


@pytest.mark.parametrize("data", ["pipe.csv", "none.csv", "inner", "link.csv"])
def test_data_that_is_no_file_here_is_not_released(root, data):
    write_answers(root.folder)
    os.mkfifo(root.folder / "pipe.csv")
    client = Client(root.folder).open()
    here = saved(client)
    (root.folder / "answers.csv").unlink()
    if data == "link.csv":
        (root.folder / "answers.csv").symlink_to(root.folder.parent / "secret.toml")
    elif data != "none.csv":
        (root.folder / data).rename(root.folder / "answers.csv")
    page = client.get(f"{here}/release")
    request = page.field("request") if 'name="request"' in page.text else ""
    answer = client.post(f"{here}/release", request=request, confirm="1")
    assert answer.status == 422
    assert not (root.folder / "survey.ledger").exists()


def test_the_secrets_of_a_series_lie_in_the_folder_and_are_no_other_file(root):
    write_answers(root.folder)
    text = '[data]\npath = "answers.csv"\n[privacy]\nepsilon = "1"\nledger = "a.ledger"\n[output]\nfolder = "o"\n'
    text += '[order]\nelements = ["a"]\n[series]\nperiods = ["2026-01", "2026-02"]\nsecrets = "{}"\n'
    client = Client(root.folder).open()
    for place in ("/etc/passwd", "../secrets", "answers.csv"):
        (root.folder / "series.toml").write_text(text.format(place))
        answer = client.post("/begin", open="series.toml")
        assert answer.status == 422
        assert "passwd" not in answer.problems
