"""The charge behind a release: in the ledger itself, or in an extract of that one charge.

An extract is what ``Ledger.export()`` gives, with one charge, as a JSON file. Anyone can write such a file, so it counts
only with a signature (the same name and ``.sig``) by a key that the reader names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotone.errors import InputError
from isotone.ledger.cost import Cost
from isotone.ledger.ledger import Ledger
from isotone.privacy.guarantee import Guarantee, exact
from isotone.release import signing
from isotone.release.folder import has_file, plain_json, read_file, read_text

__all__ = ["Account", "account", "charge_faults"]

Account = Mapping[str, Any]
"""A ledger as plain values: dataset, unit, neighbours and charges."""


def account(
    where: str | os.PathLike[str], dataset: str, keys: Sequence[signing.PublicKey] | None
) -> tuple[Account, str]:
    """The ledger or extract at ``where``, and who signed it (for a ledger, nobody needs to)."""
    if not str(where).endswith(".json"):
        if not str(where).startswith("postgresql://") and not Path(where).is_file():
            raise InputError(f"There is no ledger {str(where)!r}.")
        return Ledger(str(where), dataset=dataset).export(), "the ledger"
    folder, name = Path(where).parent, Path(where).name
    content = read_file(folder, name)
    try:
        extract = plain_json(content.decode())
    except ValueError as error:
        raise InputError(f"{name} is no extract of a ledger: {error}") from None
    if not isinstance(extract, dict):
        raise InputError(f"{name} is no extract of a ledger")
    if not has_file(folder, name + ".sig"):
        return extract, ""
    found = signing.signer(content, read_text(folder, name + ".sig"))
    known = next((key for key in keys or () if key.raw == found.raw), None)
    return extract, "" if known is None else str(known)


def charge_faults(
    account: Account, number: int, dataset: str, stated: Guarantee, content_hash: str
) -> list[str]:
    """Why the account does not show that this release was paid for; nothing if it does."""
    if account["dataset"] != dataset:
        return [f"it is about the data set {str(account['dataset'])[:60]!r}"]
    if account["neighbours"] != stated.neighbours or account["unit"] != stated.unit:
        return ["it protects another unit, or against other neighbours"]
    found = [charge for charge in account["charges"] if charge["number"] == number]
    if len(found) != 1:
        return [f"it has no charge {number}"]
    charge = found[0]
    paid = Cost(**{name: exact(charge["guarantee"][name], name) for name in ("epsilon", "delta", "rho")})
    faults: list[str] = []
    if not Cost.of(stated, charge["kind"]).within(paid):
        faults.append(f"charge {number} paid {paid}, which is less than the release cost")
    if charge["release"] != content_hash:
        faults.append(f"charge {number} is not the charge of these values")
    return faults
