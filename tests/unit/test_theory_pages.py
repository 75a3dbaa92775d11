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


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem != "index"], ids=lambda p: p.stem)
def test_every_claim_that_is_checked_names_its_test(page):
    """In the brackets of the mark, or after them in the same paragraph."""
    for paragraph in re.split(r"\n\s*\n", page.read_text(encoding="utf-8")):
        if "Standing of the claims" in paragraph or "Marks:" in paragraph:
            continue
        for mark in re.finditer(r"\[(?:[^\[\]]*\b)?checked\b([^\]]*)\]", paragraph):
            place = mark[1] if mark[1].strip() else paragraph[mark.end() :]
            assert re.search(r"tests?[_/]", place), (
                f"{page.name}: {paragraph[mark.start() : mark.end() + 80]}"
            )


NUMBERED = {  # what is numbered in the papers, by their own numbers; of the last only what its appendix has or names
    "Counts": {
        "Definition": "2.1 2.3 2.5 2.7 3.2 3.3 3.7 3.8 3.10 3.12",
        "Assumption": "2.8",
        "Lemma": "2.2 2.4 2.6 3.1 3.4 3.6 3.9 3.11 3.13 3.14 3.16 4.1 B.1",
        "Claim": "3.5",
        "Theorem": "3.15 3.17",
        "Remark": "4.2 A.1",
        "Algorithm": "1",
        "Figure": "1 2 3 4 5 6 7 8",
    },
    "Tables": {
        "Definition": " ".join(map(str, range(1, 21))),
        "Observation": "1 2 3",
        "Lemma": "1 2 3 4 5 6 7 8 9",
        "Theorem": "1 2 3 4 5 6 7 8 9 10 11 12",
        "Proposition": "1 2 3",
        "Corollary": "1 2 3 4 5",
        "Example": "1 2",
        "Algorithm": "1 2",
        "Table": "1 2 3",
        "Figure": "1 2 3 4 5 6 7 8",
    },
    "Curves": {"Theorem": "1 3", "Lemma": "6 7 9 16", "Algorithm": "1 2 3", "Footnote": "2 3"},
}


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_list_of_statements_has_every_number_of_the_papers_once(paper):
    text = (ROOT / "docs" / "reproduction" / "statements.md").read_text(encoding="utf-8")
    part = text.split(f"\n## {paper}:")[1].split("\n## ")[0]
    cells = [
        re.sub(r"\(.*?\)", "", line.split("|")[1]) for line in part.splitlines() if line.startswith("| ")
    ]
    for kind, numbers in NUMBERED[paper].items():
        stem = kind[:-1] + "(?:y|ies)" if kind.endswith("y") else kind + "s?"
        listed = [
            number
            for cell in cells
            for found in re.findall(rf"\b{stem} ((?:(?:[AB]\.)?\d[\d.]*(?:, )?)+)", cell)
            for number in found.strip(", ").split(", ")
        ]
        assert sorted(listed) == sorted(numbers.split()), kind


def test_links_between_the_pages_lead_somewhere():
    for page in PAGES + REPRODUCTION:
        for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text(encoding="utf-8")):
            generated = target == "gallery.md"
            assert generated or (page.parent / target).exists(), f"{page.name} links to {target}"
