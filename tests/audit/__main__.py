"""The long checks: ``python -m tests.audit [NAME ...]``.

Every module in this folder holds functions ``audit_*()`` that raise where a promise is broken and return a
sentence that says what was found. They run for minutes; ``make test`` does not run them.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    modules = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"one or more of: {', '.join(modules)}")
    wanted = parser.parse_args().name or modules
    passed = failed = 0
    for name in wanted:
        if name not in modules:
            parser.error(f"no audit named {name!r}; there are: {', '.join(modules)}")
        module = importlib.import_module(f"tests.audit.{name}")
        for label in sorted(key for key in vars(module) if key.startswith("audit_")):
            started = time.perf_counter()
            try:
                verdict = getattr(module, label)()
            except Exception:
                failed += 1
                print(f"FAILED {name}.{label}\n{traceback.format_exc()}", flush=True)
            else:
                passed += 1
                print(f"ok     {name}.{label} ({time.perf_counter() - started:.0f} s): {verdict}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
