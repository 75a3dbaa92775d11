"""What a charge of a ledger says about a release: each difference is a fault."""

import json

import pytest

from isotone.ledger import Ledger
from isotone.ledger.ledger import extract_charge
from isotone.privacy.guarantee import Guarantee
from isotone.release.verifying.paid import charge_faults

STATED = Guarantee.pure(1, unit="person")


@pytest.fixture
def extract(tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=2, dataset="survey", unit="person")
    ledger.charge(STATED, "counts").finish("hash")
    return json.loads(extract_charge(ledger, 1))


def test_the_charge_of_a_release_has_no_fault(extract):
    assert charge_faults(extract, 1, "survey", STATED, "hash") == []


@pytest.mark.parametrize(
    ("number", "dataset", "stated", "content", "words"),
    [
        (2, "survey", STATED, "hash", "about charge 1"),
        (1, "census", STATED, "hash", "about charge 1"),
        (1, "survey", Guarantee.pure(1, unit="household"), "hash", "another unit"),
        (1, "survey", Guarantee.pure(1, unit="person", neighbours="replace"), "hash", "other neighbours"),
        (1, "survey", Guarantee.pure(2, unit="person"), "hash", "less than the release cost"),
        (1, "survey", STATED, "other", "not the charge of these values"),
    ],
)
def test_a_charge_of_something_else_is_a_fault(extract, number, dataset, stated, content, words):
    (fault,) = charge_faults(extract, number, dataset, stated, content)
    assert words in fault
