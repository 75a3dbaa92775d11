"""What the site does to its pages: folders in the navigation, links from docstrings to the theory, typeset mathematics."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from markdown.extensions.toc import slugify

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

from mathematics import typeset  # noqa: E402

_SECTION = re.compile(r"docs/theory/(?P<page>[a-z-]+)\.md(?:, sections? (?P<number>\d+))?")


def on_config(config: Any) -> Any:
    """Replace ``folder/*`` in the navigation by the pages of the folder that are not named elsewhere."""
    named = set(_pages(config.nav))
    config.nav = _filled(config.nav, named)
    return config


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Typeset the mathematics of the theory, and make mentions of the theory in docstrings into links."""
    if page.file.src_uri.startswith("theory/"):
        return typeset(html)
    if not page.file.src_uri.startswith("reference/"):
        return html
    return _SECTION.sub(_theory_link, html)


def _pages(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in _pages(part)]


def _filled(entry: Any, named: set[str]) -> Any:
    if isinstance(entry, dict):
        return {title: _filled(part, named) for title, part in entry.items()}
    if not isinstance(entry, list):
        return entry
    filled: list[Any] = []
    for part in entry:
        if isinstance(part, str) and part.endswith("/*"):
            folder = part.removesuffix("/*")
            names = sorted(path.stem for path in (DOCS / folder).glob("*.md"))
            filled += [
                {name.replace("_", " ").capitalize(): f"{folder}/{name}.md"}
                for name in names
                if f"{folder}/{name}.md" not in named
            ]
        else:
            filled.append(_filled(part, named))
    return filled


def _theory_link(match: re.Match[str]) -> str:
    page, number = match["page"], match["number"]
    anchor = _anchors(page).get(number or "", "")
    words = match[0].removeprefix("docs/")
    return f'<a href="../theory/{page}.html{anchor}">{words}</a>' if _anchors(page) else match[0]


@cache
def _anchors(page: str) -> dict[str, str]:
    """The anchor of each numbered section of a page of theory; "" for the page itself; empty if there is none."""
    path = DOCS / "theory" / f"{page}.md"
    if not path.exists():
        return {}
    headings = re.findall(r"^## ((\d+)\. .*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": ""} | {number: "#" + slugify(heading, "-") for heading, number in headings}
