"""The section of a spec that asks for counts over a partial order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import model_validator

from isotone.order import Poset
from isotone.release.manifest import order_to
from isotone.release.order_files import read_order
from isotone.release.sections import Section, Size, Text

if TYPE_CHECKING:
    pass

__all__ = ["Order"]


class Order(Section):
    """``[order]``: counts over a partial order, given here or in a file."""

    elements: list[str] | None = None
    """The names, with relations; their sequence is that of the release."""
    relations: list[tuple[str, str]] | None = None
    """Pairs [lower, upper]: a yes to lower implies a yes to upper."""
    parents: dict[str, str | list[str]] | None = None
    """The same as a table: name = "what it implies", or a list of them. Other names become elements too."""
    file: Text | None = None
    """The same in a file: .csv with a line per relation, or .json or .toml with such a table."""
    lower: Text = "child"
    """In a CSV file: the column of the lower element, the one that implies."""
    upper: Text = "parent"
    """In a CSV file: the column of the upper element, the one that is implied."""
    mechanism: Text = "best"
    """The name of a mechanism, or "best": the one that the plan puts first."""
    max_size: Size | None = None
    """Records keep at most so many yeses, those nearest to the top; the noise may then be smaller."""
    total: bool = False
    """Also release the number of records, where the mechanism gives it for free."""

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("relations"), list):
            given = {
                **given,
                "relations": [tuple(x) if isinstance(x, list) else x for x in given["relations"]],
            }
        return given

    @model_validator(mode="after")
    def _one_source(self) -> Order:
        ways = [self.file is not None, self.parents is not None, self.elements is not None]
        if sum(ways) != 1:
            raise ValueError("give the order in one way: elements (and relations), or parents, or file")
        return self

    def order(self, resolve: Callable[[str], Path]) -> Poset:
        """The partial order."""
        if self.file is not None:
            return read_order(resolve(self.file), self.lower, self.upper)
        if self.parents is not None:
            return Poset.from_mapping({**self.parents})
        return Poset(self.elements or [], self.relations or [])

    def content(self, resolve: Callable[[str], Path]) -> dict[str, Any]:
        """What the section says, with the relations of a file in place of its name."""
        said = super().content(resolve)
        return said if self.file is None else {**said, "file": order_to(self.order(resolve))}
