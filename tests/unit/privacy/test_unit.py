"""The privacy unit and what follows from it."""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Unit


@pytest.mark.parametrize("width", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_a_unit_of_numpy_integers_counts_as_one_of_ints(width: Any) -> None:
    unit = Unit(width(100), np.str_("replace"), np.str_("person"))  # pyright: ignore[reportArgumentType]
    assert unit == Unit(100, "replace", "person")
    assert unit.steps == 200
    assert json.loads(json.dumps(asdict(unit))) == asdict(unit)
    assert unit.per_step(Fraction(1)) == Fraction(1, 200)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"contributions": True}, "contributions must be a whole number"),
        ({"contributions": "2"}, "contributions must be a whole number"),
        ({"contributions": 0}, "contributions must be a whole number"),
        ({"neighbours": "swap"}, "neighbours must be 'add-remove' or 'replace'"),
        ({"neighbours": "add_remove"}, "did you mean 'add-remove'"),
        ({"neighbours": None}, "neighbours must be"),
        ({"name": b"person"}, "unit must be non-empty text"),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Unit(**given)


def test_guarantees_of_a_unit_are_about_it() -> None:
    unit = Unit(2, "replace", "person")
    assert unit.pure(1) == Guarantee.pure(1, neighbours="replace", unit="person")
    assert unit.guarantee(epsilon=1) == unit.pure(1)
    assert unit.guarantee(epsilon=1, delta="1e-6") == unit.approximate(1, "1e-6")
    assert unit.guarantee(rho="1/2") == unit.zcdp("1/2")


def test_a_guarantee_built_directly_is_made_of_plain_values() -> None:
    width: Any = np.uint8
    built = Guarantee("pure", Fraction(width(1), width(3)), unit=np.str_("person"))
    assert built == Guarantee.pure("1/3", unit="person")
    assert {type(built.epsilon.numerator), type(built.epsilon.denominator), type(built.delta)} == {
        int,
        Fraction,
    }
    with pytest.raises(InputError, match="kind must be"):
        Guarantee("puer", Fraction(1))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("pure", {"epsilon": 1, "delta": "0.5"}),
        ("pure", {"rho": 5}),
        ("bounded-range", {"epsilon": 1, "delta": "0.5"}),
        ("zcdp", {"rho": 1, "epsilon": 9}),
        ("approximate", {"epsilon": 1, "delta": "0.5", "rho": 1}),
    ],
)
def test_a_guarantee_has_no_number_that_a_ledger_would_pass_over(kind: Any, numbers: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leave it out"):
        Guarantee(kind, **numbers)
