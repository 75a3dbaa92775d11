"""Requests that must not reach the pages: other names, other pages, no session, forged forms."""

from __future__ import annotations

import pytest
from tests.support.desk import HOST, PORT, Client

ADDRESSES = ("/", "/releases", "/releases/one?folder=x", "/releases/zip?folder=x", "/draft/x/what", "/static/desk.css",
             "/draft/x/release", "/nowhere")  # fmt: skip
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def client(tmp_path):
    return Client(tmp_path)


def test_without_the_session_every_page_is_locked(client):
    cookies = ["", f"isotone-desk-{PORT}=", f"isotone-desk-{PORT}=guess", "isotone-desk-1=x", "=;="]
    for address in ADDRESSES:
        for cookie in cookies:
            for method in ("GET", "HEAD"):
                assert client.raw(method, address, [("Host", HOST), ("Cookie", cookie)]).status == 401
            assert client.send(address, {"csrf": client.keys.form}, Cookie=cookie).status == 401


def test_the_token_opens_the_desk_once(client):
    wrong = [client.raw("GET", f"/start{query}", [("Host", HOST)]) for query in ("", "?token=", "?token=x")]
    assert [answer.status for answer in wrong] == [403] * 3
    client.open()
    assert client.get("/").status == 200
    again = client.raw("GET", f"/start?token={client.keys.token}", [("Host", HOST)])
    assert again.status == 403
    assert "set-cookie" not in again.headers


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(client):
    answer = client.raw("GET", f"/start?token={client.keys.token}", [("Host", HOST)])
    words = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= words
    assert client.keys.token not in answer.headers["set-cookie"] + answer.headers["location"]


HOSTS = [[], ["evil.example"], [f"evil.example:{PORT}"], ["127.0.0.1"], [f"127.0.0.1:{PORT + 1}"], [f"127.0.0.1.evil:{PORT}"],
         [f"localhost.:{PORT}"], [HOST, HOST], [HOST, "evil.example"], [f"0.0.0.0:{PORT}"], [""]]  # fmt: skip


@pytest.mark.parametrize("hosts", HOSTS)
def test_another_name_for_this_machine_is_refused(client, hosts):
    client.open()
    headers = [("Cookie", client.cookie), *(("Host", host) for host in hosts)]
    assert client.raw("GET", "/", headers).status == 403
    token = client.raw("GET", f"/start?token={client.keys.token}", headers[1:])
    assert token.status == 403


def test_both_names_of_this_machine_are_answered(client):
    client.open()
    for host in (HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}"):
        assert client.raw("GET", "/", [("Cookie", client.cookie), ("Host", host)]).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense", ""])
def test_what_another_page_asks_for_is_refused(client, site):
    client.open()
    assert client.raw("GET", "/", client.headers(Sec_Fetch_Site=site)).status == 403
    fields = {"csrf": client.keys.form, "kind": "order", "name": "x"}
    assert client.send("/begin", fields, Sec_Fetch_Site=site).status == 403
    assert client.send("/begin", fields, Sec_Fetch_Site="none").status == 403
    assert client.desk.drafts == {}


ORIGINS = [
    "null",
    "http://evil.example",
    f"https://{HOST}",
    f"http://127.0.0.1:{PORT + 1}",
    f"http://localhost:{PORT}",
    "",
    None,
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_forms_come_from_the_own_origin(client, origin):
    """``localhost`` and ``127.0.0.1`` are two origins: the one of the address counts."""
    client.open()
    fields = {"csrf": client.keys.form, "kind": "order", "name": "x"}
    for site in ("same-origin", None):
        assert client.send("/begin", fields, Origin=origin, Sec_Fetch_Site=site).status == 403
    if origin:
        assert client.raw("GET", "/", client.headers(Origin=origin)).status == 403
    assert client.desk.drafts == {}


@pytest.mark.parametrize("csrf", [None, "", "guess", "TOKEN", "SESSION"])
def test_a_form_that_the_session_did_not_make_is_refused(client, csrf):
    client.open()
    known = {"TOKEN": client.keys.token, "SESSION": client.keys.session}
    fields = {"kind": "order", "name": "x"} | ({} if csrf is None else {"csrf": known.get(csrf, csrf)})
    assert client.send("/begin", fields).status == 403
    assert client.send("/begin?csrf=" + client.keys.form, fields).status == 403
    assert client.desk.drafts == {}


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "text/plain", "application/json", ""])
def test_nothing_is_uploaded(client, kind):
    client.open()
    assert client.send("/begin", {"csrf": client.keys.form}, Content_Type=kind).status == 415


