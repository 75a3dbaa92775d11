"""Verify a release with its folder alone, as a stranger can.

From the folder: its files are those of a release and nothing else is read; the content hash matches the values and the manifest; the
mechanism described keeps the guarantee stated, for records of the kind that the rules let through; everything published
about errors is the mechanism's own; the report is the one that the folder gives. With a key that the reader names:
who signed it. With a ledger, or an extract of one charge: that the guarantee was paid for. Nobody but the steward knows
whether the data was read by the rules stated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from isotone.errors import InputError, IsotoneError, MissingExtraError
from isotone.ledger import Cost, Ledger
from isotone.ledger.ledger import extract_charge, read_extract
from isotone.privacy.checks import shown
from isotone.privacy.guarantee import Guarantee, exact
from isotone.release import signing
from isotone.release.export import DESCRIPTIONS
from isotone.release.kinds.kind import kind_named
from isotone.release.manifest import digest, guarantee_from
from isotone.release.result import Release, has_file, load_release, read_file, read_text


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, whether it holds, and in words why."""

    name: str
    holds: bool
    words: str
    checked: bool = True
    """False where it could not be checked, and stands on the publisher's word."""

    @property
    def mark(self) -> str:
        """What became of it, in a word or two."""
        return "FAILED" if not self.holds else "ok" if self.checked else "not checked"

    def __str__(self) -> str:
        return f"{self.mark:<11} {self.name}: {self.words}"


@dataclass(frozen=True, repr=False)
class Verdict:
    """All checks of one folder."""

    folder: str
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def __getitem__(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    def __str__(self) -> str:
        lines = [str(check) for check in self.checks]
        if not self.holds:
            lines.append("Do not rely on this release: ask its publisher for the original folder.")
            return "\n".join(lines)
        open_ends = [_TRUST[check.name] for check in self.checks if not check.checked]
        trust = ", ".join([*open_ends, "whether the data was read by the rules stated"])
        lines.append(
            f"The numbers and their guarantee belong together. This folder cannot show, so ask who published it: {trust}."
        )
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [(check.mark, check.name, check.words) for check in self.checks]
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells
        )
        return f"<table>{rows}</table><p>{escape(str(self).splitlines()[-1])}</p>"


_TRUST = {
    "error": "whether the errors are right",
    "report": "whether the report is right",
    "metadata": "whether the descriptions for catalogues are right",
    "signature": "who made it",
    "ledger": "whether the ledger was charged",
}

_FAULTS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, MemoryError)


def verify(
    folder: str | os.PathLike[str],
    *,
    key: str | os.PathLike[str] | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    full: bool = False,
) -> Verdict:
    """Check a saved release.

    ``key`` is a file with the public key of the publisher, or a list of allowed signers. ``ledger`` is the ledger that
    paid, or the file of an extract of its one charge. ``full`` does without what the manifest keeps to spare readers time, such as
    where the slow draws of a law begin.
    """
    paid: Any = ledger
    if not isinstance(paid, (Ledger, str, os.PathLike, type(None))):
        raise InputError(f"ledger is a Ledger, its address, or the file of an extract, not {shown(paid)}.")
    keys = None if key is None else signing.public_keys(key)
    release = load_release(folder)
    steps: list[tuple[str, Callable[[], Check]]] = [
        ("files", lambda: _files(release, folder)),
        ("content", lambda: _content(release)),
        ("guarantee", lambda: _guarantee(release)),
        ("error", lambda: _error(release, full)),
        ("report", lambda: _report(release, folder)),
        ("signature", lambda: _signature(release, folder, keys)),
        ("ledger", lambda: _ledger(release, ledger, keys)),
    ]
    if any(has_file(folder, name) for name in DESCRIPTIONS):
        steps.insert(5, ("metadata", lambda: _metadata(release, folder)))
    checks: list[Check] = []
    for name, step in steps:
        if name in ("report", "metadata") and not all(check.holds for check in checks):
            checks.append(
                Check(name, True, "the rest does not hold, so it was not drawn again", checked=False)
            )
        else:
            checks.append(_guarded(name, step))
    return Verdict(str(folder), tuple(checks))


@np.errstate(all="ignore")  # such errors may raise, if a caller has said so, and are no fault of the release
def _guarded(name: str, step: Callable[[], Check]) -> Check:
    """A check that a forged manifest cannot break. It fails where it cannot run."""
    try:
        return step()
    except MissingExtraError:
        raise  # that nobody could look is no fault of the release
    except IsotoneError as error:
        return Check(name, False, str(error))
    except _FAULTS as error:
        return Check(name, False, f"the manifest is not usable ({type(error).__name__})")


def _files(release: Release, folder: str | os.PathLike[str]) -> Check:
    """The values are the file's, byte for byte, and the manifest names no other files."""
    named = dict(release.manifest["files"])
    strange = sorted(set(named) - {"release.csv", "report.html"})
    if strange:
        return Check("files", False, f"the manifest names {strange[0][:60]!r}, which is no file of a release")
    content = read_file(folder, "release.csv")
    if named.get("release.csv") != digest(content):
        return Check("files", False, "release.csv was changed after the release")
    if content != release.csv().encode():
        return Check("files", False, "release.csv is not written as a release is")
    if "report.html" in named and named["report.html"] != digest(read_file(folder, "report.html")):
        return Check("files", False, "report.html was changed after the release")
    return Check("files", True, "the values are as they were written")


