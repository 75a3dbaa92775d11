"""The steward's path: sources to statistics, mechanisms to releases; ledger, manifest, spec and report."""

from isotone.ledger import Charge, Cost, Ledger
from isotone.reading.answers import Answers
from isotone.reading.sources import SourceError
from isotone.release.auditing import AuditReport, audit_name, audit_spec
from isotone.release.count_release import release_counts
from isotone.release.curve_release import release_curve
from isotone.release.desk import DeskReport, check_spec
from isotone.release.order_files import load_order, read_order
from isotone.release.planning import SpecPlan, describe_order, plan_spec
from isotone.release.result import Release, load_release
from isotone.release.spec import Spec, load_spec
from isotone.release.steward import release_spec
from isotone.release.table_release import release_table
from isotone.release.verify import Verdict, verify

__all__ = [
    "Answers",
    "AuditReport",
    "Charge",
    "Cost",
    "DeskReport",
    "Ledger",
    "Release",
    "SourceError",
    "Spec",
    "SpecPlan",
    "Verdict",
    "audit_name",
    "audit_spec",
    "check_spec",
    "describe_order",
    "load_order",
    "load_release",
    "load_spec",
    "plan_spec",
    "read_order",
    "release_counts",
    "release_curve",
    "release_spec",
    "release_table",
    "verify",
]
