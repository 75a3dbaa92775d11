"""Descriptions of a release for catalogues, data loaders and registries: facts, forms and files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.kind import kind_named
from isotone.release.manifest import Manifest, digest, require_writable
from isotone.release.report import generator
from isotone.release.result import Release, has_file, load_release, read_json, read_text, set_time, write_file

# Descriptions of a release for catalogues and registries, made from a list of what they may say.

DESCRIPTIONS = (
    "dcat.jsonld",
    "croissant.json",
    "release.csv-metadata.json",
    "datapackage.json",
    "deployment.json",
)
"""The files that ``isotone export`` always writes beside a release."""

REGISTRY = "registry_entry.yaml"
"""The entry of a public registry, written if the words that it asks for are given."""


# What a description of a release may say. Everything else that a manifest holds stays out of it.
#
# A catalogue is read by people who never see the data, and is copied to places that nobody here controls. So the facts
# below are a list of what is allowed, each checked for its form: words, dates, numbers and names that isotone itself
# knows. There is no path, no size, hash, row count, range of dates or statistic of the data, nothing of the ledger, and
# no name of the unit's column. A population size is there if the spec states one as public.

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
    """What the publisher says in their own words."""

    publisher: str | None = None
    license: str | None = None
    url: str | None = None
    unit: str | None = None
    intended_use: str | None = None
    region: str | None = None
    registry_author: str | None = None

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            if text is None:
                continue
            if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
                raise InputError(f"{name} must be a text of at most {_LONGEST} characters, not {text!r:.80}.")
            require_writable([text], name)

    def given(self) -> dict[str, str]:
        """The words that were given."""
        return {name: text for name, text in vars(self).items() if text is not None}

    @property
    def missing(self) -> list[str]:
        """What a public registry asks for beyond these."""
        return [name for name in ("publisher", "intended_use", "region") if getattr(self, name) is None]


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
    complete: bool
    """Whether these are all columns of the file."""
    continued: bool
    """Whether further values of the same units are published in it over time."""
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
    stated = {name: _words(text, columns) for name, text in manifest.stated.plain().items()}
    title = stated.pop("title", None)
    words = replace(words, **{name: text for name, text in stated.items() if getattr(words, name) is None})
    described = _described(release, columns)
    rules, recipe = manifest.rows, manifest.mechanism
    return Facts(
        words=words,
        title=title or f"Differentially private {kind.name}",
        lead=kind.page(release).lead,
        kind=kind.name,
        identifier=sealed,
        file_hash=digest(release.csv().encode()).removeprefix("sha256:"),
        columns=described,
        complete=len(described) == len(release.columns),
        continued=manifest.get("chain") is not None,
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
        result = {draw.rows.get("unit") for draw in draws}
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError("The manifest is not usable: verify the release first.") from None
    return frozenset(str(name).casefold() for name in result if name)


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
    result: list[ReleaseColumn] = []
    for name, values in release.columns.items():
        if not _NAME.fullmatch(name) or _CODE.search(name) or name.casefold() in columns:
            continue
        whole = set(map(type, values)) <= {int}
        kind = "text" if name in texts else "integer" if whole else "number"
        result.append(ReleaseColumn(name, kind, _MEANINGS.get(name, "An attribute of the breakdown.")))
    return tuple(result)


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
    entries = record.get("words")
    if not isinstance(entries, dict) or not set(entries) <= set(vars(PublisherWords())):
        raise InputError("the publisher's words cannot be read")
    return PublisherWords(**entries)


# The facts of a release in the forms that catalogues, data loaders and registries read.
#
# DCAT is the W3C's vocabulary for catalogues. Croissant, of MLCommons, describes the columns of a file so that a program
# can load it. The record follows what public registries of deployments ask for: the guarantee, the unit, the mechanism.

RECORD = "isotone deployment record 1"
_KEYWORDS = ["differential privacy", "statistics"]
_FLAVOURS = {
    "pure": "pure differential privacy",
    "approximate": "approximate differential privacy",
    "zcdp": "zero-concentrated differential privacy",
    "bounded-range": "bounded range",
}
_CROISSANT_TYPES = {"text": "sc:Text", "integer": "sc:Integer", "number": "sc:Float"}
_CSV, _MANIFEST = "release.csv", "manifest.json"


def _guarantee(guarantee: Guarantee) -> dict[str, str]:
    """The numbers of a guarantee as exact text. Those that say nothing are left out."""
    numbers = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "rho": guarantee.rho}
    return {name: str(value) for name, value in numbers.items() if value}


def _description(facts: Facts) -> str:
    numbers = ", ".join(f"{name} = {value}" for name, value in _guarantee(facts.guarantee).items())
    return f"{facts.lead} Released with {_FLAVOURS[facts.guarantee.kind]}, {numbers}."


def dcat(facts: Facts) -> dict[str, Any]:
    """A ``dcat:Dataset`` with the files of the folder, in JSON-LD."""
    words = facts.words
    entries: dict[str, Any] = {
        "@context": {
            "dcat": "http://www.w3.org/ns/dcat#",
            "dct": "http://purl.org/dc/terms/",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "spdx": "http://spdx.org/rdf/terms#",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
            "generator": "http://schema.org/creditText",
        },
        "@type": "dcat:Dataset",
        "generator": generator(),
        "dct:identifier": facts.identifier,
        "dct:title": facts.title,
        "dct:description": _description(facts),
        "dcat:keyword": [*_KEYWORDS, facts.kind],
    }
    if facts.issued:
        entries["dct:issued"] = {"@type": "xsd:date", "@value": facts.issued}
    if words.publisher:
        entries["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": words.publisher}
    if words.license:
        entries["dct:license"] = words.license
    if words.url:
        entries["dcat:landingPage"] = {"@id": words.url}
    checksum = {
        "@type": "spdx:Checksum",
        "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
        "spdx:checksumValue": facts.file_hash,
    }
    entries["dcat:distribution"] = [
        {**_file(_CSV, "text/csv", "The released values."), "spdx:checksum": checksum},
        _file(_MANIFEST, "application/json", "What the release is and what it guarantees."),
    ]
    return entries


def _file(name: str, media: str, title: str) -> dict[str, Any]:
    return {
        "@type": "dcat:Distribution",
        "dct:title": title,
        "dcat:downloadURL": {"@id": name},
        "dcat:mediaType": {"@id": f"https://www.iana.org/assignments/media-types/{media}"},
    }


def croissant(facts: Facts) -> dict[str, Any]:
    """The file of values and its columns, as Croissant 1.0 describes them."""
    words = facts.words
    entries: dict[str, Any] = {
        "@context": {
            "@language": "en",
            "@vocab": "https://schema.org/",
            "sc": "https://schema.org/",
            "cr": "http://mlcommons.org/croissant/",
            "dct": "http://purl.org/dc/terms/",
            "conformsTo": "dct:conformsTo",
            "column": "cr:column",
            "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
            "extract": "cr:extract",
            "field": "cr:field",
            "fileObject": "cr:fileObject",
            "recordSet": "cr:recordSet",
            "source": "cr:source",
            "generator": "sc:creditText",
        },
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "generator": generator(),
        "name": facts.title,
        "description": _description(facts),
        "identifier": facts.identifier,
        "keywords": [*_KEYWORDS, facts.kind],
    }
    if facts.issued:
        entries["datePublished"] = facts.issued
    if words.publisher:
        entries["creator"] = {"@type": "sc:Organization", "name": words.publisher}
    entries |= {name: text for name, text in words.given().items() if name in ("license", "url")}
    entries["distribution"] = [
        {
            "@type": "cr:FileObject",
            "@id": _CSV,
            "name": _CSV,
            "contentUrl": _CSV,
            "encodingFormat": "text/csv",
            "sha256": facts.file_hash,
        }
    ]
    fields = [_field(column) for column in facts.columns]
    entries["recordSet"] = [{"@type": "cr:RecordSet", "@id": "values", "name": "values", "field": fields}]
    return entries


def _field(column: ReleaseColumn) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"values/{column.name}",
        "name": column.name,
        "description": column.meaning,
        "dataType": _CROISSANT_TYPES[column.kind],
        "source": {"fileObject": {"@id": _CSV}, "extract": {"column": column.name}},
    }


def deployment(facts: Facts) -> dict[str, Any]:
    """A record of one deployment of differential privacy, for a public registry."""
    guarantee = facts.guarantee
    privacy: dict[str, Any] = {
        "flavour": _FLAVOURS[guarantee.kind],
        **_guarantee(guarantee),
        "neighbours": guarantee.neighbours,
        "unit": facts.unit,
        "contributions": facts.contributions,
        "model": "central",
        "scope": "this release alone",
    }
    return {
        "record": RECORD,
        "generator": generator(),
        "title": facts.title,
        "description": _description(facts),
        "identifier": facts.identifier,
        "released": facts.issued,
        "words": facts.words.given(),
        "privacy": privacy,
        "product": {
            "kind": facts.kind,
            "mechanism": facts.mechanism,
            "confidence": facts.confidence,
            "population": facts.population,
            "columns": {column.name: column.meaning for column in facts.columns},
        },
        "check": "isotone verify",
    }


def csvw(facts: Facts) -> dict[str, Any]:
    """The columns of the values as CSV on the Web (W3C) describes them."""
    entries: dict[str, Any] = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "url": _CSV,
        "dc:title": facts.title,
        "dc:description": _description(facts),
        "dc:identifier": facts.identifier,
        "schema:creditText": generator(),
    }
    for name, key in (("publisher", "dc:publisher"), ("license", "dc:license"), ("url", "schema:url")):
        if getattr(facts.words, name):
            entries[key] = getattr(facts.words, name)
    if facts.issued:
        entries["dc:issued"] = facts.issued
    if facts.complete:  # columns are matched by their place
        types = {"text": "string", "integer": "integer", "number": "number"}
        columns = [
            {
                "name": re.sub(r"\W", "_", column.name),
                "titles": column.name,
                "datatype": types[column.kind],
                "dc:description": column.meaning,
            }
            for column in facts.columns
        ]
        entries["tableSchema"] = {"columns": columns}
    return entries


def frictionless(facts: Facts) -> dict[str, Any]:
    """The same as a Data Package of Frictionless."""
    words = facts.words
    resource: dict[str, Any] = {
        "name": "release",
        "path": _CSV,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "hash": f"sha256:{facts.file_hash}",
    }
    if facts.complete:
        types = {"text": "string", "integer": "integer", "number": "number"}
        fields = [
            {"name": column.name, "type": types[column.kind], "description": column.meaning}
            for column in facts.columns
        ]
        resource |= {"profile": "tabular-data-resource", "schema": {"fields": fields}}
    entries: dict[str, Any] = {
        "profile": "data-package",
        "generator": generator(),
        "name": _slug(facts),
        "id": facts.identifier,
        "title": facts.title,
        "description": _description(facts),
        "keywords": [*_KEYWORDS, facts.kind],
        "resources": [resource],
    }
    if words.publisher:
        entries["contributors"] = [{"title": words.publisher, "role": "publisher"}]
    if words.license:
        entries["licenses"] = [{"path" if "://" in words.license else "name": words.license}]
    if words.url and "://" in words.url:
        entries["homepage"] = words.url
    return entries


def _slug(facts: Facts) -> str:
    """A short name in plain letters, with some digits of the release's own hash."""
    plain = re.sub(r"[^a-z0-9]+", "-", facts.title.lower()).strip("-")[:60].strip("-")
    return f"{plain or facts.kind}-{facts.identifier.removeprefix('sha256:')[:8]}"


