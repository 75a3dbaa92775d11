"""The example that calibrates a classifier's scores in a scikit-learn pipeline."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "classifier-calibration" / "calibrate.py"


def test_private_calibration_repairs_a_classifier_that_is_too_sure(capsys):
    before, after = runpy.run_path(str(EXAMPLE))["main"]().values()
    assert after < before - 0.01
    assert "guaranteed: ε-DP with ε = 1, add-remove one record" in capsys.readouterr().out
