"""The states of a charge, and under which conditions an attempt is resumed."""
# ruff: noqa: PT012 - the block of an attempt is what is tested

import os
import threading
from fractions import Fraction

import pytest
from tests.support.ledger_worker import make

from isotone.errors import BudgetError, InputError, LedgerError
from isotone.ledger import Attempt, BusyError, Cost, Ledger, LostError, SealedError
from isotone.privacy.guarantee import Guarantee

ONE = Guarantee.pure(1)


def states(ledger):
    return [charge.state for charge in ledger.charges()]


def interrupt(ledger, request, guarantee=ONE):
    """An attempt whose process is interrupted before the draw."""
    with pytest.raises(KeyboardInterrupt), ledger.attempt(guarantee, request=request):
        raise KeyboardInterrupt


def lose(ledger, request):
    """An attempt that is drawn and not sealed."""
    with pytest.raises(OSError, match="disk") as caught, ledger.attempt(ONE, request=request) as attempt:
        attempt.draw()
        raise OSError("disk")
    return caught.value


def test_an_attempt_goes_through_durable_states(place):
    ledger = make(place)
    reader = Ledger(place[0], dataset=place[1])
    with ledger.attempt(ONE, request="r", description="counts", mechanism="M") as attempt:
        assert (attempt.resumed, attempt.charge.state, states(reader)) == (False, "charged", ["charged"])
        attempt.draw()
        assert (attempt.charge.state, states(reader)) == ("drawn", ["drawn"])
        attempt.seal("hash")
        assert (attempt.charge.state, states(reader)) == ("sealed", ["sealed"])
    (charge,) = reader.sealed("r")
    assert charge == attempt.charge
    assert (charge.release, charge.request, charge.description, charge.mechanism) == (
        "hash",
        "r",
        "counts",
        "M",
    )
    assert reader.spent() == Cost(epsilon=Fraction(1))


def test_an_error_before_the_draw_fails_and_stays_spent(place):
    ledger = make(place)
    with pytest.raises(ZeroDivisionError) as caught, ledger.attempt(ONE, request="r") as attempt:
        1 / 0
    assert caught.value.__notes__ == ["Charge 1 failed before the draw. It stays spent."]
    assert (attempt.charge.state, states(ledger)) == ("failed", ["failed"])
    with ledger.attempt(ONE, request="r") as second:
        assert not second.resumed
        second.draw()
        second.seal("hash")
    assert states(ledger) == ["failed", "sealed"]
    assert ledger.remaining() == Cost()


@pytest.mark.parametrize(
    ("request_", "said"),
    [("r", "takes it over at no cost"), (None, "it stays spent")],
    ids=["named", "unnamed"],
)
def test_an_error_that_cannot_be_recorded_says_what_becomes_of_the_charge(place, monkeypatch, request_, said):
    ledger = make(place)

    def full(self, state):
        raise LedgerError("the disk is full")

    with (
        monkeypatch.context() as patch,
        pytest.raises(ZeroDivisionError) as caught,
        ledger.attempt(ONE, request=request_),
    ):
        patch.setattr(Attempt, "_outcome", full)
        1 / 0
    (note,) = caught.value.__notes__
    assert "could not be recorded" in note
    assert note.endswith(f"{said}.")
    assert states(ledger) == ["charged"]
    with ledger.attempt(ONE, request=request_) as second:
        assert second.resumed == (request_ is not None)


def test_a_block_that_ends_without_a_draw_fails(place):
    ledger = make(place)
    with ledger.attempt(ONE, request="r"):
        pass
    assert states(ledger) == ["failed"]


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupted_attempt_is_resumed_at_no_cost(place, signal):
    ledger = make(place, epsilon=1)
    with pytest.raises(signal), ledger.attempt(ONE, request="r") as first:
        raise signal
    assert states(ledger) == ["charged"]
    with ledger.attempt(ONE, request="r") as second:  # although nothing is left
        assert second.resumed
        assert second.charge == first.charge
        second.draw()
        second.seal("hash")
    assert states(ledger) == ["sealed"]
    assert ledger.spent() == Cost(epsilon=Fraction(1))


