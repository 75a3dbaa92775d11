"""A release of counts from the first screen to the last, in plain forms."""

from __future__ import annotations

import io
import zipfile
from html import unescape

from tests.support import flat
from tests.support.desk import Client
from tests.support.desk_survey import DICTIONARY, PAGES, released, saved, write_answers, write_survey

import isotone as iso


def test_from_the_first_screen_to_a_verified_release(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = saved(client)
    page = released(client, here)
    assert "Verified: every check holds" in page.text
    for link in ("report", "zip", "one"):
        assert f'href="/releases/{link}?folder=survey-release"' in page.text
    assert iso.verify(tmp_path / "survey-release", ledger=tmp_path / "survey.ledger").holds
    release = iso.load_release(tmp_path / "survey-release")
    assert release.manifest.stated.title == "A survey"
    assert set(release.order.covers) == {("twice", "hyp"), ("meds", "hyp"), ("meds", "chol")}
    listed = client.get("/releases").text
    assert "survey-release" in listed
    assert (
        client.get("/releases/report?folder=survey-release").body
        == (tmp_path / "survey-release" / "report.html").read_bytes()
    )
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
    from isotone.release import load_spec

    write_answers(tmp_path)
    client = Client(tmp_path).open()
    released(client, saved(client))
    _, _, fresh = flat.with_spec(load_spec(tmp_path / "survey.toml"))
    assert not fresh
    assert len(iso.Ledger(tmp_path / "survey.ledger").charges()) == 1


def test_from_a_questionnaire_and_coded_answers(tmp_path):
    """What the form says and an order cannot is listed on the page."""
    (tmp_path / "dictionary.csv").write_text(DICTIONARY)
    rows = [f"{i},{(1, 2, 9)[i % 3]},{int(i % 3 == 0)},{int(i % 3 == 0)}" for i in range(60)]
    (tmp_path / "answers.csv").write_text("\n".join(["person,smoke,daily,late", *rows]) + "\n")
    client = Client(tmp_path).open()
    begun = client.post("/begin", kind="order", name="smoking", form="dictionary.csv")
    here = begun.headers["location"].rpartition("/")[0]
    page = client.get(f"{here}/what").text
    assert "datediff" in page
    assert "Refused" in page
    for name in ("data", "what", "accuracy", "budget"):
        fields = {} if name == "what" else {**PAGES[name], "ledger": "smoking.ledger"}
        assert client.post(f"{here}/{name}", **fields).status == 303
    assert client.post(f"{here}/review").status == 303
    assert "Verified: every check holds" in released(client, here).text
    release = iso.load_release(tmp_path / "smoking-release")
    assert release.order.leq("late", "daily")


def test_from_an_xlsform_its_outline_changed_and_changed_back(tmp_path):
    """Choices stand in the outline, a line that comes back has its definition again, and labels are shown."""
    write_survey(tmp_path, 60)
    client = Client(tmp_path).open()
    begun = client.post("/begin", kind="order", name="smoking", form="form.xlsx")
    here = begun.headers["location"].rpartition("/")[0]
    assert client.post(f"{here}/data", **PAGES["data"]).status == 303
    page = client.get(f"{here}/what").text
    outline = unescape(
        page.partition('<textarea id="outline"')[2].partition(">")[2].partition("</textarea>")[0]
    )
    assert "    daily\n" not in outline
    assert "  daily\n    first\n      = first_1\n      = first_2\n" in outline
    assert "Within 5 minutes" in page
    before = client.get(f"{here}/review").text
    fewer = outline.replace("      = first_2\n", "")
    assert client.post(f"{here}/what", outline=fewer).status == 303
    assert "first_2" not in client.get(f"{here}/review").text
    assert client.post(f"{here}/what", outline=outline).status == 303
    after = client.get(f"{here}/review").text
    for line in ("first_2&#34;]]]", "Within 5 minutes", "Later", "refused = "):
        assert (line in after) == (line in before)
    for name in ("accuracy", "budget"):
        assert client.post(f"{here}/{name}", **{**PAGES[name], "ledger": "smoking.ledger"}).status == 303
    assert "LaplaceMechanism, which does not add up" in client.get(f"{here}/accuracy").text
    assert client.post(f"{here}/review").status == 303
    assert "Verified: every check holds" in released(client, here).text
    release = iso.load_release(tmp_path / "smoking-release")
    options = dict(zip(release.columns["element"], release.columns["value"], strict=True))
    assert options["first_1"] + options["first_2"] == options["first"]


def test_a_form_that_is_none_is_refused_without_its_contents(tmp_path):
    write_answers(tmp_path)
    answer = Client(tmp_path).open().post("/begin", kind="order", name="x", form="answers.csv")
    assert answer.status == 422
    assert not [word for word in ("hyp", "twice", "answers.csv") if word in answer.problems]
