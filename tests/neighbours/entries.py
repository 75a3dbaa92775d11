"""Every entry point that reads rows: its columns, the code that releases up to the noise, and what the records of one unit may be."""
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportPrivateImportUsage=false

from __future__ import annotations

import functools
import itertools
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp

import isotone as iso
import isotone.curves.poset_regression
import isotone.curves.regression
import isotone.interop.opendp.measurements
from isotone.counts import PosetMechanism
from isotone.curves import PrivateCalibrator, PrivateIsotonicRegression, PrivatePosetRegression
from isotone.interop.opendp import make_column, table_domain
from isotone.interop.opendp.measurements import RowRules, counts_measurement, table_measurement
from isotone.ledger import Ledger
from isotone.mechanism import no_progress
from isotone.privacy.guarantee import Guarantee
from isotone.process import silent
from isotone.reading.categories import CategorySource
from isotone.reading.columns import labels
from isotone.reading.questions import Question
from isotone.reading.sources import blank
from isotone.release import pipeline
from isotone.release.manifest import Stated
from tests.neighbours.values import PUBLIC

__all__ = ["ENTRIES", "Entry", "Records", "charging", "states"]

dp.enable_features("contrib", "honest-but-curious")

Records = Counter[tuple[Any, ...]]
"""How often there is what: for counts a yes of an element in a group, and the records; for a curve a point."""


@dataclass(frozen=True)
class Entry:
    """One way in. ``roles`` says what each column is for; ``fault`` says what is wrong with the records of one unit."""

    name: str
    roles: Mapping[str, str]
    read: Callable[[Any], Records]
    fault: Callable[[Records], str]
    unit: str | None = None
    most: int = 1
    of_arrays: bool = False
    twins: bool = field(default=False)
    """Whether public names are equal once read, so that all data is refused."""


# ---------------------------------------------------------------------------- descriptions, through a charged release


class Watched(pipeline.Job):
    """A release that is charged, read and sealed, and draws nothing."""

    def read(self, frame: Any) -> Any:
        statistic = super().read(frame)
        _seen.append(statistic)
        return statistic

    def draw(self, statistic: Any) -> Any:
        return None

    def publish(self, drawn: Any, stamp: Any) -> Any:
        return types.SimpleNamespace(manifest=types.SimpleNamespace(content_hash="0" * 64))


_seen: list[Any] = []
states: list[str] = []
"""The states of the charges so far."""
charging: list[bool] = []
"""Whether descriptions are rehearsed and charged too: true if it holds anything."""


def described(make: Callable[[], Any]) -> Callable[[Any], Any]:
    """What a description reads of a source, on the way of a release: the schema, nobody's rows, the charge, the rows."""

    @functools.cache
    def prepared() -> tuple[Any, ...]:
        description = make()
        asked = description.guarantee(1, None, None)
        mechanism = description.mechanism(asked)
        charged, known = description.charged(mechanism, asked), description.known(mechanism)
        return description, mechanism, asked, charged, known

    def read(data: Any) -> Any:
        description, mechanism, asked, charged, known = prepared()
        source = description.source(data, mechanism)
        job = Watched(description, source, mechanism, asked, charged, Stated(title="t"), known)
        frame = job.open()
        _seen.clear()
        if not charging:
            states.append("reading")
            with silent(no_progress):
                job.read(frame)
            return _seen[0]
        description.read(source, blank(frame))
        with (
            tempfile.TemporaryDirectory() as folder,
            Ledger(Path(folder) / "one.ledger", epsilon=2) as ledger,
        ):
            try:
                pipeline._drawn(job, frame, ledger, None, False, None, no_progress)
            finally:
                states.extend(charge.state for charge in ledger.charges())
        return _seen[0]

    return read


# ---------------------------------------------------------------------------- counts

ANSWERS = ("hyp", "twice", "meds")
ORDER = iso.Poset(ANSWERS, [("twice", "hyp"), ("meds", "hyp")])
CHOICE = iso.Poset.from_mapping({"twice": "hyp", "meds": "hyp"}, children="partition")
ITEMS = iso.Poset(PUBLIC, [("b", "a"), ("1", "a")])
_PARENTS = {
    "a": None,
    "b": None,
    "1": "a",
    "2": "a",
    "true": "b",
    "2020-01-02": "b",
    PUBLIC[6]: "b",
    PUBLIC[7]: "b",
    "7.5": "1",
}
TREE = iso.Poset.from_mapping(
    _PARENTS, children={None: "exclusive", "a": "exclusive", "b": "exclusive", "1": "exclusive"}
)
TWINS = iso.Poset.from_mapping({"1": "all", "1.0": "all", " 1": "all", "2": "all"}, children="partition")
ASKED = iso.Poset(["old", "coded", "said"], [("old", "said")])
QUESTIONS = (
    Question("old", ">= 40", "age"),
    Question("coded", yes=["1", "a"], column="code"),
    Question("said", "answered", "age"),
)
_WIDE = dict.fromkeys(ANSWERS, "answer")


