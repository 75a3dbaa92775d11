"""Forms that others published, read where they are. None of them is in this repository.

Clone the two repositories at the commits below into one folder, and name it in ISOTONE_FORMS.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from isotone.errors import IsotoneError
from isotone.forms import read_form

pytestmark = pytest.mark.services

FORMS = Path(os.environ.get("ISOTONE_FORMS", "nowhere"))
"""pyxform (BSD-2-Clause) at 51e5bfec, and REDCapR (MIT) at c2abbc19."""

FOUND = {
    "pyxform/tests/bug_example_xls/UCL_Biomass_Plot_Form.xlsx": (31, 17, 14),
    "pyxform/tests/example_xls/choice_filter_test.xlsx": (16, 13, 2),
    "pyxform/tests/example_xls/or_other.xlsx": (13, 11, 1),
    "REDCapR/inst/test-data/projects/longitudinal/dictionary.csv": (155, 87, 0),
    "REDCapR/inst/test-data/projects/survey/dictionary.csv": (45, 31, 0),
    "REDCapR/inst/test-data/projects/clinical-trial-1/dictionary.csv": (16, 11, 0),
}
"""How many questions, relations and remarks each gives."""


@pytest.mark.parametrize("name", FOUND)
def test_published_forms_are_read(name):
    path = FORMS / name
    if not path.exists():
        pytest.skip("the forms of others are not on this machine")
    found = read_form(path)
    assert (len(found.questions), len(found.relations), len(found.problems)) == FOUND[name]
    assert set(found.order().elements) == {question.name for question in found.questions}


def test_every_other_form_of_theirs_is_read_or_refused_in_words():
    paths = [*FORMS.glob("pyxform/tests/**/*.xlsx"), *FORMS.glob("REDCapR/inst/**/*dictionary*.csv")]
    if not paths:
        pytest.skip("the forms of others are not on this machine")
    for path in paths:
        with suppress(IsotoneError):
            read_form(path).order()
