"""What a charge of a ledger says about a release: each difference is a fault."""

import json

import pytest

from isotone.ledger import Ledger
from isotone.ledger.ledger import extract_charge
from isotone.privacy.guarantee import Guarantee
from isotone.release.signing import make_key, sign_file
from isotone.release.verify import charge_faults, paid_charge

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


def test_a_charge_that_was_not_sealed_is_a_fault_whatever_hash_stands_beside_it(extract):
    extract["charge"]["state"] = "drawn"
    (fault,) = charge_faults(extract, 1, "survey", STATED, "hash")
    assert "not the charge of these values" in fault


def test_only_the_key_that_signed_vouches_for_an_extract(tmp_path, extract):
    """Any key of a list of allowed signers is one that may sign, and not one that did."""
    first, second = (make_key(tmp_path / name, name) for name in ("first", "second"))
    path = tmp_path / "charge.json"
    path.write_bytes(extract_charge(Ledger(tmp_path / "a.ledger"), 1))
    assert paid_charge(path, "survey", 1, [first])[1] == ""  # not signed yet
    sign_file(path, tmp_path / "second")
    for keys, witness in (
        (None, ""),
        ([], ""),
        ([first], ""),
        ([first, second], str(second)),
        ([second, first], str(second)),
    ):
        found, said = paid_charge(path, "survey", 1, keys)
        assert (found["charge"]["number"], said) == (1, witness)
