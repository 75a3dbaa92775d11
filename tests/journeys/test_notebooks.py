"""The notebooks: each runs from top to bottom, was saved with its outputs, and becomes a page of the site."""

import contextlib
import importlib
import io
import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def cells(path):
    return [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]


def test_there_is_a_notebook_for_each_release_and_one_for_readers():
    assert [path.stem for path in NOTEBOOKS] == ["counts", "curve", "readers", "table"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    names: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in cells(path):
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
    plt.close("all")
    saved = "".join(
        "".join(output["text"])
        for cell in cells(path)
        for output in cell["outputs"]
        if output["output_type"] == "stream"
    )
    assert len(printed.getvalue().splitlines()) == len(saved.splitlines())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_saved_as_it_ran(path):
    numbers = [cell["execution_count"] for cell in cells(path)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "error" not in {output["output_type"] for cell in cells(path) for output in cell["outputs"]}
    assert str(DOCS.parent) not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_becomes_a_page_with_its_pictures(path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    text, pictures = importlib.import_module("notebooks").page(path)
    assert text.startswith("# ")
    assert pictures or path.stem == "readers"  # whose answers are numbers
    assert all(f"]({name})" in text and content.startswith(b"\x89PNG") for name, content in pictures.items())
