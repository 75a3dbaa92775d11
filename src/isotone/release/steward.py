"""The steward's path from a spec: open the ledger, plan, release, save. The command line is a shell over this."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from isotone.errors import InputError, SpecError
from isotone.ledger.ledger import Ledger
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.reading.answers import Answers
from isotone.reading.sources import Declared
from isotone.release.count_release import release_counts
from isotone.release.curve_release import release_curve
from isotone.release.order_files import read_order
from isotone.release.result import Release, load_release
from isotone.release.spec import Spec
from isotone.release.table_release import release_table

__all__ = ["existing_release", "open_ledger", "order_of", "release_spec", "require_pure"]


def order_of(spec: Spec) -> Poset:
    """The order that a spec describes."""
    if spec.order is None:
        raise SpecError("This spec has no [order]: it releases a table or a curve.")
    section = spec.order
    if section.file is not None:
        return read_order(spec.resolve(section.file), section.lower, section.upper)
    if section.parents is not None:
        return Poset.from_mapping({**section.parents})
    return Poset(section.elements or [], section.relations or [])


def require_pure(spec: Spec) -> None:
    """Refuse another promise than pure ε for tables and curves."""
    if spec.privacy.epsilon is None or spec.privacy.delta is not None:
        raise SpecError("Tables and curves promise pure ε: give epsilon alone in [privacy].")


def open_ledger(spec: Spec) -> Ledger:
    """The spec's ledger; created on first use if the spec gives its total."""
    privacy = spec.privacy
    where = privacy.ledger if "://" in privacy.ledger else spec.resolve(privacy.ledger)
    total = privacy.budget.model_dump(exclude_none=True) if privacy.budget is not None else {}
    return Ledger(where, dataset=privacy.dataset, unit=spec.unit, neighbours=privacy.neighbours, **total)


def existing_release(spec: Spec) -> Release | None:
    """The release of exactly this spec in its output folder, if there is one."""
    folder = spec.resolve(spec.output.folder)
    if not (folder / "manifest.json").exists():
        return None
    release = load_release(folder)
    return release if release.manifest.get("spec") == spec.hash else None


def release_spec(
    spec: Spec, *, again: bool = False, progress: Progress = no_progress
) -> tuple[Release, Path, bool]:
    """Release what a spec describes, and save it.

    Returns the release, its folder, and whether it is new. A spec that was released before is not charged or
    drawn again unless ``again``: its release is read from the folder.
    """
    folder = spec.resolve(spec.output.folder)
    if not again:
        done = existing_release(spec)
        if done is not None:
            return done, folder, False
    ledger = open_ledger(spec)
    if not again and ledger.finished(spec.hash):
        raise InputError(
            f"This spec was released before (charge {ledger.finished(spec.hash)[-1].number} of the ledger), but the "
            f"release is no longer in {str(folder)!r}. Restore it from a copy, or pay for a new one with --again."
        )
    _require_writable(folder)
    release = _release(spec, ledger, progress)
    release.save(folder, report=spec.output.report)
    return release, folder, True


def _release(spec: Spec, ledger: Ledger, progress: Progress) -> Release:
    data, privacy, output = spec.data, spec.privacy, spec.output
    source = Declared(str(spec.resolve(data.path)), data.types)
    common: dict[str, Any] = {
        "ledger": ledger,
        "unit": data.unit,
        "contributions": data.contributions,
        "neighbours": privacy.neighbours,
        "unit_name": spec.unit,
        "spec": spec.hash,
        "title": output.title,
        "progress": progress,
    }
    if spec.order is not None:
        words = {"yes": data.yes, "no": data.no}
        answers = Answers(
            missing=data.missing, **{key: tuple(value) for key, value in words.items() if value}
        )
        return release_counts(
            source,
            order_of(spec),
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            rho=privacy.rho,
            element=data.element,
            columns={**data.columns},
            answers=answers,
            on_violation=data.on_violation,
            max_size=spec.order.max_size,
            by=data.by,
            groups=data.groups,
            mechanism=None if spec.order.mechanism == "best" else spec.order.mechanism,
            total=spec.order.total,
            confidence=output.confidence,
            **common,
        )
    require_pure(spec)
    common["epsilon"] = privacy.epsilon
    if spec.table is not None:
        return release_table(
            source,
            category=spec.table.category,
            categories=spec.categories,
            upper=spec.table.upper,
            count=spec.table.count,
            remap=spec.table.remap,
            split=spec.table.split,
            confidence=output.confidence,
            **common,
        )
    assert spec.curve is not None
    options = spec.curve.model_dump(exclude={"x", "y"}, exclude_none=True)
    return release_curve(source, x=spec.curve.x, y=spec.curve.y, **options, **common)


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
