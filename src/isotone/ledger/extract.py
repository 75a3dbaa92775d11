"""An extract of one charge, for those who verify a release and may not see the ledger.

Plain canonical JSON: UTF-8, sorted keys, no spaces, exact numbers as text. The same charge always gives the same bytes, so
that they can be signed and compared.
"""

from __future__ import annotations

import json
import re
from typing import Any

from isotone.errors import InputError, LedgerError
from isotone.ledger.cost import Cost
from isotone.ledger.ledger import Ledger

__all__ = ["EXTRACT_FORMAT", "extract_charge", "read_extract"]

EXTRACT_FORMAT = "isotone ledger extract 1"
_LONGEST = 100_000
_NUMBER = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?")  # never 1e999999999, which takes minutes to read
_TEXT = (str,)
_MAYBE = (str, type(None))
_COST: dict[str, Any] = {"epsilon": _TEXT, "delta": _TEXT, "rho": _TEXT}
_FORM: dict[str, Any] = {
    "format": _TEXT,
    "dataset": _TEXT,
    "kind": _TEXT,
    "neighbours": _TEXT,
    "unit": _TEXT,
    "budget": _COST,
    "charge": {
        "number": (int,),
        "time": _TEXT,
        "kind": _TEXT,
        "guarantee": _COST,
        "mechanism": _TEXT,
        "description": _TEXT,
        "spec": _TEXT,
        "request": _MAYBE,
        "state": _TEXT,
        "release": _MAYBE,
    },
}


def extract_charge(ledger: Ledger, number: int) -> bytes:
    """The charge ``number`` of a ledger as canonical JSON."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise InputError(f"The number of a charge is a whole number, not {number!r}.")
    budget = ledger.budget
    for charge in ledger.charges():
        if charge.number == number:
            return _canonical(
                {
                    "format": EXTRACT_FORMAT,
                    "dataset": ledger.dataset,
                    "kind": budget.kind,
                    "neighbours": budget.neighbours,
                    "unit": budget.unit,
                    "budget": Cost.of(budget).export(),
                    "charge": charge.export(),
                }
            )
    raise LedgerError(
        f"The ledger {ledger.address} has no charge {number}. 'isotone ledger show' lists them all."
    )


def read_extract(content: bytes) -> dict[str, Any]:
    """The entries of an extract.

    Anything but the exact bytes that :func:`extract_charge` writes raises an error.
    """
    if len(content) > _LONGEST:
        raise LedgerError(f"This is no extract of a charge: it is longer than {_LONGEST} bytes.")
    try:
        entries = json.loads(content.decode())
        same = _canonical(entries) == content
    except (ValueError, RecursionError):
        raise LedgerError("This is no extract of a charge: it is not JSON.") from None
    if not (same and _has_form(entries, _FORM) and entries["format"] == EXTRACT_FORMAT):
        raise LedgerError(
            f"This is no extract of a charge in the form {EXTRACT_FORMAT!r}. Write it with 'isotone ledger extract'."
        )
    costs = (entries["budget"], entries["charge"]["guarantee"])
    if not all(_NUMBER.fullmatch(text) for cost in costs for text in cost.values()):
        raise LedgerError("The numbers in this extract of a charge cannot be read.")
    return entries


def _has_form(value: Any, form: Any) -> bool:
    if not isinstance(form, dict):
        return type(value) in form  # exactly: True is no number
    return (
        isinstance(value, dict)
        and value.keys() == form.keys()
        and all(_has_form(value[key], part) for key, part in form.items())
    )


def _canonical(value: Any) -> bytes:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()
