"""The section of a spec that asks for counts over a partial order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import model_validator

from isotone.counts.relaxation import Relaxation
from isotone.order import Poset
from isotone.order.exclusive import read_children
from isotone.reading.questions import implied
from isotone.release.manifest import order_to
from isotone.release.order_files import read_order, read_relaxation
from isotone.release.sections import Amount, Listed, Section, Size, Text

if TYPE_CHECKING:
    from isotone.release.spec import Spec

__all__ = ["OrderSection", "spec_order"]


_ONE_WAY = "give the order in one way: elements (and relations), or parents, or file"


class OrderSection(Section):
    """``[order]``: counts over a partial order, given here or in a file. Questions are elements of it."""

    elements: list[str] | None = None
    """The names, with relations; their sequence is that of the release."""
    relations: list[Annotated[tuple[str, str], Listed]] | None = None
    """Pairs [lower, upper]: a yes to lower implies a yes to upper."""
    parents: dict[str, str | list[str]] | None = None
    """The same as a table: name = "what it implies", or a list of them. Other names become elements too."""
    file: Text | None = None
    """The same in a file: .csv with a line per relation, or .json or .toml with such a table."""
    lower: Text = "child"
    """In a CSV file: the column of the lower element, the one that implies."""
    upper: Text = "parent"
    """In a CSV file: the column of the upper element, the one that is implied."""
    choice: Text | None = None
    """In a CSV file: the column that says "exclusive" or "partition" for options of one upper element."""
    children: str | dict[str, str | list[Annotated[tuple[str, list[str]], Listed]]] | None = None
    """What can occur together among the children of an element: "any", "exclusive" or "partition"; or a table by element."""
    mechanism: Text = "best"
    """The name of a mechanism, or "best": the one that the plan puts first."""
    care: str | dict[str, Amount] | None = None
    """Which error is to be small: "nodes", "levels" or "worst"; or a table of weights by element. Public, so never from these data; an earlier private release may fill it in."""
    relaxation: Text | None = None
    """A JSON file with what a search found for an order out of reach, or the manifest of a release that has it."""
    max_size: Size | None = None
    """Records keep at most so many yeses, those nearest to the top; the noise may then be smaller."""
    records: Size | None = None
    """For a hierarchy under replace: the public number of records, to which its root is fixed. It goes with catch_all."""
    catch_all: Text | None = None
    """With records: the leaf below the root for every row that is in no other."""
    total: bool = False
    """Also release the number of records, where the mechanism gives it for free."""

    @property
    def ways(self) -> int:
        """In how many ways the order is given."""
        return sum([self.file is not None, self.parents is not None, self.elements is not None])

    @model_validator(mode="after")
    def _one_source(self) -> OrderSection:
        if self.ways > 1:
            raise ValueError(_ONE_WAY)
        if self.choice is not None and (self.file is None or self.children is not None):
            raise ValueError("choice is a column of a CSV file of the order, and stands in place of children")
        return self

    def complete(self, asked: bool) -> None:
        """Refuse a section without an order, unless questions name its elements."""
        if not self.ways and not asked:
            raise ValueError(f"order: {_ONE_WAY}")

    def order(self, resolve: Callable[[str], Path], asked: Iterable[str] = ()) -> Poset:
        """The partial order. Questions that were ``asked`` are elements, too, and come first."""
        if self.file is not None:
            P = read_order(resolve(self.file), self.lower, self.upper, self.choice, self._children())
            elements = list(dict.fromkeys([*asked, *P.elements]))
            return Poset(elements, P.covers, P.choices) if list(P.elements) != elements else P
        children = self._children() or "any"
        if self.parents is not None:
            return Poset.from_mapping({**dict.fromkeys(asked), **self.parents}, children)
        elements, relations = self.elements or [*asked], [*(self.relations or [])]
        return Poset(elements, relations, read_children(children, elements, [(a, b) for a, b in relations]))

    def _children(self) -> Any:
        """``children``, with the entry "" for the elements that have nothing above them."""
        if not isinstance(self.children, dict):
            return self.children
        return {x or None: said for x, said in self.children.items()}

    def found(self, resolve: Callable[[str], Path]) -> Relaxation | None:
        """What an earlier search found for this order."""
        return None if self.relaxation is None else read_relaxation(resolve(self.relaxation))

    def content(self, resolve: Callable[[str], Path]) -> dict[str, Any]:
        """What the section says, with the contents of its files in place of their names."""
        said = super().content(resolve)
        found = self.found(resolve)
        if found is not None:
            said = {**said, "relaxation": found.plain()}
        return said if self.file is None else {**said, "file": order_to(self.order(resolve))}


def spec_order(spec: Spec) -> Poset:
    """The order of a spec: what ``[order]`` says, all questions, and what follows from their definitions."""
    P = spec.said(OrderSection).order(spec.resolve, spec.asked)
    more = [pair for pair in implied(spec.asked, spec.data.answers) if {*pair} <= {*P.elements}]
    return Poset(P.elements, [*P.covers, *more], P.choices) if more else P
