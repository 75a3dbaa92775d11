"""Processes that release a spec and meet a fault at one step.

They are forked from a server that has loaded the libraries and released nothing: loading takes longer than a release.
"""

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from isotone.errors import IsotoneError
from isotone.ledger import Attempt, Ledger
from isotone.release import load_spec, pipeline
from isotone.release.pipeline import Job, Place
from isotone.release.result import Release
from tests.support import flat

STEPS: dict[str, tuple[Any, str]] = {
    "rehearse": (pipeline, "rehearse"),
    "free": (Place, "require_free"),
    "read": (Job, "read"),
    "draw": (Attempt, "draw"),
    "noise": (Job, "draw"),
    "write": (Place, "write"),
    "seal": (Attempt, "seal"),
    "publish": (Place, "publish"),
    "report": (Release, "save_report"),
}


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fill() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def faulty(step: Callable[..., Any], when: str, ledger: str, fault: Callable[[], None]) -> Callable[..., Any]:
    """The same step with a fault once a charge exists (or at once, for steps before the charge)."""

    def run(*given: Any, **named: Any) -> Any:
        made = Path(ledger).exists()  # by the first charge
        rehearsing = step.__name__ in ("read", "draw", "save_report") and not (
            made and Ledger(ledger).charges()
        )
        if when == "before" and not rehearsing:
            fault()
        result = step(*given, **named)
        if not rehearsing:
            fault()
        return result

    return run


def work(said: Connection, path: Path, step: str | None, when: str, fault: Callable[[], None]) -> None:
    """Release a spec. An error of ours is sent, and ends the process with 3."""
    spec = load_spec(path)
    if step is not None:
        owner, name = STEPS[step]
        place = str(spec.resolve(spec.privacy.ledger))
        setattr(owner, name, faulty(getattr(owner, name), when, place, fault))
    try:
        flat.with_spec(spec)
    except IsotoneError as error:
        said.send(" ".join(map(str, (error, *getattr(error, "__notes__", ())))))
        sys.exit(3)


class Worker:
    """A process that releases the spec at ``path``.

    ``step`` names a function of the pipeline, before or after which it meets the fault: :func:`kill`, by SIGKILL, so that no
    handler runs, or :func:`fill`, after which no file of the process takes another byte.
    """

    def __init__(
        self, path: Path, step: str | None = None, when: str = "before", fault: Callable[[], None] = kill
    ) -> None:
        self._said, there = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=work, args=(there, path, step, when, fault))
        self._process.start()
        there.close()

    def end(self) -> tuple[int | None, str]:
        """Wait for the end. Returns the exit code, which is negative for a signal, and what was said."""
        self._process.join()
        try:
            return self._process.exitcode, " ".join(self._said.recv().split())
        except EOFError:
            return self._process.exitcode, ""


_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.support.release_worker", "duckdb", "narwhals", "pyarrow"])
