"""Pages on theory and reproduction are honest: examples run, and every test and file that they name exists."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))
REPRODUCTION = sorted((ROOT / "docs" / "reproduction").glob("*.md"))
EXPERIMENTS = {path.stem.replace("_", "-") for path in (ROOT / "experiments").glob("[a-z]*.py")}
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


@pytest.mark.parametrize("page", PAGES + REPRODUCTION, ids=lambda page: f"{page.parent.name}-{page.stem}")
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


def test_every_experiment_that_the_list_of_statements_names_exists():
    text = (ROOT / "docs" / "reproduction" / "statements.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", text))
    assert named
    assert named <= EXPERIMENTS, f"no experiments: {sorted(named - EXPERIMENTS)}"


def test_every_statement_of_the_sources_has_its_standing():
    text = (ROOT / "docs" / "reproduction" / "statements.md").read_text(encoding="utf-8")
    words = ("works", "corrected", "replaced", "refuted", "open", "taken over")
    rows = [
        line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| statement")
    ]
    assert len(rows) > 80
    for row in rows:
        standing = row.strip("|").split("|")[2]
        assert any(word in standing for word in words), row


def test_the_numbers_of_errata_that_the_list_of_statements_names_exist():
    errata = (ROOT / "docs" / "theory" / "errata.md").read_text(encoding="utf-8")
    parts = errata.split("## Part two")
    numbers = [{int(n) for n in re.findall(r"^### (\d+)\.", part, flags=re.MULTILINE)} for part in parts]
    text = (ROOT / "docs" / "reproduction" / "statements.md").read_text(encoding="utf-8")
    assert {int(n) for n in re.findall(r"erratum (\d+)", text)} == numbers[0]
    assert {int(n) for n in re.findall(r"(?:improvement|caution) (\d+)", text)} == numbers[1]


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


def test_links_between_the_pages_lead_somewhere():
    for page in PAGES + REPRODUCTION:
        for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text(encoding="utf-8")):
            generated = target == "gallery.md"
            assert generated or (page.parent / target).exists(), f"{page.name} links to {target}"
