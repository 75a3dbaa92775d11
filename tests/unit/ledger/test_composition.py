"""The rule of a ledger: addition, or a zCDP filter for charges of every kind."""

from __future__ import annotations

import functools
import itertools
import math
import os
import signal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.ledger_worker import REFUSED, make, start
from typer.testing import CliRunner

from isotone.cli import app
from isotone.errors import BudgetError, InputError, LedgerError
from isotone.ledger import Cost, Ledger
from isotone.ledger.entries import Composition
from isotone.privacy.calibration import largest_rho, smallest_epsilon
from isotone.privacy.guarantee import Guarantee

FILTER: dict[str, Any] = {"rho": 1, "delta": "1e-5", "composition": "zcdp filter", "final_delta": "1e-6"}
ORDERS = (1.0001, 1.5, 2.0, 3.0, 8.0, 40.0)


@pytest.mark.parametrize(
    ("charge", "rho", "delta"),
    [
        (Guarantee.pure(1), "1/2", 0),
        (Guarantee.pure("1/3"), "1/18", 0),
        (Guarantee.bounded_range(1), "1/8", 0),
        (Guarantee.zcdp("0.3"), "3/10", 0),
        (Guarantee.zcdp("0.3", "2e-6"), "3/10", "2e-6"),
        (Guarantee.approximate(1, "4e-6"), "1/2", "4e-6"),
    ],
)
def test_every_kind_enters_a_filter_as_the_proof_says(place, charge, rho, delta):
    ledger = make(place, **FILTER)
    ledger.charge(charge)
    assert ledger.spent() == Cost(rho=Fraction(rho), delta=Fraction(delta))
    assert ledger.remaining() == Cost(rho=1 - Fraction(rho), delta=Fraction("1e-5") - Fraction(delta))


@pytest.mark.parametrize(
    ("fits", "last"),
    [
        # ρ is full to the last drop, δ has room, and the other way round
        ([Guarantee.pure(1), Guarantee.zcdp("1/2")], Guarantee.bounded_range("1e-9")),
        (
            [Guarantee.approximate("0.1", "9e-6"), Guarantee.approximate("0.1", "1e-6")],
            Guarantee.approximate("1e-9", "1e-30"),
        ),
    ],
)
def test_a_filter_stops_when_either_sum_would_pass_its_total(place, fits, last):
    ledger = make(place, **FILTER)
    for charge in fits:
        ledger.charge(charge)
    before = ledger.spent()
    with pytest.raises(BudgetError, match="too short"):
        ledger.charge(last)
    with pytest.raises(BudgetError, match="too short"), ledger.attempt(last, request="r"):
        pytest.fail("the block was entered")
    assert ledger.spent() == before
    assert len(ledger.charges()) == 2


def test_the_rule_is_fixed_when_a_ledger_is_made(place):
    where: dict[str, Any] = {"dataset": place[1]}
    assert make(place, **FILTER).composition == "zcdp filter"
    assert Ledger(place[0], **where).composition == "zcdp filter"
    assert make(place, **FILTER).overall == Ledger(place[0], **where).overall
    others: list[dict[str, Any]] = [
        {"rho": 1},
        {"epsilon": 1},
        {**FILTER, "final_delta": "2e-6"},
        {**FILTER, "delta": 0},
        {**FILTER, "rho": 2},
        {"composition": "addition"},
    ]
    for other in others:
        with pytest.raises(LedgerError, match=r"fixed when a ledger is made|cannot be changed"):
            Ledger(place[0], **where, **other)


def test_a_ledger_adds_unless_another_rule_is_asked_for(tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=2)
    assert ledger.composition == "addition"
    assert ledger.overall == ledger.budget
    with pytest.raises(LedgerError, match="cannot pay"):
        ledger.charge(Guarantee.approximate(1, "1e-9"))
    ledger.charge(Guarantee.pure(1))
    ledger.charge(Guarantee.bounded_range("1/2"))
    assert ledger.spent() == Cost(epsilon=Fraction(3, 2))
    assert ledger.spent_otherwise() == Cost(rho=Fraction(1, 2) + Fraction(1, 32))


def test_the_other_sum_admits_nothing(tmp_path):
    """A filter with room takes what addition of the same ε would refuse, and the other way round."""
    ledger = Ledger(tmp_path / "filter.ledger", **FILTER)
    for _ in range(8):
        ledger.charge(Guarantee.pure("0.5"))
    assert ledger.spent() == Cost(rho=Fraction(1))
    assert ledger.spent_otherwise() == Cost(epsilon=Fraction(4))
    adding = Ledger(tmp_path / "adding.ledger", epsilon=1)
    with pytest.raises(BudgetError):
        adding.charge(Guarantee.bounded_range("1.1"))  # its ρ would be 0.15


