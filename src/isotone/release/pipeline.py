"""One release, whatever its kind: rehearse, charge, read, draw, seal, present.

What can be refused is refused before the charge. The charge is durable before the data is read, and nothing that
the data contains is shown or branched on.
"""

from __future__ import annotations

from typing import Any

from isotone.ledger.ledger import Ledger
from isotone.mechanism import Progress, no_progress
from isotone.reading.engine import watching
from isotone.reading.sources import Frame
from isotone.release.kinds.kind import Query, Stamp
from isotone.release.manifest import content_hash
from isotone.release.result import Release

__all__ = ["request_id", "run"]


def run(
    query: Query[Any, Any], *, ledger: Ledger, identity: Any = None, progress: Progress = no_progress
) -> Release:
    """Release what ``query`` asks for and charge ``ledger`` for it.

    ``identity`` says which data it is, in public words: a path, or a name that the steward gives. Without it the
    request cannot be told from another one with the same parameters, and is never taken for one made before.
    """
    request = request_id(query, identity)
    frame = query.open()
    rehearse(query, frame)
    ledger.check(query.guarantee)
    progress(0.1, "charging the ledger")
    charge = ledger.charge(query.guarantee, query.description, mechanism=query.mechanism_name, spec=request)
    with watching(progress, 0.2, 0.8, "reading where the data is"):
        statistic = query.read(frame)
    progress(0.8, "adding noise")
    drawn = query.draw(statistic)
    release = query.publish(drawn, Stamp(charge.number, charge.time, ledger.dataset, request))
    charge.finish(release.manifest.content_hash or "")
    progress(1.0, "done")
    return release


def request_id(query: Query[Any, Any], identity: Any) -> str:
    """A digest of the public parameters and of the data's identity; empty for data without one."""
    if identity is None:
        return ""
    return content_hash({"parameters": query.parameters(), "data": identity})


def rehearse(query: Query[Any, Any], frame: Frame) -> None:
    """Run the whole chain on zero rows, so that what can fail fails before the charge. Nothing of it is kept."""
    nobody = query.draw(query.read(frame.head(0)))
    query.publish(nobody, Stamp(0, "", "", "")).manifest.text()
