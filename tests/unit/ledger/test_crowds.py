"""Many threads of many processes at one ledger file: no charge is lost, and none fails."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from fractions import Fraction

from tests.support.effort import effort

from isotone.ledger import Cost, Ledger

PROCESSES, THREADS = 3, 4

CROWD = """
import sys, threading
from isotone.errors import LedgerError
from isotone.ledger import open_or_start
from isotone.privacy.guarantee import Guarantee

folder, process, threads, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
small, made, failed = Guarantee.pure("1/1000", unit="person"), [], []

def look():
    # as a spec with a mistyped ledger does: it looks at every file of the folder
    try:
        open_or_start(folder + "/other.ledger", epsilon=1)
    except LedgerError as error:
        if "its folder has" not in str(error):
            failed.append(str(error))
    else:
        failed.append("a second budget")

def charge(thread):
    for time in range(times):
        name = f"{process}.{thread}.{time}"
        try:
            made.append(open_or_start(folder + "/survey.ledger", epsilon=100, unit="person").charge(small, name).description)
            if time % 5 == 0:
                look()
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}")

crowd = [threading.Thread(target=charge, args=(thread,)) for thread in range(threads)]
for one in crowd:
    one.start()
for one in crowd:
    one.join()
print("\\n".join(made))
sys.exit("\\n".join(failed) or None)
"""


def test_a_crowd_of_threads_and_processes_loses_no_charge(tmp_path):
    times = effort(8, 2_000)
    where = [str(tmp_path)]
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", CROWD, *where, str(process), str(THREADS), str(times)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(PROCESSES)
    ]
    said = [one.communicate() for one in crowd]
    assert [err for _, err in said] == [""] * PROCESSES
    made = Counter(line for out, _ in said for line in out.split())
    assert made.total() == len(made) == PROCESSES * THREADS * times
    ledger = Ledger(tmp_path / "survey.ledger")
    assert Counter(charge.description for charge in ledger.charges()) == made
    assert ledger.spent() == Cost(epsilon=Fraction(made.total(), 1000))
    assert [charge.number for charge in ledger.charges()] == list(range(1, made.total() + 1))
