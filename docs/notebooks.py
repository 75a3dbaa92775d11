"""Notebooks as pages of the site: text, code and the outputs they were saved with.

``python docs/notebooks.py`` runs all notebooks again and saves them with their outputs.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "notebooks"


def write_notebook_pages() -> None:
    """Write a page, and the pictures in it, for each notebook."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        text, pictures = page(path)
        path.with_suffix(".md").write_text(text, encoding="utf-8")
        for name, content in pictures.items():
            (FOLDER / name).write_bytes(content)


def page(path: Path) -> tuple[str, dict[str, bytes]]:
    """The notebook as Markdown, and its pictures by file name."""
    pictures: dict[str, bytes] = {}
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        outputs = _joined(cell["outputs"])
        parts += [shown for output in outputs if (shown := _shown(output, path.stem, pictures))]
    where = f"*This page is the notebook `docs/notebooks/{path.name}`, as it was last run.*"
    return "\n\n".join([parts[0], where, *parts[1:]]) + "\n", pictures


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs with all that was printed as one."""
    printed = "".join(_text(output["text"]) for output in outputs if output["output_type"] == "stream")
    others = [output for output in outputs if output["output_type"] != "stream"]
    return [{"output_type": "stream", "text": printed}, *others] if printed else others


def _shown(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{_text(output['text']).rstrip()}\n```"
    data = output.get("data", {})
    if "image/png" in data:
        file = f"{name}-{len(pictures) + 1}.png"
        pictures[file] = base64.b64decode(_text(data["image/png"]))
        return f"![{name}, picture {len(pictures)}]({file})"
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", _text(data["text/html"]), flags=re.DOTALL)
        lines = [line for line in html.splitlines() if line.strip()]
        return '<div class="notebook-output">\n' + "\n".join(lines) + "\n</div>"
    return f"```text\n{_text(data['text/plain']).rstrip()}\n```" if "text/plain" in data else ""


def _text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def run_notebooks() -> None:
    """Run every notebook where it is, and save it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
        for cell in notebook.cells:
            cell.metadata = {}  # no times
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    run_notebooks()
