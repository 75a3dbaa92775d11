"""Make the gallery: ``python docs/gallery.py`` releases ten data sets and writes docs/gallery.md with a picture of each.

Every release goes the whole way, with a ledger, exact noise, a manifest and verification. The noise has no seed, so the numbers change
from run to run; all data are real and public, which is why they may be released again.
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
from sklearn.datasets import load_breast_cancer, load_diabetes

import isotone as iso
from isotone.release.kinds.kind import kind_named

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
DATA = ROOT / "data"
DEPENDENCIES = DATA / "orders" / "debian_records_sample.parquet"
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

Make = Callable[[iso.Ledger], iso.Release]
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
    "Eleven questions with skip logic, asked of 29,482 adults in the National Health Interview Survey of 2021. What is public are their counts; the answers behind them are dealt out so that every count is the published one.",
    epsilon=1,
    unit="person",
)
def survey(ledger: iso.Ledger) -> iso.Release:
    """Counts over the order of a survey."""
    P = iso.Poset.from_mapping(SURVEY)
    return iso.Counts(P, unit="person").release(_adults(), epsilon=1, ledger=ledger)


@entry(
    "The same with Gaussian noise",
    "Hypertension and cholesterol in the same survey under zero-concentrated differential privacy; the covariance of the noise is shaped by the order.",
    rho="1/2",
    unit="person",
)
def gaussian(ledger: iso.Ledger) -> iso.Release:
    """Counts under zCDP."""
    P = iso.Poset.from_mapping(HEART)
    return iso.Counts(P, unit="person").release(_adults(), rho="1/2", ledger=ledger)


@entry(
    "By group",
    "Which of three packages 5,000 packages of Debian 12 depend on, in total and by what they are, with margins that add up: libraries, Python modules and others, by their names.",
    epsilon=1,
    unit="package",
)
def breakdown(ledger: iso.Ledger) -> iso.Release:
    """A breakdown."""
    rows = parquet.read_table(DEPENDENCIES, columns=["package", "gcc-12-base", "libc6", "zlib1g"])
    kinds = [_kind(str(name)) for name in rows["package"]]
    P = iso.Poset.chain(["zlib1g", "libc6", "gcc-12-base"])
    lists = {"kind": ["library", "Python module", "other"]}
    described = iso.Counts(P, unit="package", by=lists, margins=["", "kind"])
    return described.release(rows.append_column("kind", pa.array(kinds)), epsilon=1, ledger=ledger)


def _kind(package: str) -> str:
    return (
        "library"
        if package.startswith("lib")
        else "Python module"
        if package.startswith("python")
        else "other"
    )


@entry(
    "Packages and what they depend on",
    "Which of ten packages 5,000 packages of Debian 12 depend on. A package needs what its dependencies need, so counts are ordered.",
    epsilon=1,
    unit="package",
)
def debian(ledger: iso.Ledger) -> iso.Release:
    """Counts over dependencies."""
    names = parquet.read_schema(DEPENDENCIES).names[1:11]
    covers = arrow_csv.read_csv(DATA / "orders" / "debian_top200_covers.csv").to_pylist()
    pairs = [(row["package"], row["requires"]) for row in covers]
    P = iso.Poset(names, [(low, high) for low, high in pairs if low in names and high in names])
    return iso.Counts(P, unit="package").release(str(DEPENDENCIES), epsilon=1, ledger=ledger)


@entry(
    "Parts that add up to their whole",
    "Homicides in three states and their 27 counties, by the county of each victim. Counties add up to states, and states to all.",
    epsilon=1,
    unit="victim",
)
def states(ledger: iso.Ledger) -> iso.Release:
    """Counts of a hierarchy whose parts exclude each other."""
    wanted = {"CT": "Connecticut", "MA": "Massachusetts", "RI": "Rhode Island"}
    known = {row["county"]: row["homicides"] for row in _homicides().to_pylist()}
    parents = {county: wanted[county[-2:]] for county in sorted(known) if county[-2:] in wanted}
    places = [county for county in parents for _ in range(known[county])]
    victims = pa.table({"victim": range(len(places)), "place": places})
    up: dict[str, str] = parents | dict.fromkeys(wanted.values(), "all three")
    P = iso.Poset.from_mapping(up, children="partition")
    answers = iso.Answers(element="place")
    return iso.Counts(P, unit="victim", answers=answers).release(victims, epsilon=1, ledger=ledger)


def _homicides() -> pa.Table:
    return arrow_csv.read_csv(DATA / "us_counties_homicides.csv")


@entry(
    "Homicides by county",
    "One count for each of 3,136 counties; the distribution of counts is kept.",
    epsilon=1,
    unit="victim",
)
def homicides(ledger: iso.Ledger) -> iso.Release:
    """A table of counts."""
    rows = _homicides()
    counties = [str(x) for x in rows["county"]]
    table = iso.Table("county", counties, count="homicides", upper=50, unit=iso.Unit(name="victim"))
    return table.release(rows, epsilon=1, ledger=ledger)


@entry(
    "Teachers in schools",
    "Full-time teachers in 22,715 public schools of the United States, released for 3,000 of them.",
    epsilon="1/2",
    unit="teacher",
)
def teachers(ledger: iso.Ledger) -> iso.Release:
    """A table from a published histogram."""
    histogram = arrow_csv.read_csv(DATA / "hists" / "schools_full_time_teachers.csv").to_pydict()
    every = np.repeat(histogram["teachers"], histogram["schools"])
    some = np.random.default_rng(0).choice(every, 3_000, replace=False)
    names = [f"school {k}" for k in range(3_000)]
    rows = pa.table({"school": names, "teachers": some})
    table = iso.Table("school", names, count="teachers", upper=100, unit=iso.Unit(name="teacher"))
    return table.release(rows, epsilon="1/2", ledger=ledger)


@entry(
    "Calibration of a classifier",
    "How often a score is right: 569 scores of a classifier of breast tumours, with a band for the mean.",
    epsilon=1,
    unit="patient",
)
def calibration(ledger: iso.Ledger) -> iso.Release:
    """A curve of means."""
    rows = arrow_csv.read_csv(DATA / "curves" / "calibration_breast_cancer.csv")
    options: dict[str, Any] = {"x": "score", "y": "label", "bounds": (0, 1), "y_values": (0, 1)}
    return iso.Curve(**options, unit=iso.Unit(name="patient")).release(rows, epsilon=1, ledger=ledger)


@entry(
    "Diabetes and body mass",
    "How far diabetes has gone a year later, by the body mass index: 442 patients of Efron, Hastie, Johnstone and Tibshirani (2004), as scikit-learn brings them.",
    epsilon=2,
    unit="patient",
)
def diabetes(ledger: iso.Ledger) -> iso.Release:
    """A curve of means of a quantity."""
    found: Any = load_diabetes(scaled=False)
    rows = pa.table({"bmi": found.data[:, found.feature_names.index("bmi")], "progression": found.target})
    options: dict[str, Any] = {"x": "bmi", "y": "progression", "bounds": (15, 45), "y_range": (0, 350)}
    return iso.Curve(**options, unit=iso.Unit(name="patient")).release(rows, epsilon=2, ledger=ledger)


@entry(
    "Tumours by size and texture",
    "How often a breast tumour is malignant: a surface that rises with the mean radius and texture of 569 of them, from the Wisconsin data that scikit-learn brings.",
    epsilon=2,
    unit="patient",
)
def tumours(ledger: iso.Ledger) -> iso.Release:
    """A monotone function of two columns."""
    found: Any = load_breast_cancer()
    rows = pa.table({"radius": found.data[:, 0], "texture": found.data[:, 1], "malignant": 1 - found.target})
    options: dict[str, Any] = {"x": ("radius", "texture"), "y": "malignant", "bounds": ((6, 30), (9, 40))}
    surface = iso.Curve(**options, y_range=(0, 1), x_grid=12, unit=iso.Unit(name="patient"))
    return surface.release(rows, epsilon=2, ledger=ledger)


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
        "Ten releases of real data, each made by `python docs/gallery.py` with a ledger and exact noise, and verified. The pictures are those of their reports.",
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
                picture(kind_named(release.kind).page(release).svg(release)), encoding="utf-8"
            )
            lines += ["", f"## {title}", "", words, "", f"![{title}](gallery/{make.__name__}.svg)", ""]
            lines += [
                f"{release.guarantee}; {release.manifest.mechanism['name']}, {len(release.columns['value']):,} values."
            ]
    (DOCS / "gallery.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