def test_forms_are_limited(client):
    client.open()
    assert client.send("/begin", {"csrf": client.keys.form, "name": "x" * (1 << 20)}).status == 413
    many = {"csrf": client.keys.form} | {f"f{i}": "x" for i in range(3000)}
    assert client.send("/begin", many).status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(client, method):
    client.open()
    answer = client.raw(method, "/", client.headers(Origin=f"http://{HOST}"))
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_what_changes_something_is_asked_by_post_alone(client):
    client.open()
    for address in ("/begin", "/releases/redraw", "/draft/x/what/look"):
        assert client.get(address).status == 405


def test_there_are_no_other_connections(client):
    client.open()
    assert client.raw("GET", "/", client.headers(), kind="websocket").body == b"websocket.close"


def test_every_answer_has_the_headers(client):
    client.open()
    locked = client.raw("GET", "/", [("Host", HOST)])
    for answer in (
        client.get("/"),
        client.get("/nowhere"),
        client.get("/static/desk.js"),
        client.get("/static/../app.py"),
        locked,
    ):
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert not [name for name in answer.headers if name.startswith("access-control") or name == "server"]
    assert client.get("/static/../app.py").status == 404


def test_pages_have_a_token_in_each_form_and_no_script_or_style_inside(client):
    from tests.support.desk_survey import draft, write_answers

    write_answers(client.desk.root.folder)
    here = draft(client.open())
    for name in ("data", "what", "accuracy", "budget", "review"):
        page = client.get(f"{here}/{name}").text
        assert page.count("<form") == page.count(f'name="csrf" value="{client.keys.form}"') > 0
        assert "<style" not in page
        assert " style=" not in page
        assert page.count("<script") == page.count('<script src="/static/desk.js" defer></script>') == 1
        assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in page


def test_what_is_typed_is_shown_as_text(client):
    from tests.support.desk_survey import PAGES, write_answers

    evil = '"><script>alert(1)</script>'
    client.open()
    page = client.post("/begin", kind="order", name=evil, title=evil)
    assert page.status == 422
    assert evil not in page.text
    write_answers(client.desk.root.folder)
    here = client.begin("order", "x", title=evil)
    assert client.post(f"{here}/data", **{**PAGES["data"], "data.header": "no"}).status == 303
    outline = f"a\n  b{evil.replace('<', '')}\n"
    look = client.post(f"{here}/what/look", outline=outline).text
    assert "<script" not in look
    assert client.post(f"{here}/what", outline=outline, **{"data.yes": evil}).status == 303
    for name in ("data", "what", "accuracy", "review"):
        assert client.get(f"{here}/{name}").text.count("<script") == 1
    assert "<script" not in client.get(f"{here}/preview").text
    bad = client.post(f"{here}/what", outline=f"a < {evil}").text
    assert bad.count("<script") == 1


def test_an_unexpected_error_quotes_nothing(client, monkeypatch, capsys):
    from isotone.desk import screens

    def broken(*_, **__):
        raise RuntimeError("secret 4711")

    monkeypatch.setattr(screens, "page", broken)
    client.open()
    answer = client.get("/")
    said = capsys.readouterr()
    assert answer.status == 500
    assert "4711" not in answer.text + str(answer.headers) + said.out + said.err
    assert "RuntimeError" in said.err
