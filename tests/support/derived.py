"""A small survey, its releases, and questions that are refused: for tests of derived releases."""

from typing import Any

import pandas as pd
import pytest

import isotone as iso
from isotone.errors import InputError
from tests.support import flat

P = iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
SIZE = 400
DATA = pd.DataFrame(
    {
        "person": range(SIZE),
        "region": ["north"] * 150 + ["south"] * 250,
        "hyp": [1] * 200 + [0] * 200,
        "twice": [1] * 120 + [0] * 280,
        "meds": [0] * 40 + [1] * 160 + [0] * 200,
    }
)
ROWS = DATA.drop(columns=["person", "region"])


def made(ledger, data: Any = ROWS, **options):
    settings: dict[str, Any] = {"epsilon": 1, "mechanism": "PosetMechanism", "total": True, **options}
    return flat.counts(data, settings.pop("order", P), ledger=ledger, **settings)


def refused(match, ask, *values, **named):
    with pytest.raises(InputError, match=match):
        ask(*values, **named)