_VARIANTS = {"pure": "Pure DP", "approximate": "Approximate DP", "zcdp": "Zero-concentrated DP"}


def registry_entry(facts: Facts) -> dict[str, Any]:
    """The entry that the public registry of deployments (opendp/deployments-registry-data) asks for, of its second tier.

    The words that only the publisher knows must be there (:attr:`PublisherWords.missing`).
    """
    words, guarantee = facts.words, facts.guarantee
    custom = guarantee.kind == "zcdp" and bool(guarantee.delta)
    numbers = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "rho": guarantee.rho}
    loss: dict[str, Any] = {
        "privacy_parameters": {name: float(value) for name, value in numbers.items() if value},
        "privacy_unit_details": "Neighbouring data sets differ in all records of one unit, which are "
        + ("replaced." if guarantee.adjacency.exchanges else "added or removed.")
        + (
            f" A unit has at most {facts.contributions} record{'s' * (facts.contributions != 1)}."
            if facts.contributions
            else ""
        ),
    }
    if facts.unit:
        loss["privacy_unit"] = facts.unit
    implementation = "isotone; noise from cryptographic bits by exact arithmetic"
    basic = {
        "name": facts.title,
        "data_curators": [words.publisher],
        "intended_use": words.intended_use,
        "data_product_type": "Summary statistics",
        "data_product_region": words.region,
        "description": _description(facts),
        "publication_date": facts.issued,
    }
    administrative: dict[str, Any] = {
        "notes": f"{generator()} wrote this from the sealed manifest {facts.identifier}.",
        "registry_authors": [words.registry_author or words.publisher],
    }
    if words.url:
        administrative["sources"] = words.url
    return {
        "url_slug": _slug(facts),
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": "Custom" if custom else _VARIANTS.get(guarantee.kind, "Custom"),
                "unprotected_quantities": "The number of records, which is stated as public."
                if facts.population or guarantee.adjacency.exchanges
                else "None.",
            },
            "privacy_loss": loss,
            "deployment_model": {
                "model_name": "Central",
                "release_type": "Many releases" if facts.continued else "One release",
                "data_source_type": "Dynamic" if facts.continued else "Static",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "mechanisms": f"{facts.mechanism} of {implementation}" if facts.mechanism else implementation
            },
            "administrative": administrative,
        },
    }


