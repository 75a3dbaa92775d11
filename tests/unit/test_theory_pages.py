"""The theory pages are honest: their examples run, and every test and file that they name exists."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
TESTS = sorted((ROOT / "tests").rglob("*.py"))
EVERYWHERE = {
    path.name for folder in ("src", "experiments", "tests") for path in (ROOT / folder).rglob("*.py")
}
FOLDERS = ("src", "tests", "docs", "experiments", "benchmarks", "data")


def examples() -> list[doctest.DocTest]:
    """The blocks of the errata, section by section; names carry over from one to the next."""
    page = ROOT / "docs" / "theory" / "errata.md"
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [doctest.DocTestParser().get_doctest(text, {}, "errata.md", str(page), 0)]


def test_every_erratum_is_shown_by_an_example_that_runs():
    for example in examples():
        results = doctest.DocTestRunner(optionflags=FLAGS).run(example)
        assert results.failed == 0
    text = (ROOT / "docs" / "theory" / "errata.md").read_text(encoding="utf-8")
    for section in text.split("\n### ")[1:]:
        assert ">>>" in section, f"no example: {section.splitlines()[0]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_test_and_file_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    for code in re.findall(r"`([^`\n]+)`", text):
        if match := re.fullmatch(r"((?:[\w./-]+/)?test_\w+\.py)(?:::(\w+))?", code):
            found = [path for path in TESTS if path.as_posix().endswith("/" + match[1])]
            assert found, f"{page.name} names {code}, which does not exist"
            if match[2]:
                assert any(f"def {match[2]}(" in path.read_text(encoding="utf-8") for path in found), code
        elif re.fullmatch(r"test_\w+", code):
            assert any(f"def {code}(" in path.read_text(encoding="utf-8") for path in TESTS), code
        elif code.split("/")[0] in FOLDERS and "/" in code and re.fullmatch(r"[\w./-]+", code):
            assert (ROOT / code).exists(), f"{page.name} names {code}, which does not exist"
        elif re.fullmatch(r"\w+\.py", code):
            assert code in EVERYWHERE, f"{page.name} names {code}, which does not exist"


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.stem not in ("index", "errata")], ids=lambda p: p.stem
)
def test_every_theorem_is_marked_as_proved_or_checked(page):
    """A claim in bold (Theorem, Lemma, Proposition, Corollary) has its standing, or its proof follows at once."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(
        r"^(?:> )?\*\*(Theorem|Lemma|Proposition|Corollary)[^\n]*", text, flags=re.MULTILINE
    ):
        following = text[match.start() : match.start() + 2500]
        assert re.search(r"\[(proved|checked|source)|\*?Proof", following), f"{page.name}: {match[0]}"


def test_links_between_theory_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
