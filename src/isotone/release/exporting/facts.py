"""What a description of a release may say. Everything else that a manifest holds stays out of it.

A catalogue is read by people who never see the data, and is copied to places that nobody here controls. So the facts
below are a list of what is allowed, each checked for its form: words, dates, numbers and names that isotone itself
knows. There is no path, no size, hash, row count, range of dates or statistic of the data, nothing of the ledger, and
no name of the unit's column. A population size is there if the spec states one as public.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds import kind_named
from isotone.release.kinds.parameters import require_writable
from isotone.release.manifest import Manifest, digest
from isotone.release.result import Release

__all__ = ["Facts", "PublisherWords", "ReleaseColumn", "facts_of"]

_LONGEST = 200
_WORDS = re.compile(r"(?:[^\W\d_]|[ ,;()'’\"&+%=–—-]|\d(?:\.\d)?|[.:?!](?=\s|$))+")
"""Words as people write them. A path, an address or the name of a file has a mark that is not among these."""
_NAME = re.compile(r"[^\W\d][\w ()-]{0,99}")
_CODE = re.compile(r"(?=[a-f-]*[0-9])[0-9a-f][0-9a-f-]{14,}|(?=[^\W\d]*\d)\w{24,}", re.IGNORECASE)
"""A hash, a number of some object or a key: no word of any language."""
_HASH = re.compile(r"sha256:[0-9a-f]{64}")

_MEANINGS = {
    "margin": "The attributes by which the counts of this row are broken down.",
    "group": "The group, from a public list.",
    "period": "The period, from a public list.",
    "new": "What is new since the shown period before.",
    "new_sd": "The standard deviation of the noise on what is new.",
    "element": "The question or item, from a public order.",
    "category": "The category, from a public list.",
    "stratum": "The public class of the category.",
    "x": "A point of the public grid of x.",
    "x1": "The middle of a bin of the first variable.",
    "x2": "The middle of a bin of the second variable.",
    "value": "The released value.",
    "raw": "The value as it was drawn.",
    "estimate": "The expected value given all that was released.",
    "noisy": "An unbiased noisy value, for sums.",
    "sd": "The standard deviation of the noise.",
    "low": "The lower end of the interval, or of the band.",
    "high": "The upper end of the interval, or of the band.",
    "low_all": "The lower end of intervals that hold all at once.",
    "high_all": "The upper end of intervals that hold all at once.",
    "population": "The public population of the category.",
    "rate": "The value per 100,000 of the public population.",
}


@dataclass(frozen=True)
class PublisherWords:
    """What the publisher adds in their own words. Nothing here comes from the release."""

    publisher: str | None = None
    license: str | None = None
    url: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            if text is None:
                continue
            if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
                raise InputError(f"{name} must be a text of at most {_LONGEST} characters, not {text!r:.80}.")
            require_writable(text, name)

    def given(self) -> dict[str, str]:
        """The words that were given."""
        return {name: text for name, text in vars(self).items() if text is not None}


@dataclass(frozen=True)
class ReleaseColumn:
    """One column of release.csv."""

    name: str
    kind: str
    meaning: str


@dataclass(frozen=True)
class Facts:
    """All that a description says."""

    words: PublisherWords
    title: str
    lead: str
    kind: str
    identifier: str
    file_hash: str
    columns: tuple[ReleaseColumn, ...]
    guarantee: Guarantee
    issued: str | None
    unit: str | None
    contributions: int | None
    mechanism: str | None
    confidence: float | None
    population: int | None


def facts_of(release: Release, words: PublisherWords | None = None) -> Facts:
    """The facts of a release whose seal is right."""
    manifest, words = release.manifest, words or PublisherWords()
    sealed = manifest.content_hash or ""
    if not _HASH.fullmatch(sealed) or digest(release.sealed_bytes()) != sealed:
        raise InputError("The values or the manifest were changed after the release: not exported.")
    kind = kind_named(manifest.kind)
    columns = _unit_columns(manifest)
    rules, recipe = manifest.rows, manifest.mechanism
    return Facts(
        words=words,
        title=_words(manifest.title, columns) or f"Differentially private {kind.name}",
        lead=kind.page(release).lead,
        kind=kind.name,
        identifier=sealed,
        file_hash=digest(release.csv().encode()).removeprefix("sha256:"),
        columns=_described(release, columns),
        guarantee=release.guarantee,
        issued=_date(manifest.time),
        unit=words.unit or _words(release.guarantee.unit, columns),
        contributions=_whole(rules.get("contributions")),
        mechanism=next((name for name in kind.classes if name == recipe.get("name")), None),
        confidence=_share(manifest.stated_confidence),
        population=_whole(recipe.get("public_n")),
    )


def _unit_columns(manifest: Manifest) -> frozenset[str]:
    """The names of the columns that say whose row it is, of this release and of those it was derived from."""
    try:
        draws = [manifest, *kind_named(manifest.kind).draws(manifest)]
        found = {draw.rows.get("unit") for draw in draws}
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError("The manifest is not usable: verify the release first.") from None
    return frozenset(str(name).casefold() for name in found if name)


def _words(text: Any, columns: frozenset[str]) -> str | None:
    """``text`` if it is words, and names no column of units, otherwise None."""
    if not isinstance(text, str) or len(text) > _LONGEST or not _WORDS.fullmatch(text.strip()):
        return None
    if _CODE.search(text):
        return None
    folded = text.casefold()
    named = any(re.search(rf"(?<!\w){re.escape(column)}(?!\w)", folded) for column in columns)
    return None if named else text.strip()


def _described(release: Release, columns: frozenset[str]) -> tuple[ReleaseColumn, ...]:
    """The columns of release.csv. One whose name is no plain name is left out."""
    texts = release.manifest.text_columns
    found: list[ReleaseColumn] = []
    for name, values in release.columns.items():
        if not _NAME.fullmatch(name) or _CODE.search(name) or name.casefold() in columns:
            continue
        whole = set(map(type, values)) <= {int}
        kind = "text" if name in texts else "integer" if whole else "number"
        found.append(ReleaseColumn(name, kind, _MEANINGS.get(name, "An attribute of the breakdown.")))
    return tuple(found)


def _date(time: str) -> str | None:
    """The day of the release."""
    try:
        return datetime.fromisoformat(time).date().isoformat()
    except ValueError:
        return None


def _whole(value: Any) -> int | None:
    """A positive whole number. Recipes write some as text."""
    if isinstance(value, str) and re.fullmatch(r"[1-9][0-9]{0,17}", value, flags=re.ASCII):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**18 else None


def _share(value: Any) -> float | None:
    return value if isinstance(value, float) and 0 < value < 1 else None


def words_in(record: Mapping[str, Any]) -> PublisherWords:
    """The publisher's words in a record that was written before."""
    said = record.get("words")
    if not isinstance(said, dict) or not set(said) <= set(vars(PublisherWords())):
        raise InputError("the publisher's words cannot be read")
    return PublisherWords(**said)
