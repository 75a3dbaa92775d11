"""Releases: charged before data is read, the same for any contents, complete in what they say."""

import re
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import binom, gamma
from tests.support import flat

import isotone as iso
from isotone.cli.release import release_table
from isotone.counts import OrderGaussianMechanism, PosetMechanism
from isotone.counts.count_plan import Setting, choose_mechanism
from isotone.errors import BudgetError, InputError, MissingExtraError
from isotone.release import SourceError, verify
from isotone.release.kinds.counts import columns as count_query
from isotone.release.manifest import rebuild_count_mechanism
from isotone.release.result import Release, seal

P = iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
TABLE = pd.DataFrame(
    {"person": range(400), "hyp": [1] * 200 + [0] * 200, "twice": [1, 0] * 200, "meds": [0] * 400}
)


@pytest.fixture
def ledger(tmp_path):
    return iso.Ledger(tmp_path / "survey.ledger", epsilon=10)


@pytest.fixture
def silent(monkeypatch):
    """No noise, so that a test can see what was counted."""
    monkeypatch.setattr(
        PosetMechanism, "_integer_noise", lambda self, draws: np.zeros(len(self.P), dtype=np.int64)
    )


def counts(ledger, data: Any = TABLE, **options):
    settings: dict[str, Any] = {"epsilon": 1, "unit": "person", "mechanism": "PosetMechanism", **options}
    return flat.counts(data, P, ledger=ledger, **settings)


def test_a_release_of_counts_says_everything_about_its_values(ledger, silent):
    release = counts(ledger)
    frame = release.frame()
    assert frame["element"].tolist() == ["hyp", "twice", "meds"]
    assert frame["value"].tolist() == [
        300,
        200,
        0,
    ]  # half of those who say no to hyp say yes to twice: closed
    assert list(frame) == ["element", "value", "sd", "low", "high", "low_all", "high_all"]
    assert (frame["low"] <= frame["value"]).all()
    assert (frame["high"] <= frame["high_all"]).all()
    assert release.guarantee == iso.Guarantee.pure(1, unit="person")
    assert release.frame("arrow").num_rows == len(release.frame("polars")) == 3


def test_the_intervals_hold_as_often_as_they_say(ledger):
    """False alarm below 1e-6: counts of 2,000 independent releases against binomial limits at 95 %.

    The narrower width holds about 0.82 of them, 12 standard deviations below the limit, so it is always noticed.
    """
    mechanism = PosetMechanism(P, epsilon="0.3")
    known = count_query.count_columns(mechanism, 0.95)
    noise = np.array([mechanism.release([0, 0, 0]) for _ in range(2_000)])
    each = (np.abs(noise) <= known["alone"]).sum(axis=0)
    together = (np.abs(noise) <= known["together"]).all(axis=1).sum()
    least = binom.ppf(1e-7, 2_000, 0.95)
    assert (each >= least).all()
    assert together >= least
    narrower = (np.abs(noise) <= known["alone"] * 3 // 5).sum(axis=0)
    assert (narrower < least).all()


def test_a_finished_release_is_noted_with_its_content(ledger):
    release = counts(ledger, request="abc")
    (charge,) = ledger.charges()
    assert charge.release == release.manifest["content_hash"]
    assert (charge.request, charge.mechanism) == (release.manifest.request, "PosetMechanism")
    assert release.manifest.request.startswith("sha256:")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "w"}, "weights are refused"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": None}, "Give epsilon"),
        ({"epsilon": 1, "rho": 1}, "not both"),
        ({"unit": "persn"}, "has no column"),
        ({"data": "nowhere.csv"}, "There is no file"),
        ({"mechanism": "PosetMechanim"}, "did you mean 'PosetMechanism'"),
        ({"mechanism": "LaplaceMechanism", "total": True}, "does not give the number of records"),
        (
            {"mechanism": "BoundedPosetMechanism", "max_size": 2, "total": True},
            "does not give the number of records",
        ),
        ({"mechanism": "LaplaceMechanism", "delta": "1e-6"}, "cannot guarantee"),
        ({"groups": ["a"]}, "by must map each column"),
        ({"by": "person"}, "public list"),
        ({"by": "persn", "groups": ["a"]}, "no column"),
        ({"confidence": 2}, "confidence"),
        ({"contributions": 0}, "contributions"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"columns": {"none": "x"}}, "not in the order"),
        ({"mechanism": PosetMechanism(iso.Poset.chain("abc"), 1)}, "another order"),
        ({"mechanism": PosetMechanism(P, 2)}, "less than asked"),
        ({"mechanism": PosetMechanism(P, 1, contributions=2)}, "other contributions"),
    ],
)
def test_what_is_wrong_and_public_is_refused_before_any_charge(ledger, options, message):
    with pytest.raises((InputError, SourceError), match=message):
        counts(ledger, **options)
    assert ledger.charges() == []


