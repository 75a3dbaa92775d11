"""The README's examples run as typed, and print what it says."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def blocks(text):
    """Python blocks, each with the text block that follows it (or None)."""
    found = re.findall(r"```(python|text)\n(.*?)```", text, flags=re.DOTALL)
    for (kind, code), following in zip(found, [*found[1:], ("", "")], strict=True):
        if kind == "python":
            yield code, following[1] if following[0] == "text" else None


def without_noise(line):
    """A printed line, with a mark for each digit of the released numbers."""
    name, *numbers = line.rstrip().split("  ") if line.startswith(("told", "medication")) else [line.rstrip()]
    return "  ".join([name, *(re.sub(r"\d", "0", number) for number in numbers)])


def test_the_examples_run_and_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = 0
    for code, expected in blocks(README.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(README), "exec"), names)
        if expected is not None:
            lines = printed.getvalue().splitlines()
            assert list(map(without_noise, lines)) == list(map(without_noise, expected.splitlines()))
            shown += 1
    assert shown == 1
    assert (tmp_path / "out" / "report.html").exists()


def test_the_accuracy_that_it_states_is_computed(monkeypatch):
    monkeypatch.syspath_prepend(README.parent / "docs")
    from generated import accuracy_in_words  # pyright: ignore[reportMissingImports]

    assert accuracy_in_words() in README.read_text(encoding="utf-8")


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(([^)#]+)", README.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (README.parent / link).exists()]
    assert missing == []


def test_the_citation_names_the_licence():
    citation = (README.parent / "CITATION.cff").read_text(encoding="utf-8")
    project = (README.parent / "pyproject.toml").read_text(encoding="utf-8")
    (stated,) = re.findall(r'^license = "(.+)"$', project, flags=re.MULTILINE)
    assert f"\nlicense: {stated}\n" in citation