FORMATS = dict(zip(DESCRIPTIONS, (dcat, croissant, csvw, frictionless, deployment), strict=True))
"""What is always written, by file name."""


# Write the descriptions of a release beside it, and compare those that are there with the release.

_RECORD = "deployment.json"


def described(release: Release, words: PublisherWords | None = None) -> dict[str, dict[str, Any]]:
    """The descriptions of a release, by file name."""
    facts = facts_of(release, words)
    entries = {name: form(facts) for name, form in FORMATS.items()}
    if facts.issued and not facts.words.missing:
        entries[REGISTRY] = registry_entry(facts)
    return entries


def export(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    words: PublisherWords | None = None,
) -> list[Path]:
    """Write descriptions for catalogues, loaders and registries (:data:`DESCRIPTIONS`) beside a saved release, or into ``out``.

    The entry of the public registry of deployments is written, too, if publisher, intended use and region are known: here, or
    from the spec's ``[output]``. Its file is JSON, which is YAML as well.

    They describe the folder of the release, and say nothing of the data that it does not say. Files of
    these names are written again if isotone wrote them, and otherwise nothing is written at all. ``words`` are the
    publisher's own, and stand there as given.
    """
    release = load_release(folder)
    texts = {name: _text(entries) for name, entries in described(release, words).items()}
    place = Path(folder if out is None else out)
    for name in texts:
        if has_file(place, name) and not _ours(place, name):
            raise InputError(
                f"{str(place / name)!r} is not a description that isotone wrote, so it is not overwritten. "
                "Move it, or name another folder with --out."
            )
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_file(place / name, text, release.manifest.time)
    except OSError as error:
        raise InputError(f"{str(place)!r} cannot be written: {error.strerror or error}.") from None
    if out is None:
        set_time(folder, release.manifest.time)
    return [place / name for name in texts]


