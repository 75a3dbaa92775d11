"""A real PostgreSQL server on loopback for the tests that need one."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest


def _server_folder() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    here = shutil.which("initdb")
    return Path(here).parent if here else None


@functools.cache
def postgres_url() -> str:
    """Start a server once for this test process; skip, saying so, where there is none to start."""
    programs = _server_folder()
    if programs is None:
        pytest.skip("no PostgreSQL server could be installed on this machine")
    folder = Path(tempfile.mkdtemp(prefix="isotone-postgres-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    as_user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]

    def run(*command: str) -> None:
        subprocess.run([*as_user, *command], check=True, stdout=subprocess.DEVNULL, cwd=folder)

    data = str(folder / "data")
    run(str(programs / "initdb"), "-D", data, "-U", "isotone", "--auth=trust")
    options = (
        f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"  # clients are killed, not it
    )
    run(str(programs / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")

    def stop() -> None:
        run(str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return f"postgresql://isotone@127.0.0.1:{port}/postgres"
