"""An order as an outline, where a line that is indented is asked only after a yes to the line above it.

``name < other, another`` on a line names what else it depends on. Lines that begin with ``-`` are options of which one
says yes to at most one, and with ``=`` options of which one says yes to exactly one. A further list below the same line
begins with ``--`` or ``==``, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from isotone.errors import OrderError
from isotone.order import Poset

_TAB = 4
_MOST = 20_000
_MARK = re.compile(r"(-+|=+)\s+(?=\S)")
_KINDS: dict[str, Literal["exclusive", "partition"]] = {"-": "exclusive", "=": "partition"}
_SIGNS = {kind: sign for sign, kind in _KINDS.items()}


@dataclass(frozen=True)
class Problem:
    """What is wrong, and in which line. Line 0 is the whole."""

    line: int
    words: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.words}" if self.line else self.words


@dataclass(frozen=True)
class Outline:
    """The elements in the sequence of the lines, the pairs (lower, upper), and what is wrong with them.

    ``children`` are the choices as a spec writes them: by the line above, with a kind and its options.
    """

    elements: tuple[str, ...]
    relations: tuple[tuple[str, str], ...]
    problems: tuple[Problem, ...]
    children: dict[str, list[tuple[str, list[str]]]] = field(default_factory=dict)

    def order(self) -> Poset:
        """The partial order, with its choices."""
        return Poset(self.elements, self.relations, [one for each in self.children.values() for one in each])


@dataclass(frozen=True)
class _Line:
    number: int
    depth: int
    mark: str
    name: str
    others: tuple[str, ...]


def read_outline(text: str) -> Outline:
    """The order that an outline describes, with every problem in its place.

    >>> read_outline("smokes\\n  daily\\n  quit < asked")
    Outline(elements=('smokes', 'daily', 'quit'), relations=(('daily', 'smokes'), ('quit', 'smokes')),
            problems=(Problem(line=3, words="there is no line 'asked' to depend on."),), children={})
    """
    lines = list(_lines(text))
    names = {line.name for line in lines}
    problems, relations, seen, above = [], [], set[str](), list[_Line]()
    groups: dict[tuple[str, str], list[str]] = {}
    for line in lines[:_MOST]:
        if not line.name:
            problems.append(Problem(line.number, "a name is missing before '<'."))
            continue
        if line.name in seen:
            problems.append(
                Problem(
                    line.number, f"{line.name!r} stands in two lines. Name a second parent with '<' instead."
                )
            )
            continue
        seen.add(line.name)
        while above and above[-1].depth >= line.depth:
            above.pop()
        if not above and line.depth > 0:
            problems.append(Problem(line.number, "it is indented, but no line above it is less indented."))
        parents = [above[-1].name] if above else []
        if line.mark:
            groups.setdefault((parents[0] if parents else "", line.mark), []).append(line.name)
        above.append(line)
        for other in line.others:
            if other in names and other != line.name:
                parents.append(other)
            else:
                problems.append(Problem(line.number, f"there is no line {other!r} to depend on."))
        relations += [(line.name, parent) for parent in dict.fromkeys(parents)]
    elements = tuple(line.name for line in lines[:_MOST] if line.name)
    children: dict[str, list[tuple[str, list[str]]]] = {}
    for (parent, mark), options in groups.items():
        children.setdefault(parent, []).append((_KINDS[mark[0]], options))
    result = Outline(tuple(dict.fromkeys(elements)), tuple(relations), tuple(problems), children)
    return _checked(result, len(lines))


def _checked(outline: Outline, lines: int) -> Outline:
    """The outline with the problems of the whole."""
    if lines > _MOST:
        words = f"the outline has more than {_MOST:,} lines."
        return replace(outline, problems=(Problem(0, words),))
    if not outline.elements:
        return Outline((), (), (Problem(0, "Write at least one name, each on a line of its own."),))
    try:
        outline.order()
    except OrderError as error:
        return replace(outline, problems=(*outline.problems, Problem(0, str(error))))
    return outline


def _lines(text: str) -> Iterator[_Line]:
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.expandtabs(_TAB)
        if line.strip():
            depth = len(line) - len(line.lstrip())
            mark = _MARK.match(line.strip())
            name, _, others = (line.strip()[mark.end() :] if mark else line).partition("<")
            behind = tuple(x.strip() for x in others.split(",") if x.strip())
            yield _Line(number, depth, mark[1] if mark else "", name.strip(), behind)


def can_be_written(P: Poset) -> bool:
    """Whether an outline can hold the names of the order, or would read them otherwise."""
    return all(
        isinstance(x, str)
        and x == x.strip()
        and x
        and not set("<,\n\r\t") & set(x)
        and x.isprintable()
        and not _MARK.match(x)
        for x in P.elements
    )


def write_outline(P: Poset) -> str:
    """The outline of an order, each element below the first of those that it directly implies."""
    parents: dict[str, list[str]] = {str(x): [] for x in P.elements}
    for lower, upper in P.covers:
        parents[str(lower)].append(str(upper))
    for (
        above
    ) in parents.values():  # options of one choice have the same parents, and must stand below the same one
        above.sort(key=P.index)
    marks = _marks(P, parents)
    below: dict[str | None, list[str]] = {}
    for name, above in parents.items():
        below.setdefault(above[0] if above else None, []).append(name)
    lines: list[str] = []
    waiting = [(name, 0) for name in reversed(below.get(None, []))]
    while waiting:
        name, depth = waiting.pop()
        others = parents[name][1:]
        lines.append(
            "  " * depth + marks.get(name, "") + name + (f" < {', '.join(others)}" if others else "")
        )
        waiting += [(child, depth + 1) for child in reversed(below.get(name, []))]
    return "\n".join(lines) + "\n"


def _marks(P: Poset, parents: dict[str, list[str]]) -> dict[str, str]:
    """What stands before the options of choices. Choices of one kind below the same line have signs of their own."""
    result: dict[str, str] = {}
    used: dict[tuple[str, str], int] = {}
    for choice in P.choices:
        first = str(choice.options[0])
        place = (parents[first][0] if parents[first] else "", choice.kind)
        used[place] = used.get(place, 0) + 1
        result |= {str(option): _SIGNS[choice.kind] * used[place] + " " for option in choice.options}
    return result