def test_another_request_resumes_nothing(place):
    ledger = make(place, epsilon=1)
    interrupt(ledger, "r")
    for other in ("s", None):
        with pytest.raises(BudgetError), ledger.attempt(ONE, request=other):
            pytest.fail("a charge of another request was taken over")


def test_data_without_a_name_is_never_resumed(place):
    ledger = make(place)
    interrupt(ledger, None)
    with ledger.attempt(ONE) as attempt:
        assert not attempt.resumed
        attempt.draw()
        attempt.seal("hash")
    assert states(ledger) == ["charged", "sealed"]


def test_a_plain_charge_is_never_resumed(place):
    """It may have been drawn: only an attempt guarantees that nothing was drawn before the mark."""
    ledger = make(place)
    ledger.charge(ONE, spec="r")
    with ledger.attempt(ONE, request="r") as attempt:
        assert not attempt.resumed


def test_a_request_with_another_price_is_not_resumed(place):
    ledger = make(place)
    interrupt(ledger, "r", Guarantee.pure("1/2"))
    with pytest.raises(LedgerError, match="now asks for ε = 1"), ledger.attempt(ONE, request="r"):
        pytest.fail("drawn at the price of a cheaper charge")
    assert ledger.spent() == Cost(epsilon=Fraction(1, 2))


def test_a_sealed_request_is_not_charged_again_unless_asked(place):
    ledger = make(place)
    for again in (False, True):
        with ledger.attempt(ONE, request="r", again=again) as attempt:
            attempt.draw()
            attempt.seal(f"hash {again}")
    with pytest.raises(SealedError, match="released before") as caught, ledger.attempt(ONE, request="r"):
        pytest.fail("drawn twice")
    assert caught.value.charge.release == "hash False"
    assert [charge.release for charge in ledger.sealed("r")] == ["hash False", "hash True"]
    assert ledger.remaining() == Cost()


def test_a_second_draw_that_was_interrupted_is_resumed_too(place):
    ledger = make(place)
    with ledger.attempt(ONE, request="r") as attempt:
        attempt.draw()
        attempt.seal("hash")
    with pytest.raises(KeyboardInterrupt), ledger.attempt(ONE, request="r", again=True):
        raise KeyboardInterrupt
    with pytest.raises(SealedError), ledger.attempt(ONE, request="r"):
        pytest.fail("drawn twice")
    with ledger.attempt(ONE, request="r", again=True) as attempt:
        assert attempt.resumed
        attempt.draw()
        attempt.seal("hash 2")
    assert states(ledger) == ["sealed", "sealed"]


def test_what_was_drawn_and_not_sealed_is_lost_and_says_so(place):
    ledger = make(place)
    error = lose(ledger, "r")
    assert any("not sealed" in note and "lost" in note for note in error.__notes__)
    assert states(ledger) == ["drawn"]
    assert "lost" in ledger.charges()[0].meaning
    with pytest.raises(LostError, match=r"lost.*stays spent") as caught, ledger.attempt(ONE, request="r"):
        pytest.fail("a second draw without being asked for")
    assert caught.value.charge.number == 1
    assert ledger.spent() == Cost(epsilon=Fraction(1))
    with ledger.attempt(ONE, request="r", again=True) as attempt:
        assert not attempt.resumed
        attempt.draw()
        attempt.seal("hash")
    assert states(ledger) == ["drawn", "sealed"]


