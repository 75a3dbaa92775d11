"""The application on this machine, what guards it, and its server. There is no option for any other address.

Every request passes the guard first: the address it was sent to, where it comes from, whether it belongs to the session, and
for a form whether this session made it. Every answer leaves it with the same headers. An error that nobody foresaw
is answered in general words, and told to the terminal by its type alone, since its text may quote data.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import sys
import threading
import webbrowser
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from isotone.desk import releasing, screens, series
from isotone.desk.desk import Desk
from isotone.desk.folder import Root
from isotone.desk.pages import page
from isotone.desk.words import lines
from isotone.errors import InputError, IsotoneError

# The secrets of one run of the desk.


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


class Keys:
    """A token that opens the desk once, the session that it opens, and what every form of the session carries."""

    def __init__(self) -> None:
        self.token: str = secrets.token_urlsafe(32)
        self.session: str = secrets.token_urlsafe(32)
        self.form: str = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._used = False

    def redeem(self, token: str) -> bool:
        """Whether this is the token of the start address, and nobody used it before."""
        with self._lock:
            if self._used or not _equal(token, self.token):
                return False
            self._used = True
            return True

    def is_session(self, cookie: str) -> bool:
        """Whether a cookie belongs to the session."""
        return _equal(cookie, self.session)

    def is_form(self, value: str) -> bool:
        """Whether a form was made by this session."""
        return _equal(value, self.form)


# What stands between the network and the pages.
#
# Every request passes here first: the address it was sent to, where it comes from, whether it belongs to the session, and
# for a form whether this session made it. Every answer leaves here with the same headers. An error that nobody foresaw
# is answered in general words, and told to the terminal by its type alone, since its text may quote data.

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
        result = headers.getlist("host")
        if len(result) != 1 or result[0].lower() not in self._hosts:
            raise RefusalError(403, "The desk answers at 127.0.0.1 and localhost, and at no other name.")
        return result[0].lower()

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


# The application, which says which address is which screen.

_STATIC = Path(__file__).parent / "static"
_BOTH = ["GET", "POST"]


def make_app(desk: Desk, keys: Keys, port: int) -> Guard:
    """The application for one port of this machine, behind its guard."""
    draft = "/draft/{draft}"
    routes = [
        Route("/", screens.start),
        Route("/begin", screens.begin, methods=["POST"]),
        Route(f"{draft}/what", screens.what, methods=_BOTH),
        Route(f"{draft}/what/look", screens.look_what, methods=["POST"]),
        Route(f"{draft}/data", screens.data, methods=_BOTH),
        Route(f"{draft}/data/look", screens.look_data, methods=["POST"]),
        Route(f"{draft}/{{step}}/keep", screens.keep, methods=["POST"]),
        Route(f"{draft}/accuracy", screens.accuracy, methods=_BOTH),
        Route(f"{draft}/accuracy/look", screens.look_accuracy, methods=["POST"]),
        Route(f"{draft}/budget", screens.budget, methods=_BOTH),
        Route(f"{draft}/review", screens.review, methods=_BOTH),
        Route(f"{draft}/preview", screens.preview),
        Route(f"{draft}/release", series.release, methods=_BOTH),
        Route(f"{draft}/release/{{job}}", releasing.job),
        Route(f"{draft}/release/{{job}}/progress", releasing.progress),
        Route(f"{draft}/check", screens.check, methods=_BOTH),
        Route("/releases", releasing.releases),
        Route("/releases/one", releasing.one),
        Route("/releases/report", releasing.report),
        Route("/releases/zip", releasing.download),
        Route("/releases/redraw", releasing.redraw, methods=["POST"]),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    handlers: dict[Any, Any] = {HTTPException: _refused, IsotoneError: _refused}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.desk = desk
    return Guard(app, keys, port)


def _refused(request: Request, error: Exception) -> Response:
    """A page that says why there is nothing else."""
    if isinstance(error, HTTPException):
        return page(request, "refused.html", error.status_code, problems=[error.detail])
    assert isinstance(error, IsotoneError)
    return page(request, "refused.html", 422, problems=lines(error))


# Start the desk on this machine. There is no option for any other address.

_LOOPBACK = "127.0.0.1"


def serve(
    port: int,
    root: str | os.PathLike[str],
    *,
    browser: bool = True,
    allow_check: bool = False,
    read_only: bool = False,
) -> None:
    """Serve the desk until it is interrupted. The start address is printed, and opened unless told otherwise."""
    desk, keys = Desk(Root(root), read_only=read_only, allow_check=allow_check), Keys()
    with socket.socket() as listening:
        if os.name == "posix":  # elsewhere it would let another process listen on the same port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_LOOPBACK, port))
        except (OSError, OverflowError):
            raise InputError(
                f"Port {port} cannot be used. Name another one with --port, or 0 for any."
            ) from None
        listening.listen(128)
        chosen = listening.getsockname()[1]
        address = f"http://{_LOOPBACK}:{chosen}{START}?token={keys.token}"
        print(f"The desk is at {address}\nThis address works once. Stop the desk with Ctrl+C.", flush=True)
        # nothing is logged: an address or an error could say something about data
        config = uvicorn.Config(
            make_app(desk, keys, chosen),
            access_log=False,
            log_config=None,
            log_level="critical",
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
        )
        if browser:
            webbrowser.open(address)
        uvicorn.Server(config).run(sockets=[listening])
