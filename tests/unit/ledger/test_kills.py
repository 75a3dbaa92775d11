"""Kills, crowds and sleepers: whatever happens, one draw costs one charge and what is sealed is kept."""

import signal
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from tests.support.effort import effort
from tests.support.ledger_worker import (
    BUSY,
    FAILED,
    LOST,
    REFUSED,
    SEALED,
    STOPPED,
    event,
    make,
    start_attempt,
    start_creation,
    start_sleeper,
)

from isotone.ledger import Cost, Ledger

KILLED = -signal.SIGKILL
FILTER = {"rho": 500, "composition": "zcdp filter", "final_delta": "1e-6"}


def charged(ledger):
    """How many charges of ε = 1 have been counted: by addition, or as ρ = 1/2 in a filter."""
    return ledger.spent().epsilon + 2 * ledger.spent().rho


def run(process) -> int:
    process.join()
    return process.exitcode


def check_request(place, request, marker, moment):
    """After a kill: run the request to its end, and compare the books with what was drawn."""
    where, dataset = place
    ledger = Ledger(where, dataset=dataset)
    mine = [charge for charge in ledger.charges() if charge.request == request]
    draws = Counter(marker.read_text().split())[request]
    assert draws <= len([c for c in mine if c.state in ("drawn", "sealed")]) <= len(mine) <= 1, moment
    before = charged(ledger)
    code = run(start_attempt(place, request, marker))
    state = mine[0].state if mine else "none"
    assert code == {"none": 0, "reading": 0, "drawn": LOST, "sealed": SEALED}[state], moment
    assert charged(ledger) - before == (state == "none"), moment  # resumed at no cost
    if state == "drawn":
        assert run(start_attempt(place, request, marker, again=True)) == 0
        assert charged(ledger) - before == 1
    assert [charge.release for charge in ledger.sealed(request)] == [f"hash of {request}"], moment
    marked = [c for c in ledger.charges() if c.state in ("drawn", "sealed")]
    assert Counter(marker.read_text().split()).total() <= len(marked) == len(ledger.charges()), moment
    return state


@pytest.mark.parametrize("budget", [{"epsilon": 1000}, FILTER], ids=["addition", "filter"])
def test_a_kill_at_any_step_of_an_attempt_costs_one_charge_for_one_draw(place, tmp_path, budget):
    marker = tmp_path / "drawn"
    marker.touch()
    make(place, **budget)
    seen = Counter()
    for moment in range(1, 400, effort(3 if "://" in place[0] else 7, 1)):
        request = f"r{moment}"
        code = run(start_attempt(place, request, marker, moment))
        if code == 0:
            break
        assert code == KILLED
        seen[check_request(place, request, marker, moment)] += 1
    else:
        pytest.fail("the worker never finished")
    assert set(seen) == {"none", "reading", "drawn", "sealed"}, seen  # kills fell into every state


def free_turns(ledger, request):
    """How often the data of a request was read beyond once a charge, without a signal that had stopped it before."""
    of_request = (
        "dataset = ? AND number IN (SELECT number FROM isotone_charge WHERE dataset = ? AND request = ?)"
    )
    named = (ledger.dataset, ledger.dataset, request)
    ((turns, stopped),) = ledger.store.transact(
        lambda run: run(
            f"SELECT (SELECT count(*) FROM isotone_reading WHERE {of_request}), "
            f"(SELECT count(*) FROM isotone_ending WHERE {of_request} AND manner = 'interrupted')",
            *named,
            *named,
        )
    )
    return turns - stopped - len([charge for charge in ledger.charges() if charge.request == request])


@pytest.mark.parametrize("ending", ["seal", "fail", "interrupt"])
def test_kills_at_any_step_of_attempts_one_after_the_other_make_one_free_turn_at_most(
    place, tmp_path, ending
):
    """Each attempt of a request is killed a little later: in its first turn, when it takes over, when it gives up."""
    marker = tmp_path / "drawn"
    marker.touch()
    ledger = make(place, epsilon=1000)
    seen, last = Counter(), {"seal": 0, "fail": FAILED, "interrupt": STOPPED}[ending]
    for moment in range(1, 400, effort(9, 1)):
        request, codes = f"r{moment}", []
        for turn in range(4):  # who takes over runs some more statements
            codes.append(run(start_attempt(place, request, marker, moment + 6 * turn, ending=ending)))
            assert free_turns(ledger, request) <= 1, (moment, codes)
            if codes[-1] in (0, LOST, SEALED):
                break
        for _ in range(3):  # undisturbed, it ends
            code = run(start_attempt(place, request, marker))
            assert free_turns(ledger, request) <= 1, (moment, codes)
            if code in (0, LOST, SEALED):
                break
            assert code == FAILED, (moment, codes)
        else:
            pytest.fail(f"no end after kills at {moment}: {codes}")
        mine = [charge for charge in ledger.charges() if charge.request == request]
        assert sum(c.state in ("drawn", "sealed") for c in mine) == 1, (moment, mine)
        seen[codes[0]] += 1
        seen["failed by deaths"] += sum(c.state == "failed" for c in mine)
        if codes[0] != KILLED:
            assert codes[0] == last
            break
    else:
        pytest.fail("the worker never finished")
    assert seen[KILLED]
    assert seen["failed by deaths"]
    drawn = [c for c in ledger.charges() if c.state in ("drawn", "sealed")]
    assert Counter(marker.read_text().split()).total() <= len(drawn)


