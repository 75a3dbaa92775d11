"""Every experiment runs in its quick form, and writes data and a picture."""

import pytest

from isotone.cli.reproduction import experiments, load_experiment
from isotone.mechanism import no_progress


@pytest.mark.parametrize("name", sorted(experiments()))
def test_an_experiment_writes_data_and_a_picture(name, tmp_path):
    module = load_experiment(experiments()[name])
    assert (module.__doc__ or "").strip(), "the first line says what the experiment shows"
    module.run(tmp_path, True, no_progress)
    kinds = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert {".csv", ".png"} <= kinds


@pytest.mark.parametrize("name", sorted(experiments()))
def test_the_full_results_of_an_experiment_are_in_the_documentation(name):
    folder = experiments()[name].parents[1] / "docs" / "reproduction" / name.replace("-", "_")
    assert {".csv", ".png"} <= {path.suffix for path in folder.glob("*")}
