"""The documentation: every block of code runs and prints what is shown, and the generated pages are up to date."""

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest
from tests.support.doc_blocks import Reader, blocks

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    str(path.relative_to(DOCS))
    for path in DOCS.rglob("*.md")
    if not (path.with_suffix(".ipynb").exists() or path.stem == "gallery")
    and path.parent.name not in ("benchmarks", "theory")  # the theory has doctests and a test of its own
)


def runnable(name):
    return any(block.kind in ("python", "console") for block in blocks(DOCS / name))


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """An empty folder that has the repository's data in it."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [name for name in PAGES if runnable(name)])
def test_the_code_of_a_page_runs_and_prints_what_is_shown(name, desk):
    reader = Reader(DOCS / name)
    reader.read()
    assert reader.ran or all(block.needs for block in blocks(DOCS / name) if block.kind == "python")


def test_a_page_that_shows_a_wrong_output_is_caught(desk):
    page = desk / "page.md"
    page.write_text("```python\nprint(1, 'one')\n```\n\n```text\n2 one\n```\n")
    with pytest.raises(AssertionError, match="another output"):
        Reader(page).read()
    page.write_text("```python\nprint(1, 'one')\n```\n\n```text title=\"yours will differ\"\n2 two\n```\n")
    with pytest.raises(AssertionError, match="another output"):
        Reader(page).read()
    page.write_text("```python\nprint(1, 'one')\n```\n\n```text title=\"yours will differ\"\n-2.5 one\n```\n")
    Reader(page).read()
    page.write_text("```console\n$ isotone plan none.toml\nAll is well.\n```\n")
    with pytest.raises(AssertionError, match="another output"):
        Reader(page).read()


def test_what_cannot_run_here_says_what_it_needs():
    titles = {block.title for name in PAGES for block in blocks(DOCS / name) if block.needs}
    assert titles <= {"needs Airflow", "needs Spark", "needs a PostgreSQL server"}


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    return importlib.import_module("generated"), importlib.import_module("links")


def test_the_generated_pages_are_up_to_date(tools):
    generated, _ = tools
    pages = {
        "spec": generated.spec_page(),
        "command-line": generated.command_line_page(),
        "manifest": generated.manifest_page(),
    }
    for name, text in pages.items():
        assert (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8") == text, "run 'make docs'"
    schema = (DOCS / "reference" / "spec.schema.json").read_text(encoding="utf-8")
    assert schema == generated.schema_text(), "run 'make docs'"


@pytest.mark.parametrize(
    "package",
    [
        "order",
        "counts",
        "tables",
        "curves",
        "release",
        "privacy.guarantee",
        "audit",
        "noise",
        "errors",
        "interop.opendp",
        "interop.accounting",
    ],
)
def test_every_public_name_has_its_place_in_the_reference(package):
    module = importlib.import_module(f"isotone.{package}")
    page = {"errors": "isotone"}.get(package, package.split(".")[0])
    text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
    if re.search(rf"^::: isotone\.{package}\n    options: {{(?!.*members).*}}$", text, flags=re.MULTILINE):
        return  # the whole module is shown
    kinds = {
        "Kind",
        "Neighbours",
        "Number",
        "discrete_laplace",
    }  # types and an alias: shown where they are used
    missing = [name for name in set(module.__all__) - kinds if not re.search(rf"\b{name}\b", text)]
    assert missing == []


def test_every_experiment_is_shown_with_its_pictures(tools):
    from isotone.cli.reproduction import experiments

    generated, _ = tools
    text = generated.gallery_page()
    assert [name for name in experiments() if f"## {name}" not in text] == []
    pictures = sorted(path.relative_to(DOCS / "reproduction") for path in DOCS.glob("reproduction/*/*.png"))
    assert [str(path) for path in pictures if f"({path})" not in text] == []


def test_every_picture_of_the_pages_is_drawn_by_code_in_the_repository():
    source = ast.parse((DOCS / "pictures.py").read_text(encoding="utf-8"))
    drawn = {node.name for node in source.body if isinstance(node, ast.FunctionDef)}
    kept = {path.stem.replace("-", "_") for path in (DOCS / "pictures").glob("*.png")}
    browser = (Path(__file__).parent / "test_desk_in_browser.py").read_text(encoding="utf-8")
    drawn |= {name for name in kept if f"/{name}.png" in browser}  # pictures of the desk are taken there
    assert kept <= drawn
    shown = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    assert [name for name in kept if f"pictures/{name.replace('_', '-')}.png" not in shown] == []


def test_the_gallery_shows_what_its_command_releases(tools):
    gallery = importlib.import_module("gallery")
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert len(gallery.ENTRIES) == 10
    assert re.findall(r"^## (.+)$", page, flags=re.MULTILINE) == [title for title, *_ in gallery.ENTRIES]
    names = {make.__name__ for *_, make in gallery.ENTRIES}
    assert {path.stem for path in (DOCS / "gallery").glob("*.svg")} == names
    report = "<style></style><div><svg a='1'><g/></svg><svg b='2'><path/></svg></div>"
    assert (
        gallery.picture(report)
        == '<svg b=\'2\'><rect width="100%" height="100%" fill="#fff"/><path/></svg>\n'
    )


def test_a_site_with_a_dead_link_or_a_foreign_asset_is_caught(tools, tmp_path):
    _, links = tools
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="b.html#here">x</a><a href="#top">x</a><a href="https://elsewhere.org">x</a>'
        '<img src="https://elsewhere.org/x.png"><img src="none.png">'
    )
    (tmp_path / "b.html").write_text("<p>no anchor</p>")
    assert links.problems(tmp_path) == [
        "index.html loads https://elsewhere.org/x.png",
        "index.html links to b.html#here: there is no such place on the page",
        "index.html links to none.png: there is no such file",
    ]