def _counted(P: Any, statistic: Any) -> Records:
    """Yeses by group and element, and the records of each group."""
    found: Records = Counter()
    for group, (row, records) in enumerate(zip(statistic[0], statistic[1], strict=True)):
        found.update({(group, x): int(number) for x, number in zip(P.elements, row, strict=True)})
        found[group, None] += int(records)
    return +found


def _record_fault(P: Any, most: int, unit_of_code: bool = False) -> Callable[[Records], str]:
    """One unit has ``most`` records at most, each closed upward and with one option of each choice."""

    def fault(found: Records) -> str:
        groups = {group for group, _ in found}
        records = sum(found[group, None] for group in groups)
        if records > most:
            return f"{records} records"
        for group in groups:
            for low, high in P.covers:
                if found[group, low] > found[group, high]:
                    return f"a yes to {low!r} without {high!r}"
            for choice in P.choices:
                if sum(found[group, option] for option in choice.options) > found[group, None]:
                    return f"several options of {choice.options}"
            if any(found[group, x] > found[group, None] for x in P.elements):
                return "more yeses than records"
        return ""

    return fault


def counts(name: str, P: Any, roles: Mapping[str, str], most: int = 1, **given: Any) -> Entry:
    """Counts of a description."""
    column = "person" if "person" in roles else None
    unit = iso.Unit(column, contributions=most if most > 1 else None, name="person")
    read = described(lambda: iso.Counts(P, unit=unit, **given))
    return Entry(name, roles, lambda data: _counted(P, read(data)), _record_fault(P, most), column, most)


# ---------------------------------------------------------------------------- counts over time


PERIODS = ("2020-01-01", "2020-01-03", "2024-02-29")


def series(name: str, P: Any, roles: Mapping[str, str], most: int = 1, **given: Any) -> Entry:
    """A series of the past. The register of each of its periods grows from the one before."""
    unit = iso.Unit("person", contributions=most if most > 1 else None, name="person")
    past = {"periods": PERIODS, "date": "day", "record": "code" if most > 1 else None}
    read = described(lambda: iso.Series(iso.Counts(P, unit=unit, **given), **past))

    def counted(data: Any) -> Records:
        found = np.asarray(read(data))
        return +Counter({place: int(number) for place, number in np.ndenumerate(found)})

    def fault(found: Records) -> str:
        for t, g in itertools.product(range(len(PERIODS)), {place[1] for place in found}):
            if sum(max(found[t, h, x] for x in range(len(P))) for h in {place[1] for place in found}) > most:
                return "several histories"
            at = {x: found[t, g, i] for i, x in enumerate(P.elements)}
            if any(at[low] > at[high] for low, high in P.covers):
                return "a stage without the one above it"
            if any(found[t, g, i] < found[t - 1, g, i] for i in range(len(P)) if t):
                return "a history that shrinks"
        return ""

    return Entry(name, roles, counted, fault, "person", most)


# ---------------------------------------------------------------------------- distributions


def distribution(name: str, roles: Mapping[str, str], most: int = 1, **given: Any) -> Entry:
    column = "person" if "person" in roles else None
    unit = iso.Unit(column, contributions=most if most > 1 else None, name="person")
    read = described(lambda: iso.Distribution("age", **{"bounds": (0, 100), "unit": unit, **given}))
    return Entry(name, roles, lambda data: _cells(read(data)), _number_fault(most), column, most)


def survival(name: str, roles: Mapping[str, str], **given: Any) -> Entry:
    read = described(lambda: iso.Survival("age", event="y", horizon=60, unit="person", **given))
    return Entry(name, roles, lambda data: _cells(read(data)), _number_fault(1), "person")


# ---------------------------------------------------------------------------- tables and curves


