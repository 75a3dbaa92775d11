"""Public parameters of odd types: a clear refusal before the charge, or their plain value."""
# pyright: reportArgumentType=false

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.errors import InputError
from isotone.order import Poset
from isotone.reading.questions import Answers, Question
from isotone.release import Ledger

P = Poset.chain(["twice", "hyp"])
DATA = pd.DataFrame({"person": range(6), "hyp": 1, "twice": [0, 1] * 3, "g": ["a", "b"] * 3})
CELLS = {"by": ["g"], "groups": {"g": ["a", "b"]}}


class Agreeable(str):
    """A text that says it is equal to everything."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


ODD = [
    3,
    np.int8(3),
    True,
    0.5,
    float("nan"),
    "2",
    b"2",
    np.array(3),
    np.array([3, 4]),
    [],
    [2],
    object(),
    pd.NA,
]
"""Wrong for every parameter that is not a number."""
WRONG: list[dict[str, Any]] = [
    *({name: odd} for name in ("answers", "relaxation", "progress", "mechanism", "care") for odd in ODD),
    *({"columns": odd} for odd in ODD),
    *({"questions": odd} for odd in ODD if not isinstance(odd, list) or odd),
    *({name: Agreeable("x")} for name in ("on_violation", "on_conflict", "mechanism", "care", "unlisted")),
    *({**CELLS, "unlisted": odd} for odd in [*ODD, "", 0, False]),
    *({**CELLS, "margins": odd} for odd in [*ODD, [np.array(["g", "g"])], [pd.NA], [["g", 3]], {"g"}]),
    *({**CELLS, "importance": odd} for odd in ODD if not isinstance(odd, list) or odd),
    *({**CELLS, "importance": {"g": odd}} for odd in ("1e300", "1e-300", 10**400, -1, 0, float("nan"), True)),
    *({"care": {"hyp": odd}} for odd in ("1e400", "1e-400", 10**400, -1, float("nan"), True, None)),
    *({"by": odd, "groups": ["a"]} for odd in ODD if not isinstance(odd, str)),
    {"by": "g", "groups": {"a", "b"}},
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_odd_parameters_of_counts_are_refused_before_the_charge(number: int, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", epsilon=5)
    with pytest.raises(InputError):
        flat.counts(DATA, P, epsilon=1, ledger=ledger, unit="person", **WRONG[number])
    assert not ledger.charges()


@pytest.mark.parametrize(
    "odd", [b"2", np.array(["a", "b"]), object(), pd.NA], ids=lambda odd: type(odd).__name__
)
def test_odd_options_of_a_curve_are_refused_before_the_charge(odd: Any, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", epsilon=5)
    for name in (
        "method",
        "loss",
        "shape",
        "output",
        "increasing",
        "levels",
        "public_n",
        "x_grid",
        "max_weight",
        "band",
    ):
        with pytest.raises(InputError):
            flat.curve(
                DATA,
                x="hyp",
                y="twice",
                bounds=(0, 9),
                y_range=(0, 1),
                epsilon=1,
                ledger=ledger,
                **{name: odd},
            )
    assert not ledger.charges()


@pytest.mark.parametrize(
    "words", [3, np.array(3), b"12", "12", [], [b"1"], [None], [object()], {"1"}, [["1"]], np.array([])]
)
def test_words_that_mean_yes_are_texts_and_numbers(words: Any) -> None:
    with pytest.raises(InputError):
        Answers(yes=words)
    with pytest.raises(InputError):
        Question("hyp", yes=words if not isinstance(words, str) else [words, None])  # pyright: ignore[reportArgumentType]


def test_words_of_numpy_mean_their_values() -> None:
    assert Answers(yes=np.array([1, 2])) == Answers(yes=("1", "2"))  # pyright: ignore[reportArgumentType]
    assert Question("hyp", yes=np.array(["1", "2"])).yes == ("1", "2")  # pyright: ignore[reportArgumentType]


def test_points_beyond_floats_and_spans_of_time_are_no_grid(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", epsilon=5)
    for odd in ([0, Decimal("1e400")], [Decimal("-1e400"), 1], np.timedelta64(3, "s"), [9, 0]):
        with pytest.raises(InputError, match="x_grid"):
            flat.curve(
                DATA, x="hyp", y="twice", bounds=(0, 9), y_range=(0, 1), epsilon=1, ledger=ledger, x_grid=odd
            )


def test_an_agreeable_text_is_read_letter_by_letter() -> None:
    with pytest.raises(InputError, match="missing must be"):
        Answers(missing=Agreeable("x"))  # pyright: ignore[reportArgumentType]


HUGE = [2**63, 10**400, -(10**400), 10**5000]
"""Whole numbers that no engine, array or file has room for."""
POINTS = pd.DataFrame({"person": range(6), "age": 5.0, "dose": 1.0, "ill": 0.5, "county": "a"})


def _distribution(
    *, epsilon: Any, ledger: Any, folder: Any = None, contributions: Any = None, **odd: Any
) -> Any:
    given = {"bounds": (0, 9), "unit": iso.Unit("person", contributions=contributions), **odd}
    return iso.Distribution("age", **given).release(POINTS, epsilon=epsilon, ledger=ledger, folder=folder)


def _series(*, epsilon: Any, ledger: Any, folder: Any = None, contributions: Any = None, **odd: Any) -> Any:
    survey = iso.Counts(P, unit=iso.Unit("person", contributions=contributions))
    given = {"periods": ["2020-01-01"], "date": "day", **odd}
    return iso.Series(survey, **given).release(DATA, epsilon=epsilon, ledger=ledger, folder=folder)


WHOLE: dict[str, tuple[Any, tuple[str, ...]]] = {
    "counts": (
        lambda **odd: flat.counts(DATA, P, **{"unit": "person", **odd}),
        ("contributions", "max_size", "waves", "unit", "by", "folder", "title", "confidence", "missing"),
    ),
    "table": (
        lambda **odd: flat.table(POINTS, **{"category": "county", "categories": ["a"], "upper": 50, "unit": "person", **odd}),
        ("contributions", "upper", "second_upper", "unit", "folder", "confidence"),
    ),
    "curve": (
        lambda **odd: flat.curve(POINTS, **{"x": "age", "y": "ill", "bounds": (0, 9), "y_range": (0, 1), "unit": "person", **odd}),
        ("contributions", "public_n", "x_grid", "grid", "unit", "folder", "bounds", "y_range"),
    ),
    "surface": (
        lambda **odd: flat.surface(
            POINTS, **{"x": ("age", "dose"), "y": "ill", "bounds": ((0, 9), (0, 2)), "y_range": (0, 1), "unit": "person", **odd}
        ),
        ("contributions", "public_n", "bins", "unit", "folder", "bounds", "y_range"),
    ),
    "distribution": (
        _distribution,
        ("contributions", "cells", "public_n", "grid", "unit", "by", "folder", "confidence", "bounds"),
    ),
    "series": (_series, ("contributions", "periods", "record", "date", "folder", "matters")),
}  # fmt: skip


@pytest.mark.parametrize("huge", HUGE, ids=["2^63", "10^400", "-10^400", "10^5000"])
@pytest.mark.parametrize("kind", WHOLE)
def test_huge_whole_numbers_are_refused_in_plain_words_before_the_charge(kind, huge, tmp_path):
    release, names = WHOLE[kind]
    ledger = Ledger(tmp_path / "a.ledger", epsilon=5)
    for name in names:
        pairs = (
            [(0, huge), (huge, 0), huge] if name in ("bounds", "y_range") and abs(huge) > 2**64 else [huge]
        )
        for value in pairs:
            with pytest.raises((InputError, TypeError)) as caught:
                release(epsilon=1, ledger=ledger, **{name: value})
            if isinstance(caught.value, TypeError):  # no parameter of this kind
                assert "unexpected keyword" in str(caught.value), name
            assert len(str(caught.value)) < 600, name
    assert list(tmp_path.iterdir()) == []
