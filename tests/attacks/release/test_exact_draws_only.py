"""No release of any kind makes seeded draws: they are for planning, and whoever knows the seed knows the noise."""

import pytest
from tests.support.small_releases import saved

from isotone.privacy.draws import SeededDraws
from isotone.release import load_release


@pytest.mark.parametrize(
    "sort", ["counts", "breakdown", "table", "curve", "distribution", "survival", "series of the past"]
)
def test_a_release_makes_no_seeded_draws(sort, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(SeededDraws, "__init__", lambda *_: made.append("seeded draws"))
    load_release(saved(sort, tmp_path))
    assert made == []
