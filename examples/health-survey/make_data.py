"""Make the microdata of this example: 29,482 SYNTHETIC adults whose yes counts are the published ones.

No real person's answers are in it. The published 2021 counts of the National Health Interview Survey say how
many adults said yes to each of 11 questions, and which question is asked only after a yes to another one; the
answers are dealt out at random so that every count comes out exactly.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PUBLISHED = HERE.parent.parent / "data" / "survey" / "nhis2021_counts.csv"
NAMES = {
    "HYPEV_A": "hypertension",
    "HYPDIF_A": "hypertension_two_visits",
    "HYP12M_A": "hypertension_this_year",
    "HYPMED_A": "hypertension_medication",
    "CHLEV_A": "cholesterol",
    "CHL12M_A": "cholesterol_this_year",
    "CHLMED_A": "cholesterol_medication",
    "ASEV_A": "asthma",
    "ASTILL_A": "asthma_still",
    "ASAT12M_A": "asthma_attack",
    "ASER12M_A": "asthma_emergency",
}


def main() -> None:
    rng = np.random.default_rng(2021)
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        questions = list(csv.DictReader(file))
    adults = int(questions[0]["n"])
    answers: dict[str, np.ndarray] = {}
    for question in questions:  # a question's gate stands above it in the file
        asked = np.flatnonzero(answers[question["parent"]]) if question["parent"] else np.arange(adults)
        said_yes = rng.choice(asked, int(question["yes"]), replace=False)
        answers[question["variable"]] = np.isin(np.arange(adults), said_yes)
    with (HERE / "adults.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["person", *(NAMES[name] for name in answers)])
        for person, row in enumerate(np.column_stack(list(answers.values())), start=1):
            writer.writerow([person, *("yes" if yes else "" for yes in row)])


if __name__ == "__main__":
    main()