def test_who_loses_the_draw_stops_undrawn(place):
    """The lock is gone (a removed file, a broken session), and the charge was taken over while its owner slept."""
    ledger = make(place)
    with (
        pytest.raises(LedgerError, match="Nothing was drawn here"),
        ledger.attempt(ONE, request="r") as sleeper,
    ):
        rival = Ledger(place[0], dataset=place[1])
        rival.store.transact(lambda run: run("INSERT INTO isotone_outcome VALUES (?, 1, 'drawn')", place[1]))
        sleeper.draw()
    assert sleeper.charge.state == "charged"
    assert states(ledger) == ["drawn"]


def test_a_charge_that_failed_meanwhile_is_not_drawn(place):
    ledger = make(place)
    with (
        pytest.raises(LedgerError, match="Nothing was drawn here"),
        ledger.attempt(ONE, request="r") as sleeper,
    ):
        ledger.store.transact(
            lambda run: run("INSERT INTO isotone_outcome VALUES (?, 1, 'failed')", place[1])
        )
        sleeper.draw()
    assert states(ledger) == ["failed"]


def test_steps_out_of_order_are_refused(place):
    ledger = make(place)
    with pytest.raises(LedgerError, match="needs a charge that is drawn"), ledger.attempt(ONE) as attempt:
        attempt.seal("hash")
    with pytest.raises(LedgerError, match="needs a charge that is charged"), ledger.attempt(ONE) as attempt:
        attempt.draw()
        attempt.draw()
    with pytest.raises(LedgerError, match="after the end"):
        attempt.seal("hash")
    assert states(ledger) == ["failed", "drawn"]


def test_nothing_is_drawn_after_the_block(place):
    ledger = make(place)
    with pytest.raises(KeyboardInterrupt), ledger.attempt(ONE, request="r") as attempt:
        raise KeyboardInterrupt
    with pytest.raises(LedgerError, match="after the end"):
        attempt.draw()
    assert states(ledger) == ["charged"]


def test_a_fork_neither_draws_nor_fails_its_parents_charge(place):
    ledger = make(place)
    with ledger.attempt(ONE, request="r") as attempt:
        child = os.fork()
        if child == 0:
            try:
                attempt.draw()
            except LedgerError:
                attempt.end(None)
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert states(ledger) == ["charged"]
        attempt.draw()
        attempt.seal("hash")


def test_a_thread_waits_for_another_and_then_finds_the_release(place):
    ledger = make(place)
    inside, found = threading.Event(), []

    def second():
        inside.wait()
        try:
            with ledger.attempt(ONE, request="r"):
                found.append("drawn twice")
        except SealedError as error:
            found.append(error.charge.release)

    thread = threading.Thread(target=second)
    thread.start()
    with ledger.attempt(ONE, request="r") as attempt:
        inside.set()
        with pytest.raises(BusyError, match="same thread"), ledger.attempt(ONE, request="r"):
            pytest.fail("entered twice")
        attempt.draw()
        attempt.seal("hash")
    thread.join()
    assert found == ["hash"]
    assert len(ledger.charges()) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.attempt(1, request="r").__enter__(),
        lambda x: x.attempt(ONE, request=7).__enter__(),
        lambda x: x.attempt(ONE, request="").__enter__(),
        lambda x: x.attempt(ONE, request="a\0b").__enter__(),
        lambda x: x.attempt(ONE, description=None).__enter__(),
        lambda x: x.attempt(ONE, mechanism=b"M").__enter__(),
        lambda x: x.charge(ONE, spec={"a": 1}),
        lambda x: x.charge(ONE, "\ud800"),
        lambda x: x.charge("1"),
        lambda x: x.check(None),
    ],
)
def test_a_wrong_argument_is_refused_before_the_store_is_touched(place, call):
    ledger = make(place)
    touched = []
    object.__setattr__(ledger, "store", _Untouchable(touched))
    with pytest.raises(InputError):
        call(ledger)
    assert touched == []


class _Untouchable:
    def __init__(self, touched):
        self._touched = touched

    def __getattr__(self, name):
        self._touched.append(name)
        raise AssertionError(f"the store was touched: {name}")
