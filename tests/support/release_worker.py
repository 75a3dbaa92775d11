"""A process that releases a spec and kills itself at one step: ``python release_worker.py SPEC STEP WHEN``.

STEP names a function of the pipeline; WHEN is ``before`` or ``after``. The kill is SIGKILL: no handler runs.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

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


def deadly(step: Callable[..., Any], when: str, ledger: str) -> Callable[..., Any]:
    """The same step, but the process dies at it once a charge exists (or at once, for steps before the charge)."""

    def run(*given: Any, **named: Any) -> Any:
        rehearsing = step.__name__ in ("read", "draw", "save_report") and not Ledger(ledger).charges()
        if when == "before" and not rehearsing:
            os.kill(os.getpid(), signal.SIGKILL)
        result = step(*given, **named)
        if not rehearsing:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return run


if __name__ == "__main__":
    path, step, when = sys.argv[1:]
    spec = load_spec(path)
    if step != "none":
        owner, name = STEPS[step]
        setattr(owner, name, deadly(getattr(owner, name), when, str(spec.resolve(spec.privacy.ledger))))
    release_spec(spec)
