"""Build the documentation: pages of figures and benchmarks, then a static site with every link checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent


def reproduction_page() -> str:
    """One page that shows every experiment's pictures and links its data."""
    sys.path.insert(0, str(ROOT / "experiments"))
    from isotone.cli import experiments, load_experiment

    lines = [
        "# Reproduction",
        "",
        "Every figure and table of the papers isotone builds on, redone by code in the repository.",
        "`isotone reproduce NAME` runs one again.",
    ]
    for name, path in experiments().items():
        folder = DOCS / "reproduction" / path.stem
        text = (load_experiment(path).__doc__ or "").strip()
        lines += ["", f"## {name}", "", text, ""]
        lines += [
            f"![{picture.stem}]({path.stem}/{picture.name})" for picture in sorted(folder.glob("*.png"))
        ]
        tables = [f"[{table.name}]({path.stem}/{table.name})" for table in sorted(folder.glob("*.csv"))]
        lines += ["", f"Data: {', '.join(tables)}"] if tables else []
    return "\n".join(lines) + "\n"


def benchmarks_page() -> str:
    """An index of the benchmark reports."""
    reports = sorted(path for path in (DOCS / "benchmarks").glob("*.md") if path.stem != "index")
    links = [
        f"- [{path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}]({path.name})"
        for path in reports
    ]
    return (
        "\n".join(
            ["# Benchmarks", "", "Written by `make bench`, each in one run on one machine.", "", *links]
        )
        + "\n"
    )


def main() -> int:
    """Write the generated pages and build the site."""
    (DOCS / "reproduction" / "index.md").write_text(reproduction_page(), encoding="utf-8")
    (DOCS / "benchmarks" / "index.md").write_text(benchmarks_page(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"], cwd=ROOT, check=False
    )
    if done.returncode == 0:
        print(f"The documentation is in {ROOT / 'site' / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