def test_too_little_budget_is_refused_with_what_is_left(ledger):
    counts(ledger, epsilon=9)
    with pytest.raises(BudgetError, match="ε = 1 of ε = 10 is left"):
        counts(ledger, epsilon="1.1")


@pytest.mark.parametrize(
    "data",
    [
        TABLE.head(0),
        TABLE.assign(hyp=None, twice=None, meds=None),
        TABLE.assign(hyp="text", twice="\x00", meds="ニ"),
        TABLE.assign(person=None),
        TABLE.assign(person="same"),
        TABLE.assign(hyp=1e308, twice=-1.0, meds=np.nan),
    ],
)
def test_odd_contents_are_released_like_any_other(ledger, data, silent, capsys):
    release = counts(ledger, data.astype(object))
    assert release.frame()["value"].between(0, 1).all()
    assert capsys.readouterr() == ("", "")


def test_groups_are_released_in_parallel(ledger, silent):
    table = TABLE.assign(region=["north", "south", "mars", None] * 100)
    release = counts(ledger, table, by="region", groups=["south", "north", "empty"])
    frame = release.frame()
    assert frame["group"].unique().tolist() == ["south", "north", "empty"]
    assert frame["value"].tolist() == [50, 0, 0, 100, 100, 0, 0, 0, 0]
    assert ledger.spent().epsilon == 1


def test_groups_under_replace_share_the_guarantee(tmp_path):
    ledger = iso.Ledger(tmp_path / "r.ledger", epsilon=2, neighbours="replace")
    table = TABLE.assign(region="north")
    grouped = {"by": "region", "groups": ["north", "south"], "neighbours": "replace"}
    release = counts(ledger, table, mechanism="PosetMechanism", **grouped)
    assert release.manifest["mechanism"]["epsilon"] == "1/2"
    assert release.manifest["mechanism"]["neighbours"] == "add-remove"
    assert release.guarantee == iso.Guarantee.pure(1, neighbours="replace", unit="person")
    release.save(tmp_path / "out")
    assert verify(tmp_path / "out").holds


def test_groups_under_replace_have_one_draw_and_their_sums_know_it(tmp_path):
    ledger = iso.Ledger(tmp_path / "r.ledger", epsilon=2, neighbours="replace")
    table, lists = TABLE.assign(region=["north", "south"] * 200), ["north", "south"]
    asked = {"by": "region", "groups": lists, "neighbours": "replace", "epsilon": "1/10", "mechanism": None}
    release = counts(ledger, table, **asked)
    assert release.manifest["mechanism"]["name"] == "GroupedDifferenceMechanism"
    assert release.manifest["mechanism"]["groups"] == 2
    assert ledger.spent().epsilon == Fraction(1, 10)
    noise = rebuild_count_mechanism(release.order, release.manifest.mechanism)
    top = str(P.elements[0])
    interval = release.sum(top)
    assert interval.value is not None
    half = interval.high - interval.value
    joint = noise.group_law("any", 20_000).draws[:, 0].reshape(-1, 2).sum(axis=1)
    # what is more in one group is less in another: independent draws would reach a seventh farther
    assert half == pytest.approx(np.quantile(np.abs(joint), 0.95), rel=0.05)
    apart = noise.group_law("any", 20_000).draws[::2, 0].reshape(-1, 2).sum(axis=1)
    assert np.quantile(np.abs(apart), 0.95) > 1.1 * half


