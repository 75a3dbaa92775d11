"""Run the code of a page of the documentation, as a reader would type it.

Blocks of a page run in order, in one folder and one Python session:

- ``python`` runs; a ``text`` block right after it is what it prints.
- ``console`` holds ``$ isotone …`` lines, each with what it prints; other programs (pip, make) are not run.
- ``toml``, ``csv`` and ``json`` blocks with a file name as their title are written to that file.

Output under a title that contains "differ" is compared up to its numbers; a line ``…`` stands for any lines. A block whose
title starts with "needs" is only run where a test provides what it needs.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isotone import cli

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w+)(?P<options>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$",
    flags=re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]*)"')
_NUMBER = re.compile(r"sha256:\w+|[-+−±]?\s*\d[\d,.:]*(?:e[-+]?\d+)?")
OTHER_PROGRAMS = ("pip", "make", "git", "cd", "python")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text, and the output that follows it."""

    kind: str
    title: str
    body: str
    output: str | None
    output_differs: bool

    @property
    def needs(self) -> bool:
        return self.title.startswith("needs")


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, each python block with its output."""
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    for position, match in enumerate(found):
        following = found[position + 1] if position + 1 < len(found) else None
        output, differs = None, False
        if following and following["kind"] == "text" and not text[match.end() : following.start()].strip():
            output = textwrap.dedent(following["body"])
            differs = "differ" in following["options"]
        title = _TITLE.search(match["options"])
        yield Block(match["kind"], title[1] if title else "", textwrap.dedent(match["body"]), output, differs)


class Reader:
    """Someone who types a page into a folder, which is the current one."""

    def __init__(self, page: Path, provided: str = "", replace: dict[str, str] | None = None) -> None:
        self.page, self.provided, self.replace = page, provided, replace or {}
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.ran = 0

    def read(self) -> None:
        """Type every block; compare what is printed with what the page shows."""
        for block in blocks(self.page):
            if block.needs and not (self.provided and self.provided in block.title):
                continue
            if block.kind == "python":
                self._python(block)
            elif block.kind == "console":
                self._console(block)
            elif block.kind in ("toml", "csv", "json") and block.title:
                Path(block.title).write_text(block.body, encoding="utf-8")

    def _python(self, block: Block) -> None:
        code = self._replaced(block.body)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(self.page), "exec"), self.names)
        self.ran += 1
        if block.output is not None:
            self._compare(printed.getvalue(), block.output, block.output_differs, code)

    def _console(self, block: Block) -> None:
        for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            program, *arguments = shlex.split(self._replaced(command), comments=True)
            if program in OTHER_PROGRAMS:
                continue
            assert program == "isotone", f"{self.page.name}: a page shows isotone commands, not {program!r}"
            printed = run(arguments)
            self.ran += 1
            if output.strip():
                self._compare(printed, output, "differ" in block.title, command)

    def _replaced(self, text: str) -> str:
        for old, new in self.replace.items():
            text = text.replace(old, new)
        return text

    def _compare(self, printed: str, shown: str, differs: bool, what: str) -> None:
        true, claimed = _lines(printed, differs), _lines(shown, differs)
        pattern = "\n".join(".*" if line == "…" else re.escape(line) for line in claimed)
        assert re.fullmatch(pattern, "\n".join(true), flags=re.DOTALL), (
            f"{self.page.name} shows another output than the true one, of:\n{what}\n{printed}"
        )


def run(arguments: list[str]) -> str:
    """What a command prints, on both streams."""
    printed = io.StringIO()
    before = sys.argv
    sys.argv = ["isotone", *arguments]
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            contextlib.suppress(SystemExit),
        ):
            cli.main()
    finally:
        sys.argv = before
    return printed.getvalue()


def _lines(text: str, differs: bool) -> list[str]:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    if not differs:
        return lines
    masked = (" ".join(re.sub(r"[-─]{3,}", "---", _NUMBER.sub(" # ", line)).split()) for line in lines)
    return [line for line in masked if line]
