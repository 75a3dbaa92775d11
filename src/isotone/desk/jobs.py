"""Releases under way, and those that were made.

A release runs in a thread of its own, through the same function as on the command line. How far it is stays in memory,
for the person at the machine; nothing of it is written anywhere. The ledger decides what is charged: two requests that
are the same are one charge, and a process that ends at any point leaves what the ledger's states say.
"""

from __future__ import annotations

import io
import secrets
import threading
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isotone.desk.folder import PathError, Root
from isotone.desk.words import FormError, release_lines
from isotone.errors import IsotoneError
from isotone.mechanism import Progress
from isotone.release.pipeline import request_id
from isotone.release.result import Release, has_file, load_release, read_file
from isotone.release.spec import Spec, deliver, open_ledger
from isotone.release.verify import Verdict, verify

# Releases under way.
#
# A release runs in a thread of its own, through the same function as on the command line. How far it is stays in memory,
# for the person at the machine; nothing of it is written anywhere. The ledger decides what is charged: two requests that
# are the same are one charge, and a process that ends at any point leaves what the ledger's states say.

STAGES = {"charged": 0.2, "reading": 0.2, "drawn": 0.8, "sealed": 0.95}
"""The stages, and how much of a release is done when each begins."""
_MOST = 100
_DRAWN = 0.8
"""From here on the data has been read."""


@dataclass
class Task:
    """One release under way, or its end."""

    draft: str
    words: str = "The release is under way"
    stages: Mapping[str, float] = field(default_factory=lambda: STAGES)
    charges: bool = True
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    fraction: float = 0.0
    problems: list[str] = field(default_factory=list)
    folder: Path | None = None
    fresh: bool = False
    verdict: Verdict | None = None
    thread: threading.Thread | None = None
    finished: bool = False

    @property
    def reached(self) -> list[tuple[str, bool]]:
        """Every stage, and whether it was reached."""
        done = self.folder is not None
        return [(stage, done or self.fraction >= begins) for stage, begins in self.stages.items()]


def request_of(spec: Spec) -> str:
    """The id of what a spec asks for, as the ledger keeps it, a digest of the canonical request."""
    result = request_id(spec.job, spec.identity)
    assert result is not None, "a spec has an identity"
    return result


class Jobs:
    """All releases of this run of the desk."""

    def __init__(self) -> None:
        self._jobs: dict[str, Task] = {}
        self._lock = threading.Lock()
        self._again: set[tuple[str, int]] = set()

    def __getitem__(self, id: str) -> Task:
        return self._jobs[id]

    def __contains__(self, id: str) -> bool:
        return id in self._jobs

    def start(
        self, draft: str, spec: Spec, root: Root, request: str, *, again_after: int | None = None
    ) -> Task:
        """Begin a release. ``again_after`` is the number of the charge that a second draw follows."""
        claim = None if again_after is None else self._claim(spec, request, again_after)
        job = Task(draft)

        def act(step: Progress) -> None:
            job.fresh = deliver(spec, again=claim is not None, progress=step, confirmed=request).fresh
            job.folder, job.verdict = spec.target, verified(spec.target, spec)

        def then() -> None:
            if claim is not None and job.problems and _last_charge(spec, claim[0]) == again_after:
                self._again.discard(claim)  # nothing was charged: the same confirmation may be tried again

        return self.run(job, spec, root, act, then)

    def run(
        self,
        job: Task,
        spec: Spec,
        root: Root,
        act: Callable[[Progress], object],
        then: Callable[[], object] = tuple,
    ) -> Task:
        """Let a job act in a thread of its own."""

        def work() -> None:
            _work(job, spec, root, act)
            then()

        job.thread = threading.Thread(target=work, daemon=False)
        with self._lock:
            for old in list(self._jobs)[: max(0, len(self._jobs) - _MOST)]:
                del self._jobs[old]
            self._jobs[job.id] = job
        job.thread.start()
        return job

    def _claim(self, spec: Spec, request: str, after: int) -> tuple[str, int]:
        """Let one confirmation of a second draw be one draw, however often its form is sent."""
        claim = (request, after)
        last = _last_charge(spec, claim[0])
        with self._lock:
            if last != after or claim in self._again:
                raise FormError(
                    "This confirmation was used, or the ledger went on since. Look at the page again."
                )
            self._again.add(claim)
        return claim


def _last_charge(spec: Spec, request: str) -> int | None:
    """The number of the last charge of a request, or None if there is none, or no ledger that can be read."""
    try:
        numbers = [charge.number for charge in open_ledger(spec).charges() if charge.request == request]
    except IsotoneError:
        return None
    return numbers[-1] if numbers else None


def _charges(spec: Spec, root: Root) -> list[int] | None:
    """The numbers of all charges, or None if the ledger cannot be read."""
    try:
        where = root.inside(spec.privacy.ledger, spec.folder)
        return [charge.number for charge in open_ledger(spec).charges()] if where.exists() else []
    except IsotoneError:
        return None


def _work(job: Task, spec: Spec, root: Root, act: Callable[[Progress], object]) -> None:
    """Act. At every step the data must still be a file of the folder, since a link may be put in its place."""

    def step(fraction: float, _: str) -> None:
        if fraction <= _DRAWN and threading.current_thread() is job.thread:
            root.file(spec.data.file_path, spec.folder)
        job.fraction = fraction

    before = _charges(spec, root) if job.charges else None
    try:
        act(step)
    except (
        BaseException
    ) as error:  # of what is no error of isotone the words may quote data: they are not kept
        after = _charges(spec, root) if job.charges else None
        job.problems = release_lines(error, charged=after is None or after != before)
    job.finished = True


def verified(folder: Path, spec: Spec) -> Verdict | None:
    """What verify finds in the folder and the ledger, or None if it cannot read them."""
    try:
        return verify(folder, ledger=spec.resolve(spec.privacy.ledger))
    except Exception:  # it is sealed already, and the page says that it could not be verified here
        return None


# Releases that were made, in the folder of the desk.

_ZIPPED = ("manifest.json", "release.csv", "report.html", "release.sig")
_NONE = "There is no release of this name in the folder that the desk was started in."


@dataclass(frozen=True)
class Made:
    """A release and where it is."""

    folder: str
    release: Release


def made_in(root: Root) -> list[Made]:
    """The releases in the folder, the newest first."""
    result: list[Made] = []
    for manifest in root.walk("manifest.json"):
        try:
            result.append(Made(root.shown(manifest.parent), load_release(manifest.parent)))
        except IsotoneError:
            continue
    return sorted(result, key=lambda release: release.release.manifest.time, reverse=True)


def release_at(path: str, root: Root) -> tuple[Path, Release]:
    """The folder and the release at a path."""
    folder = root.inside(path)
    try:
        return folder, load_release(folder)
    except IsotoneError:
        raise PathError(_NONE) from None


def report_of(path: str, root: Root) -> bytes:
    """The page of a release as it is in its folder."""
    folder, _ = release_at(path, root)
    try:
        return read_file(folder, "report.html")
    except IsotoneError:
        raise PathError("This release has no report. Draw it again.") from None


def archive(path: str, root: Root) -> bytes:
    """The files of a release as a zip file. Links and other files in its folder are left out."""
    folder, _ = release_at(path, root)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for name in _ZIPPED:
            if has_file(folder, name):
                entry = zipfile.ZipInfo(f"{folder.name}/{name}")  # without a time of its own
                entry.compress_type = zipfile.ZIP_DEFLATED
                file.writestr(entry, read_file(folder, name))
    return held.getvalue()