def test_noise_for_other_groups_is_not_believed(tmp_path):
    ledger = iso.Ledger(tmp_path / "r.ledger", epsilon=2, neighbours="replace")
    table = TABLE.assign(region="north")
    grouped = {"by": "region", "groups": ["north", "south"], "neighbours": "replace"}
    release = counts(ledger, table, mechanism="GroupedDifferenceMechanism", **grouped)
    said = {**release.manifest.mechanism, "groups": 3}
    forged = seal(release.columns, replace(release.manifest, mechanism=said, content_hash=None, files=None))
    forged.save(tmp_path / "out")
    assert not verify(tmp_path / "out")["guarantee"].holds


@pytest.mark.parametrize("mechanism", ["OrderGaussianMechanism", "GaussianMechanism", None])
def test_a_unit_replaced_inside_its_group_is_covered_by_gaussian_noise_too(mechanism):
    """The farthest replacement: ten yeses become ten others. Half of rho for each group would not be enough."""
    wide = iso.Poset.antichain([f"q{i}" for i in range(20)])
    guarantee = iso.Guarantee.zcdp(1, neighbours="replace")
    change = np.r_[np.ones(10), -np.ones(10)]

    def rho(noise) -> float:
        if isinstance(noise, OrderGaussianMechanism):
            return float(change @ np.linalg.solve(noise.covariance(), change)) / 2
        return float(change @ (change / noise.error().variance)) / 2

    for_groups = choose_mechanism(Setting(wide, groups=2), guarantee, mechanism)
    assert rho(for_groups) <= 1
    assert rho(OrderGaussianMechanism(wide, rho="1/2")) > 1


def test_groups_under_replace_split_delta_by_the_rule_for_two_units():
    guarantee = iso.Guarantee.approximate(16, "1e-6", neighbours="replace")
    wide = iso.Poset.antichain([f"q{i}" for i in range(60)])
    noise = choose_mechanism(Setting(wide, groups=2), guarantee, "OrderGaussianMechanism")
    assert noise.guarantee.epsilon == 8
    assert noise.guarantee.delta < 1e-6 / np.exp(8)
    change = np.r_[np.ones(30), -np.ones(30)]
    mu = float(change @ np.linalg.solve(noise.covariance(), change)) ** 0.5
    assert ndtr(mu / 2 - 16 / mu) - np.exp(16) * ndtr(-mu / 2 - 16 / mu) <= 1e-6


def test_the_total_is_noisy_and_free(ledger):
    release = counts(ledger, total=True)
    assert isinstance(release.total, int)
    # the norm of all noise is a sum of n + 1 exponential variables, and bounds the noise of the total
    assert abs(release.total - 400) <= gamma.isf(1e-6, len(P) + 1) + 1
    assert ledger.spent().epsilon == 1


def test_the_plans_best_is_used_unless_named(ledger):
    assert counts(ledger, mechanism=None).manifest["mechanism"]["name"] == "PosetMechanism"
    assert counts(ledger, mechanism="LaplaceMechanism").manifest["mechanism"]["name"] == "LaplaceMechanism"


def test_consistent_values_follow_the_order_and_keep_the_guarantee(ledger, monkeypatch):
    monkeypatch.setattr(PosetMechanism, "_integer_noise", lambda self, draws: np.array([-290, 5, -9]))
    release = counts(ledger)
    assert release.value.tolist() == [10, 205, -9]
    mended = release.consistent()
    assert mended.value.tolist() == [
        140,
        140,
        0,
    ]  # the second has half the variance of the first, and twice its weight
    assert mended.columns["raw"] == release.columns["value"]
    assert mended.guarantee == release.guarantee
    assert mended.manifest["content_hash"] != release.manifest["content_hash"]