def test_a_kill_at_any_step_of_a_creation_leaves_a_ledger_or_none(tmp_path):
    seen = set()
    for moment in range(1, 400, effort(11, 1)):
        where = str(tmp_path / f"{moment}.ledger")
        code = run(start_creation(where, "survey", moment))
        made = Path(where).exists()
        seen.add(made)
        assert len(Ledger(where).charges()) == 1 if made else True, (
            moment
        )  # made with its charge, or not at all
        assert run(start_creation(where, "survey")) == 0, moment
        assert Ledger(where).spent() == Cost(epsilon=Fraction(1 + made)), moment
        if code == 0:
            break
        assert code == KILLED
    else:
        pytest.fail("the worker never finished")
    assert seen == {False, True}
    assert not list(tmp_path.glob("*.new*"))


def test_creators_at_once_make_one_ledger(place):
    for crowd in range(4):
        where = place[0] if "://" in place[0] else f"{place[0]}{crowd}"
        processes = [start_creation(where, f"{place[1]}{crowd}") for _ in range(6)]
        assert [run(process) for process in processes] == [0] * 6
        assert Ledger(where, dataset=f"{place[1]}{crowd}").spent() == Cost(epsilon=Fraction(6))


def test_a_crowd_with_one_request_makes_one_charge_and_one_draw(place, tmp_path):
    marker = tmp_path / "drawn"
    ledger = make(place)
    crowd = [start_attempt(place, "r", marker) for _ in range(6)]
    assert sorted(run(process) for process in crowd) == [0] + [SEALED] * 5
    assert marker.read_text() == "r\n"
    assert [charge.state for charge in ledger.charges()] == ["sealed"]


def test_a_live_process_is_not_resumed_and_a_dead_one_is(place, tmp_path):
    ledger, marker = make(place), tmp_path / "drawn"
    hold, wake, awake = event(), event(), event()
    awake.set()
    sleeper = start_sleeper(place, "r", hold, wake, marker)
    assert hold.wait(60)
    assert run(start_sleeper(place, "r", event(), awake, marker)) == BUSY  # were it not, it would draw
    assert [charge.state for charge in ledger.charges()] == ["reading"]
    waiter = start_attempt(place, "r", marker)
    sleeper.kill()
    assert run(sleeper) == KILLED
    assert run(waiter) == 0  # the lock went with the process
    assert [charge.release for charge in ledger.charges()] == ["hash of r"]
    assert marker.read_text() == "r\n"


def test_other_requests_do_not_wait(place, tmp_path):
    make(place)
    hold, wake = event(), event()
    sleeper = start_sleeper(place, "r", hold, wake, tmp_path / "drawn")
    assert hold.wait(60)
    assert run(start_attempt(place, "s", tmp_path / "drawn")) == 0
    wake.set()
    assert run(sleeper) == 0


def test_a_sleeper_whose_charge_was_resumed_loses_the_draw(tmp_path):
    place, marker = (str(tmp_path / "survey.ledger"), "survey"), tmp_path / "drawn"
    ledger = make(place)
    hold, wake = event(), event()
    sleeper = start_sleeper(place, "r", hold, wake, marker)
    assert hold.wait(60)
    (tmp_path / "survey.ledger.lock").unlink()  # as a careless person might: the lock is lost, not its holder
    assert run(start_attempt(place, "r", marker)) == 0
    wake.set()
    assert run(sleeper) == REFUSED
    assert marker.read_text() == "r\n"
    assert [charge.release for charge in ledger.charges()] == ["hash of r"]


@pytest.mark.services
def test_a_broken_session_loses_the_lock_and_the_draw(place, tmp_path):
    if "://" not in place[0]:
        pytest.skip("a file has no session")
    ledger, marker = make(place), tmp_path / "drawn"
    hold, wake = event(), event()
    sleeper = start_sleeper(place, "r", hold, wake, marker)
    assert hold.wait(60)
    ledger.store.transact(
        lambda execute: execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
        )
    )
    assert run(start_attempt(place, "r", marker)) == 0
    wake.set()
    assert run(sleeper) == REFUSED
    assert marker.read_text() == "r\n"
