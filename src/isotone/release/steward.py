"""Plan, audit and release a spec. The command line is a shell over this."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isotone.errors import SpecError
from isotone.ledger import Ledger, open_or_start
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Number
from isotone.release import pipeline
from isotone.release.kinds import kind_of_mechanism
from isotone.release.result import Release
from isotone.release.spec import Spec
from isotone.release.spec_plan import SpecPlan

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport

__all__ = ["audit_name", "audit_spec", "open_ledger", "plan_spec", "release_spec"]


def plan_spec(
    spec: Spec,
    progress: Progress = no_progress,
    *,
    records: int | None = None,
    rows_per_unit: int | None = None,
) -> SpecPlan:
    """Plan a spec from what is public.

    ``records`` is a guess at how many records there are, which must not come from the data: the error of a curve
    depends on it. Counts and tables need none. ``rows_per_unit`` is a guess, too: the plan then says what bounding
    contributions leaves out.
    """
    made = spec.kind.plan(spec, records, progress)
    if rows_per_unit is None:
        return made
    bound = spec.data.contributions
    return made.with_bounding(rows_per_unit, bound, combined=spec.kind.combines and bound == 1)


def audit_spec(spec: Spec, trials: int = 30_000, progress: Progress = no_progress) -> AuditReport:
    """Audit the mechanism that a spec would use. The data is not opened."""
    return spec.kind.audit(spec, trials, progress)


def audit_name(
    name: str, epsilon: Number = 1, trials: int = 60_000, progress: Progress = no_progress
) -> AuditReport:
    """Audit a mechanism by the name of its class, on a small example."""
    return kind_of_mechanism(name).audit_named(name, epsilon, trials, progress)


def open_ledger(spec: Spec) -> Ledger:
    """The spec's ledger, started on first use if the spec gives its total and the folder has no other ledger."""
    privacy = spec.privacy
    where = privacy.ledger if "://" in privacy.ledger else spec.resolve(privacy.ledger)
    total = privacy.budget.model_dump(exclude_none=True) if privacy.budget is not None else {}
    return open_or_start(
        where, dataset=privacy.dataset, unit=spec.unit, neighbours=privacy.neighbours, **total
    )


def release_spec(
    spec: Spec, *, again: bool = False, progress: Progress = no_progress, confirmed: str | None = None
) -> tuple[Release, Path, bool]:
    """Release what a spec describes, and save it.

    Returns the release, its folder, and whether it is new. A spec that was released before is not charged or
    drawn again unless ``again``: its release is read from the folder. ``confirmed`` is the id of the request that
    somebody agreed to: if a public file that the spec names was changed since, nothing is charged.
    """
    folder = spec.resolve(spec.output.folder)
    shown = pipeline.Presentation(folder, spec.output.report)
    query = spec.kind.query(spec)
    if confirmed is not None and pipeline.request_id(query, spec.identity) != confirmed:
        raise SpecError("What the spec asks for was changed after it was confirmed. Nothing was charged.")
    ledger = open_ledger(spec)
    done = pipeline.run(
        query, ledger=ledger, identity=spec.identity, again=again, presentation=shown, progress=progress
    )
    return done.release, folder, done.fresh
