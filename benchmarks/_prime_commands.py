"""A whole release of an order out of reach: what is prepared once, and what each command takes afterwards."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks._prime_orders import cpu_seconds
from isotone.counts import PosetMechanism, Relaxation
from isotone.ledger import Ledger
from isotone.order import Poset
from isotone.privacy.draws import ExactDraws

__all__ = ["HEAD", "NOTE", "command_row"]

DRAWS = 10
HEAD = (
    "## Prepared once, released and verified",
    "",
    "| order | method | squared error | sampler | a draw | draws of the law | `isotone release` | `isotone verify` |",
    "|---|---|---|---|---|---|---|---|",
)
NOTE = (
    "\n*Sampler* and *draws of the law* come once: `isotone plan --found` keeps them in a file, which the spec names as its "
    "`relaxation`. Orders of two levels search for nothing and keep nothing, so both commands draw their law again. *Release* and "
    "*verify* are whole processes that find their compiled code on the disk: libraries, the rehearsal, 1,000 rows and the "
    "report are part of them."
)
SPEC = """
[data]
path = "rows.csv"
unit = "who"
element = "what"
[privacy]
epsilon = 1
ledger = "rows.ledger"
[order]
elements = {elements}
relations = {relations}
mechanism = "PosetMechanism"
{relaxation}
[output]
folder = "out"
"""


def command_row(name: str, order: Poset) -> str:
    """Prepare an order in this process, then release and verify in others."""
    P = order.rename(str)
    built, made = cpu_seconds(lambda: PosetMechanism(P, 1))
    made.sampler.draw(ExactDraws())
    drawn, _ = cpu_seconds(lambda: [made.sampler.draw(ExactDraws()) for _ in range(DRAWS)])
    law, _ = cpu_seconds(made.half_widths)
    found, method = made.sampler.described(made.law_draws), made.method
    cost = "1" if method.cost_error == 0 else f"{method.cost:.3f} ± {method.cost_error:.3f}"
    released, verified = _commands(P, found)
    return (
        f"| {name} | {method.name} | {cost} | {built:.2f} s | {1e3 * drawn / DRAWS:.1f} ms "
        f"| {made.law_draws:,} in {law:.1f} s | {released:.1f} s | {verified:.1f} s |"
    )


def _commands(P: Poset, found: Relaxation | None) -> tuple[float, float]:
    """CPU seconds of a release and of its verification, once nothing has to be compiled."""
    while True:
        with tempfile.TemporaryDirectory() as name:
            _write(Path(name), P, found)
            (released, one), (verified, other) = (
                _process(Path(name), *words) for words in (("release", "spec.toml"), ("verify", "out"))
            )
        if not one and not other:
            return released, verified


def _write(folder: Path, P: Poset, found: Relaxation | None) -> None:
    """A spec, its data, its ledger and what was found."""
    rng, names = np.random.default_rng(0), list(P.elements)
    rows = [f"{k // 5},{names[int(rng.integers(len(names)))]}" for k in range(1000)]
    (folder / "rows.csv").write_text("\n".join(["who,what", *rows]), encoding="utf-8")
    if found is not None:
        (folder / "found.json").write_text(json.dumps(found.plain()), encoding="utf-8")
    spec = SPEC.format(
        elements=json.dumps(names),
        relations=json.dumps(P.covers),
        relaxation="" if found is None else 'relaxation = "found.json"',
    )
    (folder / "spec.toml").write_text(spec, encoding="utf-8")
    Ledger(folder / "rows.ledger", epsilon=1)


def _process(folder: Path, *words: str) -> tuple[float, bool]:
    """CPU seconds of one command in a new process, and whether it compiled anything."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "isotone", *words], cwd=folder, check=False, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"isotone {words[0]} failed:\n{done.stdout}{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, "compiling" in done.stderr