def described_wrongly(release: Release, folder: str | os.PathLike[str]) -> tuple[bool | None, str]:
    """Whether a description in the folder says something else than the release, or None if that cannot be told."""
    there = [name for name in (*FORMATS, REGISTRY) if has_file(folder, name)]
    strange = [name for name in there if not _ours(Path(folder), name)]
    if strange:
        return None, f"{strange[0]} was not written by isotone"
    if _RECORD not in there:
        return None, f"{_RECORD} is missing"
    record = read_json(folder, _RECORD)
    if record["generator"] != generator():
        return None, f"they were not written by {generator()}; export them again"
    right = described(release, words_in(record))
    wrong = [name for name in there if name not in right or read_text(folder, name) != _text(right[name])]
    if wrong:
        return True, f"{wrong[0]} does not say what the release says"
    return False, f"{', '.join(there)} say what the release says"


def _text(entries: dict[str, Any]) -> str:
    return json.dumps(entries, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _ours(folder: Path, name: str) -> bool:
    """Whether a file says that isotone wrote it."""
    try:
        entries = read_json(folder, name)
        notes = (
            entries.get("deployment", {}).get("administrative", {}).get("notes") if name == REGISTRY else None
        )
        written_by = notes or entries.get("generator") or entries.get("schema:creditText")
    except (InputError, AttributeError):
        return False
    return isinstance(written_by, str) and written_by.startswith("isotone ")
