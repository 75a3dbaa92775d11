"""A release of counts from the first screen to the last, in plain forms."""

from __future__ import annotations

import io
import zipfile

import pytest

import isotone as iso
from tests.support.desk import Client



OUTLINE = "hyp\n  twice\n  meds < chol\nchol\n"


def write_answers(folder, rows=60):
    lines = ["person,hyp,twice,meds,chol"]
    lines += [f"{i},{'yes' if i % 2 else 'no'},no,no,{'yes' if i % 3 else 'no'}" for i in range(rows)]
    (folder / "answers.csv").write_text("\n".join(lines) + "\n")


def draft(client, **more):
    """A whole spec, typed on the screens up to the review. Returns the address of the draft."""
    begun = client.post("/begin", kind="order", name="survey", title="A survey")
    here = begun.headers["location"].rpartition("/")[0]
    pages = {
        "what": {"outline": OUTLINE, "yes": ""},
        "people": {"path": "answers.csv", "unit": "person", "words": "person", "contributions": "1",
                   "neighbours": "add-remove"},
        "accuracy": {"amount": "1", "ask": "next"},
        "budget": {"ledger": "survey.ledger", "total": "3", "dataset": ""},
    }  # fmt: skip
    for name, fields in pages.items():
        answer = client.post(f"{here}/{name}", **{**fields, **more.get(name, {})})
        assert answer.status == 303, answer.text
    return here


def saved(client):
    here = draft(client)
    assert client.post(f"{here}/review").status == 303
    return here


def released(client, here, **fields):
    asked = client.get(f"{here}/release")
    sent = client.post(f"{here}/release", request=asked.field("request"), confirm="1.0", **fields)
    assert sent.status == 303, sent.text
    return client.finish(sent.headers["location"])


def test_from_the_first_screen_to_a_verified_release(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = saved(client)
    page = released(client, here)
    assert "Verified: every check holds" in page.text
    assert iso.verify(tmp_path / "survey-release", ledger=tmp_path / "survey.ledger").holds
    release = iso.load_release(tmp_path / "survey-release")
    assert release.manifest.title == "A survey"
    assert set(release.order.covers) == {("twice", "hyp"), ("meds", "hyp"), ("meds", "chol")}
    listed = client.get("/releases").text
    assert "survey-release" in listed
    assert client.get("/releases/report?folder=survey-release").body == (
        tmp_path / "survey-release" / "report.html"
    ).read_bytes()
    one = client.get("/releases/one?folder=survey-release&verify=yes")
    assert "Verified: every check holds" in one.text


def test_the_zip_has_the_files_of_the_release_alone(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    released(client, saved(client))
    folder = tmp_path / "survey-release"
    (folder / "release.sig").symlink_to(tmp_path / "answers.csv")
    answer = client.get("/releases/zip?folder=survey-release")
    assert answer.status == 422
    (folder / "release.sig").unlink()
    (folder / "notes.txt").write_text("mine")
    with zipfile.ZipFile(io.BytesIO(client.get("/releases/zip?folder=survey-release").body)) as file:
        assert {name: file.read(name) for name in file.namelist()} == {
            f"survey-release/{name}": (folder / name).read_bytes()
            for name in ("manifest.json", "release.csv", "report.html")
        }


def test_the_same_spec_from_the_command_line_is_the_same_request(tmp_path):
    """One engine: what the desk released is known to the command line, at no cost."""
    from isotone.release import load_spec, release_spec

    write_answers(tmp_path)
    client = Client(tmp_path).open()
    released(client, saved(client))
    _, _, fresh = release_spec(load_spec(tmp_path / "survey.toml"))
    assert not fresh
    assert len(iso.Ledger(tmp_path / "survey.ledger").charges()) == 1
