"""A browser's side of the desk, without a network: requests go straight into the application."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from isotone.desk.desk import Desk
from isotone.desk.folder import Root
from isotone.desk.server import Keys, make_app

PORT = 8765
HOST = f"127.0.0.1:{PORT}"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def problems(self) -> str:
        """What the page says is wrong."""
        found = re.search(r'<div class="alert" role="alert".*?</div>', self.text, re.DOTALL)
        return found[0] if found else ""

    def field(self, name: str) -> str:
        """The value of a hidden field."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found, self.text
        return unescape(found[1])


class Client:
    """One browser. ``raw`` sends a request as it is; ``get`` and ``post`` are those of the desk's own pages."""

    def __init__(self, root: Path, *, read_only: bool = False, allow_check: bool = False) -> None:
        self.desk, self.keys = Desk(Root(root), read_only, allow_check), Keys()
        self.app = make_app(self.desk, self.keys, PORT)
        self.cookie = ""

    def raw(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes = b"", kind: str = "http"
    ) -> Answer:
        path, _, query = path.partition("?")
        scope = {
            "type": kind,
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", PORT),
        }
        sent: list[Any] = []

        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            if not waiting:
                await asyncio.Event().wait()  # the browser stays until it has its answer
            return waiting.pop()

        async def send(message):
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        if sent[0]["type"] != "http.response.start":
            return Answer(0, {}, sent[0]["type"].encode())
        found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], found, b"".join(m.get("body", b"") for m in sent[1:]))

    def headers(self, **changes: str | None) -> list[tuple[str, str]]:
        """The headers of a page of the desk; None leaves one out."""
        usual = {"Host": HOST, "Cookie": self.cookie, "Sec-Fetch-Site": "same-origin"}
        changed = {**usual, **{name.replace("_", "-"): value for name, value in changes.items()}}
        return [(name, value) for name, value in changed.items() if value is not None]

    def open(self) -> Client:
        """Use the start address."""
        first = self.raw("GET", f"/start?token={self.keys.token}", self.headers(Sec_Fetch_Site="none"))
        assert first.status == 303, first.text
        self.cookie = first.headers["set-cookie"].partition(";")[0]
        return self

    def get(self, path: str) -> Answer:
        return self.raw("GET", path, self.headers())

    def post(self, path: str, /, **fields: str) -> Answer:
        """Send a form. Where it leads back to its own page, that page: with 422 in the place of 200 if something is wrong there."""
        answer = self.send(path, {"csrf": self.keys.form, **fields})
        if "?said=" not in answer.headers.get("location", ""):
            return answer
        page = self.get(answer.headers["location"])
        return replace(page, status=422) if page.problems and page.status == 200 else page

    def begin(self, kind: str, name: str = "survey", **fields: str) -> str:
        """The address of a new draft."""
        answer = self.post("/begin", kind=kind, name=name, **fields)
        assert answer.status == 303, answer.text
        return answer.headers["location"].rpartition("/")[0]

    def send(self, path: str, fields: dict[str, str], **changes: str | None) -> Answer:
        usual: dict[str, str | None] = {
            "Origin": f"http://{HOST}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self.raw("POST", path, self.headers(**{**usual, **changes}), urlencode(fields).encode())

    def finish(self, location: str) -> Answer:
        """Wait for the release that an answer led to, and look at its page."""
        job = self.desk.jobs[location.rsplit("/", 1)[1]]
        assert job.thread is not None
        job.thread.join()
        return self.get(location)
