"""Extracts of one charge: canonical, complete, and refused when they are anything else."""

import json
from typing import Any

import pytest

from isotone.errors import InputError, LedgerError
from isotone.ledger import Ledger, extract_charge, read_extract
from isotone.privacy.guarantee import Guarantee


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "a.ledger", epsilon="4/3", dataset="Umfrage ü", unit="person")
    with made.attempt(Guarantee.pure("1/3", unit="person"), request="r", description="counts") as attempt:
        attempt.draw()
        attempt.seal("hash")
    made.charge(Guarantee.pure("1/3", unit="person"))
    return made


def test_an_extract_says_all_about_one_charge_and_is_canonical(ledger):
    content = extract_charge(ledger, 1)
    assert content == extract_charge(ledger, 1)
    entries = read_extract(content)
    assert entries["dataset"] == "Umfrage ü"
    assert entries["budget"] == {"epsilon": "4/3", "delta": "0", "rho": "0"}
    charge = entries["charge"]
    assert charge == ledger.charges()[0].export()
    assert (charge["state"], charge["release"], charge["guarantee"]["epsilon"]) == ("sealed", "hash", "1/3")
    assert read_extract(extract_charge(ledger, 2))["charge"]["state"] == "charged"


def test_a_charge_that_is_not_there_is_named(ledger):
    with pytest.raises(LedgerError, match="no charge 3"):
        extract_charge(ledger, 3)
    wrong: tuple[Any, ...] = (True, "1", 1.0, None)
    for number in wrong:
        with pytest.raises(InputError):
            extract_charge(ledger, number)


@pytest.mark.parametrize(
    "forge",
    [
        lambda e: json.dumps(e, indent=1).encode(),
        lambda e: canonical({**e, "format": "isotone ledger extract 9"}),
        lambda e: canonical({**e, "more": 1}),
        lambda e: canonical({k: v for k, v in e.items() if k != "unit"}),
        lambda e: canonical({**e, "charge": {**e["charge"], "number": True}}),
        lambda e: canonical({**e, "charge": {**e["charge"], "state": 1}}),
        lambda e: canonical({**e, "budget": {**e["budget"], "epsilon": "1/0"}}),
        lambda e: canonical({**e, "budget": {**e["budget"], "epsilon": "NaN"}}),
        lambda e: canonical({**e, "budget": {**e["budget"], "epsilon": "1e999999999"}}),
        lambda e: canonical([e]),
        lambda e: b"[" * 90_000,
        lambda e: b"\xff",
        lambda e: b" " * 200_000,
        lambda e: b'{"format":NaN}',
    ],
)
def test_what_is_no_extract_is_refused(ledger, forge):
    entries = json.loads(extract_charge(ledger, 1))
    with pytest.raises(LedgerError, match=r"extract of a charge"):
        read_extract(forge(entries))
