"""The command that shows the way from data to a verified release, on a survey that is made up."""

from __future__ import annotations

import csv
import os
import random
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Annotated

import typer

from isotone.cli.console import out

SPEC = """\
[data]
path = "residents.csv"
unit = "resident"          # whose row it is: the guarantee is about one resident

[privacy]
epsilon = "0.5"            # what this release spends
ledger = "survey.ledger"   # who pays: a file that remembers every release
budget = { epsilon = "1" } # all that may ever be spent on this data

[order.parents]            # a yes to the left implies a yes to the right
weekly = "bike"
to_work = "weekly"
helmet = "bike"
accident = "bike"
transit_daily = "transit_card"

[output]
folder = "published"
title = "How our residents travel"
"""

QUESTIONS = ("bike", "weekly", "to_work", "helmet", "accident", "transit_card", "transit_daily")


def demo(
    serve: Annotated[
        bool, typer.Option("--serve", help="Open the desk there afterwards, in your browser.")
    ] = False,
) -> None:
    """Plan, release, report and verify a survey that is made up, in a temporary folder. Nothing of yours is read."""
    from isotone.cli import app
    from isotone.cli.release import require_desk

    if serve:
        require_desk()  # before anything is shown
    folder = Path(tempfile.mkdtemp(prefix="isotone-demo-"))
    write_example(folder)
    out.print(
        f"A town asked 4,000 residents how they travel. The data is made up; with its spec it is in {folder}\n",
        markup=False,
    )
    steps = [
        ("Which mechanism, and what error? No data is read.", ["plan", "spec.toml"]),
        ("Charge the ledger, read the data, add noise.", ["release", "spec.toml"]),
        ("What was spent?", ["ledger", "show", "survey.ledger"]),
        ("What a reader of the folder can check.", ["verify", "published"]),
    ]
    with chdir(folder):
        for why, words in steps:
            out.print(f"# {why}\n$ isotone {' '.join(words)}", markup=False)
            app(words, standalone_mode=False)
            out.print()
    out.print(f"Open the report: {folder / 'published' / 'report.html'}", markup=False)
    out.print("Remove the folder when you have seen enough. Your own data: docs/start.md", markup=False)
    if serve:
        app(["serve", "--root", os.fspath(folder)], standalone_mode=False)


def write_example(folder: Path) -> None:
    """Write the survey and its spec. The answers are the same each time, and those of nobody."""
    rng = random.Random(4)

    def yes(chance: float) -> str:
        return "yes" if rng.random() < chance else ""

    with (folder / "residents.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["resident", *QUESTIONS])
        for resident in range(1, 4001):
            bike, card = yes(0.6), yes(0.45)
            weekly = bike and yes(0.5)
            to_work = weekly and yes(0.4)
            helmet, accident, daily = bike and yes(0.55), bike and yes(0.03), card and yes(0.35)
            table.writerow([resident, bike, weekly, to_work, helmet, accident, card, daily])
    (folder / "spec.toml").write_text(SPEC, encoding="utf-8")
