"""What the steward should know about the contents of a table. Nothing here is private."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.release.checking.findings import numbers, unlisted
from isotone.release.kinds.table.section import TableSection

if TYPE_CHECKING:
    from isotone.release.spec import Spec

__all__ = ["check_table"]


def check_table(spec: Spec, source: Any) -> list[str]:
    """Rows outside the list of categories, and counts that are no numbers or outside their range."""
    table = spec.said(TableSection)
    lines = unlisted(source, table.category, table.names(spec.resolve), "a category")
    columns = [table.count] if table.count else table.counts if table.counts and table.kind is None else []
    for column in columns:
        lines += numbers(source, column, 0, table.upper, whole=True)
    return lines
