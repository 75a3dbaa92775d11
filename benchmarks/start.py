"""How fast a first session starts: processor time and memory of whole processes, in one run.

Every line is a new process, from its start to its end. Nothing compiled is kept between the lines that say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from isotone.mechanism import Progress

SURVEY = Path(__file__).resolve().parent.parent / "examples" / "health-survey"

OPENDP = """
import csv
import opendp.prelude as dp
dp.enable_features("contrib")
with open("adults.csv") as file:
    rows = list(csv.DictReader(file))
names = [name for name in rows[0] if name != "person"]
counts = [sum(row[name] == "yes" for row in rows) for name in names]
space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
print((space >> dp.m.then_laplace(scale=float(len(names))))(counts))
"""

OPENDP_AND_POLARS = """
import opendp.prelude as dp
import polars as pl
dp.enable_features("contrib")
data = pl.scan_csv("adults.csv")
names = [name for name in data.collect_schema().names() if name != "person"]
counts = list(data.select([(pl.col(name) == "yes").sum() for name in names]).collect().row(0))
space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
print((space >> dp.m.then_laplace(scale=float(len(names))))(counts))
"""

ISOTONE = [sys.executable, "-m", "isotone"]


@dataclass(frozen=True)
class Line:
    """A line of the report: what is run, and how often what it costs may be that of numpy and pandas."""

    name: str
    command: list[str]
    fresh: bool = False  # with an empty cache of compiled code
    target: str = ""


LINES = [
    Line("`import numpy, pandas`", [sys.executable, "-c", "import numpy, pandas"]),
    Line("`import isotone`", [sys.executable, "-c", "import isotone"], target="1.5"),
    Line("`isotone --help`", [*ISOTONE, "--help"]),
    Line(
        "`isotone plan`, 11 questions, nothing cached",
        [*ISOTONE, "plan", "spec.toml"],
        fresh=True,
        target="3, 200 MB",
    ),
    Line("`isotone plan`, again", [*ISOTONE, "plan", "spec.toml"], target="3, 200 MB"),
    Line(
        "`isotone release` with its report, nothing cached",
        [*ISOTONE, "release", "spec.toml"],
        fresh=True,
        target="2 × the plan",
    ),
    Line("OpenDP: import, 11 counts with Laplace noise", [sys.executable, "-c", OPENDP]),
    Line("OpenDP and polars, as in DP Wizard: the same", [sys.executable, "-c", OPENDP_AND_POLARS]),
]


def run(quick: bool, progress: Progress) -> str:
    """The table: the least of several turns, taken in turn."""
    turns = 1 if quick else 3
    least = {line.name: (float("inf"), float("inf")) for line in LINES}
    for turn in range(turns):
        for k, line in enumerate(LINES):
            progress((turn + k / len(LINES)) / turns, line.name)
            seconds, memory = measure(line)
            least[line.name] = min(least[line.name][0], seconds), min(least[line.name][1], memory)
    progress(1.0, "done")
    unit = least[LINES[0].name][0]
    text = [
        "Processor time (user and system) and largest resident memory of one new process each; the least of "
        f"{turns} turns, taken in turn. *Ratio* is to `import numpy, pandas`. The survey has 11 questions and 29,482 people. "
        "OpenDP's front end for polars asks for another version of polars than the one installed, so the last line counts in "
        "polars and adds noise in OpenDP.",
        "",
        "| process | CPU, s | ratio | memory, MB | target |",
        "|---|---|---|---|---|",
    ]
    for line in LINES:
        seconds, memory = least[line.name]
        text.append(f"| {line.name} | {seconds:.2f} | {seconds / unit:.2f} | {memory:.0f} | {line.target} |")
    return "\n".join(text)


def measure(line: Line) -> tuple[float, float]:
    """CPU seconds and megabytes of one run, in a copy of the example."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "survey")
        shutil.copytree(SURVEY, place, ignore=shutil.ignore_patterns("out", "*.ledger"))
        environment = dict(os.environ)
        if line.fresh:
            environment["NUMBA_CACHE_DIR"] = str(Path(folder, "cache"))
        process = subprocess.Popen(
            line.command, cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{line.name} failed:\n{said.decode()}")
        process.stderr.close()
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
