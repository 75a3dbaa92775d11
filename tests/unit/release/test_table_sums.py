"""Sums of the counts of a table, strata and rates: what a release says beyond single counts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.table.kind import sum_of, sums_of
from isotone.release.spec import load_spec
from isotone.tables import population_bands
from isotone.tables.thresholds import Thresholds

NAMES = [f"c{at}" for at in range(120)]
TRUE = np.random.default_rng(1).poisson(5, 120)


def released(tmp_path: Path, **options: Any) -> Any:
    data = pd.DataFrame({"place": NAMES, "cases": TRUE})
    ledger = iso.Ledger(tmp_path / "l.ledger", epsilon=100)
    usual: dict[str, Any] = {"category": "place", "categories": NAMES, "count": "cases", "upper": 25}
    return flat.table(data, epsilon=1, ledger=ledger, **(usual | options))


def test_other_questions_to_a_table_are_refused_with_the_reason(tmp_path: Path) -> None:
    table = flat.table(
        pd.DataFrame({"c": ["a", "b"]}),
        category="c",
        categories=["a", "b"],
        upper=9,
        epsilon=1,
        ledger=iso.Ledger(tmp_path / "ledger", epsilon=9),
    )
    for ask in (
        lambda: table.share("a", of="b"),
        lambda: table.difference("a", "b"),
        lambda: table.change(table),
        lambda: table.rank("a"),
        lambda: table.given(records=2),
        lambda: iso.combine([table, table]),
    ):
        with pytest.raises(iso.InputError, match="law of their error depends on the data"):
            ask()


def test_a_release_has_a_column_for_each_use(tmp_path: Path) -> None:
    frame = released(tmp_path).frame()
    assert list(frame.columns) == ["category", "value", "estimate", "low", "high", "noisy", "sd"]
    assert frame["value"].dtype.kind == "i"
    assert frame["sd"].nunique() == 1
    assert np.all((frame["low"] <= frame["high"]) & (frame["estimate"] >= 0) & (frame["estimate"] <= 25))


@pytest.mark.parametrize(
    ("emphasis", "stored"),
    [("counts", "1/50"), ("both", "1/20"), ("distribution", "1/2"), (0, "0"), (0.85, "17/20"), (1, "1")],
)
def test_every_emphasis_can_be_asked_for(tmp_path: Path, emphasis: Any, stored: str) -> None:
    release = released(tmp_path, emphasis=emphasis)
    assert release.manifest["mechanism"]["emphasis"] == stored


@pytest.mark.parametrize(
    ("asked", "emphasis"),
    [
        ({}, None),
        ({"strata": ["x", "y"]}, None),
        ({"counts": ["m", "n"], "contributions": 2}, Fraction(1, 50)),
        ({"counts": ["m", "n"], "kind": "k", "unit": "who", "contributions": 2}, Fraction(1, 50)),
    ],
)
def test_two_columns_have_an_emphasis_of_their_own_below_an_epsilon_of_1(asked: Any, emphasis: Any) -> None:
    times = asked.get("contributions", 1)
    for epsilon, used in ((Fraction(1, 2) * times, emphasis), (times, None)):
        for more, wanted in (({}, used), ({"emphasis": 0.5}, Fraction(1, 2))):
            described, _ = flat.split({**asked, **more})
            mechanism = iso.Table("c", ["a", "b"], upper=9, **described).mechanism(Guarantee.pure(epsilon))
            assert mechanism.emphasis == wanted
            assert mechanism.unit.contributions == times


def test_a_sum_adds_up_noisy_counts_with_their_noise(tmp_path: Path) -> None:
    release = released(tmp_path)
    found = release.sum(NAMES[:30])
    noisy = release.frame()["noisy"][:30]
    assert found.value == pytest.approx(float(noisy.sum()))
    sd = np.sqrt(30) * release.frame()["sd"][0]
    assert found.high - found.value == pytest.approx(1.96 * sd, abs=1)  # a whole number
    assert found.low <= found.value <= found.high
    assert release.sum().value == pytest.approx(float(release.frame()["noisy"].sum()))
    wide = release.sum(NAMES[:30], confidence=0.999)
    assert wide.low <= found.low < found.high <= wide.high


@pytest.mark.parametrize("size", [1, 2, 10, 120])
def test_intervals_of_sums_hold(size: int) -> None:
    """Of 2,000 sums of plain geometric noise 95 % hold, within 5.5 standard errors below (a false alarm in 1e-7)."""
    rng, held = np.random.default_rng(size), 0
    a = np.exp(-1.0)
    plain = Thresholds(10_000, Fraction(1), (), Fraction(0))
    for _ in range(2000):
        noise = rng.geometric(1 - a, size) - rng.geometric(1 - a, size)
        columns = {"category": tuple(NAMES[:size]), "noisy": tuple(50.0 + noise)}
        found = sum_of(columns, NAMES[:size], 0.95, {None: plain})
        held += found.low <= 50 * size <= found.high
    assert held / 2000 > 0.95 - 5.5 * np.sqrt(0.95 * 0.05 / 2000)


def test_sums_over_groups_lie_between_both_sums_and_beat_them() -> None:
    """Twelve groups that differ: mean squared errors over 60 seeded tables; both rivals are worse by far more than chance."""
    rng, a = np.random.default_rng(5), np.exp(-0.3)
    errors = np.zeros(3)
    groups = {f"g{k}": NAMES[10 * k : 10 * k + 10] for k in range(12)}
    plain = Thresholds(1000, Fraction(3, 10), (), Fraction(0))
    for _ in range(60):
        level = np.repeat(rng.gamma(4, 1.5, 12), 10)
        true = rng.poisson(level)
        noisy = true + rng.geometric(1 - a, 120) - rng.geometric(1 - a, 120)
        variance = 2 * a / (1 - a) ** 2
        shrink = true.var() / (true.var() + variance)
        estimate = true.mean() + shrink * (noisy - true.mean())
        columns = {
            "category": tuple(NAMES),
            "noisy": tuple(noisy.astype(float)),
            "estimate": tuple(estimate),
        }
        found = sums_of(columns, groups, 0.95, {None: plain})
        for at, (name, each) in enumerate(found.items()):
            rows = slice(10 * at, 10 * at + 10)
            truth = true[rows].sum()
            assert each.value is not None
            errors += np.square([each.value - truth, noisy[rows].sum() - truth, estimate[rows].sum() - truth])
            assert name == f"g{at}"
            assert each.low <= each.value <= each.high
    assert errors[0] < 0.95 * min(errors[1], errors[2])


@pytest.mark.parametrize("wrong", [["nowhere"], ["c1", "c1"], "c1"])
def test_a_sum_names_categories_of_the_release_once(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(InputError):
        released(tmp_path).sum(wrong)


def test_other_releases_have_no_sums_over_categories(tmp_path: Path) -> None:
    ledger = iso.Ledger(tmp_path / "l.ledger", epsilon=1)
    counts = flat.counts(
        pd.DataFrame({"a": [1, 0], "b": [1, 1]}), iso.Poset.chain("ab"), epsilon=1, ledger=ledger
    )
    with pytest.raises(InputError, match="no sums over groups"):
        counts.sums({"g": ["a"]})


def test_strata_are_classes_of_categories_and_rates_are_for_their_people(tmp_path: Path) -> None:
    people = np.linspace(1000, 90_000, 120)
    bands = population_bands(people.tolist(), 2)
    release = released(tmp_path, strata=bands, population=people.tolist())
    frame = release.frame()
    assert list(frame["stratum"]) == bands
    np.testing.assert_allclose(frame["rate"], 100_000 * frame["value"] / people, atol=1e-4)
    assert [entry["size"] for entry in release.manifest["strata"]] == [60, 60]
    folder = release.save(tmp_path / "out")
    assert iso.verify(folder).holds
    same = released(tmp_path, strata={"empty": [], "one": NAMES[:1], "rest": NAMES[1:]})
    assert [entry["method"] for entry in same.manifest["strata"]] == ["noise", "noise", "table"]
    assert iso.verify(same.save(tmp_path / "other")).holds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strata": ["x"]}, "each of the 120 categories"),
        ({"strata": {"x": NAMES[1:]}}, "no class for 'c0'"),
        ({"strata": {"x": NAMES, "y": ["c3"]}}, "twice"),
        ({"strata": {"x": [*NAMES, "elsewhere"]}}, "not one of the categories"),
        ({"strata": 3}, "strata must be a list"),
        ({"strata": [None, *NAMES[1:]]}, "not None"),
        ({"categories": [*NAMES[1:], float("nan")]}, "not nan"),
        ({"population": [1.0]}, "120 entries"),
        ({"population": [0] * 120}, "above 0"),
        ({"population": {"c0": 5}}, "no entry for 'c1'"),
        ({"emphasis": "rows"}, "emphasis must be"),
    ],
)
def test_bad_public_choices_are_refused_before_the_charge(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        released(tmp_path, **options)
    assert not (tmp_path / "l.ledger").exists()  # a ledger is made by its first charge


def test_strata_and_populations_come_from_columns_of_the_public_list(tmp_path: Path) -> None:
    listed = pd.DataFrame({"place": NAMES, "band": ["x", "y"] * 60, "people": range(100, 220)})
    listed.to_csv(tmp_path / "list.csv", index=False)
    pd.DataFrame({"place": NAMES, "cases": TRUE}).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "spec.toml").write_text(
        '[data]\npath = "data.csv"\n[privacy]\nepsilon = "1"\nledger = "l.ledger"\nunit = "case"\n'
        'budget = { epsilon = "1" }\n[table]\ncategory = "place"\ncategories_file = "list.csv"\ncount = "cases"\n'
        'upper = 20\nstrata = "band"\npopulation = "people"\nemphasis = "counts"\n[output]\nfolder = "out"\n'
    )
    spec: Any = load_spec(tmp_path / "spec.toml")
    table = spec.description
    assert list(table.strata) == ["x", "y"]
    assert table.population[:2] == (100.0, 101.0)


def test_a_sum_over_a_group_moves_as_far_as_the_formula_says() -> None:
    """Section 9 of docs/theory/tables-whole.md, by hand: what the groups differ by beyond noise, in proportion to their sizes."""
    estimate, noisy = np.array([10.0, 20.0, 30.0, 40.0, 50.0]), np.array([14.0, 25.0, 27.0, 38.0, 52.0])
    columns = {"category": tuple(NAMES[:5]), "noisy": tuple(noisy), "estimate": tuple(estimate)}
    groups = {"two": NAMES[:2], "three": NAMES[2:5]}
    gap = noisy - estimate  # 4, 5, -3, -2, 2
    noise, rests, sizes = (gap**2).mean(), np.array([9.0, -3.0]), np.array([2.0, 3.0])
    spread = (81 + 9 - 5 * noise) / (4 + 9)
    assert spread > 0
    found = sums_of(columns, groups, 0.95, {None: Thresholds(1000, Fraction(1, 10), (), Fraction(0))})
    for name, rest, size in zip(groups, rests, sizes, strict=True):
        at = [NAMES.index(x) for x in groups[name]]
        weight = size * spread / (size * spread + noise)
        assert found[name].value == pytest.approx(estimate[at].sum() + weight * rest)
