"""A process that releases a spec and meets a fault at one step: ``python release_worker.py SPEC STEP WHEN [FAULT]``.

STEP names a function of the pipeline; WHEN is ``before`` or ``after``. FAULT is ``kill``, by SIGKILL, so that no handler
runs, or ``full``: from then on no file of this process takes another byte. An error of ours ends the process with 3.
"""

import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

from isotone.errors import IsotoneError
from isotone.ledger import Attempt, Ledger
from isotone.release import load_spec, pipeline, release_spec
from isotone.release.kinds.counts.query import CountQuery
from isotone.release.result import Release
from isotone.release.store import Place

STEPS: dict[str, tuple[Any, str]] = {
    "rehearse": (pipeline, "rehearse"),
    "free": (Place, "require_free"),
    "read": (CountQuery, "read"),
    "draw": (Attempt, "draw"),
    "noise": (CountQuery, "draw"),
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
        rehearsing = step.__name__ in ("read", "draw", "save_report") and not Ledger(ledger).charges()
        if when == "before" and not rehearsing:
            fault()
        result = step(*given, **named)
        if not rehearsing:
            fault()
        return result

    return run


if __name__ == "__main__":
    path, step, when, *rest = sys.argv[1:]
    spec = load_spec(path)
    if step != "none":
        owner, name = STEPS[step]
        fault = fill if rest == ["full"] else kill
        place = str(spec.resolve(spec.privacy.ledger))
        setattr(owner, name, faulty(getattr(owner, name), when, place, fault))
    try:
        release_spec(spec)
    except IsotoneError as error:
        sys.exit(print(error, *getattr(error, "__notes__", ()), file=sys.stderr) or 3)
