"""What other desks, other ports and other specs of the same machine try: their cookies, forms, links and data."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.desk import HOST, PORT, Client
from tests.support.desk_survey import PAGES, draft, released, saved, write_answers

import isotone as iso


@pytest.fixture
def client(tmp_path):
    write_answers(tmp_path)
    return Client(tmp_path).open()


def test_cookies_of_other_ports_neither_open_nor_lock_the_desk(client, tmp_path):
    other = Client(tmp_path).open()
    name, _, own = client.cookie.partition("=")
    for cookie in (
        other.cookie,
        f"{name}=",
        f"isotone-desk-{PORT + 1}={own}",
        f"x{name}={own}",
        f"{name}={own}x",
    ):
        assert client.raw("GET", "/", client.headers(Cookie=cookie)).status == 401
    for cookie in (f'bad="; {client.cookie}', f"a[]=(; {client.cookie}", f"{name}=planted; {client.cookie}",
                   f"{client.cookie}; {name}=planted", f"=; ;;{client.cookie};"):  # fmt: skip
        assert client.raw("GET", "/", client.headers(Cookie=cookie)).status == 200


def test_the_form_of_another_desk_is_refused(client, tmp_path):
    other = Client(tmp_path).open()
    assert client.send("/begin", {"csrf": other.keys.form, "kind": "order", "name": "x"}).status == 403
    assert client.desk.drafts == {}


def test_headers_of_proxies_change_nothing(client):
    said = {"X_Forwarded_Host": HOST, "X_Forwarded_Proto": "https", "Forwarded": f"host={HOST}"}
    assert client.raw("GET", "/", client.headers(Host="evil.example", **said)).status == 403
    page = client.raw("GET", "/", client.headers(**{**said, "X_Forwarded_Host": "evil.example"}))
    assert page.status == 200
    assert "evil" not in page.text + str(page.headers)


def test_the_body_of_a_stranger_is_not_read(client):
    """A stranger cannot keep the desk waiting: what was refused by its headers is answered at once."""

    async def never():
        raise AssertionError("the body was asked for")

    def status(path, headers):
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
                 "headers": [(name.lower().encode(), value.encode()) for name, value in headers]}  # fmt: skip
        asyncio.run(client.app(scope, never, send))
        return sent[0]["status"]

    origin = ("Origin", f"http://{HOST}")
    assert status("/begin", [*client.headers(Cookie="x"), origin]) == 401
    assert status("/begin", [*client.headers(Host="evil.example"), origin]) == 403
    assert status("/begin", client.headers()) == 403
    assert status("/start", [*client.headers(), origin]) == 403
    assert status("/begin", [*client.headers(), origin, ("Content-Type", "text/plain")]) == 415


def test_data_of_any_spec_is_opened_by_a_release_alone(client, tmp_path):
    """A spec that calls the data its order, its questionnaire, its list or its ledger would show what is in it."""
    (tmp_path / "list.csv").write_text("child,parent\nsecret4711,region\n")
    (tmp_path / "owner.toml").write_text('[data]\npath = "list.csv"\n')
    (tmp_path / "same.csv").hardlink_to(tmp_path / "list.csv")
    base = '[data]\npath = "answers.csv"\n[output]\nfolder = "o"\n[privacy]\nepsilon = "1"\n'
    kinds = {
        "order": 'ledger = "a.ledger"\n[order]\nfile = "FILE"\nlower = "child"\nupper = "parent"\n',
        "table": 'ledger = "a.ledger"\n[table]\ncategory = "c"\nupper = 9\ncategories_file = "FILE"\n',
        "ledger": 'ledger = "FILE"\n[order]\nelements = ["hyp"]\n',
    }
    for name in ("list.csv", "same.csv"):
        for text in kinds.values():
            (tmp_path / "thief.toml").write_text(base + text.replace("FILE", name))
            answer = client.post("/begin", open="thief.toml")
            assert (answer.status, "names this file as its data" in answer.problems) == (422, True)
        (tmp_path / "thief.toml").unlink()
        answer = client.post("/begin", kind="order", name="x", form=name)
        assert (answer.status, "secret4711" in answer.text) == (422, False)
    (tmp_path / "owner.toml").unlink()
    assert (
        client.post("/begin", kind="order", name="x", form="list.csv").status == 422
    )  # it has a second name
    (tmp_path / "same.csv").unlink()
    assert client.post("/begin", kind="order", name="x", form="list.csv").status == 303


def test_a_desk_that_reads_only_imports_nothing(client, tmp_path):
    (tmp_path / "list.csv").write_text("child,parent\nsecret4711,region\n")
    answer = Client(tmp_path, read_only=True).open().post("/begin", kind="order", name="x", form="list.csv")
    assert (answer.status, "secret4711" in answer.text) == (422, False)


def test_hidden_folders_are_not_written_to(client):
    for name in (".git/x", "a/.b/x", ".x"):
        assert client.post("/begin", kind="order", name=name).status == 422


def test_a_link_in_the_place_of_the_data_is_not_read(client, tmp_path, monkeypatch):
    """It is put there after the confirmation, and between the steps of the release."""
    from isotone.release import pipeline

    outside = tmp_path.parent / f"{tmp_path.name}-outside.csv"
    (tmp_path / "answers.csv").rename(outside)
    write_answers(tmp_path)
    here, real = saved(client), pipeline.rehearse

    def swapped(*args):
        sizes = real(*args)
        (tmp_path / "answers.csv").unlink()
        (tmp_path / "answers.csv").symlink_to(outside)
        return sizes

    monkeypatch.setattr(pipeline, "rehearse", swapped)
    assert "Not released" in released(client, here).text
    assert not (tmp_path / "survey.ledger").exists()  # which the first charge would have made


def test_a_public_file_that_is_changed_after_the_confirmation_charges_nothing(tmp_path, monkeypatch):
    from isotone.desk import jobs

    write_answers(tmp_path)
    (tmp_path / "order.csv").write_text("child,parent\ntwice,hyp\n")
    text = '[data]\npath = "answers.csv"\n[output]\nfolder = "o"\n[privacy]\nepsilon = "1"\nledger = "a.ledger"\n'
    text += 'budget = { epsilon = "1" }\n[order]\nfile = "order.csv"\nlower = "child"\nupper = "parent"\n'
    (tmp_path / "survey.toml").write_text(text)
    client, real = Client(tmp_path).open(), jobs.deliver
    here = client.post("/begin", open="survey.toml", public="yes").headers["location"].rpartition("/")[0]
    assert client.post(f"{here}/review").status == 303

    def late(*args, **options):
        (tmp_path / "order.csv").write_text("child,parent\nmeds,hyp\n")
        return real(*args, **options)

    monkeypatch.setattr(jobs, "deliver", late)
    assert "Not released" in released(client, here).text
    assert not (tmp_path / "a.ledger").exists()


def test_a_second_draw_that_failed_before_its_charge_may_be_asked_for_again(client, tmp_path):
    here = saved(client)
    released(client, here)
    (tmp_path / "answers.csv").write_text("nothing\n")
    assert "Not released" in released(client, here, again="yes", after="1").text
    write_answers(tmp_path)
    assert "<h1>Released<" in released(client, here, again="yes", after="1").text
    assert len(iso.Ledger(tmp_path / "survey.ledger").charges()) == 2


def test_a_broken_ledger_is_told_and_its_contents_are_not(client, tmp_path):
    here = saved(client)
    request = client.get(f"{here}/release").field("request")
    (tmp_path / "survey.ledger").write_text("zz4711")
    for answer in (
        client.get(f"{here}/budget"),
        client.get(f"{here}/release"),
        client.post(f"{here}/release", request=request, confirm="1"),
    ):
        assert answer.problems
        assert "zz4711" not in answer.text


def test_the_check_says_what_is_missing_and_quotes_no_record(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path, allow_check=True).open()
    here = draft(client, data={"data.header": "no"})
    (tmp_path / "answers.csv").write_text("person,hyp\nzz4711,yes\n")
    answer = client.post(f"{here}/check")
    assert "no column" in answer.text
    assert "zz4711" not in answer.text


@pytest.mark.parametrize(
    "text", ["x = 1979-05-27\n", "x = [07:32:00]\n", "a." * 3000 + "b = 1\n", "[data]\npath = 1979-05-27\n"]
)
def test_odd_toml_is_refused_in_words(client, tmp_path, text):
    (tmp_path / "odd.toml").write_text(text)
    assert client.post("/begin", open="odd.toml").status == 422


def test_what_cannot_be_a_spec_is_refused_where_it_is_typed(client):
    curve = {"curve.x": "hyp", "curve.y": "chol", "curve.bounds": "5, 1", "curve.y_range": "0, 1"}
    here = client.begin("curve", "c")
    assert client.post(f"{here}/data", **{**PAGES["data"], "data.path": "answer.csv"}).status == 422
    assert client.post(f"{here}/data", **{**PAGES["data"], "data.unit": "hypp"}).status == 422
    assert client.post(f"{here}/data", **PAGES["data"]).status == 303
    for wrong in (
        {},
        {"curve.bounds": "x, 1"},
        {"curve.bounds": "1"},
        {"curve.y": "hyp"},
        {"curve.x": "age"},
    ):
        assert client.post(f"{here}/what", **{**curve, **wrong}).status == 422
    assert client.post(f"{here}/what", **{**curve, "curve.bounds": "5, 9"}).status == 303
