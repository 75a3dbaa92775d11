"""Sections of the comparison with rivals: makes their rows again, stores them, and writes the page from all that is stored.

``--page`` only writes the page. ``--stored`` takes curves as they were drawn last. ``--check`` makes small cases again and says where they differ from what is stored.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from benchmarks import rivals
from benchmarks.__main__ import machine
from benchmarks._rivals.check import differences
from benchmarks._rivals.page import COSTS, SECTIONS, compute, write_page
from benchmarks._rivals.rows import STORED, write
from benchmarks._rows import sources


def main() -> None:
    known = (*SECTIONS, COSTS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks._rivals", description=__doc__)
    parser.add_argument("section", nargs="*", help=f"of {', '.join(known)}; all of them by default")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stored", action="store_true")
    parser.add_argument("--run", default="", help="the name of the run that these rows are of")
    arguments = parser.parse_args()
    chosen = arguments.section or list(known)
    if unknown := sorted(set(chosen) - set(known)):
        parser.error(f"no section named {', '.join(unknown)}")
    if arguments.run and not arguments.run.endswith(sources()[:8]):
        parser.error(f"the sources are no longer those of the run {arguments.run}")
    if arguments.check:
        found = [line for section in chosen for line in differences(section)]
        print("\n".join(found) or "what is stored is what the code gives")
        sys.exit(bool(found))
    for section in () if arguments.page else chosen:
        stored = arguments.stored and section == "curves"
        write(section, compute(section, stored, partial(_say, section)), run=arguments.run)
    title = (rivals.__doc__ or "").splitlines()[0]
    report = f"# {title}\n\nMachine: {machine()}.\n\n{write_page()}\n"
    STORED.with_suffix(".md").write_text(report, encoding="utf-8")


def _say(section: str, fraction: float, what: str) -> None:
    print(f"{section}, {fraction:.0%} done: {what}", flush=True)


if __name__ == "__main__":
    main()
