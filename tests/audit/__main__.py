"""The long checks: ``python -m tests.audit [NAME ...]``.

Every module in this folder holds functions ``audit_*()`` that raise where a guarantee is broken and return a
sentence that says what was found. They run for minutes; ``make test`` does not run them.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPERIMENTS = HERE.parents[1] / "experiments"  # holds the published sampler


def main() -> int:
    modules = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"one or more of: {', '.join(modules)}")
    wanted = parser.parse_args().name or modules
    for name in wanted:
        if name not in modules:
            parser.error(f"no audit named {name!r}; there are: {', '.join(modules)}")
    sys.path.insert(0, str(EXPERIMENTS))
    audits = [(f"{name}.{label}", audit) for name in wanted for label, audit in _audits(name)]
    started, failures = time.perf_counter(), list[str]()
    for place, (name, audit) in enumerate(audits, 1):
        print(f"[{place}/{len(audits)}] {name} …", flush=True)
        if not _passes(name, audit):
            failures.append(name)
    minutes = (time.perf_counter() - started) / 60
    print(f"{len(audits) - len(failures)} passed, {len(failures)} failed, in {minutes:.1f} minutes")
    for name in failures:
        print(f"FAILED {name}")
    return 1 if failures else 0


def _audits(name: str) -> list[tuple[str, Callable[[], str]]]:
    module = importlib.import_module(f"tests.audit.{name}")
    own = {
        label: audit
        for label, audit in vars(module).items()
        if label.startswith("audit_") and getattr(audit, "__module__", "") == module.__name__
    }
    return sorted(own.items())


def _passes(name: str, audit: Callable[[], str]) -> bool:
    started = time.perf_counter()
    try:
        verdict = audit()
    except Exception:
        print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
        return False
    print(f"ok     {name} ({time.perf_counter() - started:.0f} s): {verdict}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
