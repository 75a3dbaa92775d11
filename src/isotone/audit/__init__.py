"""Attacks and checks that a stranger can run against any mechanism, ours or another library's."""

from isotone.audit.black_box import Finding, audit
from isotone.audit.exact import ExactFinding, audit_exact

__all__ = ["ExactFinding", "Finding", "audit", "audit_exact"]
