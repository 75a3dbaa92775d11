"""What counts as a caught fault: a test that fails, and not one that cannot run."""

import pytest

from tests.mutants.faults import Fault
from tests.mutants.trial import plant, run_tests

TESTS = {
    "passes": ("def test_it(): pass", "passed", ""),
    "fails": ("def test_it(): assert 1 == 2", "failed", "test_it.py::test_it (AssertionError)"),
    "raises": ("def test_it(): {}['a']", "failed", "test_it.py::test_it (KeyError)"),
    "has a broken import": ("import isotone.nothing\ndef test_it(): pass", "error", "exit code 2"),
    "imports too late": ("def test_it(): import isotone.nothing", "error", "broken code"),
    "names nothing": ("def test_it(): return unheard_of", "error", "broken code"),
    "is no text of Python": ("def test_it(: pass", "error", "exit code 2"),
    "has no tests": ("", "error", "exit code 5"),
    "ends the process": ("import os\ndef test_it(): os._exit(1)", "error", "exit code 1"),
    "waits for ever": ("import time\ndef test_it(): time.sleep(60)", "error", "did not end within 1 s"),
}


@pytest.mark.parametrize("name", TESTS)
def test_the_outcome_of_a_file_that(name, tmp_path):
    text, outcome, why = TESTS[name]
    (tmp_path / "test_it.py").write_text(text)
    trial = run_tests(tmp_path, ["test_it.py"], 1 if "sleep" in text else 60)
    assert trial.outcome == outcome
    assert why in trial.why


def test_a_fault_is_in_the_copy_while_its_tests_run_and_not_after(tmp_path):
    module = tmp_path / "src" / "isotone" / "rates.py"
    module.parent.mkdir(parents=True)
    module.write_text("RATE = 1\n")
    module.with_name("__init__.py").touch()
    (tmp_path / "test_it.py").write_text("from isotone.rates import RATE\ndef test_it(): assert RATE == 1")
    fault = Fault("rates-1", "rates.py", "RATE = 1", "RATE = 2", ("test_it.py",))
    assert run_tests(tmp_path, fault.tests, 60).outcome == "passed"
    with plant(fault, tmp_path):
        assert run_tests(tmp_path, fault.tests, 60).outcome == "failed"
    assert run_tests(tmp_path, fault.tests, 60).outcome == "passed"
