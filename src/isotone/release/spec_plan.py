"""The plan of a spec says what would be released, by which mechanism, with what error."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isotone.errors import InputError
from isotone.planning.plan import Plan
from isotone.privacy.checks import whole_number
from isotone.release.result import write_file

__all__ = ["SpecPlan"]


@dataclass(frozen=True)
class SpecPlan:
    """A plan for people, which rich can print, and for programs (``plain``).

    ``view`` compares mechanisms, and is None where nothing can be said about errors without the data. ``before`` and
    ``note`` are said around it.
    """

    view: Plan[Any] | None
    values: dict[str, Any]
    before: str = ""
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

    def write_found(self, path: str | os.PathLike[str]) -> None:
        """Write what was found for an order out of reach in a JSON file, which ``relaxation`` in ``[order]`` can name."""
        found = getattr(self.view, "relaxation", None)
        if found is None:
            raise InputError("Nothing was searched for: the order is within exact reach, or has two levels.")
        write_file(Path(path), json.dumps(found.plain(), ensure_ascii=False) + "\n")

    def _parts(self) -> list[Any]:
        return [part for part in (self.before, self.view, self.note) if part]

    def __rich__(self) -> Any:
        from rich.console import Group

        return Group(*self._parts())

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts()))
