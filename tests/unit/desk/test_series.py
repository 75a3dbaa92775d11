"""A series at the desk: opened once, closed period by period, and nothing of its secrets on any page."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.desk import Answer, Client
from tests.support.desk_survey import PAGES

import isotone as iso
from isotone.desk.folder import Root
from isotone.series.series_mechanism import SeriesMechanism

WHAT = {
    "outline": "first dose\n  second dose\n",
    "series.periods": "week 1\nweek 2\nweek 3",
    "data.element": "stage",
}
WEEKS = ("week 1", "week 2", "week 3")


def table(folder: Path, first: int, second: int) -> None:
    """So many people with a first dose, and so many of them with a second one."""
    rows = [f"{person},first dose" for person in range(first)]
    rows += [f"{person},second dose" for person in range(second)]
    (folder / "answers.csv").write_text("\n".join(["person,stage", *rows]) + "\n")


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, so that counts are themselves."""
    monkeypatch.setattr(
        SeriesMechanism, "draw", lambda self: np.zeros((self.periods, len(self.stages)), np.int64)
    )


def described(folder: Path, **more: str) -> tuple[Client, str]:
    """A series that is described, saved and not opened."""
    table(folder, 30, 10)
    client = Client(folder).open()
    here = client.begin("series", "survey")
    for name, fields in {**PAGES, "what": {**WHAT, **more}}.items():
        answer = client.post(f"{here}/{name}", **fields)
        assert answer.status == 303, answer.problems
    reviewed = client.get(f"{here}/review")
    assert "isotone series open survey.toml" in reviewed.text
    assert client.post(f"{here}/review").status == 303
    return client, here


def sent(client: Client, here: str, **fields: str) -> Answer:
    """What the form of the series leads to, once its job is done."""
    shown = client.get(f"{here}/release")
    answer = client.post(f"{here}/release", request=shown.field("request"), **fields)
    if answer.status != 303:
        return answer
    done = client.finish(answer.headers["location"])
    return client.get(done.headers["location"]) if done.status == 303 else done


@pytest.mark.usefixtures("exact")
def test_from_the_first_screen_to_the_end_of_the_chain(tmp_path: Path) -> None:
    client, here = described(tmp_path)
    assert "all 3 periods, week 1 to week 3" in client.get(f"{here}/release").text
    assert "Type 1 to confirm" in sent(client, here, confirm="2").problems
    assert not (tmp_path / "survey-secrets").exists()
    opened = sent(client, here, confirm="1").text
    assert "0 of 3 planned periods are shown" in opened
    assert "under charge 1" in opened
    first = sent(client, here, period="week 1", sure="yes").text
    assert '<td data-label="count">30</td>' in first
    table(tmp_path, 90, 40)
    second = sent(client, here, period="week 3", sure="yes").text  # the second one is passed over
    assert "Its secrets are destroyed" in second
    assert second.count(">shown<") == 2
    assert second.count(">empty<") == 1
    assert '<td data-label="new">60</td>' in second
    since = client.get(f"{here}/release?show=week+3&since=week+1").text
    assert "new since week 1" in since
    assert "its interval" in since
    made = iso.load_release(tmp_path / "survey-release")
    assert all(seal[:23] in second for seal in made.manifest["chain"][1:])
    assert iso.verify(tmp_path / "survey-release", ledger=tmp_path / "survey.ledger").holds
    verdict = client.get("/releases/one?folder=survey-release&verify=yes").text
    assert "Verified: every check holds" in verdict
    assert client.get("/releases/report?folder=survey-release").status == 200


@pytest.mark.usefixtures("exact")
def test_a_period_is_closed_when_somebody_says_that_it_is_over(tmp_path: Path) -> None:
    client, here = described(tmp_path)
    sent(client, here, confirm="1")
    assert "Tick that the data" in sent(client, here, period="week 1").problems
    assert "Choose the period" in sent(client, here, period="week 9", sure="yes").problems
    assert (
        "not the one that was reviewed"
        in client.post(f"{here}/release", request="x", period="week 1", sure="yes").problems
    )
    assert "0 of 3 planned" in client.get(f"{here}/release").text
    sent(client, here, period="week 1", sure="yes")
    table(tmp_path, 99, 99)
    again = sent(client, here, period="week 1", sure="yes").text  # a form that was sent twice
    assert '<td data-label="count">30</td>' in again


