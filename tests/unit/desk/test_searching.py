"""The least budget for an error, by trying."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.desk.sheets import least_budget
from isotone.desk.words import FormError
from isotone.release.spec import Spec, parse_spec

SPEC = parse_spec(
    '[data]\npath = "answers.csv"\n[order]\nelements = ["ill"]\n[output]\nfolder = "out"\n'
    '[privacy]\nepsilon = "1"\nunit = "person"\nledger = "a.ledger"\n',
    Path(),
    "spec.toml",
)


def budget(spec: Spec) -> float:
    return float(str(spec.privacy.epsilon))


def test_the_least_budget_is_found_where_a_larger_one_is_not_enough():
    found = float(least_budget(SPEC, lambda tried: 1 <= budget(tried) <= 5))
    assert 1 <= found <= 1.02


def test_no_budget_is_enough():
    with pytest.raises(FormError, match="Not even a budget of 20"):
        least_budget(SPEC, lambda tried: False)
