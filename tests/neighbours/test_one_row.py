"""One row changes nothing for the others, for every way in, every form of a source and every type of a column."""

from __future__ import annotations

import pytest

from tests.neighbours.entries import ENTRIES
from tests.neighbours.one_row import covering, difference, random_cases
from tests.neighbours.sources import SERVICES
from tests.support.effort import CLOSELY


@pytest.mark.parametrize("entry", ENTRIES)
def test_one_row_changes_nothing_for_the_others(entry):
    """Every form, and with it every type; one in eight also through rehearsal and ledger."""
    seeds = range(5) if ENTRIES[entry].of_arrays else [0]  # these are read without an engine, at little cost
    cases = [case for seed in seeds for case in covering(seed) if case.entry == entry]
    assert [found for case in cases if (found := difference(case))] == []


def test_a_release_that_is_charged_ends_in_the_same_way_with_and_without_a_unit():
    assert [found for case in random_cases(12, 1) if (found := difference(case, charged=True))] == []


def test_no_text_of_one_row_is_taken_for_lines_of_others():
    """A column that nobody asks for holds texts with line endings, as writers of CSV leave them."""
    assert [found for case in random_cases(20, 3, ["CSV"]) if (found := difference(case))] == []


@pytest.mark.services
@pytest.mark.parametrize("form", SERVICES)
def test_one_row_changes_nothing_for_the_others_in_a_service(form):
    cases = [*covering(2, [form]), *(random_cases(40, 2, [form]) if CLOSELY else ())]
    assert [found for case in cases if (found := difference(case))] == []
