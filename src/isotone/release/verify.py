"""Verifying a release: what a stranger can check with the folder alone, and what a reader may rely on.

Checked here: the files are the ones that were written (hashes), the values are the ones the manifest was made
for, the mechanism described keeps the promise stated, and the errors published are the mechanism's own. Not
checkable by anyone but the steward: that the data was read by the rules stated, and that the ledger was charged.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isotone.errors import IsotoneError
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds import kind_named
from isotone.release.manifest import guarantee_from
from isotone.release.result import Release, load_release, sealing_hash

__all__ = ["Check", "Verdict", "derived_guarantee", "verify"]


@dataclass(frozen=True)
class Check:
    """One thing that was checked, whether it holds, and in words why."""

    name: str
    holds: bool
    words: str
    trusted: bool = False
    """Whether it cannot be checked from the folder, and stands on the steward's word."""


@dataclass(frozen=True)
class Verdict:
    """All checks of one folder."""

    folder: str
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def __str__(self) -> str:
        lines = [
            f"{'ok    ' if check.holds else 'FAILED'} {check.name}: {check.words}" for check in self.checks
        ]
        if self.holds:
            trusted = any(check.trusted for check in self.checks)
            rely = (
                "the numbers and their promise"
                if trusted
                else "the numbers, their promise and their stated error"
            )
            trust = "the error where one is stated; " if trusted else ""
            lines.append(
                f"A reader may rely on: {rely} belong together. A reader must trust the steward for: {trust}"
                "the data was read by the rules stated, and the ledger was charged."
            )
        else:
            lines.append("Do not rely on this release: ask its publisher for the original folder.")
        return "\n".join(lines)


def verify(folder: str | os.PathLike[str]) -> Verdict:
    """Check a saved release from what is in its folder alone."""
    release = load_release(folder)
    steps: list[tuple[str, Callable[[], Check]]] = [
        ("files", lambda: _files(release, Path(folder))),
        ("content", lambda: _content(release)),
        ("promise", lambda: _promise(release)),
        ("error", lambda: _error(release)),
    ]
    checks: list[Check] = []
    for name, step in steps:
        try:
            checks.append(step())
        except (IsotoneError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            checks.append(Check(name, False, f"the manifest is not usable ({type(error).__name__}: {error})"))
    return Verdict(str(folder), tuple(checks))


def _files(release: Release, folder: Path) -> Check:
    present = {"release.csv", *({"report.html"} if (folder / "report.html").exists() else ())}
    changed = sorted(present - set(release.manifest["files"]))  # a file without a hash may say anything
    for name, digest in release.manifest["files"].items():
        path = folder / name
        if not path.is_file() or "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            changed.append(name)
    if changed:
        return Check("files", False, f"{', '.join(changed)} is missing or was changed after the release")
    return Check("files", True, f"{len(release.manifest['files'])} files are as they were written")


def _content(release: Release) -> Check:
    same = sealing_hash(release.columns, release.manifest) == release.manifest["content_hash"]
    words = (
        "values and manifest carry one seal"
        if same
        else "the values or the manifest were changed after the release"
    )
    return Check("content", same, words)


def _promise(release: Release) -> Check:
    stated = guarantee_from(release.manifest["guarantee"])
    derived = derived_guarantee(release)
    kept = derived.within(stated)
    words = f"the mechanism described promises {derived}"
    return Check(
        "promise", kept, words if kept else f"{words}, which is less than the {stated} that is stated"
    )


def _error(release: Release) -> Check:
    if release.kind != "counts":
        words = "the errors of tables and curves depend on noisy measurements that are not published: taken on trust"
        return Check("error", True, words, trusted=True)
    from isotone.release.kinds.count_query import count_columns, total_deviation

    mechanism = kind_named(release.kind).rebuild(release.manifest)
    known = count_columns(mechanism, float(release.manifest["confidence"]))
    repeat = len(release.columns["sd"]) // len(known["sd"])
    same = np.allclose(np.tile(known["sd"], repeat), release.columns["sd"], rtol=0.02)
    if release.total is not None:
        same = same and np.isclose(total_deviation(mechanism), release.manifest["total_sd"], rtol=0.02)
    words = (
        "the standard deviations published are the mechanism's own"
        if same
        else "the published errors are not the mechanism's"
    )
    return Check("error", bool(same), words)


def derived_guarantee(release: Release) -> Guarantee:
    """The promise that follows from the mechanism's description alone."""
    return kind_named(release.kind).derived_guarantee(release)
