"""Write ``patients.csv``: simulated patients whose risk rises with age and with blood pressure."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np


def main() -> None:
    rng = np.random.default_rng(11)
    age, pressure = rng.uniform(30, 90, 4_000), np.clip(rng.normal(130, 18, 4_000), 80, 200)
    risk = 1 / (1 + np.exp(-(0.07 * (age - 65) + 0.04 * (pressure - 140))))
    stroke = rng.random(4_000) < risk
    with (Path(__file__).parent / "patients.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["age", "pressure", "stroke"])
        writer.writerows(zip(age.round(1), pressure.round(), stroke.astype(int), strict=True))


if __name__ == "__main__":
    main()