def test_a_table_is_released_for_the_public_list(ledger):
    data = pd.DataFrame({"county": ["a"] * 9 + ["b"] * 3 + ["elsewhere"] * 5, "person": range(17)})
    release = flat.table(
        data, category="county", categories=["b", "a", "c"], upper=20, epsilon=5, ledger=ledger, unit="person"
    )
    frame = release.frame()
    assert frame["category"].tolist() == ["b", "a", "c"]
    assert list(frame) == ["category", "value", "estimate", "low", "high", "noisy", "sd"]
    assert frame["value"].between(0, 20).all()
    assert release.consistent() is release
    assert sum(release.manifest["distribution"]) == pytest.approx(1)


def test_a_curve_is_released_on_public_bounds(ledger):
    x = np.arange(3000) % 100
    data = pd.DataFrame({"age": x, "risk": x / 100, "person": np.arange(3000) // 2})
    release = flat.curve(
        data, x="age", y="risk", bounds=(0, 100), y_range=(0, 1), epsilon=2, ledger=ledger, unit="person"
    )
    frame = release.frame()
    assert frame["x"].is_monotonic_increasing
    assert frame["value"].is_monotonic_increasing
    assert abs(np.interp(50, frame["x"], frame["value"]) - 0.5) < 0.2
    with pytest.raises(InputError, match="no partial order"):
        release.order


@pytest.mark.parametrize(
    "release",
    [
        lambda ledger: flat.table(TABLE, category="x", categories=["a"], upper=3, epsilon=1, ledger=ledger),
        lambda ledger: flat.table(TABLE, category="hyp", categories=[], upper=3, epsilon=1, ledger=ledger),
        lambda ledger: flat.table(
            TABLE, category="hyp", categories=["1"], upper=-1, epsilon=1, ledger=ledger
        ),
        lambda ledger: flat.table(TABLE, category="hyp", categories=["1"], upper=1, epsilon=0, ledger=ledger),
        lambda ledger: flat.curve(
            TABLE, x="hyp", y="twice", bounds=(1, 0), y_range=(0, 1), epsilon=1, ledger=ledger
        ),
        lambda ledger: flat.curve(
            TABLE, x="no", y="twice", bounds=(0, 1), y_range=(0, 1), epsilon=1, ledger=ledger
        ),
        lambda ledger: flat.curve(
            TABLE, x="hyp", y="twice", bounds=(0, 1), y_range=(0, 1), epsilon=1, ledger=ledger, method="magic"
        ),
    ],
)
def test_tables_and_curves_refuse_bad_parameters_before_any_charge(ledger, release):
    with pytest.raises(InputError):
        release(ledger)
    assert ledger.charges() == []


def test_a_simulated_statistic_is_never_released():
    mechanism = PosetMechanism(P, epsilon=1)
    with pytest.raises(InputError, match="simulate"):
        mechanism.release(mechanism.simulate(1, np.random.default_rng(0))[0])


def test_a_release_prints_as_a_table_in_a_notebook(ledger):
    release = counts(ledger)
    assert isinstance(release, Release)
    assert "<td>hyp</td>" in release._repr_html_()
    assert re.search(r"<img [^>]*max-width: [12]?\d(\.\d+)?rem", release._repr_html_())  # two boxes are small
    title, headings, first, *_ = str(release).splitlines()
    assert title == f"{release.manifest.stated.title} ({release.guarantee})"
    assert headings.split() == ["element", "value", "sd", "low", "high"]
    assert first.split()[:2] == [release.columns["element"][0], f"{release.columns['value'][0]:,}"]


def test_words_stand_left_and_numbers_right_on_a_terminal(ledger):
    people = pd.DataFrame({"sex": ["f", "m"] * 5, "region": ["n"] * 10, "hyp": 1})
    survey = iso.Counts(
        iso.Poset(["hyp"]), unit=iso.Unit(name="person"), by={"sex": ["f", "m"], "region": ["n", "s"]}
    )
    table = release_table(survey.release(people, epsilon=1, ledger=ledger))
    sides = {str(column.header): column.justify for column in table.columns}
    words = ("margin", "sex", "region", "element")
    assert sides == dict.fromkeys(words, "left") | dict.fromkeys(("value", "sd", "low", "high"), "right")


def test_a_frame_is_of_what_is_installed(ledger, monkeypatch):
    release = counts(ledger)
    kinds = [type(release.frame()).__module__.split(".")[0]]
    for missing in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, missing, None)
        kinds.append(type(release.frame()).__module__.split(".")[0])
    assert kinds == ["pandas", "polars", "pyarrow"]
    with pytest.raises(MissingExtraError, match="pip install 'pandas"):
        release.frame("pandas")


def test_replacing_records_costs_what_the_ledger_says(tmp_path):
    ledger = iso.Ledger(tmp_path / "z.ledger", rho=1)
    release = counts(ledger, epsilon=None, rho="0.5", mechanism="GaussianMechanism")
    assert release.guarantee.kind == "zcdp"
    assert ledger.remaining().rho == Fraction(1, 2)
    release.save(tmp_path / "out")
    assert verify(tmp_path / "out").holds


def test_what_is_no_ledger_or_no_order_is_named(ledger):
    with pytest.raises(InputError, match="ledger must be a Ledger, not a str"):
        counts("survey.ledger")
    with pytest.raises(InputError, match="must be a Poset, not a list"):
        flat.counts(TABLE, ["hyp"], epsilon=1, ledger=ledger, unit="person")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"no column 'twice'\. "):
        counts(ledger, TABLE.drop(columns=["twice", "meds"]))
    assert ledger.charges() == []


