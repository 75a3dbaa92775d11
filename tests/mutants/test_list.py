"""The list of planted faults fits the code: no old text has gone, and every named test exists."""

import pytest

from tests.mutants.faults import Fault, misplaced, read_faults

PACKAGES = {
    "audit", "counts", "curves", "interop", "ledger", "noise", "order", "privacy", "published", "reading", "release",
    "tables",
}  # fmt: skip


def test_every_fault_can_be_planted_and_names_tests_that_exist():
    assert [reason for fault in read_faults() if (reason := misplaced(fault))] == []


def test_the_list_is_long_and_covers_every_package():
    faults = read_faults()
    assert len(faults) >= 150
    assert {fault.module.partition("/")[0] for fault in faults} >= PACKAGES
    assert len({(fault.module, fault.old, fault.new) for fault in faults}) == len(faults)


@pytest.mark.parametrize("text", ["", "a = 1", "a = 2\na = 2"])
def test_a_text_that_is_not_there_exactly_once_is_refused(text):
    with pytest.raises(ValueError, match="not once"):
        Fault("f-1", "m.py", "a = 2", "a = 3", ("t",)).planted(text)
