"""The documentation as a site, and its code that needs a service: built, linked, fit for a phone, nothing from elsewhere."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.doc_blocks import Reader
from tests.support.postgres import postgres_url
from tests.support.spark import spark_session

pytestmark = pytest.mark.services

DOCS = Path(__file__).resolve().parents[2] / "docs"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--virtual-time-budget=15000",
]
PAGES = [
    "index",
    "start",
    "how-to/tables",
    "reference/spec",
    "reference/counts",
    "notebooks/counts",
    "reproduction/tables",
]
MEASURE = """
<html><body><pre id=r></pre><script>
const pages = %s, found = [];
async function measure(page, width) {
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:900px;border:0`;
  frame.src = page;
  document.body.appendChild(frame);
  await new Promise((done) => (frame.onload = done));
  const asked = frame.contentWindow.performance.getEntriesByType("resource").map((entry) => entry.name);
  found.push([page, width, frame.contentDocument.documentElement.scrollWidth, asked.filter((x) => !x.startsWith("file:"))]);
  frame.remove();
}
(async () => {
  for (const page of pages) for (const width of [390, 1280]) await measure(page, width);
  document.getElementById("r").textContent = "found " + JSON.stringify(found) + " end";
})();
</script></body></html>
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built from a copy of the pages: the build writes among them, and other tests read them meanwhile."""
    copy = tmp_path_factory.mktemp("documentation")
    for entry in DOCS.parent.iterdir():
        if entry.name not in ("docs", "site"):
            (copy / entry.name).symlink_to(entry)
    shutil.copytree(DOCS, copy / "docs")
    built = subprocess.run([sys.executable, copy / "docs" / "build.py"], capture_output=True, text=True)
    assert built.returncode == 0, f"a link is dead, or something is loaded from elsewhere: {built.stderr}"
    return copy / "site"


def test_the_site_has_every_page(site):
    missing = [
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if not (site / path.relative_to(DOCS)).with_suffix(".html").exists() and path.name != "README.md"
    ]
    assert missing == []


def opened(address, profile):
    """A page as a browser shows it, without a server and without a network."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no Chromium could be installed on this machine")
    command = [browser, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout


def test_the_search_works_from_the_disk_and_the_navigation_folds(site, tmp_path):
    page = opened(f"file://{site}/index.html?q=ledger", tmp_path / "profile")
    assert re.search(r"[1-9]\d* matching documents", page)
    assert f'href="file://{site}/how-to/ledgers.html?h=ledger"' in page
    sections = ("Tutorials", "How to", "Reference", "Theory", "Reproduction", "Benchmarks", "Design records")
    switches = re.findall(r'<input class="md-nav__toggle[^>]*>', page)
    assert len(switches) >= len(sections)
    assert not any("checked" in switch for switch in switches)  # nothing is open but the page that is read
    assert all(section in page for section in sections)


def test_pages_fit_a_phone_and_a_desk_and_load_nothing_from_elsewhere(site, tmp_path):
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(
        MEASURE % json.dumps([f"file://{site}/{page}.html" for page in PAGES]), encoding="utf-8"
    )
    shown = opened(f"file://{wrapper}", tmp_path / "profile")
    found = re.search(r"found (.*) end", shown)
    assert found, shown[-500:]
    measured = json.loads(found[1])
    assert len(measured) == 2 * len(PAGES)
    for page, width, content, foreign in measured:
        assert content <= width, f"{page} at {width}"
        assert foreign == []


def test_a_notebook_runs_in_a_real_kernel():
    """One is enough: what all of them print is tested in tests/journeys/test_notebooks.py."""
    nbformat, nbclient = importlib.import_module("nbformat"), importlib.import_module("nbclient")
    notebook = nbformat.read(DOCS / "notebooks" / "counts.ipynb", as_version=4)
    place = {"metadata": {"path": str(DOCS / "notebooks")}}
    nbclient.NotebookClient(notebook, timeout=300, resources=place).execute()


def test_the_code_that_needs_postgresql_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = postgres_url()
    reader = Reader(
        DOCS / "how-to" / "ledgers.md",
        provided="a PostgreSQL server",
        replace={"postgresql://steward@db.example.org/privacy": url},
    )
    reader.read()
    assert reader.ran >= 4


def test_the_code_that_needs_spark_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spark_session()
    Reader(DOCS / "how-to" / "warehouses.md", provided="Spark").read()
