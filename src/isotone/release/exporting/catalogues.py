"""The facts of a release in the forms that catalogues, data loaders and registries read.

DCAT is the W3C's vocabulary for catalogues. Croissant, of MLCommons, describes the columns of a file so that a program
can load it. The record follows what public registries of deployments ask for: the guarantee, the unit, the mechanism.
"""

from __future__ import annotations

from typing import Any

from isotone.privacy.guarantee import Guarantee
from isotone.release.exporting import DESCRIPTIONS
from isotone.release.exporting.facts import Facts, ReleaseColumn
from isotone.release.reporting.html_report import generator

__all__ = ["FORMATS", "croissant", "dcat", "deployment"]

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
    said: dict[str, Any] = {
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
        said["dct:issued"] = {"@type": "xsd:date", "@value": facts.issued}
    if words.publisher:
        said["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": words.publisher}
    if words.license:
        said["dct:license"] = words.license
    if words.url:
        said["dcat:landingPage"] = {"@id": words.url}
    checksum = {
        "@type": "spdx:Checksum",
        "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
        "spdx:checksumValue": facts.file_hash,
    }
    said["dcat:distribution"] = [
        {**_file(_CSV, "text/csv", "The released values."), "spdx:checksum": checksum},
        _file(_MANIFEST, "application/json", "What the release is and what it guarantees."),
    ]
    return said


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
    said: dict[str, Any] = {
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
        said["datePublished"] = facts.issued
    if words.publisher:
        said["creator"] = {"@type": "sc:Organization", "name": words.publisher}
    said |= {name: text for name, text in words.given().items() if name in ("license", "url")}
    said["distribution"] = [
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
    said["recordSet"] = [{"@type": "cr:RecordSet", "@id": "values", "name": "values", "field": fields}]
    return said


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


FORMATS = dict(zip(DESCRIPTIONS, (dcat, croissant, deployment), strict=True))
"""What is written, by file name."""
