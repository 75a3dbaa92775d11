"""Whole numbers near and beyond 64 bits: clamped where they are data, refused before the charge where they are public."""

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.support import flat

import isotone as iso
from isotone import noise
from isotone.counts import DiscreteLaplaceMechanism, GaussianMechanism, LaplaceMechanism, PosetMechanism
from isotone.errors import InputError, IsotoneError
from isotone.reading.categories import CategorySource, count_categories
from isotone.tables import TwoStageMechanism, truncated_geometric

P = iso.Poset(["hyp", "twice"], [("twice", "hyp")])
LARGEST = 2**62 - 1
ALL = [PosetMechanism, LaplaceMechanism, DiscreteLaplaceMechanism, iso.counts.LInfinityMechanism]


@pytest.fixture
def ledger(tmp_path):
    return iso.Ledger(tmp_path / "x.ledger", epsilon=100)


@pytest.mark.parametrize("kind", ALL)
def test_the_largest_counts_do_not_wrap_around(kind):
    mechanism = kind(P, epsilon="1/1000000")
    for _ in range(20):
        released = mechanism.release([LARGEST, LARGEST])
        assert all(abs(int(value) - LARGEST) < 2**40 for value in released)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("count", [2**62, 2**63 - 1, 2**63, 2**64, 2**200, -1, -(2**63)])
def test_counts_beyond_are_refused_and_not_quoted(kind, count):
    with pytest.raises(InputError) as refused:
        kind(P, epsilon=1).release([count, 0])
    assert str(abs(count)) not in str(refused.value) or count == -1


def test_counts_of_unsigned_and_wide_types_are_what_they_say():
    mechanism = PosetMechanism(P, epsilon=50)
    assert mechanism.release(np.array([2**40, 3], dtype=np.uint64))[0] == pytest.approx(2**40, abs=50)
    with pytest.raises(InputError):
        mechanism.release(np.array([2**64 - 1, 3], dtype=np.uint64))  # would be -1 if it were cast
    assert np.all(np.abs(mechanism.release(np.array([120, 3], dtype=np.int8)) - [120, 3]) < 50)


@pytest.mark.parametrize("contributions", [10**6, 2**31, 2**63, 10**30])
def test_huge_contributions_give_huge_noise_or_an_error(ledger, contributions):
    table = pd.DataFrame({"person": [1, 2], "hyp": [1, 1], "twice": [0, 1]})
    try:
        release = flat.counts(
            table,
            P,
            epsilon=1,
            unit="person",
            contributions=contributions,
            ledger=ledger,
            mechanism="PosetMechanism",
        )
    except IsotoneError:
        assert ledger.charges() == []
    else:
        assert min(release.columns["sd"]) > contributions / 2


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-18", "1e-30", "1e-300"])
@pytest.mark.parametrize("kind", [*ALL, GaussianMechanism])
def test_a_tiny_epsilon_gives_huge_noise_or_an_error_of_ours(kind, epsilon):
    options = {"rho": epsilon} if kind is GaussianMechanism else {"epsilon": epsilon}
    with suppress(InputError):
        assert np.max(np.abs(kind(P, **options).release([5, 5]))) > 1


@pytest.mark.parametrize(
    "cases",
    ["9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 60, "1e30", "0x7fff"],
)
def test_huge_counts_in_the_data_are_clamped_or_missing_and_never_raise(tmp_path, ledger, cases):
    (tmp_path / "cases.csv").write_text(f"county,cases\nA,{cases}\nA,{cases}\nB,2\n")
    release = flat.table(
        tmp_path / "cases.csv",
        category="county",
        categories=["A", "B"],
        count="cases",
        upper=9,
        epsilon=50,
        ledger=ledger,
    )
    value = dict(zip(release.columns["category"], release.columns["value"], strict=True))
    assert value["A"] in (0, 9)
    assert value["B"] == 2


def test_sums_of_large_integers_in_a_frame_do_not_wrap(ledger):
    frame = pd.DataFrame({"county": ["A"] * 6, "cases": np.array([2**63 - 1] * 6)})
    release = flat.table(
        frame, category="county", categories=["A"], count="cases", upper=5, epsilon=50, ledger=ledger
    )
    assert release.columns["value"][0] in (0, 5)


TEXTS = [str(10**17 - 1), str(10**17), str(10**17 + 1), f"{10**25}.0", str(-(10**19))]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize(
    "cases",
    [[10**17 - 1, 10**17, 10**17 + 1, 2**63 - 1, -(10**18)], [1e16, 1e17, 1.1e17, 1e25, -1e25], TEXTS],
)
def test_one_person_more_never_takes_a_huge_count_to_nothing(make, cases):
    """A count that became missing beyond some size would move by the whole top code when one person comes."""
    source = CategorySource(
        make({"county": list("abcde"), "cases": cases}), "county", tuple("abcde"), 9, "cases"
    )
    assert count_categories(source, source.open()).tolist() == [9, 9, 9, 9, 0]


@pytest.mark.parametrize("upper", [10**9, 2**31, 2**63, 10**30])
def test_a_top_code_beyond_reach_is_refused_before_the_charge(ledger, upper):
    frame = pd.DataFrame({"county": ["A"]})
    with pytest.raises(IsotoneError):
        flat.table(frame, category="county", categories=["A"], upper=upper, epsilon=1, ledger=ledger)
    assert ledger.charges() == []


def test_tables_of_the_largest_counts_are_top_coded():
    assert list(truncated_geometric(5, epsilon=50).release([2**63 - 1, 0])) == [4, 0]
    assert list(truncated_geometric(5, epsilon=50).release([2**200, 0])) == [4, 0]
    assert np.all(TwoStageMechanism(4, 100).release(np.array([2**64 - 1, 0], dtype=np.uint64)) == [4, 0])


def test_noise_outside_64_bits_is_refused_and_never_wrapped():
    for draw in (noise.two_sided_geometrics, noise.geometrics):
        with pytest.raises((InputError, OverflowError)):
            draw(Fraction(1, 2**70), 10)
    with pytest.raises((InputError, OverflowError)):
        noise.rounded_gaussians(Fraction(2**200), 10)
