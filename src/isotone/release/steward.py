"""What a steward does with a spec: plan, audit, release. The command line is a shell over this."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from isotone.errors import InputError
from isotone.ledger import Ledger, open_or_start
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Number
from isotone.release import pipeline
from isotone.release.kinds import kind_of_mechanism
from isotone.release.planning import SpecPlan
from isotone.release.result import Release, load_release
from isotone.release.spec import Spec

if TYPE_CHECKING:
    from isotone.audit.report import AuditReport

__all__ = ["audit_name", "audit_spec", "existing_release", "open_ledger", "plan_spec", "release_spec"]


def plan_spec(spec: Spec, progress: Progress = no_progress, *, records: int | None = None) -> SpecPlan:
    """Plan a spec from what is public.

    ``records`` is a guess at how many records there are, which must not come from the data: the error of a curve
    depends on it. Counts and tables need none.
    """
    return spec.kind.plan(spec, records, progress)


def audit_spec(spec: Spec, trials: int = 30_000, progress: Progress = no_progress) -> AuditReport:
    """Audit the mechanism that a spec would use. The data is not opened."""
    return spec.kind.audit(spec, trials, progress)


def audit_name(
    name: str, epsilon: Number = 1, trials: int = 60_000, progress: Progress = no_progress
) -> AuditReport:
    """Audit a mechanism by the name of its class, on a small example."""
    return kind_of_mechanism(name).audit_named(name, epsilon, trials, progress)


def open_ledger(spec: Spec) -> Ledger:
    """The spec's ledger; started on first use if the spec gives its total and the folder has no other ledger."""
    privacy = spec.privacy
    where = privacy.ledger if "://" in privacy.ledger else spec.resolve(privacy.ledger)
    total = privacy.budget.model_dump(exclude_none=True) if privacy.budget is not None else {}
    return open_or_start(
        where, dataset=privacy.dataset, unit=spec.unit, neighbours=privacy.neighbours, **total
    )


def existing_release(folder: Path, request: str) -> Release | None:
    """The release of exactly this request in a folder, if there is one."""
    if not (folder / "manifest.json").exists():
        return None
    release = load_release(folder)
    return release if release.manifest.request == request else None


def release_spec(
    spec: Spec, *, again: bool = False, progress: Progress = no_progress
) -> tuple[Release, Path, bool]:
    """Release what a spec describes, and save it.

    Returns the release, its folder, and whether it is new. A spec that was released before is not charged or
    drawn again unless ``again``: its release is read from the folder.
    """
    folder = spec.resolve(spec.output.folder)
    query = spec.kind.query(spec)
    request = pipeline.request_id(query, spec.identity)
    if not again:
        done = existing_release(folder, request)
        if done is not None:
            return done, folder, False
    ledger = open_ledger(spec)
    if not again and ledger.finished(request):
        raise InputError(
            f"This spec was released before (charge {ledger.finished(request)[-1].number} of the ledger), but the "
            f"release is no longer in {str(folder)!r}. Restore it from a copy, or pay for a new one with --again."
        )
    _require_writable(folder)
    release = pipeline.run(query, ledger=ledger, identity=spec.identity, progress=progress)
    release.save(folder, report=spec.output.report)
    return release, folder, True


def _require_writable(folder: Path) -> None:
    """Refuse, before anything is charged, a folder that cannot take the release."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        os.write(handle, b"\0" * 65536)  # a disk that is full says so here, not after the charge
        os.close(handle)
        Path(name).unlink()
    except OSError as error:
        raise InputError(
            f"The output folder {str(folder)!r} cannot be written: {error.strerror or error}. Nothing was charged."
        ) from None
