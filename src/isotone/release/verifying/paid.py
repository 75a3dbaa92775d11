"""The charge behind a release, from the ledger itself or from an extract of that one charge.

Anyone can write an extract (``isotone ledger extract``), so it counts only with a signature (the same name and ``.sig``)
by a key that the reader names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotone.errors import InputError
from isotone.ledger import Cost, Ledger
from isotone.ledger.ledger import extract_charge, read_extract
from isotone.privacy.guarantee import Guarantee, exact
from isotone.release.folder import has_file, read_file, read_text
from isotone.release.verifying import signing

__all__ = ["charge_faults", "paid_charge"]


def paid_charge(
    where: str | os.PathLike[str], dataset: str, number: int, keys: Sequence[signing.PublicKey] | None
) -> tuple[Mapping[str, Any], str]:
    """The extract of one charge, vouched for by the ledger, by a key that the reader named, or by nobody."""
    if not str(where).endswith(".json"):
        if "://" not in str(where) and not Path(where).is_file():
            raise InputError(f"There is no ledger {str(where)!r}.")
        return read_extract(extract_charge(Ledger(str(where), dataset=dataset), number)), "the ledger"
    folder, name = Path(where).parent, Path(where).name
    content = read_file(folder, name)
    extract = read_extract(content)
    if not has_file(folder, name + ".sig"):
        return extract, ""
    found = signing.signer(content, read_text(folder, name + ".sig"))
    known = next((key for key in keys or () if key.raw == found.raw), None)
    return extract, "" if known is None else str(known)


def charge_faults(
    extract: Mapping[str, Any], number: int, dataset: str, stated: Guarantee, content_hash: str
) -> list[str]:
    """Why the charge does not show that this release was paid for, empty if it does."""
    charge = extract["charge"]
    if extract["dataset"] != dataset or charge["number"] != number:
        return [f"it is about charge {charge['number']} of the data set {extract['dataset'][:60]!r}"]
    if extract["neighbours"] != stated.neighbours or extract["unit"] != stated.unit:
        return ["it protects another unit, or against other neighbours"]
    paid = Cost(**{name: exact(text, name) for name, text in charge["guarantee"].items()})
    faults: list[str] = []
    if not Cost.of(stated, charge["kind"]).within(paid):
        faults.append(f"charge {number} paid {paid}, which is less than the release cost")
    if charge["state"] != "sealed" or charge["release"] != content_hash:
        faults.append(f"charge {number} is not the charge of these values")
    return faults
