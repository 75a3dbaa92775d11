"""A desk whose process ends in the middle of a release: ``python -m tests.support.desk_killed FOLDER STEP``.

It kills itself the hard way when the release comes to STEP of the query, ``read`` or ``publish``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from isotone.release import pipeline
from isotone.release.pipeline import Job
from tests.support.desk import Client
from tests.support.desk_survey import released


def main(folder: Path, step: str) -> None:
    client, real, rehearsed = Client(folder).open(), getattr(Job, step), threading.Event()
    rehearse = pipeline.rehearse

    def ended(self, *args):
        if rehearsed.is_set():
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *args)

    def then(*args):
        sizes = rehearse(*args)
        rehearsed.set()
        return sizes

    setattr(Job, step, ended)
    pipeline.rehearse = then
    here = client.post("/begin", open="survey.toml").headers["location"].rpartition("/")[0]
    released(client, here)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
