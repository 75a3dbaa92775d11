"""Start the desk on this machine. There is no option for any other address."""

from __future__ import annotations

import os
import socket
import webbrowser

import uvicorn

from isotone.desk.desk import Desk
from isotone.desk.folder import Root
from isotone.desk.web.app import make_app
from isotone.desk.web.guard import START
from isotone.desk.web.keys import Keys
from isotone.errors import InputError

__all__ = ["serve"]

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