def test_progress_of_a_long_count_comes_from_the_engine_and_never_goes_back(ledger, tmp_path, monkeypatch):
    import duckdb

    monkeypatch.setattr("isotone.reading.engine._EVERY_SECONDS", 1e-4)
    path = tmp_path / "long.parquet"
    rows = "i % 3 = 0 AS hyp, i % 5 = 0 AS twice, i % 7 = 0 AS meds, hash(i) % 1000000 AS person"
    duckdb.sql(f"COPY (SELECT {rows} FROM range(1000000) t(i)) TO '{path}' (FORMAT parquet)")
    seen: list[tuple[float, str]] = []
    counts(ledger, str(path), progress=lambda fraction, what: seen.append((fraction, what)))
    counting = [fraction for fraction, what in seen if what == "reading where the data is"]
    assert counting[0] == 0.2
    assert len(counting) > 1
    assert max(counting) <= 0.9
    assert [fraction for fraction, _ in seen] == sorted(fraction for fraction, _ in seen)
    assert seen[-1] == (1.0, "done")


def test_an_option_that_a_curve_does_not_have_is_named_with_the_nearest_one(ledger):
    with pytest.raises(InputError, match=r"no parameter 'los'; did you mean 'loss'\?"):
        flat.curve(TABLE, x="hyp", y="twice", bounds=(0, 1), y_range=(0, 1), epsilon=1, ledger=ledger, los=1)
    assert ledger.charges() == []


def test_booleans_are_categories_and_groups_like_the_column_they_come_from(tmp_path: Any) -> None:
    frame = pd.DataFrame({"smokes": [True] * 30 + [False] * 12, "a": [1] * 42})
    with iso.Ledger(tmp_path / "x.ledger", epsilon=200_000) as ledger:
        table = flat.table(
            frame, category="smokes", categories=[True, False], epsilon=50_000, upper=100, ledger=ledger
        )
        assert table.columns["category"] == ("true", "false")
        assert list(table.columns["value"]) == [30, 12]
        counts = flat.counts(
            frame, iso.Poset.chain(["a"]), epsilon=50_000, ledger=ledger, by="smokes", groups=[True, False]
        )
        assert np.rint(counts.columns["value"]).tolist() == [30, 12]
