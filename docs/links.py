"""Check a built site: every link and anchor leads somewhere in it, and nothing is loaded from elsewhere."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "audio": "src", "video": "src"}


class _Page(HTMLParser):
    """The links, the loaded assets and the anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the tag refers to."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(given.get("href", ""))
        elif given.get(_LOADED.get(tag, "")):
            self.loaded.append(given[_LOADED[tag]])


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path) -> list[str]:
    """A sentence for each link that leads nowhere and each asset that comes from elsewhere."""
    found: list[str] = []
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # its links start at the root of a server
            continue
        page, name = _read(path), path.relative_to(site)
        foreign = [target for target in page.loaded if _is_foreign(target)]
        found += [f"{name} loads {target}" for target in foreign]
        for target in page.links + [x for x in page.loaded if not urlsplit(x).scheme]:
            found += [f"{name} links to {target}: {why}" for why in _broken(path, target)]
    return found


def _is_foreign(target: str) -> bool:
    return urlsplit(target).scheme not in ("", "data") or target.startswith("//")


def _broken(path: Path, target: str) -> list[str]:
    parts = urlsplit(target)
    if parts.scheme or target.startswith("//"):
        return []
    goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if goal.is_dir():
        goal /= "index.html"
    if not goal.exists():
        return ["there is no such file"]
    anchor = unquote(parts.fragment)
    if anchor and goal.suffix == ".html" and anchor not in _read(goal).anchors and anchor != "__top":
        return ["there is no such place on the page"]
    return []
