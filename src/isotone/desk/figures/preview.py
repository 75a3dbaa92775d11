"""A preview of a report, from guessed counts and simulated noise.

It is marked on every page, also when it is printed, and is a page alone: as a folder it would be refused by whoever
loads releases, because its format is not that of a release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from isotone.desk.sheets import sheet_named
from isotone.release.reporting.report import report_html
from isotone.release.result import Release
from isotone.release.spec import Spec

__all__ = ["MARKED", "preview_html", "simulated_release"]

MARKED = "SIMULATED: guessed counts and simulated noise. This is no release, and no data was read."
_STYLE = (
    "<style>.simulated{position:fixed;left:0;right:0;top:0;z-index:9;margin:0;padding:.4rem 1rem;background:#8a1c1c;"
    "color:#fff;font-weight:bold;text-align:center}main{margin-top:3rem!important}</style>"
)


def simulated_release(spec: Spec, guesses: Mapping[str, int]) -> Release:
    """What a release might look like, in a format that :func:`isotone.load_release` refuses."""
    made = sheet_named(spec.kind.key).preview(spec, guesses)
    marked = replace(
        made.manifest,
        format="isotone simulation",
        title=f"SIMULATED: {made.manifest.title}",
        content_hash="none, because it is simulated",
    )
    return Release(made.columns, marked)


def preview_html(spec: Spec, guesses: Mapping[str, int]) -> str:
    """The page of the preview."""
    page = report_html(simulated_release(spec, guesses))
    return page.replace("<body>", f'<body>{_STYLE}<p class="simulated">{MARKED}</p>', 1)
