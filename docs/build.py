"""Build the documentation: generated pages, a static site, and a check of every link and asset in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

from generated import benchmarks_page, changelog_page, gallery_page, write_pages  # noqa: E402
from links import problems  # noqa: E402
from notebooks import write_notebook_pages  # noqa: E402


def build(site: Path) -> int:
    """Write the generated pages and build the site; the number of problems."""
    write_pages()
    write_notebook_pages()
    (DOCS / "benchmarks" / "index.md").write_text(benchmarks_page(), encoding="utf-8")
    (DOCS / "reproduction" / "gallery.md").write_text(gallery_page(), encoding="utf-8")
    (DOCS / "changelog.md").write_text(changelog_page(), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, check=False, env=quiet)
    if done.returncode:
        return done.returncode
    found = problems(site)
    for problem in found:
        print(problem, file=sys.stderr)
    return len(found)


def main() -> int:
    """Build into ``site/``."""
    site = ROOT / "site"
    failed = build(site)
    print("The site has problems." if failed else f"The documentation is in {site / 'index.html'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
