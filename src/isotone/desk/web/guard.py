"""What stands between the network and the pages.

Every request passes here first: the address it was sent to, where it comes from, whether it belongs to the session, and
for a form whether this session made it. Every answer leaves here with the same headers. An error that nobody foresaw
is answered in general words, and told to the terminal by its type alone, since its text may quote data.
"""

from __future__ import annotations

import sys
from html import escape
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from isotone.desk.web.keys import Keys

__all__ = ["START", "Guard"]

START = "/start"
_LARGEST_FORM = 1 << 20
_FORM = "application/x-www-form-urlencoded"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RefusalError(Exception):
    """A request that does not reach the pages."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Guard:
    """The outermost layer of the application, for one port of this machine."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        self._app = app
        self._keys = keys
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"isotone-desk-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no other connections, such as sockets
            await send({"type": "websocket.close", "code": 1008})
            return
        answered = _Answer(send)
        try:
            started = await self._admit(scope, receive)
            await (started or self._app)(scope, receive, answered)
        except RefusalError as refusal:
            await _plain(refusal.status, str(refusal))(scope, receive, answered)
        except Exception as error:
            print(f"isotone: the desk met an unexpected {type(error).__name__}.", file=sys.stderr)
            if not answered.begun:
                words = (
                    "Something unexpected happened. Nothing of it is shown here, because it might quote data."
                )
                await _plain(500, words)(scope, receive, answered)

    async def _admit(self, scope: Scope, receive: Receive) -> Response | None:
        """Refuse a request, or answer it if it starts the session. Otherwise leave it to the pages."""
        headers, method = Headers(scope=scope), scope["method"]
        host = self._host(headers)
        if method not in ("GET", "HEAD", "POST"):
            raise RefusalError(405, "This method is not used here.")
        _require_own_site(headers, host, method)
        if scope["path"] == START:
            return self._start(scope, method)
        if not any(map(self._keys.is_session, _cookies(headers, self.cookie))):
            raise RefusalError(
                401, "This desk is locked. Open the address that isotone serve printed in the terminal."
            )
        if method == "POST":
            form = await _form(headers, receive)
            if not self._keys.is_form(form.get("csrf", "")):
                raise RefusalError(403, "This form was not made by this desk. Load the page again.")
            scope.setdefault("state", {})["form"] = form
        scope.setdefault("state", {})["csrf"] = self._keys.form
        return None

    def _host(self, headers: Headers) -> str:
        """The address that the request was sent to. A name of another site may point here, and is refused."""
        found = headers.getlist("host")
        if len(found) != 1 or found[0].lower() not in self._hosts:
            raise RefusalError(403, "The desk answers at 127.0.0.1 and localhost, and at no other name.")
        return found[0].lower()

    def _start(self, scope: Scope, method: str) -> Response:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        token = (query.get("token") or [""])[0]
        if method != "GET" or not self._keys.redeem(token):
            raise RefusalError(
                403, "This start address is wrong or was used before. It works once: start the desk again."
            )
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self.cookie, self._keys.session, httponly=True, samesite="strict", path="/")
        return answer


class _Answer:
    """Sends an answer with the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)


def _require_own_site(headers: Headers, host: str, method: str) -> None:
    """Refuse what another page makes the browser send."""
    changes = method == "POST"
    allowed = ("same-origin",) if changes else ("same-origin", "none")
    sites, origins = headers.getlist("sec-fetch-site"), headers.getlist("origin")
    if any(site not in allowed for site in sites):
        raise RefusalError(403, "This request comes from another page.")
    if any(origin != f"http://{host}" for origin in origins) or (changes and len(origins) != 1):
        raise RefusalError(403, "This request comes from another page.")


def _cookies(headers: Headers, name: str) -> list[str]:
    """All values under a name. What other ports of this machine set must not hide the one of the session."""
    pairs = [part.partition("=") for line in headers.getlist("cookie") for part in line.split(";")]
    return [value.strip() for key, _, value in pairs if key.strip() == name]


async def _form(headers: Headers, receive: Receive) -> dict[str, str]:
    """The fields of a form, the last value of each. Files are never uploaded."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise RefusalError(415, "Forms are sent as text; the desk takes no files.")
    body, more = b"", True
    while more:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise RefusalError(400, "The request ended early.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > _LARGEST_FORM:
            raise RefusalError(413, "This form is too long.")
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=2000)
    except ValueError:
        raise RefusalError(400, "This form cannot be read.") from None
    return {name: values[-1] for name, values in fields.items()}


def _plain(status: int, words: str) -> Response:
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>isotone desk</title></head>'
        f"<body><main><h1>isotone desk</h1><p>{escape(words)}</p></main></body></html>",
        status_code=status,
    )
