"""Make the gallery: ``python docs/gallery.py`` releases ten data sets and writes docs/gallery.md with a picture of each.

Every release goes the whole way, with a ledger, exact noise, a manifest and verification. The noise has no seed, so the numbers change
from run to run; the data is public, or made up where the page says so, which is why it may be released again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

import isotone as iso
from isotone.release.kinds import kind_named

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
DATA = ROOT / "data"
SURVEY = {
    "hypertension_two_visits": "hypertension",
    "hypertension_this_year": "hypertension_two_visits",
    "hypertension_medication": "hypertension",
    "cholesterol_this_year": "cholesterol",
    "cholesterol_medication": "cholesterol",
    "asthma_still": "asthma",
    "asthma_attack": "asthma",
    "asthma_emergency": "asthma",
}
HEART = {name: above for name, above in SURVEY.items() if not name.startswith("asthma")}

Make = Callable[[iso.Ledger], iso.release.Release]
ENTRIES: list[tuple[str, str, dict[str, Any], Make]] = []


def entry(title: str, words: str, **budget: Any) -> Callable[[Make], Make]:
    """Put a release into the gallery. ``budget`` is that of its ledger, of which it spends all."""

    def listed(make: Make) -> Make:
        ENTRIES.append((title, words, budget, make))
        return make

    return listed


def _adults() -> pa.Table:
    return arrow_csv.read_csv(ROOT / "examples" / "health-survey" / "adults.csv")


@entry(
    "A health survey",
    "Eleven questions with skip logic, 29,482 made-up adults with the counts of the National Health Interview Survey of 2021.",
    epsilon=1,
    unit="person",
)
def survey(ledger: iso.Ledger) -> iso.release.Release:
    """Counts over the order of a survey."""
    P = iso.Poset.from_mapping(SURVEY)
    return iso.release_counts(_adults(), P, epsilon=1, ledger=ledger, unit="person")


@entry(
    "The same with Gaussian noise",
    "Hypertension and cholesterol under zero-concentrated differential privacy; the covariance of the noise is shaped by the order.",
    rho="1/2",
    unit="person",
)
def gaussian(ledger: iso.Ledger) -> iso.release.Release:
    """Counts under zCDP."""
    P = iso.Poset.from_mapping(HEART)
    return iso.release_counts(_adults(), P, rho="1/2", ledger=ledger, unit="person")


@entry(
    "By group",
    "Three questions in total and in two groups, with margins that add up. The groups are made up: even and odd numbers of persons.",
    epsilon=1,
    unit="person",
)
def breakdown(ledger: iso.Ledger) -> iso.release.Release:
    """A breakdown."""
    rows = _adults()
    halves = pa.array(["even" if x.as_py() % 2 == 0 else "odd" for x in rows["person"]])
    P = iso.Poset.from_mapping({"asthma_still": "asthma", "asthma_attack": "asthma"})
    return iso.release_counts(
        rows.append_column("half", halves), P, epsilon=1, ledger=ledger, unit="person", by=["half"],
        groups={"half": ["even", "odd"]}, margins=["", "half"],
    )  # fmt: skip


@entry(
    "Packages and what they depend on",
    "Which of ten packages 5,000 packages of Debian 12 depend on. A package needs what its dependencies need, so counts are ordered.",
    epsilon=1,
    unit="package",
)
def debian(ledger: iso.Ledger) -> iso.release.Release:
    """Counts over dependencies."""
    names = parquet.read_schema(DATA / "orders" / "debian_records_sample.parquet").names[1:11]
    covers = arrow_csv.read_csv(DATA / "orders" / "debian_top200_covers.csv").to_pylist()
    pairs = [(row["package"], row["requires"]) for row in covers]
    P = iso.Poset(names, [(low, high) for low, high in pairs if low in names and high in names])
    path = DATA / "orders" / "debian_records_sample.parquet"
    return iso.release_counts(str(path), P, epsilon=1, ledger=ledger, unit="package")


@entry(
    "A taxonomy that adds up",
    "Sectors of industry (NAICS): 20,000 made-up firms, each in one subsector. Parts add up to their whole.",
    epsilon=1,
    unit="firm",
)
def industries(ledger: iso.Ledger) -> iso.release.Release:
    """Counts of a hierarchy whose parts exclude each other."""
    codes = arrow_csv.read_csv(
        DATA / "orders" / "naics.csv",
        convert_options=arrow_csv.ConvertOptions(column_types={"code": pa.string(), "parent": pa.string()}),
    ).to_pylist()
    tops = ["21", "22", "23"]
    children = {top: [row["code"] for row in codes if row["parent"] == top] for top in tops}
    leaves = [code for part in children.values() for code in part]
    rng = np.random.default_rng(0)
    held = rng.choice(leaves, 20_000, p=rng.dirichlet(np.ones(len(leaves))))
    pairs = [(code, top) for top, part in children.items() for code in part]
    choices = [("partition", part) for part in children.values() if len(part) > 1]
    P = iso.Poset([*tops, *leaves], pairs, choices)
    firms = pa.table({"firm": np.arange(20_000), "code": held})
    return iso.release_counts(firms, P, epsilon=1, ledger=ledger, unit="firm", element="code")


@entry(
    "Homicides by county",
    "One count for each of 3,136 counties; the distribution of counts is kept.",
    epsilon=1,
    unit="victim",
)
def homicides(ledger: iso.Ledger) -> iso.release.Release:
    """A table of counts."""
    rows = arrow_csv.read_csv(DATA / "us_counties_homicides.csv")
    options: dict[str, Any] = {"category": "county", "count": "homicides", "upper": 50, "unit_name": "victim"}
    names = [str(x) for x in rows["county"]]
    return iso.release_table(rows, categories=names, **options, epsilon=1, contributions=1, ledger=ledger)


@entry(
    "Teachers in schools",
    "Full-time teachers in 22,715 public schools of the United States, released for 3,000 of them.",
    epsilon="1/2",
    unit="teacher",
)
def teachers(ledger: iso.Ledger) -> iso.release.Release:
    """A table from a published histogram."""
    histogram = arrow_csv.read_csv(DATA / "hists" / "schools_full_time_teachers.csv").to_pydict()
    every = np.repeat(histogram["teachers"], histogram["schools"])
    some = np.random.default_rng(0).choice(every, 3_000, replace=False)
    names = [f"school {k}" for k in range(3_000)]
    rows = pa.table({"school": names, "teachers": some})
    options: dict[str, Any] = {
        "category": "school",
        "count": "teachers",
        "upper": 100,
        "unit_name": "teacher",
    }
    return iso.release_table(rows, categories=names, **options, epsilon="1/2", contributions=1, ledger=ledger)


@entry(
    "Calibration of a classifier",
    "How often a score is right: 569 scores of a classifier of breast tumours, with a band for the mean.",
    epsilon=1,
    unit="patient",
)
def calibration(ledger: iso.Ledger) -> iso.release.Release:
    """A curve of means."""
    rows = arrow_csv.read_csv(DATA / "curves" / "calibration_breast_cancer.csv")
    options: dict[str, Any] = {"x": "score", "y": "label", "bounds": (0, 1), "y_values": (0, 1)}
    return iso.release_curve(rows, **options, epsilon=1, ledger=ledger, unit_name="patient")


@entry(
    "Survival from one look each",
    "How often an event has happened by the time of the only examination: 20,000 made-up patients.",
    epsilon=1,
    unit="patient",
)
def survival(ledger: iso.Ledger) -> iso.release.Release:
    """A curve of means with a narrow band."""
    rng = np.random.default_rng(7)
    examined = rng.uniform(0, 10, 20_000)
    rows = pa.table({"years": examined, "event": (rng.weibull(1.5, 20_000) * 6 <= examined).astype(int)})
    options: dict[str, Any] = {"x": "years", "y": "event", "bounds": (0, 10), "y_values": (0, 1)}
    return iso.release_curve(rows, **options, epsilon=1, ledger=ledger, unit_name="patient")


@entry(
    "Strokes by age and blood pressure",
    "A surface that rises with both; made-up patients.",
    epsilon=1,
    unit="patient",
)
def strokes(ledger: iso.Ledger) -> iso.release.Release:
    """A monotone function of two columns."""
    rows = arrow_csv.read_csv(ROOT / "examples" / "two-features" / "patients.csv")
    options: dict[str, Any] = {"x": ("age", "pressure"), "y": "stroke", "bounds": ((30, 90), (80, 200))}
    return iso.release_surface(
        rows, **options, y_range=(0, 1), bins=12, epsilon=1, ledger=ledger, unit_name="patient"
    )


def picture(drawn: str) -> str:
    """The last drawing of a report as a file of its own, on white paper, whatever the page around it looks like."""
    last = "<svg" + drawn.rpartition("<svg")[2].partition("</svg>")[0] + "</svg>"
    head, _, rest = last.partition(">")
    return f'{head}><rect width="100%" height="100%" fill="#fff"/>{rest}\n'


def main() -> int:
    """Release everything, verify it, and write the page and its pictures."""
    pictures = DOCS / "gallery"
    pictures.mkdir(exist_ok=True)
    lines = [
        "# A gallery of releases",
        "",
        "Ten releases, each made by `python docs/gallery.py` with a ledger and exact noise, and verified. The pictures are those of their reports.",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for title, words, budget, make in ENTRIES:
            ledger = iso.Ledger(Path(folder) / f"{make.__name__}.ledger", **budget)
            release = make(ledger)
            saved = release.save(Path(folder) / make.__name__, report=False)
            if not iso.verify(saved).holds:
                print(f"{title}: it does not verify", file=sys.stderr)
                return 1
            (pictures / f"{make.__name__}.svg").write_text(
                picture(kind_named(release.kind).page.svg(release)), encoding="utf-8"
            )
            lines += ["", f"## {title}", "", words, "", f"![{title}](gallery/{make.__name__}.svg)", ""]
            lines += [
                f"{release.guarantee}; {release.manifest.mechanism['name']}, {len(release.columns['value']):,} values."
            ]
    (DOCS / "gallery.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
