"""What an audit of one mechanism found, by its density and by draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isotone.audit.black_box import Finding
from isotone.audit.exact import ExactFinding

__all__ = ["AuditReport"]


@dataclass(frozen=True)
class AuditReport:
    """What was found about one mechanism. By its density where there is one, and by draws."""

    findings: tuple[Finding | ExactFinding, ...]

    @property
    def broken(self) -> bool:
        """Whether any finding proves that the guarantee is broken."""
        return any(finding.broken for finding in self.findings)

    def plain(self) -> dict[str, Any]:
        """The findings as plain values."""
        return {
            "broken": self.broken,
            "findings": [{**vars(finding), "broken": finding.broken} for finding in self.findings],
        }

    def __str__(self) -> str:
        return "\n".join(
            f"{'by its density' if isinstance(finding, ExactFinding) else 'by draws'}: {finding}"
            for finding in self.findings
        )
