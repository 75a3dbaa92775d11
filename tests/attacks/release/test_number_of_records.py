"""Under replace the number of records is what a steward states: nothing that is published may come from the data's own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.counts import DifferenceBodyMechanism, GroupedDifferenceMechanism
from isotone.errors import InputError
from isotone.release import verify
from isotone.release.report import report_html
from isotone.release.result import seal

P = iso.Poset(["hyp", "meds"], [("meds", "hyp")])
PEOPLE = pd.DataFrame({"person": [1, 2, 3, 4], "hyp": [1, 1, 0, 0], "meds": [1, 0, 0, 0], "g": list("abab")})
DROPPED = PEOPLE.assign(person=[1, 2, None, 4])  # the third unit is replaced by one whose record is dropped
REPLACE: dict[str, Any] = {"epsilon": 1, "unit": "person", "neighbours": "replace"}


def published(folder: Path, data: pd.DataFrame, **options: Any) -> str:
    """All that is published, but for the time and the number of the charge."""
    ledger = iso.Ledger(folder / "people.ledger", epsilon=9, neighbours="replace", unit="person")
    release = flat.counts(data, P, ledger=ledger, again=True, **(REPLACE | options))
    same: dict[str, Any] = {"time": "", "charge": 0, "request": "", "content_hash": None}
    manifest = replace(release.manifest, **same)
    return f"{release.columns}{manifest.plain()}" + re.sub(
        r"[0-9a-f]{16,}|\d{4}-\d\d-\d\d[^<]*|charge \d+", "", report_html(release)
    )


@pytest.mark.parametrize("options", [{}, {"by": "g", "groups": ["a", "b"]}], ids=["alone", "groups"])
def test_two_data_sets_with_other_numbers_of_records_publish_the_same(tmp_path, monkeypatch, options):
    """Their counts agree, so with the noise switched off every byte must."""
    monkeypatch.setattr(DifferenceBodyMechanism, "_integer_noise", lambda self, _: np.zeros(2, np.int64))
    monkeypatch.setattr(
        GroupedDifferenceMechanism, "_group_noise", lambda self, _: np.zeros((2, 2), np.int64)
    )
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert published(tmp_path / "one", PEOPLE, **options) == published(tmp_path / "two", DROPPED, **options)


@pytest.mark.parametrize("name", ["DifferenceBodyMechanism", None])
def test_no_total_comes_with_noise_for_differences(tmp_path, name):
    ledger = iso.Ledger(tmp_path / "people.ledger", epsilon=9, neighbours="replace", unit="person")
    with pytest.raises(InputError, match="does not give the number of records"):
        flat.counts(PEOPLE, P, ledger=ledger, total=True, mechanism=name, **REPLACE)
    assert ledger.spent().epsilon == 0


def test_a_draw_for_each_group_that_was_forged_is_not_believed(tmp_path):
    """Noise for replacing within a group costs twice where a unit may change groups."""
    ledger = iso.Ledger(tmp_path / "people.ledger", epsilon=9, neighbours="replace", unit="person")
    asked: dict[str, Any] = {"by": "g", "groups": ["a", "b"], "mechanism": "DifferenceBodyMechanism"}
    release = flat.counts(PEOPLE, P, ledger=ledger, **REPLACE, **asked)
    assert release.manifest.mechanism["epsilon"] == "1/2"
    lie = {**release.manifest.mechanism, "epsilon": "1", "neighbours": "replace"}
    forged = seal(release.columns, replace(release.manifest, mechanism=lie, content_hash=None, files=None))
    forged.save(tmp_path / "out", report=False)
    assert not verify(tmp_path / "out")["guarantee"].holds
