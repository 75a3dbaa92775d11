"""Releases of breakdowns: read by declared rules, refused before the charge, and verified from the folder alone."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.backends import BACKENDS
from tests.support.effort import effort

import isotone as iso
from isotone.counts import PosetMechanism
from isotone.errors import InputError, SpecError
from isotone.reading import records
from isotone.reading.contributions import Groups
from isotone.reading.records import RecordRules, RecordSource, count_records
from isotone.reading.sources import blank
from isotone.release import load_release, load_spec, verify
from isotone.release.kinds.counts import description as query_module
from isotone.release.kinds.counts.description import CountManifest
from isotone.release.kinds.kind import Stamp
from isotone.release.manifest import Stated
from isotone.release.pipeline import Job
from isotone.release.report import report_html
from isotone.release.result import LARGEST, Release, seal

P = iso.Poset(["hyp", "twice"], [("twice", "hyp")])
BY: dict[str, Any] = {
    "by": ["state", "county", "sex"],
    "groups": {"state": ["A", "B"], "county": {"a1": "A", "b1": "B", "a2": "A"}, "sex": ["f", "m"]},
    "margins": ["", "state", ("state", "sex"), "*"],
}
TABLE = pd.DataFrame(
    {
        "person": [1, 1, 2, 3, 4, 5, 6, 7],
        "county": ["b1", "a2", "a1", "a1", "b1", "zz", None, "b1"],
        "sex": ["f", "m", "f", "m", "m", "f", "f", "?"],
        "hyp": [1, 0, 1, 1, 0, 1, 1, 1],
        "twice": [0, 1, 1, 0, 1, 1, 1, 0],
    }
)


@pytest.fixture
def ledger(tmp_path):
    return iso.Ledger(tmp_path / "survey.ledger", epsilon=10)


@pytest.fixture
def silent(monkeypatch):
    """No noise, so that a test can see what was counted."""
    monkeypatch.setattr(PosetMechanism, "release_rows", lambda self, rows: rows)


def released(ledger, data: Any = TABLE, **options):
    settings: dict[str, Any] = {
        "epsilon": 1,
        "unit": "person",
        "mechanism": "PosetMechanism",
        **BY,
        **options,
    }
    return flat.counts(data, P, ledger=ledger, **settings)


def values(release, margin, element="hyp"):
    """The values of one margin and one element by cell."""
    frame = release.frame()
    frame = frame[(frame["margin"] == margin) & (frame["element"] == element)]
    cells = frame[["state", "county", "sex"]].agg("".join, axis=1)
    return dict(zip(cells, frame["value"].round(6).tolist(), strict=True))


def test_a_unit_is_in_one_cell_and_all_margins_come_from_it(ledger, silent):
    release = released(ledger)
    # person 1 has rows in (b1, f) and (a2, m); lists are read state by state, so that a2 comes before b1
    cells = values(release, "county × sex")
    assert cells == {"Aa1f": 1, "Aa1m": 1, "Aa2f": 0, "Aa2m": 1, "Bb1f": 0, "Bb1m": 1}
    assert values(release, "state × sex") == {"Af": 1, "Am": 2, "Bf": 0, "Bm": 1}
    assert values(release, "state") == {"A": 3, "B": 1}
    assert values(release, "total") == {"": 4}  # nobody with a county or a sex in no list
    assert values(release, "total", "twice") == {"": 3}


def test_what_is_in_no_list_is_other_in_all_margins_if_that_is_declared(ledger, silent):
    release = released(ledger, unlisted="other")
    assert values(release, "state") == {"A": 3, "B": 2, "other": 2}
    assert values(release, "state × sex")["otherf"] == 2
    assert values(release, "state × sex")["Bother"] == 1
    assert values(release, "total") == {"": 7}


@pytest.mark.parametrize("rule", ["drop", "other"])
def test_every_engine_counts_the_same(rule):
    import duckdb
    import polars as pl
    import pyarrow as pa

    table = pa.Table.from_pandas(TABLE)
    lists = (("county", ("a1", "a2", "b1", "other")), ("sex", ("f", "m", "other")))
    cells = Groups(lists if rule == "other" else tuple((c, v[:-1]) for c, v in lists), rule)
    rules = RecordRules("person")
    found = []
    for data in (TABLE, pl.from_arrow(table), table, duckdb.connect().from_arrow(table)):
        source = RecordSource(data)
        found.append(count_records(source, source.open(P, rules, cells), P, rules, cells)[0].tolist())
    assert found[0][0] == [1, 1]  # person 2 in (a1, f)
    assert all(counts == found[0] for counts in found)


@pytest.mark.services
@pytest.mark.parametrize("rule", ["drop", "other"])
def test_spark_counts_a_breakdown_by_one_grouped_query(rule, tmp_path, monkeypatch):
    queries: list[Any] = []
    real = records.collect
    monkeypatch.setattr(records, "collect", lambda frame: queries.append(frame) or real(frame))
    found = breakdown_query_counts(BACKENDS["spark"](TABLE, tmp_path), rule)
    assert found == breakdown_query_counts(TABLE, rule)
    assert len(queries) == 2  # one for each of the two


def breakdown_query_counts(data, rule):
    """The counts of all cells, by the query of a release."""
    described = flat.counts_of(P, unit="person", unlisted=rule, **BY)
    query = Job.of(described, data, described.guarantee(1), Stated())
    return query.read(query.open()).counts.tolist()


def test_rows_that_count_alone_are_each_in_their_own_cell(ledger, silent):
    release = released(ledger, contributions=2)
    assert values(release, "county × sex", "hyp")["Bb1f"] == 1
    assert values(release, "county × sex", "hyp")["Aa2m"] == 1
    assert release.manifest["mechanism"]["base"]["contributions"] == 2


def test_a_breakdown_is_verified_from_its_folder(ledger, tmp_path):
    release = released(ledger, folder=tmp_path / "out")
    assert release.kind == "counts"
    assert load_release(tmp_path / "out").columns == release.columns
    verdict = verify(tmp_path / "out", ledger=tmp_path / "survey.ledger")
    assert verdict.holds, str(verdict)
    assert list(release.frame()) == [
        "margin",
        "state",
        "county",
        "sex",
        "element",
        "value",
        "sd",
        "low",
        "high",
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert page.count('type="radio"') == len(P) + 3  # one for each picture, and three ways to sort the table
    assert "county × sex" in page


def test_values_that_could_be_true_add_up_and_are_verified(ledger, tmp_path):
    release = released(ledger, epsilon="1/4")
    for integers in (True, False):
        moved = release.consistent(integers=integers)
        frame = moved.frame()
        assert frame["raw"].tolist() == list(release.columns["value"])
        assert (frame["value"] >= 0).all()
        by = frame.pivot_table(index=["margin", "state", "county", "sex"], columns="element", values="value")
        assert (by["hyp"] >= by["twice"]).all()
        sums = frame.groupby(["margin", "element"])["value"].sum().unstack()
        assert np.ptp(sums["hyp"]) < 0.01
        folder = tmp_path / str(integers)
        moved.save(folder)
        verdict = verify(folder, ledger=tmp_path / "survey.ledger")
        assert verdict.holds, str(verdict)
        assert moved.consistent() is moved
    twice = forged(moved, columns={"value": tuple(x + 1 for x in moved.columns["value"])})
    twice.save(tmp_path / "lie", report=False)
    assert not verify(tmp_path / "lie")["error"].holds
    part = released(ledger, margins=["state", "county", "sex"])
    with pytest.raises(InputError, match="contains all others"):
        part.consistent()


def forged(release, **changes):
    """The release with other columns or entries of the manifest, sealed again as a forger would."""
    columns = {**release.columns, **changes.pop("columns", {})}
    return seal(columns, replace(release.manifest, content_hash=None, **changes))


def test_a_forged_breakdown_is_found(ledger, tmp_path):
    release = released(ledger)
    manifest = release.manifest
    assert isinstance(manifest, CountManifest)
    said, first = manifest.description, release.columns["value"]
    assert manifest.measured is not None
    more = {"value": (first[0] + 1, *first[1:])}
    narrow = {"sd": tuple(x * 0.9 for x in release.columns["sd"])}
    measured = [[x + 1 for x in part] for part in manifest.measured]
    cheap = {**manifest.mechanism, "shares": ["1", "1", "1", "1"]}
    unknown = {**manifest.mechanism, "shares": None}
    stronger = {**manifest.mechanism, "base": {**manifest.mechanism["base"], "epsilon": "2"}}
    lies = [
        ({"columns": more}, "error"),
        ({"columns": narrow}, "error"),
        ({"columns": {"state": tuple("A" for _ in first)}}, "error"),
        ({"measured": measured}, "error"),
        ({"measured": manifest.measured[:-1]}, "error"),
        ({"mechanism": cheap}, "guarantee"),
        ({"mechanism": unknown}, "guarantee"),
        ({"mechanism": stronger}, "guarantee"),
        ({"description": {**said, "answers": {**said["answers"], "missing": "maybe"}}}, "guarantee"),
        ({"description": {**said, "unit": {**said["unit"], "contributions": 3}}}, "guarantee"),
        ({"description": {**said, "margins": [[], ["moon"]]}}, "guarantee"),
        ({"description": {**said, "unlisted": "other"}}, "error"),
    ]
    for i, (lie, check) in enumerate(lies):
        forged(release, **lie).save(tmp_path / str(i), report=False)
        verdict = verify(tmp_path / str(i))
        assert not verdict[check].holds, (i, str(verdict))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"margins": ["moon"]}, "does not exist"),
        ({"margins": ["", "*"], "importance": {"moon": 1}}, "does not exist"),
        ({"importance": "heavy"}, "importance"),
        ({"by": ["A"]}, "must be a public list"),
        ({"groups": {"state": ["A", 2.0, "2"], "county": {"a": "A"}, "sex": ["f"]}}, "distinct"),
        ({"by": ["state", "county", 7]}, "column"),
        ({"by": {"value": ["a"], "b": ["c"]}, "margins": None}, "Rename"),
        ({"total": True}, "element above"),
        ({"unlisted": "keep"}, "unlisted"),
        ({"mechanism": "MoonMechanism"}, "no mechanism"),
        (
            {"by": list("abc"), "groups": dict.fromkeys("abc", range(300)), "margins": ["*"]},
            "at most",
        ),
        ({"epsilon": Fraction(1, 10**18)}, "too wide|rate"),
        ({"groups": {"state": ["A"], "county": {"a1": "A"}, "sex": ["f\x1b"]}}, "control"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(change, words, ledger):
    with pytest.raises(InputError, match=words):
        released(ledger, **change)
    assert not ledger.charges()


def test_contents_never_raise(ledger, silent):
    odd = pd.DataFrame(
        {
            "person": [None, float("nan")],
            "county": [None, None],
            "sex": [1.5, float("inf")],
            "hyp": ["", "?"],
            "twice": [None, None],
        }
    )
    assert set(released(ledger, odd).columns["value"]) == {0.0}
    assert set(released(ledger, TABLE[:0]).columns["value"]) == {0.0}


def test_one_group_by_its_old_name_stays_as_it_was(ledger):
    release = flat.counts(TABLE, P, epsilon=1, ledger=ledger, unit="person", by="sex", groups=["f", "m"])
    assert release.kind == "counts"
    assert list(release.columns)[:2] == ["group", "element"]
    margins = flat.counts(
        TABLE, P, epsilon=1, ledger=ledger, unit="person", by="sex", groups=["f", "m"], margins=["", "sex"]
    )
    assert list(margins.columns)[:2] == ["margin", "sex"]


SPEC = """
[data]
path = "people.csv"
unit = "person"
[privacy]
epsilon = 1
ledger = "s.ledger"
budget = { epsilon = 3 }
[order]
elements = ["hyp", "twice"]
relations = [["twice", "hyp"]]
margins = ["", "state", ["state", "sex"], "*"]
importance = [["state", 2]]
[order.by]
state = ["A", "B"]
county = { a1 = "A", b1 = "B", a2 = "A" }
sex = ["f", "m"]
[output]
folder = "out"
"""


def test_a_spec_asks_for_a_breakdown(tmp_path):
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "spec.toml").write_text(SPEC)
    spec = load_spec(tmp_path / "spec.toml")
    plan = spec.plan()
    assert "state × sex" in str(plan)
    assert json.loads(json.dumps(plan.plain()))["margins"][1]["margin"] == ["state"]
    _, folder, fresh = flat.with_spec(spec)
    assert fresh
    assert verify(folder).holds
    assert not flat.with_spec(spec)[2]  # the same request is not charged again
    assert (
        spec.check()
        .findings[-1]
        .startswith("sex: 1 row has a value that is not in the list (left out of all margins)")
    )
    (tmp_path / "other.toml").write_text(SPEC.replace("[order]\n", '[order]\nunlisted = "other"\n'))
    other = load_spec(tmp_path / "other.toml")
    assert "not in the list (counted as other)" in other.check().findings[-1]
    assert not spec.audit(effort(300, 2_000)).broken
    for line, wrong in [
        ('"*"]', '"moon"]'),
        ('state = ["A"', 'planet = ["A"'),
        ("[data]", '[data]\nby="x"\ngroups=["y"]'),
    ]:
        (tmp_path / "bad.toml").write_text(SPEC.replace(line, wrong).replace('"out"', '"new"'))
        with pytest.raises((InputError, SpecError)):
            flat.with_spec(load_spec(tmp_path / "bad.toml"))
    assert len(iso.Ledger(tmp_path / "s.ledger").charges()) == 1


def test_replace_neighbours_are_guaranteed_by_half_the_noise(tmp_path):
    ledger = iso.Ledger(tmp_path / "r.ledger", epsilon=10, neighbours="replace")
    release = released(ledger, neighbours="replace", folder=tmp_path / "out")
    assert release.manifest["mechanism"]["base"]["epsilon"] == "1/2"
    assert verify(tmp_path / "out").holds
    whole = forged(
        release,
        mechanism={
            **release.manifest.mechanism,
            "base": {**release.manifest.mechanism["base"], "epsilon": "1"},
        },
    )
    whole.save(tmp_path / "lie", report=False)
    assert not verify(tmp_path / "lie")["guarantee"].holds
    np.testing.assert_array_less(0, release.sd)


def test_a_large_breakdown_is_rehearsed_in_part(ledger, tmp_path, monkeypatch):
    """Every name is written and read, and the size of the files is known before the charge."""
    monkeypatch.setattr(query_module, "_REHEARSED", 6)
    saved, save = [], Release.save

    def note(self, *given, **options):
        saved.append((len(ledger.charges()), self.columns))
        return save(self, *given, **options)

    monkeypatch.setattr(Release, "save", note)
    released(ledger, folder=tmp_path / "out")
    (before, part), (after, whole) = saved
    assert (before, after) == (0, 1)
    assert 6 <= len(part["value"]) < len(whole["value"])
    for name in ("margin", *BY["by"], "element"):
        assert set(part[name]) == set(whole[name])
    described = flat.counts_of(P, unit="person", mechanism="PosetMechanism", **BY)
    query = Job.of(described, TABLE, iso.Guarantee.pure(1), Stated())
    some, more = query.rehearsal(blank(query.open()), Stamp(1, "2000-01-01T00:00:00+00:00", "", ""))
    save(some, tmp_path / "part")
    for name in ("release.csv", "manifest.json"):
        size = (tmp_path / "part" / name).stat().st_size + more[name]
        assert size == pytest.approx((tmp_path / "out" / name).stat().st_size, rel=0.25)


@pytest.mark.parametrize("file", ["release.csv", "manifest.json"])
def test_files_that_would_be_too_large_to_read_are_refused_before_the_charge(ledger, monkeypatch, file):
    monkeypatch.setattr(query_module, "_REHEARSED", 6)
    monkeypatch.setitem(LARGEST, file, {"release.csv": 1_200, "manifest.json": 2_700}[file])
    with pytest.raises(InputError, match="would have about"):
        released(ledger)
    assert not ledger.charges()


def test_a_name_too_long_for_a_file_is_refused_in_a_rehearsal_in_part(ledger, monkeypatch):
    monkeypatch.setattr(query_module, "_REHEARSED", 6)
    groups = {**BY["groups"], "sex": ["f", "m" * 100_001]}
    with pytest.raises(InputError, match="could not be read again"):
        released(ledger, groups=groups)
    assert not ledger.charges()


def test_a_report_says_that_the_errors_of_all_margins_go_together(ledger):
    assert "The errors of one release go together" in report_html(released(ledger))
