"""The least budget for an error, by trying."""

from __future__ import annotations

import pytest

from isotone.desk.sheets.searching import least_budget
from isotone.desk.words import FormError
from isotone.release.spec import Spec

SPEC = Spec.model_validate(
    {
        "data": {"path": "answers.csv"},
        "order": {"elements": ["ill"], "relations": []},
        "privacy": {"epsilon": "1", "unit": "person", "ledger": "a.ledger"},
        "output": {"folder": "out"},
    }
)


def budget(spec: Spec) -> float:
    return float(str(spec.privacy.epsilon))


def test_the_least_budget_is_found_where_a_larger_one_is_not_enough():
    found = float(least_budget(SPEC, lambda tried: 1 <= budget(tried) <= 5))
    assert 1 <= found <= 1.02


def test_no_budget_is_enough():
    with pytest.raises(FormError, match="Not even a budget of 20"):
        least_budget(SPEC, lambda tried: False)
