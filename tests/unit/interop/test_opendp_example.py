"""The example that shares one budget between OpenDP's mean and our counts."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "opendp" / "one_budget.py"


def test_the_example_releases_counts_and_a_mean_near_the_truth(capsys):
    *counts, mean = runpy.run_path(str(EXAMPLE))["main"]()
    published = [10_657, 9_173, 7_502, 8_736]  # of the survey; noise with a deviation of about 4
    assert sorted(abs(a - b) for a, b in zip(sorted(counts), sorted(published), strict=True))[-1] < 200
    assert 18 < mean < 99
    assert "spent: ε = 0.75 + 0.25" in capsys.readouterr().out