def test_nothing_of_the_secrets_is_shown_listed_or_read(tmp_path: Path) -> None:
    client, here = described(tmp_path)
    opened = sent(client, here, confirm="1").text
    kept = json.loads((tmp_path / "survey-secrets" / "secret.json").read_bytes())
    closed = sent(client, here, period="week 1", sure="yes").text
    told = [
        opened,
        closed,
        *(client.get(path).text for path in ("/", "/releases", f"{here}/data", f"{here}/review")),
    ]
    for secret in (kept["key"], *(part["salt"] for part in kept["periods"])):
        assert not any(secret in text for text in told)
    root = Root(tmp_path)
    assert not [name for name in root.names(tmp_path, (".parquet", ".json")) if "secrets" in name]
    (register,) = (tmp_path / "survey-secrets").glob("register-*")
    for path in ("secret.json", "opening.json", register.name):
        refused = client.post(f"{here}/data", **{**PAGES["data"], "data.path": f"survey-secrets/{path}"})
        assert "no regular file" in refused.problems
        assert client.get(f"/releases/one?folder=survey-secrets/{path}").status >= 400


def test_a_desk_that_reads_only_opens_and_closes_nothing(tmp_path: Path) -> None:
    described(tmp_path)
    reader = Client(tmp_path, read_only=True).open()
    there = reader.post("/begin", open="survey.toml").headers["location"].rpartition("/")[0]
    assert reader.get(f"{there}/release").status == 403
    assert reader.post(f"{there}/release", confirm="1").status == 403
    assert not (tmp_path / "survey-secrets").exists()


def test_a_series_without_a_folder_for_its_secrets_is_refused_where_it_is_typed(tmp_path: Path) -> None:
    table(tmp_path, 3, 1)
    client = Client(tmp_path).open()
    here = client.begin("series", "survey")
    client.post(f"{here}/data", **PAGES["data"])
    for more, words in (
        ({"series.secrets": ""}, "Name the folder for the secrets"),
        ({"series.periods": "week 1\nweek 1"}, "stands twice"),
        ({"series.periods": "2026-02-28\n2026-01-31"}, "out of order"),
        ({"data.element": "level"}, "no column"),
    ):
        assert words in client.post(f"{here}/what", **{**WHAT, **more}).problems


def test_what_cannot_be_opened_is_told_and_costs_nothing(tmp_path: Path) -> None:
    client, here = described(tmp_path)
    (tmp_path / "survey-secrets").write_text("a file in the way")
    told = sent(client, here, confirm="1")
    assert "cannot be used" in told.text or "something at" in told.text
    assert "Nothing was charged" in told.text
    assert not (tmp_path / "survey.ledger").exists() or not iso.Ledger(tmp_path / "survey.ledger").charges()


