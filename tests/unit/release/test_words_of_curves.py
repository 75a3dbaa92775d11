"""A curve whose y holds words: they are declared, never guessed, and a plan says how y is read."""
# pyright: reportArgumentType=false

import pandas as pd
import pytest

import isotone as iso
from isotone.errors import InputError, SpecError
from isotone.privacy.guarantee import Guarantee
from isotone.release import load_spec

SPEC = """
[data]
path = "d.csv"
{data}
[privacy]
epsilon = "1"
ledger = "x.ledger"
[curve]
x = "age"
y = "ill"
bounds = [0, 100]
y_values = [0, 1]
{curve}
[output]
folder = "out"
"""
AGES = [10.0] * 40 + [90.0] * 60
WORDS = ["Nein"] * 40 + [" JA "] * 50 + ["weiß nicht"] * 5 + [None] * 5


def counted(y, **options):
    described = iso.Curve("age", y="ill", bounds=(0, 100), y_values=iso.Labels((0, 1), **options)).checked()
    mechanism = described.mechanism(Guarantee.pure(1))
    source = described.source(pd.DataFrame({"age": AGES, "ill": y}), mechanism)
    points = described.read(source, source.open())
    return sorted(zip((points.y > 0).tolist(), points.count.tolist(), strict=True))


def test_declared_words_count_as_the_numbers_would():
    numbers = [0] * 40 + [1] * 50 + [None] * 10
    assert counted(WORDS, yes=["ja"], no=["nein"]) == counted(numbers) == [(0, 40), (1, 50)]
    assert counted(numbers, yes=["1"], no=["0"]) == [(0, 40), (1, 50)]
    assert counted(WORDS) == []


def test_no_word_counts_that_is_not_listed():
    """Nor does a boolean, unless it or its number is listed."""
    words = ["true", True, "FALSE", "1", 1] * 10 + ["ja"] * 50
    assert counted(words, yes=["ja"], no=["nein"]) == [(1, 50)]
    assert counted([False] * 40 + [True] * 60, yes=["ja"], no=["nein"]) == []
    assert counted([False] * 40 + [True] * 60, yes=["1"], no=["0"]) == [(0, 40), (1, 60)]
    assert counted([False] * 40 + [True] * 60, yes=["true"], no=["false"]) == [(0, 40), (1, 60)]


def test_a_plan_says_how_y_is_read(tmp_path):
    for curve, told in (
        (
            "",
            "read as a number, 0 or 1; rows with anything else are left out, words too (yes = declares them)",
        ),
        (
            'yes = ["Ja"]\nno = ["Nein"]',
            "ill counts 1 where it says ja, and 0 where it says nein; rows with anything else are left out",
        ),
    ):
        (tmp_path / "s.toml").write_text(SPEC.format(data="", curve=curve))
        assert told in str(load_spec(tmp_path / "s.toml").plan())


def test_check_says_how_many_rows_say_which(tmp_path):
    pd.DataFrame({"age": AGES, "ill": WORDS}).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "s.toml").write_text(SPEC.format(data="", curve='yes = ["Ja"]\nno = ["Nein"]'))
    assert "ill: 50 rows say yes, 40 no, 10 neither (they are left out): 'weiß nicht' (5)" in str(
        load_spec(tmp_path / "s.toml").check()
    )
    (tmp_path / "s.toml").write_text(SPEC.format(data="", curve=""))
    assert "ill: none of 100 values is a number" in str(load_spec(tmp_path / "s.toml").check())


def test_words_that_nothing_would_look_at_are_refused(tmp_path):
    with pytest.raises(InputError, match="y_values"):
        iso.Labels(yes=["ja"])
    with pytest.raises(InputError, match="yes="):
        iso.Labels((0, 1), no=["nein"])
    with pytest.raises(InputError, match="both yes and no"):
        iso.Labels((0, 1), yes=["ja"], no=["JA"])
    (tmp_path / "s.toml").write_text(
        SPEC.format(data="", curve='yes = ["Ja"]').replace("y_values", "y_range")
    )
    with pytest.raises(InputError, match="y_values"):
        load_spec(tmp_path / "s.toml").plan()
    (tmp_path / "s.toml").write_text(SPEC.format(data='yes = ["Ja"]', curve=""))
    with pytest.raises(SpecError, match=r"data\.yes is for counts"):
        load_spec(tmp_path / "s.toml")
