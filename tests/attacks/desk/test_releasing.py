"""One charge for one request, a second draw only when asked for, and nothing about contents anywhere."""

from __future__ import annotations

import threading

import pytest
from tests.support.desk import Client
from tests.support.desk_survey import asked, draft, released, saved, write_answers

import isotone as iso


@pytest.fixture
def client(tmp_path):
    write_answers(tmp_path)
    return Client(tmp_path).open()


def charges(client):
    ledger = client.desk.root.folder / "survey.ledger"
    return iso.Ledger(ledger).charges() if ledger.exists() else []


def test_a_release_must_be_confirmed_by_its_amount(client):
    here = saved(client)
    for typed in ("", "2", "yes", "0.9999", "nan", "1e9999999"):
        assert asked(client, here, confirm=typed).status == 422
    assert charges(client) == []


def test_the_id_is_bound_to_the_request(client):
    """The same id with another spec is refused, in the draft as in the file."""
    here = saved(client)
    id = client.get(f"{here}/release").field("request")
    assert client.post(f"{here}/release", request="sha256:" + "0" * 64, confirm="1").status == 422
    spec = client.desk.root.folder / "survey.toml"
    text = spec.read_text()
    for old, new in (
        ('epsilon = "1"', 'epsilon = "2"'),
        ('"twice"', '"other"'),
        ("answers.csv", "others.csv"),
    ):
        spec.write_text(text.replace(old, new, 1))
        assert client.post(f"{here}/release", request=id, confirm="1").status == 422
    spec.write_text(text)
    client.post(f"{here}/accuracy", amount="2", ask="next")
    assert client.post(f"{here}/release", request=id, confirm="2").status == 422
    client.post(f"{here}/review")
    assert client.post(f"{here}/release", request=id, confirm="2").status == 422
    assert charges(client) == []


def test_two_tabs_are_one_charge(client, monkeypatch):
    """Both requests are under way at once: the ledger's own rule decides."""
    from isotone.desk import jobs

    here, both, real = saved(client), threading.Barrier(2), jobs.deliver

    def together(*args, **options):
        both.wait(60)
        return real(*args, **options)

    monkeypatch.setattr(jobs, "deliver", together)
    sent = [asked(client, here) for _ in range(2)]
    pages = [client.finish(answer.headers["location"]).text for answer in sent]
    assert [charge.state for charge in charges(client)] == ["sealed"]
    assert sorted("<h1>Released before" in page for page in pages) == [False, True]


def test_a_second_draw_has_its_own_confirmation_and_charge(client):
    here = saved(client)
    assert asked(client, here, again="yes", after="1").status == 422
    released(client, here)
    assert "Released before" in released(client, here).text
    assert len(charges(client)) == 1
    page = client.get(f"{here}/release").text
    assert "Draw again" in page
    for wrong in ({"after": "2"}, {"after": ""}, {"after": "1", "confirm": "2"}):
        assert asked(client, here, again="yes", **wrong).status == 422
    assert "<h1>Released<" in released(client, here, again="yes", after="1").text
    assert asked(client, here, again="yes", after="1").status == 422  # the same form once more
    assert len(charges(client)) == 2


def test_one_confirmation_of_a_second_draw_is_one_draw_before_it_is_charged_too(client, monkeypatch):
    """A double click: the second form comes while the first has not reached the ledger."""
    from isotone.desk import jobs

    here, real = saved(client), jobs.deliver
    released(client, here)
    reached, go_on = threading.Event(), threading.Event()

    def slow(*args, **options):
        reached.set()
        assert go_on.wait(60)
        return real(*args, **options)

    monkeypatch.setattr(jobs, "deliver", slow)
    first = asked(client, here, again="yes", after="1")
    assert reached.wait(60)
    second = asked(client, here, again="yes", after="1")
    go_on.set()
    assert "<h1>Released<" in client.finish(first.headers["location"]).text
    assert second.status == 422
    assert len(charges(client)) == 2


def test_a_spec_that_was_not_saved_is_not_released(client):
    here = draft(client)
    assert "Save the spec first" in client.get(f"{here}/release").text
    assert client.post(f"{here}/release", request="x", confirm="1").status == 422
    assert charges(client) == []


def test_too_small_a_budget_says_so_and_charges_nothing(client):
    iso.Ledger(client.desk.root.folder / "survey.ledger", epsilon="0.5", unit="person").create()
    here = saved(client, budget={"total": ""})
    page = released(client, here).text
    assert "too short" in page
    assert charges(client) == []


SECRET = "zz4711"


def test_errors_of_a_release_say_what_the_command_line_says_and_nothing_of_contents(client, capfd):
    here = saved(client, data={"data.header": "no"})
    folder = client.desk.root.folder
    data = folder / "answers.csv"
    hostile = {
        "no column": f"person,hyp,{SECRET},meds,chol\n1,yes,no,no,no\n",
        "empty": "",
        "no text": f"\x00\x01{SECRET}",
        "record for a header": f"{SECRET},1,2,3,4\n",
    }
    for content in hostile.values():
        data.write_text(content)
        page = released(client, here).text
        assert "Not released" in page
        assert SECRET not in page
        assert "has no column" in page or "is empty, or begins with an empty line" in page
        assert "Nothing was charged." in page
    (folder / "survey-release").mkdir()
    (folder / "survey-release" / "other.txt").write_text(SECRET)
    write_answers(folder)
    page = released(client, here).text
    assert SECRET not in page
    assert "other.txt" in page
    assert "Nothing was charged." in page
    assert charges(client) == []
    said = capfd.readouterr()
    assert said.out == said.err == ""


def test_progress_has_stages_and_a_fraction_alone(client):
    here = saved(client)
    location = asked(client, here).headers["location"]
    client.finish(location)
    found = client.get(f"{location}/progress")
    import json

    assert json.loads(found.text) == {
        "fraction": 1.0,
        "reached": ["charged", "reading", "drawn", "sealed"],
        "finished": True,
    }


def test_nothing_is_printed_or_stored_beside_the_release(client, capfd):
    here = saved(client)
    released(client, here)
    said = capfd.readouterr()
    assert said.out == said.err == ""
    names = {
        path.name for path in client.desk.root.folder.iterdir() if not path.name.startswith("survey.ledger")
    }
    assert names == {"answers.csv", "survey.toml", "survey-release"}
    assert {path.name for path in (client.desk.root.folder / "survey-release").iterdir()} == {
        "manifest.json",
        "release.csv",
        "report.html",
    }


def test_guesses_stay_out_of_the_spec_and_the_release(client):
    here = saved(client)
    answer = client.post(f"{here}/accuracy", amount="1", ask="error", guesses="hyp 98765\ntwice 54321")
    assert "98,765" in answer.text
    assert "SIMULATED" in answer.text
    released(client, here)
    folder = client.desk.root.folder
    for path in (folder / "survey.toml", folder / "survey-release" / "manifest.json"):
        assert "98765" not in path.read_text()


def test_a_preview_is_marked_and_no_release(client, tmp_path):
    from isotone.desk.screens import simulated_release

    here = draft(client)
    page = client.get(f"{here}/preview")
    assert "SIMULATED" in page.text
    assert "position:fixed" in page.text
    assert "sandbox" in page.headers["content-security-policy"]
    kept = next(iter(client.desk.drafts.values()))
    folder = simulated_release(kept.spec(client.desk.root), {}).save(tmp_path / "preview")
    with pytest.raises(iso.InputError):
        iso.load_release(folder)