def _cells(statistic: Any) -> Records:
    cells = np.asarray(statistic).ravel()
    return Counter({(place,): int(cells[place]) for place in np.flatnonzero(cells > 0).tolist()})


def _cell_fault(most: int, upper: int = 1) -> Callable[[Records], str]:
    def fault(found: Records) -> str:
        return (
            ""
            if len(found) <= most and all(0 <= number <= upper for number in found.values())
            else f"{dict(found)}"
        )

    return fault


def table(
    name: str,
    roles: Mapping[str, str],
    most: int = 1,
    upper: int = 9,
    each: int = 1,
    cells: int = 1,
    **given: Any,
) -> Entry:
    column = "person" if "person" in roles else None
    unit = iso.Unit(column, contributions=most if most > 1 else None, name="person")
    made = {"categories": PUBLIC, "upper": upper, "unit": unit, **given}
    read = described(lambda: iso.Table("group", **made))
    return Entry(name, roles, lambda data: _cells(read(data)), _cell_fault(most * cells, each), column, most)


def _points(found: Any) -> Records:
    places = [found.x] if hasattr(found, "x") else list(found.bins.T)
    rows = zip(*(place.tolist() for place in places), found.y.tolist(), strict=True)
    return Counter(dict(zip(rows, found.count.tolist(), strict=True)))


def _number_fault(most: int) -> Callable[[Records], str]:
    return lambda found: "" if sum(found.values()) <= most else f"{sum(found.values())} records"


def curve(name: str, roles: Mapping[str, str], most: int = 1, **given: Any) -> Entry:
    column = "person" if "person" in roles else None
    unit = iso.Unit(column, contributions=most if most > 1 else None, name="person")
    made: dict[str, Any] = {
        "x": "age",
        "y": "y",
        "bounds": (0, 100),
        "y_range": (0, 1),
        **given,
        "unit": unit,
    }
    read = described(lambda: iso.Curve(**made))
    return Entry(name, roles, lambda data: _points(read(data)), _number_fault(most), column, most)


# ---------------------------------------------------------------------------- OpenDP


def _metric(unit: str | None) -> Any:
    import polars as pl

    return dp.symmetric_id_distance(identifier=pl.col(unit)) if unit else dp.symmetric_distance()


def opendp_counts(name: str, P: Any, unit: str | None, most: int, element: str | None = None) -> Entry:
    roles = {**({unit: "unit"} if unit else {}), **({element: "element"} if element else _WIDE)}

    @functools.cache
    def measurement() -> Any:
        like = PosetMechanism(P, epsilon=1, contributions=most)
        pair = lambda row, records: ([row.tolist()], [records])  # noqa: E731
        return counts_measurement(
            table_domain(), _metric(unit), like, like.guarantee, pair, RowRules(element)
        )

    return Entry(
        name, roles, lambda data: _counted(P, measurement()(data)), _record_fault(P, most), unit, most
    )


def opendp_table(name: str, unit: str | None, most: int) -> Entry:
    roles = {**({unit: "unit"} if unit else {}), "group": "category"}

    @functools.cache
    def measurement() -> Any:
        source = CategorySource(None, "group", labels(PUBLIC), 9)
        return table_measurement(
            table_domain(), _metric(unit), Guarantee.pure(1), lambda counts: counts.tolist(), source, most
        )

    return Entry(name, roles, lambda data: _cells(measurement()(data)), _cell_fault(most), unit, most)


