"""The states of a charge, and under which conditions an attempt is resumed."""
# ruff: noqa: PT012 - the block of an attempt is what is tested

import os
import signal
import threading
import traceback
from fractions import Fraction

import pytest
from tests.support.ledger_worker import make

from isotone.errors import BudgetError, DeliveryError, InputError, LedgerError
from isotone.ledger import Attempt, AttemptError, BusyError, Cost, Ledger, LostError, SealedError
from isotone.ledger.ledger import Signals, raise_alone
from isotone.privacy.guarantee import Guarantee

ONE = Guarantee.pure(1)


def states(ledger):
    return [charge.state for charge in ledger.charges()]


def send(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def interrupt(ledger, request, guarantee=ONE):
    """An attempt that the person at the keyboard stops before the draw."""
    with pytest.raises(KeyboardInterrupt), ledger.attempt(guarantee, request=request):
        send()
        pytest.fail("the signal did not stop the block")


def die(ledger, request):
    """An attempt whose process ends without a word before the draw."""
    child = os.fork()
    if child == 0:
        with ledger.attempt(ONE, request=request):
            os._exit(9)
    os.waitpid(child, 0)


def lose(ledger, request):
    """An attempt that is drawn and not sealed."""
    with pytest.raises(AttemptError) as caught, ledger.attempt(ONE, request=request) as attempt:
        attempt.draw()
        raise OSError("disk")
    return caught.value


def test_an_attempt_goes_through_durable_states(place):
    ledger = make(place)
    reader = Ledger(place[0], dataset=place[1])
    with ledger.attempt(ONE, request="r", description="counts", mechanism="M") as attempt:
        assert (attempt.resumed, attempt.charge.state, states(reader)) == (False, "reading", ["reading"])
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


class Panic(BaseException):
    """As polars raises where Rust panicked."""


ENDS = [
    ZeroDivisionError,
    Panic,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    MemoryError,
    RecursionError,
    StopIteration,
]


@pytest.mark.parametrize("kind", ENDS)
def test_whatever_is_raised_before_the_draw_fails_and_stays_spent(place, kind):
    ledger = make(place)
    with pytest.raises(AttemptError) as caught, ledger.attempt(ONE, request="r") as attempt:
        raise kind("Ann Miller")
    assert (attempt.charge.state, states(ledger)) == ("failed", ["failed"])
    assert str(caught.value).startswith("Charge 1 failed while the data was read.")
    with ledger.attempt(ONE, request="r") as second:
        assert not second.resumed
        second.draw()
        second.seal("hash")
    assert states(ledger) == ["failed", "sealed"]
    assert ledger.remaining() == Cost()


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("drawn", [False, True])
def test_every_error_is_told_in_one_sentence_without_what_was_raised(tmp_path, kind, drawn):
    said = set()
    for number, words in enumerate(("Ann Miller", "Bob Stone")):
        ledger = Ledger(tmp_path / f"{number}.ledger", epsilon=2)
        with pytest.raises(AttemptError) as caught, ledger.attempt(ONE, request="r") as attempt:
            if drawn:
                attempt.draw()
            try:
                raise ValueError(words)
            except ValueError as error:
                raise kind(words) from error
        told, chain = caught.value, []
        while told is not None:
            chain.append(told)
            told = told.__cause__ or told.__context__
        assert chain == [caught.value]
        lines = traceback.format_exception(caught.value)
        assert words not in "".join(line for line in lines if not line.startswith("  File"))
        said.add((str(caught.value), tuple(getattr(caught.value, "__notes__", ()))))
    assert len(said) == 1


def test_an_error_is_raised_alone_also_while_another_is_handled():
    with pytest.raises(AttributeError) as caught:
        try:
            raise ValueError("Ann Miller")
        except ValueError as error:
            told = AttributeError("told")
            told.__cause__ = error
            raise_alone(told)
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.parametrize("request_", ["r", None], ids=["named", "unnamed"])
def test_an_end_that_cannot_be_recorded_counts_as_a_death(place, monkeypatch, request_):
    ledger = make(place)

    def full(self, table, *values):
        raise LedgerError("the disk is full")

    with (
        monkeypatch.context() as patch,
        pytest.raises(AttemptError, match="could not record that"),
        ledger.attempt(ONE, request=request_),
    ):
        patch.setattr(Attempt, "_record", full)
        1 / 0
    assert states(ledger) == ["reading"]
    with ledger.attempt(ONE, request=request_) as second:
        assert second.resumed == (request_ is not None)
        second.draw()
        second.seal("hash")


def test_what_the_ledger_says_itself_is_told_as_it_is(place, monkeypatch):
    ledger = make(place)

    def full(work):
        raise LedgerError("the disk is full")

    with pytest.raises(LedgerError, match=r"^the disk is full"), ledger.attempt(ONE, request="r") as attempt:
        attempt.draw()
        object.__setattr__(attempt, "_store", type("Full", (), {"transact": staticmethod(full)}))
        attempt.seal("hash")
    assert states(ledger) == ["drawn"]
    with pytest.raises(AttemptError), ledger.attempt(ONE, request="s"):
        raise LedgerError("Ann Miller")  # not what the attempt itself raised


def test_a_release_that_could_not_be_written_says_why_and_what_it_cost(place):
    ledger = make(place)
    with pytest.raises(DeliveryError, match="no room") as caught, ledger.attempt(ONE, request="r") as attempt:
        attempt.draw()
        raise DeliveryError("no room")
    assert caught.value.__notes__ == [
        "Charge 1 was drawn and not sealed: its noise is lost and it stays spent."
    ]


def test_a_block_that_ends_without_a_draw_fails(place):
    ledger = make(place)
    with pytest.raises(AttemptError), ledger.attempt(ONE, request="r"):
        pass
    assert states(ledger) == ["failed"]


@pytest.fixture
def terminated(monkeypatch):
    """SIGTERM as an exception, so that it does not end the tests."""

    class Terminated(BaseException):
        pass

    def handler(*_):
        raise Terminated

    before = signal.signal(signal.SIGTERM, handler)
    yield Terminated
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_signal_stopped_before_the_draw_is_resumed_at_no_cost(place, number, terminated):
    ledger, kind = (
        make(place, epsilon=1),
        {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: terminated}[number],
    )
    before = signal.getsignal(number)
    for turn in range(4):  # as often as one likes: a signal comes from outside
        with pytest.raises(kind) as caught, ledger.attempt(ONE, request="r") as first:
            assert first.resumed == (turn > 0)
            send(number)
        assert caught.value.__context__ is None
        assert states(ledger) == ["reading"]
        assert signal.getsignal(number) is before
    with ledger.attempt(ONE, request="r") as second:  # although nothing is left
        assert second.resumed
        assert second.charge == first.charge  # pyright: ignore
        second.draw()
        second.seal("hash")
    assert states(ledger) == ["sealed"]
    assert ledger.spent() == Cost(epsilon=Fraction(1))


@pytest.mark.parametrize("swallowed", ["by another error", "altogether"])
def test_a_signal_counts_although_a_library_catches_what_it_raises(place, swallowed):
    """So that it makes no difference what the library would have raised for the data."""
    ledger = make(place)
    with pytest.raises(KeyboardInterrupt) as caught, ledger.attempt(ONE, request="r") as attempt:
        try:
            send()
        except BaseException:
            if swallowed == "by another error":
                raise ValueError("Ann Miller") from None
        attempt.draw()
    assert caught.value.__context__ is None
    assert states(ledger) == ["reading"]
    assert not ledger.charges()[0].finished


def test_a_signal_after_the_draw_waits_for_the_seal(place):
    ledger = make(place)
    with pytest.raises(KeyboardInterrupt), ledger.attempt(ONE, request="r") as attempt:
        attempt.draw()
        send()
        attempt.seal("hash")
    assert states(ledger) == ["sealed"]
    with (
        pytest.raises(AttemptError, match="drawn and not sealed"),
        ledger.attempt(ONE, request="s") as attempt,
    ):
        attempt.draw()
        send()
        with pytest.raises(KeyboardInterrupt):
            send()  # a second one does not wait
        signal.signal(signal.SIGINT, lambda *_: None)
        raise ValueError
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_signals_that_are_ignored_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        signals = Signals()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        signals.restore()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_one_death_of_a_request_is_made_up_for_and_a_second_one_is_not(place):
    """A process can die of what it reads, so that a death must not be free for ever."""
    ledger = make(place, epsilon=3)
    die(ledger, "r")
    interrupt(ledger, "r")
    assert states(ledger) == ["reading"]
    die(ledger, "r")
    with pytest.raises(AttemptError, match="second time") as caught, ledger.attempt(ONE, request="r"):
        pytest.fail("read a third time at no cost")
    assert caught.value.charge.number == 1
    assert states(ledger) == ["failed"]
    die(ledger, "r")  # under a charge of its own: the request has had its death
    with pytest.raises(AttemptError, match="second time"), ledger.attempt(ONE, request="r"):
        pytest.fail("read again at no cost")
    assert states(ledger) == ["failed", "failed"]
    die(ledger, "s")
    with ledger.attempt(ONE, request="s") as attempt:  # another request has its own
        assert attempt.resumed
        attempt.draw()
        attempt.seal("hash")
    assert states(ledger) == ["failed", "failed", "sealed"]


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
    assert states(ledger) == ["failed", "sealed"]


def test_a_plain_charge_is_never_resumed(place):
    """It may have been drawn: only an attempt guarantees that nothing was drawn before the mark."""
    ledger = make(place)
    ledger.charge(ONE, spec="r")
    with ledger.attempt(ONE, request="r") as attempt:
        assert not attempt.resumed
        attempt.draw()
        attempt.seal("hash")


def test_a_request_with_another_price_is_not_resumed(place):
    ledger = make(place)
    interrupt(ledger, "r", Guarantee.pure("1/2"))
    with pytest.raises(LedgerError, match="now asks for ε = 1"), ledger.attempt(ONE, request="r"):
        pytest.fail("drawn at the price of a cheaper charge")
    assert ledger.spent() == Cost(epsilon=Fraction(1, 2))


def test_a_charge_is_not_taken_over_for_another_unit(place):
    ledger = make(place)
    interrupt(ledger, "r", Guarantee.pure(1, unit="person"))
    for other in (
        Guarantee.pure(1, unit="household"),
        Guarantee.pure(1, unit="person", neighbours="replace"),
    ):
        with pytest.raises(LedgerError, match="this release"), ledger.attempt(other, request="r"):
            pytest.fail("drawn for another unit than was charged")
    assert states(ledger) == ["reading"]


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
        send()
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
    assert "not sealed" in str(error)
    assert "lost" in str(error)
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
    assert sleeper.charge.state == "reading"
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
    with pytest.raises(LedgerError, match="needs a charge that is reading"), ledger.attempt(ONE) as attempt:
        attempt.draw()
        attempt.draw()
    with pytest.raises(LedgerError, match="after the end"):
        attempt.seal("hash")
    assert states(ledger) == ["failed", "drawn"]


def test_nothing_is_drawn_after_the_block(place):
    ledger = make(place)
    with pytest.raises(KeyboardInterrupt), ledger.attempt(ONE, request="r") as attempt:
        send()
    with pytest.raises(LedgerError, match="after the end"):
        attempt.draw()
    assert states(ledger) == ["reading"]


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
        assert states(ledger) == ["reading"]
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