def test_a_series_of_the_past_is_released_at_once(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text(
        "person,stage,day\n1,first dose,2024-01-03\n2,second dose,2024-02-03\n"
    )
    client = Client(tmp_path).open()
    here = client.begin("series", "survey")
    what = {**WHAT, "series.periods": "2024-01-31\n2024-02-29", "series.date": "day", "series.secrets": ""}
    for name, fields in {**PAGES, "what": what}.items():
        assert client.post(f"{here}/{name}", **fields).status == 303
    assert client.post(f"{here}/review").status == 303
    assert "isotone release survey.toml" in client.get(f"{here}/review").text
    asked = client.get(f"{here}/release")
    begun = client.post(f"{here}/release", request=asked.field("request"), confirm="1")
    assert "Verified: every check holds" in client.finish(begun.headers["location"]).text


def test_groups_have_a_column(tmp_path: Path) -> None:
    rows = "".join(f"{i},first dose,{'ns'[i % 2]}\n" for i in range(20))
    (tmp_path / "answers.csv").write_text("person,stage,side\n" + rows)
    client = Client(tmp_path).open()
    here = client.begin("series", "survey")
    for name, fields in {**PAGES, "what": {**WHAT, "order.by": "side: n, s"}}.items():
        answer = client.post(f"{here}/{name}", **fields)
        assert answer.status == 303, answer.problems
    assert client.post(f"{here}/review").status == 303
    sent(client, here, confirm="1")
    sent(client, here, period="week 1", sure="yes")
    sent(client, here, period="week 2", sure="yes")
    shown = client.get(f"{here}/release?show=week+2&since=week+1").text
    assert shown.count('data-label="group"') == 4


def test_what_stops_a_closing_says_that_the_period_is_open(tmp_path: Path) -> None:
    client, here = described(tmp_path)
    sent(client, here, confirm="1")
    for content, words in (
        ("resident,stage\n1,first dose\n", "no column"),
        ("person;stage\n1;first dose\n", "separator"),
        ("", "is empty"),
    ):
        (tmp_path / "answers.csv").write_text(content)
        told = sent(client, here, period="week 1", sure="yes").problems
        assert words in told
        assert "week 1 is still open" in told
        assert "charged" not in told
    table(tmp_path, 30, 10)
    assert "1 of 3 planned" in sent(client, here, period="week 1", sure="yes").text


def test_two_tabs_that_open_at_once_are_one_charge(tmp_path: Path) -> None:
    client, here = described(tmp_path)
    form = {"request": client.get(f"{here}/release").field("request"), "confirm": "1"}
    begun = [client.post(f"{here}/release", **form) for _ in range(3)]
    told = [client.finish(answer.headers["location"]) for answer in begun]
    assert [answer.status for answer in told].count(303) == 1
    (charge,) = iso.Ledger(tmp_path / "survey.ledger").charges()
    assert charge.state == "sealed"
    assert "1 of 3 planned" in sent(client, here, period="week 1", sure="yes").text


def test_secrets_that_are_elsewhere_are_asked_for(tmp_path: Path) -> None:
    client, here = described(tmp_path)
    sent(client, here, confirm="1")
    (tmp_path / "survey-secrets").rename(tmp_path / "moved")
    told = sent(client, here, confirm="1").problems
    assert "put the folder back where it was" in told
    assert "Nothing was charged" in told
    assert not (tmp_path / "survey-secrets").exists()


@pytest.mark.parametrize("step", ["draw", "sync"])
def test_a_desk_that_is_killed_while_it_opens_goes_on_under_the_same_charge(
    tmp_path: Path, step: str
) -> None:
    described(tmp_path)
    killed = [sys.executable, "-m", "tests.support.series_killed", str(tmp_path), step]
    assert subprocess.run(killed, cwd=Path(__file__).parents[3], check=False).returncode == -signal.SIGKILL
    (charge,) = iso.Ledger(tmp_path / "survey.ledger").charges()
    assert charge.state == "reading"
    client = Client(tmp_path).open()
    here = client.post("/begin", open="survey.toml").headers["location"].rpartition("/")[0]
    assert "0 of 3 planned" in sent(client, here, confirm="1").text
    assert [found.state for found in iso.Ledger(tmp_path / "survey.ledger").charges()] == ["sealed"]
    assert "1 of 3 planned" in sent(client, here, period="week 1", sure="yes").text


@pytest.mark.parametrize("where", ["survey-release", "survey-release/secrets"])
def test_secrets_in_the_published_folder_are_refused_before_the_charge(tmp_path: Path, where: str) -> None:
    client, here = described(tmp_path, **{"series.secrets": where})
    told = sent(client, here, confirm="1").text
    assert "must lie apart" in told
    assert "Nothing was charged" in told
    assert not (tmp_path / "survey.ledger").exists()


@pytest.mark.usefixtures("exact")
def test_a_series_that_was_changed_has_no_form_to_close_a_period(tmp_path: Path) -> None:
    """The form comes back with the words that were opened."""
    client, here = described(tmp_path)
    assert "Close a period" in sent(client, here, confirm="1").text
    for periods, same in (("week 1\nweek 2", False), (WHAT["series.periods"], True)):
        assert client.post(f"{here}/what", **{**WHAT, "series.periods": periods}).status == 303
        assert client.post(f"{here}/review").status == 303
        shown = client.get(f"{here}/release").text
        assert ("Close a period" in shown) == same
        assert ("it is not the series that was opened" in shown) != same
