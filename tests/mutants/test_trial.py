"""What counts as a caught fault: a test that fails, and not one that cannot run."""

import os
import signal

import pytest

from tests.mutants.at_random import verdict
from tests.mutants.faults import Fault
from tests.mutants.trial import Trial, plant, run_tests
from tests.mutants.warm import Warm

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


VERDICTS = [
    (Trial("passed", "", 1.0), "survives"),
    (Trial("failed", "test_it.py::test_it (AssertionError)", 1.0), "caught"),
    (Trial("error", "broken code: test_it.py::test_it (NameError)", 1.0), "caught"),
    (Trial("error", "test_it.py::test_it did not end within its time of the processor", 9.0), "endless"),
    (Trial("error", "the tests did not end within their time of the processor", 9.0), "endless"),
    (Trial("error", "the tests did not end within 900 s", 9.0), "lost"),
    (Trial("error", "test_it.py::test_it ended the process with -9", 1.0), "lost"),
    (Trial("error", "the fork failed: MemoryError", 1.0), "lost"),
    (Trial("error", "exit code 2\nSyntaxError", 1.0), "broken"),
    (Trial("error", "exit code 5\nno tests ran", 1.0), "lost"),
]


@pytest.mark.parametrize(("trial", "word"), VERDICTS)
def test_only_a_test_that_failed_catches_a_fault_that_was_drawn(trial, word):
    assert verdict(trial) == word


def test_a_fork_that_is_killed_catches_nothing(tmp_path):
    class Item:
        nodeid = "test_it.py::test_it"

        class config:  # noqa: N801 - as pytest calls it
            class pluginmanager:  # noqa: N801
                register = staticmethod(lambda plugin: None)

            class hook:  # noqa: N801
                @staticmethod
                def pytest_runtest_protocol(item, nextitem):
                    os.kill(os.getpid(), signal.SIGKILL)

    trial = Warm(tmp_path, []).run([Item()], None, 60, {})
    assert trial is not None
    assert (trial.outcome, verdict(trial)) == ("error", "lost")
