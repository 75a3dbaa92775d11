"""The main job, on a copy of the health-survey example: plan, release, report."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out" / "health-survey"


def main() -> int:
    # Each run starts from a fresh ledger; a steward keeps one ledger for as long as the data exists.
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for name in ("spec.toml", "adults.csv"):
        shutil.copy(HERE / "health-survey" / name, OUT / name)
    for command in ("plan", "release"):
        print(f"\n$ isotone {command} spec.toml", flush=True)
        done = subprocess.run([sys.executable, "-m", "isotone", command, "spec.toml"], cwd=OUT, check=False)
        if done.returncode:
            return done.returncode
    print(f"\nOpen the report: {OUT / 'out' / 'report.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
