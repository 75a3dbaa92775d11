"""The search for a relaxed order beside the one that it replaced, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._rows import Rows
from isotone.counts.relaxation import Relaxation
from isotone.counts.sampler import build_sampler
from isotone.mechanism import no_progress
from isotone.order import Poset
from isotone.order.bipartitions.counting import tables

__all__ = ["searches"]

ROOT = Path(__file__).resolve().parent.parent
CHANGE = "Orders out of reach are relaxed as little as rejection can afford"
"""The subject of the commit that changed the search first."""

SEARCH = """
import json, sys, time
from isotone.counts.relaxation import relax
from isotone.order import Poset
given = json.load(sys.stdin)
P = Poset(given["elements"], [tuple(pair) for pair in given["relations"]])
relax(P, steps=2)  # loads or compiles what both kinds of steps need
started = time.process_time()
found = relax(P)
print(json.dumps({"seconds": time.process_time() - started, "relations": found.relations}))
"""


def searches(cases: dict[str, Poset], kept: Rows) -> list[str]:
    """A table of both searches in turn, and of what their relaxations cost."""
    commit = _git("log", "-1", "--format=%H", "--fixed-strings", f"--grep={CHANGE}") + "~1"
    when = _git("show", "-s", "--format=%cd", "--date=format-local:%Y-%m-%d %H:%M", commit)
    rows = [
        "## The search before and now",
        "",
        "| order | search | CPU | before ÷ now | log count | squared error, relaxed | partly relaxed |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        old = Path(name) / "before"
        _git("worktree", "add", "--detach", str(old), commit)
        try:
            for case, order in cases.items():
                P = order.rename(str).canonical.order
                one = json.loads(kept.get(f"search before, {case}", lambda P=P: _searched(old, P)))
                two = json.loads(kept.get(f"search now, {case}", lambda P=P: _searched(ROOT, P)))
                ratio = f"{one['seconds'] / two['seconds']:.1f}×"
                rows += [_row(case, "before", one, ""), _row(case, "now", two, ratio)]
        finally:
            _git("worktree", "remove", "--force", str(old))
    rows.append(
        f"\n*Before* is the search as it was at {when} UTC, from this project's history, run in turn with the present one. "
        "Both have seed 0 and as many steps as they take by themselves, in a new process that has loaded its code. Each relaxed order "
        "is judged by the present code: the squared error of noise shaped by it alone, and with the relations that rejection puts back."
    )
    return rows


def _row(case: str, which: str, found: dict[str, Any], ratio: str) -> str:
    return (
        f"| {case} | {which} | {found['seconds']:.1f} s | {ratio} | {found['log_count']:.2f} "
        f"| {found['relaxed']} | {found['partly']} |"
    )


def _searched(root: Path, P: Poset) -> str:
    """What the search of one version takes and finds, as JSON."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    given = json.dumps({"elements": P.elements, "relations": P.covers})
    done = subprocess.run(
        [sys.executable, "-c", SEARCH],
        input=given,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    alone = Relaxation.of(said["relations"], restored=())
    return json.dumps(
        {
            "seconds": said["seconds"],
            "log_count": tables(alone.order(P)).log_count,
            "relaxed": _cost(P, alone),
            "partly": _cost(P, Relaxation.of(said["relations"])),
        }
    )


def _cost(P: Poset, relaxation: Relaxation) -> str:
    method = build_sampler(P, relaxation, no_progress).method
    return f"{method.cost:.3f} ± {method.cost_error:.3f}"


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, env={**os.environ, "TZ": "UTC"}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
