"""Write the descriptions of a release beside it, and compare those that are there with the release."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from isotone.errors import InputError
from isotone.release.exporting.catalogues import FORMATS
from isotone.release.exporting.facts import PublisherWords, facts_of, words_in
from isotone.release.folder import has_file, read_json, read_text
from isotone.release.reporting.html_report import generator
from isotone.release.result import Release, load_release, set_time, write_file

__all__ = ["described", "described_wrongly", "export"]

_RECORD = "deployment.json"


def described(release: Release, words: PublisherWords | None = None) -> dict[str, dict[str, Any]]:
    """The descriptions of a release, by file name."""
    facts = facts_of(release, words)
    return {name: form(facts) for name, form in FORMATS.items()}


def export(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    publisher: str | None = None,
    license: str | None = None,
    url: str | None = None,
    unit: str | None = None,
) -> list[Path]:
    """Write ``dcat.jsonld``, ``croissant.json`` and ``deployment.json`` beside a saved release, or into ``out``.

    They describe the folder of the release, and say nothing of the data that it does not say (:mod:`.facts`). Files of
    these names are written again if isotone wrote them, and otherwise nothing is written at all. ``publisher``,
    ``license``, ``url`` and ``unit`` (what is protected, in words) are the publisher's own, and stand there as given.
    """
    words = PublisherWords(publisher, license, url, unit)
    release = load_release(folder)
    texts = {name: _text(said) for name, said in described(release, words).items()}
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
    there = [name for name in FORMATS if has_file(folder, name)]
    strange = [name for name in there if not _ours(Path(folder), name)]
    if strange:
        return None, f"{strange[0]} was not written by isotone"
    if _RECORD not in there:
        return None, f"{_RECORD} is missing"
    record = read_json(folder, _RECORD)
    if record["generator"] != generator():
        return None, f"they were not written by {generator()}; export them again"
    right = described(release, words_in(record))
    wrong = [name for name in there if read_text(folder, name) != _text(right[name])]
    if wrong:
        return True, f"{wrong[0]} does not say what the release says"
    return False, f"{', '.join(there)} say what the release says"


def _text(said: dict[str, Any]) -> str:
    return json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _ours(folder: Path, name: str) -> bool:
    """Whether a file says that isotone wrote it."""
    try:
        written_by = read_json(folder, name).get("generator")
    except InputError:
        return False
    return isinstance(written_by, str) and written_by.startswith("isotone ")