def _content(release: Release) -> Check:
    same = digest(release.sealed_bytes()) == release.manifest["content_hash"]
    words = (
        "the content hash matches the values and the manifest"
        if same
        else "the values or the manifest were changed after the release"
    )
    return Check("content", same, words)


def derived_guarantee(release: Release) -> Guarantee:
    """The guarantee that follows from the mechanism and the rules described."""
    return kind_named(release.kind).derived_guarantee(release)


def _guarantee(release: Release) -> Check:
    stated = guarantee_from(release.manifest["guarantee"])
    derived = derived_guarantee(release)
    words = f"the mechanism described guarantees {derived}"
    if derived != stated:
        less = "less than" if not derived.within(stated) else "not"
        return Check("guarantee", False, f"{words}, which is {less} the {stated} that is stated")
    return Check("guarantee", True, words)


def _error(release: Release, full: bool) -> Check:
    kind = kind_named(release.kind)
    looked_at = kind.without_shortcuts(release) if full else release
    faults = kind.faults(looked_at)
    if faults:
        return Check("error", False, "; ".join(faults))
    return Check("error", True, kind.looked_at(looked_at), checked=kind.errors_are_known)


def _report(release: Release, folder: str | os.PathLike[str]) -> Check:
    """Compare the report with one drawn again from the folder."""
    from isotone.release.report import generator, report_html

    if not has_file(folder, "report.html"):
        return Check("report", True, "there is none")
    page = read_text(folder, "report.html")
    if f'<meta name="generator" content="{generator()}">' not in page[:2000]:
        return Check("report", True, f"it was not drawn by {generator()}; draw it again", checked=False)
    if page != report_html(release):
        return Check("report", False, "report.html does not say what the release says")
    return Check("report", True, "report.html is what the release gives")


def _metadata(release: Release, folder: str | os.PathLike[str]) -> Check:
    """Compare the descriptions for catalogues with those of this folder."""
    from isotone.release.export import described_wrongly

    wrong, words = described_wrongly(release, folder)
    return Check("metadata", not wrong, words, checked=wrong is not None)


def _signature(
    release: Release, folder: str | os.PathLike[str], keys: Sequence[signing.PublicKey] | None
) -> Check:
    """Whether a key that the reader named signed the release. Any other signature proves nothing."""
    if not has_file(folder, signing.SIGNATURE):
        return Check("signature", keys is None, "the release is not signed", checked=False)
    result = signing.signer(release.sealed_bytes(), read_text(folder, signing.SIGNATURE))
    known = next((key for key in keys or () if key.raw == result.raw), None)
    if known is None:
        return Check(
            "signature", keys is None, f"signed by an unknown key, {result.fingerprint}", checked=False
        )
    return Check("signature", True, f"signed by {known}")


def _ledger(
    release: Release,
    ledger: Ledger | str | os.PathLike[str] | None,
    keys: Sequence[signing.PublicKey] | None,
) -> Check:
    """The charge exists, covers the guarantee, and is the charge of these values."""
    if ledger is None:
        return Check("ledger", True, "no ledger was given", checked=False)
    words, witnesses = list[str](), list[str]()
    for draw in kind_named(release.kind).draws(release.manifest):
        result, witness = paid_charge(ledger, draw.dataset, draw.charge, keys)
        guarantee = guarantee_from(draw.guarantee)
        faults = charge_faults(result, draw.charge, draw.dataset, guarantee, draw.content_hash or "")
        faults = faults or kind_named(release.kind).paid_faults(release, result)
        if faults:
            return Check("ledger", False, "; ".join(faults))
        words.append(f"charge {draw.charge} paid for these values")
        witnesses.append(witness)
    sentence = "; ".join(words)
    if not all(witnesses):
        return Check(
            "ledger", keys is None, f"{sentence}, by an extract that no known key signed", checked=False
        )
    return Check("ledger", True, f"{sentence}, by {witnesses[0]}")


# The charge behind a release, from the ledger itself or from an extract of that one charge.
#
# Anyone can write an extract (``isotone ledger extract``), so it counts only with a signature (the same name and ``.sig``)
# by a key that the reader names.


def paid_charge(
    where: Ledger | str | os.PathLike[str],
    dataset: str,
    number: int,
    keys: Sequence[signing.PublicKey] | None,
) -> tuple[Mapping[str, Any], str]:
    """The extract of one charge, vouched for by the ledger, by a key that the reader named, or by nobody."""
    if isinstance(where, Ledger) or not str(where).endswith(".json"):
        if not isinstance(where, Ledger):
            if "://" not in str(where) and not Path(where).is_file():
                raise InputError(f"There is no ledger {str(where)!r}.")
            where = Ledger(str(where), dataset=dataset)
        return read_extract(extract_charge(where, number)), "the ledger"
    folder, name = Path(where).parent, Path(where).name
    content = read_file(folder, name)
    extract = read_extract(content)
    if not has_file(folder, name + ".sig"):
        return extract, ""
    result = signing.signer(content, read_text(folder, name + ".sig"))
    known = next((key for key in keys or () if key.raw == result.raw), None)
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
