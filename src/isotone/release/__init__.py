"""Releases from start to end, with ledger, manifest, spec and report."""

from isotone.audit.exact import AuditReport
from isotone.ledger import Charge, Cost, Ledger
from isotone.reading.questions import Answers
from isotone.reading.sources import SourceError
from isotone.release.checking.contents import DeskReport, check_spec
from isotone.release.exporting.export import export
from isotone.release.kinds.counts.release import release_counts
from isotone.release.kinds.curve.release import release_curve
from isotone.release.kinds.surface.release import release_surface
from isotone.release.kinds.table.release import release_table
from isotone.release.manifest import Manifest
from isotone.release.order_files import describe_order, load_order, read_order
from isotone.release.reader_questions import combine
from isotone.release.result import Release, load_release
from isotone.release.spec import Spec, load_spec
from isotone.release.spec_plan import SpecPlan
from isotone.release.spec_schema import spec_schema
from isotone.release.steward import audit_name, audit_spec, plan_spec, release_spec
from isotone.release.verifying.verify import Verdict, verify
from isotone.release.waves import WavePlan, plan_waves

__all__ = [
    "Answers",
    "AuditReport",
    "Charge",
    "Cost",
    "DeskReport",
    "Ledger",
    "Manifest",
    "Release",
    "SourceError",
    "Spec",
    "SpecPlan",
    "Verdict",
    "WavePlan",
    "audit_name",
    "audit_spec",
    "check_spec",
    "combine",
    "describe_order",
    "export",
    "load_order",
    "load_release",
    "load_spec",
    "plan_spec",
    "plan_waves",
    "read_order",
    "release_counts",
    "release_curve",
    "release_spec",
    "release_surface",
    "release_table",
    "spec_schema",
    "verify",
]
