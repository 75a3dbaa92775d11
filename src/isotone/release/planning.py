"""The plan of a spec says what would be released, by which mechanism, with what error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from isotone.privacy.checks import whole_number

__all__ = ["SpecPlan"]


@dataclass(frozen=True)
class SpecPlan:
    """A plan for people (``view``, which rich can print) and for programs (``plain``)."""

    view: Any
    values: dict[str, Any]
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """The plan as plain values."""
        return self.values

    def with_bounding(self, rows_per_unit: int, contributions: int, *, combined: bool) -> SpecPlan:
        """The plan, and what bounding contributions costs for a guessed number of rows a unit.

        ``combined``: all rows of a unit make one record, so that none is left out.
        """
        rows = whole_number(rows_per_unit, "rows_per_unit")
        share = 1.0 if combined else min(contributions / rows, 1.0)
        guess = f"If a unit has {rows} row{'s' * (rows > 1)}, as you guess: "
        if combined:
            note = f"{guess}they are combined into one record, and none is left out."
        elif share < 1:
            note = (
                f"{guess}{contributions} of them count, chosen by chance, so that the release is about {share:.0%} of "
                f"all rows. With contributions = {rows} none is left out, and the noise is that of {rows} rows a unit."
            )
        else:
            note = f"{guess}none is left out."
        values = {**self.values, "rows_per_unit": rows, "share_of_rows": share}
        return replace(self, values=values, note=note)

    def __rich__(self) -> Any:
        if not self.note:
            return self.view
        from rich.console import Group

        return Group(self.view, self.note)

    def __str__(self) -> str:
        return f"{self.view}\n{self.note}" if self.note else str(self.view)
