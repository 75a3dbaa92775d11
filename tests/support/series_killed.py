"""A desk whose process ends while it opens a series: ``python -m tests.support.series_killed FOLDER STEP``.

It kills itself the hard way while noise is drawn, or when all files are there and the ledger is not sealed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from isotone.series import state
from isotone.series.series_mechanism import SeriesMechanism
from tests.support.desk import Client


def _end(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, step: str) -> None:
    client = Client(folder).open()
    here = client.post("/begin", open="survey.toml").headers["location"].rpartition("/")[0]
    form = {"request": client.get(f"{here}/release").field("request"), "confirm": "1"}
    if step == "draw":
        setattr(SeriesMechanism, step, _end)
    else:
        real = state.sync
        state.sync = lambda path: _end() if path == folder else real(path)
    client.finish(client.post(f"{here}/release", **form).headers["location"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