class Rows(PrivatePosetRegression):
    """Keeps the rows that it is fitted to in place of a fit."""

    def fit(self, elements: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        return Counter(zip(map(str, elements), y, strict=True))


def opendp_curve(name: str, unit: str | None, most: int, x: Any = "age", order: bool = False) -> Entry:
    numbers = {
        "y": "number",
        **(dict.fromkeys([x] if isinstance(x, str) else x, "category" if order else "number")),
    }
    roles = {**({unit: "unit"} if unit else {}), **numbers}

    def measure(data: Any) -> Any:
        module = isotone.interop.opendp.measurements
        kept, module.fit_counted = (
            module.fit_counted,
            lambda _, at, y, count, *__: Counter(
                dict(zip(zip(at.tolist(), y.tolist(), strict=True), count.tolist(), strict=True))
            ),
        )
        try:
            model: Any = (
                Rows(ITEMS, epsilon=1, y_range=(0, 1), contributions=most)
                if order
                else PrivateIsotonicRegression(epsilon=1, bounds=(0, 100), y_range=(0, 1), contributions=most)
            )
            return module.make_curve(table_domain(), _metric(unit), model, x=x, y="y")(data)
        finally:
            module.fit_counted = kept

    return Entry(name, roles, measure, _number_fault(most), unit, most)


@functools.cache
def _ages() -> Any:
    return make_column(table_domain(), dp.symmetric_distance(), "age")


def _column(data: Any) -> Records:
    return Counter((str(number),) for number in _ages()(data))


# ---------------------------------------------------------------------------- estimators, which take arrays


class ReadError(Exception):
    """The records of a fit, in place of the fit."""


def fitted(fit: Callable[[Mapping[str, Any]], Any]) -> Callable[[Any], Records]:
    """The records that a fit counts."""
    modules: list[Any] = [isotone.curves.regression, isotone.curves.poset_regression]

    def read(arrays: Any) -> Records:
        found: list[Any] = []

        def caught(*given: Any) -> Any:
            found.append(read_records(*given))
            raise ReadError

        read_records = modules[0].read_records
        for module in modules:
            module.read_records = caught
        try:
            fit(arrays)
        except ReadError:
            pass
        finally:
            for module in modules:
                module.read_records = read_records
        records = found[0]
        return Counter(
            zip(records.cells.tolist(), records.levels.tolist(), records.weights.tolist(), strict=True)
        )

    return read


def _chain(**given: Any) -> Any:
    return PrivateIsotonicRegression(epsilon=1, bounds=(0, 100), **given)


class _Points:
    """A classifier whose scores lie at the middle of two points of a grid, and that refuses texts.

    Its last bit depends on the number of rows, as it does where linear algebra adds in blocks.
    """

    classes_, n_features_in_ = np.array([0, 1]), 2

    def decision_function(self, X: Any) -> Any:
        found = np.asarray(X, dtype=float)
        return np.nextafter(found @ np.array([0.5, 1.0]), 99.0 * (len(found) % 2))


_NUMBERS = {"age": "number", "y": "number"}
_MODELS: dict[str, tuple[dict[str, str], Callable[[Mapping[str, Any]], Any]]] = {
    "PrivateIsotonicRegression": (_NUMBERS, lambda a: _chain(y_range=(0, 1)).fit(a["age"], a["y"])),
    "PrivateIsotonicRegression, weights": (
        {**_NUMBERS, "dose": "number"},
        lambda a: _chain(y_range=(0, 1), max_weight=2).fit(a["age"], a["y"], a["dose"]),
    ),
    "PrivateIsotonicRegression, labels, groups": (
        {"person": "unit", "age": "number", "y": "label"},
        lambda a: _chain(y_values=(0, 1), contributions=2).fit(a["age"], a["y"], groups=a["person"]),
    ),
    "PrivatePosetRegression": (
        {"group": "category", "y": "number"},
        lambda a: PrivatePosetRegression(ITEMS, epsilon=1, y_range=(0, 1)).fit(a["group"], a["y"]),
    ),
    "PrivatePosetRegression, groups": (
        {"person": "unit", "group": "category", "y": "number"},
        lambda a: PrivatePosetRegression(ITEMS, epsilon=1, y_range=(0, 1)).fit(a["group"], a["y"], groups=a["person"]),
    ),
    "PrivateCalibrator": ({"age": "number", "y": "label"}, lambda a: PrivateCalibrator(epsilon=1, bounds=(0, 100)).fit(a["age"], a["y"])),
    "PrivateCalibrator, classifier": (
        {"age": "number", "dose": "number", "y": "label"},
        lambda a: PrivateCalibrator(_Points(), bounds=(0, 64), x_grid=65).fit(_matrix(a["age"], a["dose"]), a["y"]),
    ),
}  # fmt: skip


def _matrix(*columns: Any) -> Any:
    """Columns as a table of their own library."""
    import pandas as pd
    import polars as pl

    if isinstance(columns[0], pd.Series):
        return pd.DataFrame({str(place): column for place, column in enumerate(columns)})
    if isinstance(columns[0], pl.Series):
        return pl.DataFrame([column.alias(str(place)) for place, column in enumerate(columns)])
    if isinstance(columns[0], np.ndarray) and all(column.dtype != object for column in columns):
        return np.stack(columns, axis=1)
    return [list(row) for row in zip(*columns, strict=True)]


def estimator(name: str) -> Entry:
    roles, fit = _MODELS[name]
    column = "person" if "person" in roles else None
    most = 2 if "labels" in name else 1
    return Entry(name, roles, fitted(fit), _number_fault(most), column, most, of_arrays=True)


_P = {"person": "unit"}
ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        counts("counts, rows", ORDER, _WIDE),
        counts("counts", ORDER, {**_P, **_WIDE}),
        counts("counts, contributions", ORDER, {**_P, **_WIDE}, 3),
        counts("counts, drop", CHOICE, {**_P, **_WIDE}, answers=iso.Answers(on_violation="drop", on_conflict="drop")),
        counts("counts, missing is yes", CHOICE, {**_P, **_WIDE}, answers=iso.Answers(missing="yes"), max_size=2),
        counts("counts, questions", ASKED, {**_P, "age": "answer", "code": "answer"}, answers=iso.Answers(questions=QUESTIONS)),
        counts("groups", ORDER, {**_P, **_WIDE, "group": "group"}, by={"group": PUBLIC}),
        counts("margins", ORDER, {**_P, **_WIDE, "group": "group", "code": "group"}, 3, by={"group": PUBLIC[:4], "code": PUBLIC[:3]}, margins=[[], ["group"], ["group", "code"]], unlisted="other"),
        counts("long", ITEMS, {**_P, "code": "element"}, answers=iso.Answers(element="code")),
        counts("hierarchy", TREE, {**_P, "code": "element"}, answers=iso.Answers(element="code")),
        counts("hierarchy, rows", TREE, {"code": "element"}, answers=iso.Answers(element="code")),
        counts("hierarchy, groups, drop", TREE, {**_P, "code": "element", "group": "group"}, by={"group": PUBLIC}, answers=iso.Answers(element="code", on_conflict="drop")),
        counts("twin codes", TWINS, {"code": "element"}, answers=iso.Answers(element="code")),
        table("table, rows", {"group": "category"}),
        table("table", {**_P, "group": "category"}),
        table("table, contributions", {**_P, "group": "category"}, 3),
        table("table of counts", {"group": "category", "age": "number"}, each=9, count="age"),
        table("table, strata", {**_P, "group": "category"}, strata=["x"] * 4 + ["z"] * 5),
        table("pairs", {**_P, "group": "category", "code": "category"}, 2, counts=("a", "b"), kind="code"),
        table("pairs of counts", {"group": "category", "age": "number", "dose": "number"}, each=9, cells=2, counts=("age", "dose")),
        curve("curve", {**_P, "age": "number", "y": "number"}),
        curve("curve, contributions", {**_P, "age": "number", "y": "number"}, 3),
        curve("curve of labels", {"age": "number", "y": "label"}, y_range=None, y_values=(0, 1), x_grid=[0, 18.5, 40, 65, 100]),
        curve("surface", {**_P, "age": "number", "dose": "number", "y": "number"}, 2, x=("age", "dose"), bounds=((0, 100), (0, 10))),
        series("series", ORDER, {**_P, "day": "date", **_WIDE}),
        series("series, groups", CHOICE, {**_P, "day": "date", **_WIDE, "group": "group"}, by={"group": PUBLIC[:3]}),
        series("series, contributions, long", ITEMS, {**_P, "day": "date", "group": "element", "code": "element"}, 2, answers=iso.Answers(element="group")),
        distribution("distribution, rows", {"age": "number"}),
        distribution("distribution", {**_P, "age": "number", "group": "group"}, by={"group": PUBLIC}, grid="integers"),
        distribution("distribution, contributions", {**_P, "age": "number"}, 3, bounds=("1/2", 100), grid="log", cells=50),
        distribution("distribution of values", {**_P, "age": "number"}, 2, grid=(0, "7.5", 40, 100)),
        survival("survival", {**_P, "age": "number", "y": "event"}),
        survival("survival, groups, words", {**_P, "age": "number", "y": "answer", "group": "group"}, by={"group": PUBLIC[:4]}, yes=["1", "a"]),
        opendp_counts("OpenDP counts", ORDER, "person", 2),
        opendp_counts("OpenDP long", ITEMS, "person", 1, "code"),
        opendp_table("OpenDP table", "person", 2),
        opendp_curve("OpenDP curve", "person", 2),
        opendp_curve("OpenDP order", "person", 2, "group", order=True),
        Entry("OpenDP column", {"age": "number"}, _column, _number_fault(1)),
        *(estimator(name) for name in _MODELS),
    )
}  # fmt: skip
