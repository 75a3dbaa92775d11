"""The command itself, over the loopback."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys

import pytest

from isotone.desk import server
from isotone.errors import InputError


def test_the_command_prints_an_address_that_works_once(tmp_path):
    """Nothing is said about requests, and the other addresses of the machine are not listened on."""
    command = [
        sys.executable,
        "-m",
        "isotone",
        "serve",
        "--port",
        "0",
        "--no-browser",
        "--root",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as desk:
        assert desk.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)(/start\?token=\S+)", desk.stdout.readline())
        assert found
        port = int(found[1])

        def ask(path, **headers):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            return answer, content

        try:
            assert ask("/")[0].status == 401
            first, _ = ask(found[2])
            assert first.status == 303
            cookie = first.headers["set-cookie"].partition(";")[0]
            assert ask("/", Cookie=cookie)[0].status == 200
            assert ask("/", Cookie=cookie, Host=f"evil.example:{port}")[0].status == 403
            assert ask("/static/desk.css", Cookie=cookie)[0].headers["server"] is None
            assert ask(found[2])[0].status == 403
            with (
                pytest.raises((ConnectionError, TimeoutError)),
                socket.create_connection(("127.0.0.2", port), timeout=5),
            ):
                pass
        finally:
            desk.terminate()
            out, err = desk.communicate(timeout=60)
    assert "GET" not in out + err
    assert "Traceback" not in err


def test_a_port_in_use_is_refused(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot be used"):
            server.serve(taken.getsockname()[1], tmp_path, browser=False)


def test_there_is_no_option_for_another_address():
    import inspect

    from isotone.cli.release import serve

    assert set(inspect.signature(serve).parameters) == {
        "port",
        "root",
        "no_browser",
        "allow_check",
        "read_only",
    }
    assert not {"host", "address", "bind"} & set(inspect.signature(server.serve).parameters)
