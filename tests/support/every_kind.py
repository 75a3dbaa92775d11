"""What each kind of release reads from one table, as plain integers before any noise, so that engines can be compared."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from isotone.order import Poset
from isotone.reading.categories import CategorySource, PairSource, count_categories, count_pairs
from isotone.reading.grids import CellSource, PointSource, count_cells, count_points
from isotone.reading.lines import CellLine, LineSource, count_line
from isotone.reading.questions import Answers, Question, book_of
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records
from isotone.reading.sources import blank
from isotone.series.register import HistoryRules, Register

SALT = b"0123456789abcdef"
COLUMNS = ("person", "hyp", "twice", "meds", "age", "dose", "county", "kind", "code")

ORDER = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
CHOICE = Poset.from_mapping({"twice": "hyp", "meds": "hyp"}, children="partition")
TREE = Poset.from_mapping(
    {"1": None, "2": None, "11": "1", "12": "1", "111": "11"},
    children={None: "exclusive", "1": "exclusive", "11": "partition"},
)
COUNTIES = ("c1", "C1", "it's", "ç3", "7", "a,b;c")
DAYS = ("2020-01-01", "2020-01-03", "2024-02-29")
QUESTIONS = [
    Question("old", ">= 40", "age"),
    Question("older", ">= 60", "age"),
    Question("said", "answered", "county"),
    Question("listed", word="meds", column="kind"),
    Question("coded", yes=["1", "ja", "ÄÖ"], column="hyp", refused=["2"], missing="yes"),
    Question("umlaut", yes=["äö", "yes"], column="meds"),
    Question("either", any_of=["old", "coded"]),
]
UNIT = (Fraction(0), Fraction(1))
YEARS = (Fraction(0), Fraction(100))

Read = Callable[[Any], Any]


def counts(
    P: Poset, groups: Groups | None = None, questions: Any = (), element: str | None = None, **rules: Any
) -> Read:
    """A reader of counts with the records of each group."""

    def read(data: Any) -> list[Any]:
        source = RecordSource(data, element, questions=book_of(questions))
        rule = RecordRules(**rules)
        frame = source.open(P, rule, groups)
        count_records(source, blank(frame), P, rule, groups, SALT)  # what a rehearsal does
        return [part.tolist() for part in count_records(source, frame, P, rule, groups, SALT)]

    return read


def table(**options: Any) -> Read:
    def read(data: Any) -> list[int]:
        source = CategorySource(data, "county", COUNTIES, 50, **options)
        frame = source.open()
        count_categories(source, blank(frame), SALT)
        return count_categories(source, frame, SALT).tolist()

    return read


def pairs(names: tuple[str, str], **options: Any) -> Read:
    def read(data: Any) -> list[int]:
        source = PairSource(data, "county", COUNTIES, 50, names, **options)
        frame = source.open()
        count_pairs(source, blank(frame), SALT)
        return count_pairs(source, frame, SALT).tolist()

    return read


def curve(**options: Any) -> Read:
    def read(data: Any) -> list[Any]:
        source = PointSource(data, "age", "dose", YEARS, UNIT, 10, 4, **options)
        frame = source.open()
        count_points(source, blank(frame), SALT)
        found = count_points(source, frame, SALT)
        return [found.x.tolist(), found.y.tolist(), found.count.tolist()]

    return read


def surface(**options: Any) -> Read:
    def read(data: Any) -> list[Any]:
        source = CellSource(data, ("age", "twice"), "dose", (YEARS, UNIT), (7, 3), UNIT, 4, **options)
        frame = source.open()
        count_cells(source, blank(frame), SALT)
        found = count_cells(source, frame, SALT)
        return [found.bins.tolist(), found.y.tolist(), found.count.tolist()]

    return read


def line(cells: CellLine, groups: Groups | None = None, **options: Any) -> Read:
    def read(data: Any) -> list[Any]:
        source = LineSource(data, "age", cells, groups, **options)
        frame = source.open()
        count_line(source, blank(frame), SALT)
        return count_line(source, frame, SALT).tolist()

    return read


def series(P: Poset, groups: Groups | None = None, element: str | None = None, **rules: Any) -> Read:
    """A series of the past, whose days stand in the column of doses."""

    def read(data: Any) -> list[Any]:
        rule = HistoryRules(unit="person", date="dose", **rules)
        register, source = Register(P, rule, groups, SALT), RecordSource(data, element)
        frame = source.open(P, rule, groups)
        with tempfile.TemporaryDirectory() as place:
            register.grown(source, blank(frame), None, Path(place) / "nobody.parquet")
            return register.over(source, frame, DAYS, Path(place)).tolist()

    return read


_COUNTY = Groups((("county", COUNTIES),))
_CELLS = Groups((("county", (*COUNTIES[:3], "rest")), ("kind", ("x", "meds", "else"))), "other")
_ASKED = Poset([q.name for q in QUESTIONS], [("older", "old")])

KINDS: dict[str, Read] = {
    "counts, every row": counts(ORDER),
    "counts, missing is a yes": counts(
        ORDER, answers=Answers(yes=("ja", "1", "ß"), no=("nein", "0"), missing="yes")
    ),
    "counts": counts(ORDER, unit="person"),
    "counts, contributions": counts(ORDER, unit="person", contributions=3),
    "counts, drop": counts(ORDER, unit="person", on_violation="drop", max_size=2),
    "counts, cut": counts(ORDER, unit="person", contributions=3, max_size=1),
    "counts, partition": counts(CHOICE, unit="person"),
    "counts, partition, drop": counts(CHOICE, unit="person", on_conflict="drop"),
    "counts, questions": counts(_ASKED, questions=QUESTIONS, unit="person"),
    "groups": counts(ORDER, _COUNTY, unit="person"),
    "groups, contributions": counts(ORDER, _COUNTY, unit="person", contributions=3),
    "breakdown": counts(ORDER, _CELLS, unit="person"),
    "breakdown, every row": counts(ORDER, _CELLS),
    "long": counts(Poset(["x", "meds", "7"], [("x", "meds")]), element="kind", unit="person"),
    "hierarchy": counts(TREE, element="code", unit="person"),
    "hierarchy, drop": counts(TREE, _COUNTY, element="code", unit="person", on_conflict="drop"),
    "hierarchy, every row": counts(TREE, element="code"),
    "table, every row": table(),
    "table": table(unit="person"),
    "table, contributions": table(unit="person", contributions=3),
    "table of counts": table(count="age"),
    "pairs": pairs(("x", "meds"), kind="kind", unit="person"),
    "pairs, contributions": pairs(("x", "meds"), kind="kind", unit="person", contributions=3),
    "pairs of counts": pairs(("twice", "age")),
    "curve, every row": curve(),
    "curve": curve(unit="person"),
    "curve, contributions": curve(unit="person", contributions=3),
    "curve, marks and labels": curve(unit="person", marks=(0.0, 18.5, 40.0, 65.0), labels=True),
    "distribution": line(CellLine.of(*YEARS), _COUNTY, unit="person"),
    "distribution, contributions": line(
        CellLine.of(Fraction(1), YEARS[1], "log", 40), unit="person", contributions=3
    ),
    "distribution, whole numbers": line(CellLine.of(*YEARS, "integers")),
    "distribution of values": line(CellLine.of(*YEARS, (Fraction(0), Fraction(37, 2), Fraction(40)))),
    "survival": line(
        CellLine.of(Fraction(0), Fraction(60)),
        _COUNTY,
        unit="person",
        contributions=3,
        event="hyp",
        words=Answers(("ja", "1"), ("nein", "0")),
    ),
    "series": series(CHOICE, _COUNTY),
    "series, contributions, long": series(
        Poset(["x", "meds", "7"], [("x", "meds")]), element="kind", contributions=2, record="code"
    ),
    "surface": surface(unit="person"),
    "surface, contributions": surface(unit="person", contributions=3),
}

TEXTS = [
    *("1", "0", "yes", "No", "JA", " 1 ", "1.0", "+1", "01", "1e0", "true", "FALSE", "t", "x", "X", "meds", "meds;x", "MEDS, x", "", " "),
    *("NaN", "NA", "n/a", "<NA>", "None", "null", "NULL", "NaT", "inf", "-Infinity", "２", "١", "7", "7.", "7.00", " 7", "007", "7.5", "-7", "7e0"),
    *("\u00a07", "7\u2028", "1\u2028", "1\u0085", "\t1", "1\n", "1\r\n", "\v7\f", "ß", "ẞ", "SS", "İ", "ı", "K", "äö", "ÄÖ", "ÄÖ", "ΟΔΟΣ", "a\\nb", "%", "_"),
    *("c1", "C1", "c1 ", "it's", "ç3", "Ç3", "ç3", "a,b;c", "a", "1e400", "-1e400", "1e-400", "1e299", "1" * 249, "9" * 250 + "e299"),
    *("." + "0" * 249 + "1", "1" * 17, "9" * 18, "-" + "9" * 19, "9007199254740993", "0.1", "1e-5", "40", "60.000", "39.99999999999999999999", "5e-324", "1e-310"),
    *("11", "12", "111", "2", "1;2", "true ", "0x10", "1_000", "1,5", "½", "😀", "\u202e", "\ufeff1", "e", ".", "-", "+", "--1", "1e", "1e+", "1e5", "1e+5", "1E05"),
]  # fmt: skip
"""Texts that readers trip over. None has a null character, which PostgreSQL does not store."""


def hostile_rows(rng: np.random.Generator, rows: int = 240) -> list[tuple[Any, ...]]:
    """Rows of texts in all columns, few units and many of what the kinds look for."""
    people = [str(i) for i in range(30)] + [
        "Ann",
        "ann",
        " Ann",
        "7.0",
        "",
        "NaN",
        "Straße",
        "STRASSE",
        "é",
        "é",
        "p:1",
    ]
    usual = {
        "person": people,
        "county": [*COUNTIES, "rest"],
        "code": ["1", "2", "11", "12", "111", "9"],
        "kind": ["x", "meds", "7"],
        "age": [str(i) for i in range(0, 100, 7)] + ["18.5", "40", "60"],
        "dose": ["0", "1", "0.25", "0.5", "0.125", *DAYS, "2020-01-02"],
    }

    def value(column: str) -> Any:
        if rng.random() < 0.06:
            return None
        likely = usual.get(column, ["1", "0", "yes", "no", "yEs", "äÖ"])
        return str(rng.choice(np.array(likely if rng.random() < 0.7 else TEXTS, dtype=object)))

    return [tuple(value(column) for column in COLUMNS) for _ in range(rows)]