def test_a_charge_is_not_resumed_by_a_guarantee_that_costs_more(tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", **FILTER)
    with pytest.raises(KeyboardInterrupt), ledger.attempt(Guarantee.bounded_range(1), request="r"):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(LedgerError, match="another name"), ledger.attempt(Guarantee.pure(1), request="r"):
        pytest.fail("ε²/8 was charged, and ε²/2 would be spent")
    with ledger.attempt(Guarantee.bounded_range(1), request="r") as attempt:
        assert attempt.resumed
        attempt.draw()
        attempt.seal("hash")


def test_processes_at_once_cannot_pass_a_filter(place, tmp_path):
    make(place, rho="0.4", composition="zcdp filter", final_delta="1e-6")
    crowd = [start(place[0], place[1], "0.5", tmp_path / "released") for _ in range(6)]
    for process in crowd:
        process.join()
    assert sorted(process.exitcode or 0 for process in crowd) == [0] * 3 + [REFUSED] * 3
    assert (tmp_path / "released").read_bytes() == b"xxx"
    assert Ledger(place[0], dataset=place[1]).spent() == Cost(rho=Fraction(3, 8))


@pytest.mark.parametrize(
    "arguments",
    [
        {"composition": "zcdp filter"},
        {"composition": "zcdp filter", "rho": 1},
        {"composition": "zcdp filter", "epsilon": 1, "final_delta": "1e-6"},
        {"composition": "zcdp filter", "rho": 1, "final_delta": 0},
        {"composition": "zcdp filter", "rho": 1, "delta": "0.5", "final_delta": "0.5"},
        {"composition": "zcdp filter", "rho": 1, "delta": -1, "final_delta": "0.5"},
        {"composition": "sum", "rho": 1},
        {"rho": 1, "delta": "1e-6"},
        {"rho": 1, "final_delta": "1e-6"},
    ],
)
def test_a_rule_that_makes_no_sense_makes_no_file(tmp_path, arguments):
    with pytest.raises(InputError):
        Ledger(tmp_path / "a.ledger", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_what_is_stored_is_read_again_and_nothing_else():
    rule = Composition("zcdp filter", Fraction("1e-6"))
    assert Composition.from_stored(rule.stored) == rule
    for text in (
        "zcdp filter",
        "zcdp filter, final delta 2/1",
        "zcdp filter, final delta 1e-6",
        "zcdp filter, final delta 1/0",
        "Addition",
        "",
    ):
        assert Composition.from_stored(text) is None


# ---------------------------------------------------------------------------- facts of the proof page


def renyi(p, q, order):
    return math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)


def responses(epsilon):
    keep = 1 / (1 + math.exp(-epsilon))
    return np.array([keep, 1 - keep]), np.array([1 - keep, keep])


def test_pure_and_bounded_range_imply_their_rho():
    rng = np.random.default_rng(1)
    for _ in range(60):
        q, low, epsilon = rng.dirichlet(np.ones(4)), rng.uniform(-1, 0), rng.uniform(0.1, 3)
        p = q * np.exp(low + epsilon * rng.integers(0, 2, 4))  # losses at both ends of one interval
        p /= p.sum()
        loss = np.log(p / q)
        length, largest = loss.max() - loss.min(), np.abs(loss).max()
        for order in ORDERS:
            worst = max(renyi(p, q, order), renyi(q, p, order))
            assert worst <= order * length**2 / 8 + 1e-12
            assert worst <= order * largest**2 / 2 + 1e-12


def test_an_approximate_guarantee_is_a_pure_one_outside_events_of_probability_delta():
    """The decomposition of the proof: P = (1−δ)P' + δP″ and Q = (1−δ)Q' + δQ″ with P', Q' within ε of each other."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        p, q, epsilon = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)), rng.uniform(0, 1.5)
        grow = math.exp(epsilon)
        first, second = np.maximum(p - grow * q, 0), np.maximum(q - grow * p, 0)
        delta = max(first.sum(), second.sum())
        a, b = p - first, q - second
        # both are to lose δ: take the rest in proportion to what is left of the larger of both
        spare = np.array([delta - first.sum(), delta - second.sum()])
        a, b = lowered(a, b, spare[0], grow), lowered(b, a, spare[1], grow)
        assert np.all(a >= -1e-12)
        assert np.all(a <= p + 1e-12)
        assert np.all(b <= q + 1e-12)
        assert abs(a.sum() - (1 - delta)) < 1e-9
        assert abs(b.sum() - (1 - delta)) < 1e-9
        assert np.all(a <= grow * b + 1e-9)
        assert np.all(b <= grow * a + 1e-9)


def lowered(a, b, mass, grow):
    """``a`` with ``mass`` less, nowhere below ``b/grow``."""
    room = np.maximum(a - b / grow, 0)
    return a - mass * room / room.sum() if mass > 1e-15 else a


def test_a_filter_holds_for_releases_chosen_by_what_was_seen():
    """All outputs of three adaptive randomised responses; ε of each depends on the outputs before it."""
    total = 0.5
    rng = np.random.default_rng(3)
    for _ in range(30):
        wish = {
            before: rng.uniform(0.1, 1.0) for n in range(3) for before in itertools.product((0, 1), repeat=n)
        }
        p, q = [], []
        for seen in itertools.product((0, 1), repeat=3):
            left, here, there = total, 1.0, 1.0
            for n, answer in enumerate(seen):
                epsilon = wish[seen[:n]]
                if epsilon**2 / 2 > left:  # the filter refuses; the answer says nothing
                    here, there = here / 2, there / 2
                    continue
                left -= epsilon**2 / 2
                one, other = responses(epsilon)
                here, there = here * one[answer], there * other[answer]
            p.append(here)
            q.append(there)
        for order in ORDERS:
            assert renyi(p, q, order) <= order * total + 1e-12


def test_the_total_is_stated_by_the_best_conversion(tmp_path):
    for rho, delta in (
        (Fraction(1, 2), Fraction(1, 10**6)),
        (Fraction(1, 100), Fraction(1, 10**9)),
        (Fraction(5), Fraction(1, 20)),
    ):
        epsilon = smallest_epsilon(rho, delta)
        assert epsilon <= Guarantee.zcdp(rho).to_approximate(delta).epsilon
        assert largest_rho(epsilon, delta) == pytest.approx(float(rho), rel=1e-6)
        assert largest_rho(epsilon * (1 + Fraction(1, 10**6)), delta) >= rho
    ledger = Ledger(tmp_path / "a.ledger", **FILTER)
    assert ledger.overall.delta == Fraction("1.1e-5")
    assert ledger.overall.epsilon == smallest_epsilon(Fraction(1), Fraction("1e-6"))


def test_fixed_sequences_agree_with_dp_accounting(tmp_path):
    """What it finds for the same charges is never above what the filter states, and for many small ones not far below."""
    from isotone.interop.accounting import pld

    sequences = (
        [(Guarantee.approximate("1/4", "1e-8"), 8), (Guarantee.pure("1/4"), 8)],  # all of ρ and δ
        [(Guarantee.zcdp("1/8"), 1), (Guarantee.pure("1/2"), 1), (Guarantee.approximate("1/2", "1e-8"), 2)],
    )
    for number, sequence in enumerate(sequences):
        total: dict[str, Any] = {"rho": "1/2", "delta": "8e-8", "final_delta": "1e-6"}
        ledger = Ledger(tmp_path / f"{number}.ledger", composition="zcdp filter", **total)
        parts = []
        for charge, times in sequence:
            for _ in range(times):
                ledger.charge(charge)
            parts.append(pld(charge, 1e-2).self_compose(times))
        together = functools.reduce(lambda a, b: a.compose(b), parts)
        found = together.get_epsilon_for_delta(float(ledger.overall.delta))
        assert 0.5 * float(ledger.overall.epsilon) < found <= float(ledger.overall.epsilon)


def test_commands_make_and_show_a_filter(tmp_path):
    path, run = str(tmp_path / "a.ledger"), CliRunner().invoke
    made = run(
        app,
        ["ledger", "create", path, "--rho", "1/2", "--composition", "zcdp filter", "--final-delta", "1e-6"],
    )
    assert made.exit_code == 0
    assert "ρ = 0.5." in made.output
    assert "(ε, δ)-DP with ε = 5.22153" in made.output.replace("\n", " ")
    Ledger(path).charge(Guarantee.pure("1/2"))
    shown = " ".join(run(app, ["ledger", "show", path]).output.split())
    assert "ρ = 0.375 left of ρ = 0.5" in shown
    assert "by addition ε = 0.5 is spent" in shown
    out = Ledger(path).export()
    assert out["composition"] == "zcdp filter"
    assert out["spent"]["rho"] == "1/8"
