"""However reading ends, the end says nothing about the data: one state, one sentence, and silence on every stream."""

import ctypes
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support import flat

import isotone as iso
from isotone.errors import InputError
from isotone.ledger import AttemptError
from isotone.process import silent
from isotone.reading.sources import SourceError
from isotone.release.pipeline import Job

P = iso.Poset.chain(["ill"])
NAME = "Ann Miller"


class Panic(BaseException):
    """As polars raises where Rust panicked."""


def data(rows=9):
    return pd.DataFrame({"person": range(rows), "ill": [1] * rows})


def release(ledger, **options):
    return flat.counts(data(), P, epsilon=1, ledger=ledger, unit="person", **options)


def with_fault(monkeypatch, fault):
    """Reading meets a fault, and the rehearsal does not."""
    read = Job.read

    def faulty(self, frame):
        statistic = read(self, frame)
        if int(np.asarray(statistic[0] if isinstance(statistic, tuple) else statistic.counts).sum()):
            fault()
        return statistic

    monkeypatch.setattr(Job, "read", faulty)


def raising(error):
    def fault():
        try:
            raise ValueError(NAME)
        except ValueError as cause:
            raise error from cause

    return fault


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError(NAME),
        Panic(NAME),
        SourceError(NAME),
        InputError(NAME),
        KeyboardInterrupt(NAME),
        SystemExit(NAME),
        MemoryError(NAME),
        UnicodeDecodeError("utf-8", NAME.encode(), 0, 1, NAME),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_new_kind_of_error_in_a_reader_ends_like_every_other(tmp_path, monkeypatch, error):
    with_fault(monkeypatch, raising(error))
    ledger = iso.Ledger(tmp_path / "a.ledger", epsilon=2)
    for number in (1, 2):  # it is not resumed: each time it costs
        with pytest.raises(AttemptError) as caught:
            release(ledger, request="r", folder=tmp_path / "out")
        assert str(caught.value) == (
            f"Charge {number} failed while the data was read. Nothing was drawn or released, and it stays spent. What went "
            "wrong is not told, since it may depend on what the data holds; 'isotone check' may look at that."
        )
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert [charge.state for charge in ledger.charges()] == ["failed"] * number
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger", "a.ledger.lock"]


LOUD = """
import ctypes, logging, os, sys, warnings
import numpy as np, pandas as pd
import isotone as iso
from isotone.release.pipeline import Job

seen = []
kept, log, read, name = sys.stderr, logging.getLogger("engine"), Job.read, sys.argv[2]
log.addHandler(logging.StreamHandler())
log.addHandler(logging.FileHandler(sys.argv[1] + ".log"))  # as a notebook's, it leads past the descriptors
libc = ctypes.CDLL(None)

def loud(self, frame):
    if not os.path.exists(sys.argv[1]) and len(sys.argv) < 4:  # the rehearsal, before the first charge
        return read(self, frame)
    for number in (1, 2):
        os.write(number, name.encode())
    libc.printf(name.encode())  # stays in the buffer of the C library
    os.system(f"echo {name}; echo {name} >&2")
    print(name, flush=True)
    print(name, file=sys.stderr, flush=True)
    print(name, file=kept, flush=True)
    sys.__stdout__.write(name)
    log.error(name)
    logging.error(name)
    warnings.warn(name)
    type(name, (), {"__del__": lambda self: 1 / 0})()  # which Python reports, as nobody can catch it
    seen.append(1)
    return read(self, frame)

Job.read = loud
print("before")
ledger = iso.Ledger(sys.argv[1], epsilon=1)
survey = iso.Counts(iso.Poset.chain(["ill"]), unit="person")
survey.release(pd.DataFrame({"person": range(9), "ill": 1}), epsilon=1, ledger=ledger,
               progress=lambda fraction, what: print(f"{fraction:.0%}", what, file=sys.stderr, flush=True))
print("after", len(seen))
log.error("heard again")
"""


def loud(tmp_path, *more):
    where = [str(tmp_path / "a.ledger"), "Ann"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-c", LOUD, *where, *more], capture_output=True, text=True, check=False, env=buffered
    )


def test_nothing_that_a_library_prints_is_seen(tmp_path):
    """Whether it writes to a descriptor, a stream, a log or a buffer; our own progress is heard."""
    done = loud(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "before\nafter 1\n"
    assert done.stderr == (
        "0% rehearsing\n10% charging the ledger\n20% reading where the data is\n80% adding noise\n"
        "95% writing the report\n100% done\nheard again\n"
    )
    assert (tmp_path / "a.ledger.log").read_text() == "heard again\n"


def test_the_loud_library_is_loud(tmp_path):
    """In the rehearsal, which reads no data, nothing is silenced."""
    done = loud(tmp_path, "and loud in the rehearsal too")
    assert done.stdout.count("Ann") == 5
    assert done.stderr.count("Ann") >= 7


def test_releases_in_threads_open_the_streams_with_the_last_of_them(capfd):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with silent(lambda *_: None):
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(60)
    with silent(lambda *_: None):
        os.write(2, b"both")
    os.write(2, b"one is still reading")
    print("one is still reading")
    leave.set()
    thread.join()
    os.write(2, b"open")
    print("open")
    assert logging.root.manager.disable == 0
    out, err = capfd.readouterr()
    assert (out, err) == ("open\n", "open")


def test_streams_that_are_closed_stay_closed(tmp_path):
    """A service may have no standard streams at all, and other files where they would be."""
    code = (
        "import os, sys\n"
        "from isotone.process import silent\n"
        "assert sys.stdout is sys.stderr is None\n"
        "files = [os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT) for _ in range(2)]\n"  # they are 1 and 2 now
        "with silent(lambda *_: None) as tell:\n"
        "    tell(0.5, 'half')\n"
        "    os.write(files[0], b'done')\n"
        "assert sys.stdout is sys.stderr is None and files == [1, 2]\n"
    )
    (tmp_path / "code.py").write_text(code)
    shell = f"exec '{sys.executable}' '{tmp_path / 'code.py'}' '{tmp_path / 'note'}' >&- 2>&-"
    subprocess.run(["sh", "-c", shell], check=True)
    assert Path(tmp_path / "note").read_text() == "done"


def test_the_c_library_is_there_to_be_flushed():
    assert ctypes.CDLL(None).fflush(None) == 0
