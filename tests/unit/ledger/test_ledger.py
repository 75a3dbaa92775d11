"""The ledger: what it records, what it refuses, and that neither kills nor crowds can cheat it."""

import signal
import sqlite3
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.ledger_worker import REFUSED, make, start, start_creation, start_removal
from typer.testing import CliRunner

from isotone.cli import app
from isotone.errors import BudgetError, InputError, LedgerError
from isotone.ledger import Cost, Ledger
from isotone.ledger.stores import sqlite
from isotone.privacy.guarantee import Guarantee


def test_a_charge_is_there_for_the_next_one_who_opens_the_ledger(place):
    make(place).charge(Guarantee.pure("0.5"), "counts", mechanism="PosetMechanism", spec="abc")
    again = Ledger(place[0], dataset=place[1])
    (charge,) = again.charges()
    assert (charge.guarantee.epsilon, charge.mechanism, charge.spec) == (
        Fraction(1, 2),
        "PosetMechanism",
        "abc",
    )
    assert again.remaining() == Cost(epsilon=Fraction(3, 2))


def test_an_unfinished_charge_stays_spent(place):
    ledger = make(place)
    charge = ledger.charge(Guarantee.pure(1))
    assert [c.finished for c in ledger.charges()] == [False]
    assert ledger.spent() == Cost(epsilon=Fraction(1))
    charge.finish("hash")
    assert [c.release for c in ledger.charges()] == ["hash"]
    assert ledger.spent() == Cost(epsilon=Fraction(1))


def test_the_last_drop_can_be_spent_and_nothing_after_it(place):
    ledger = make(place, epsilon=1)
    for _ in range(10):
        ledger.charge(Guarantee.pure(0.1))
    with pytest.raises(BudgetError, match=r"needs ε = 1e-09, and nothing of ε = 1 is left"):
        ledger.charge(Guarantee.pure("1e-9"))
    assert len(ledger.charges()) == 10


def test_a_refused_charge_leaves_no_trace(place):
    ledger = make(place, epsilon=1)
    with pytest.raises(BudgetError, match="too short"):
        ledger.charge(Guarantee.pure("1.5"))
    with pytest.raises(BudgetError, match="too short"):
        ledger.check(Guarantee.pure("1.5"))
    ledger.check(Guarantee.pure(1))
    assert ledger.charges() == []


@pytest.mark.parametrize(
    ("budget", "charge", "left"),
    [
        ({"epsilon": 2, "delta": "1e-5"}, Guarantee.pure(1), Cost(Fraction(1), Fraction(1, 10**5))),
        (
            {"epsilon": 2, "delta": "1e-5"},
            Guarantee.approximate(1, "4e-6"),
            Cost(Fraction(1), Fraction(6, 10**6)),
        ),
        ({"rho": 1}, Guarantee.pure(1), Cost(rho=Fraction(1, 2))),
        ({"rho": 1}, Guarantee.pure("1/2"), Cost(rho=Fraction(7, 8))),
        ({"rho": 1}, Guarantee.zcdp("0.3"), Cost(rho=Fraction(7, 10))),
    ],
)
def test_charges_compose_by_the_rule_of_the_budgets_kind(place, budget, charge, left):
    ledger = make(place, **budget)
    ledger.charge(charge)
    assert ledger.remaining() == left


@pytest.mark.parametrize(
    ("budget", "charges"),
    [
        ({"epsilon": 9, "delta": "1e-5"}, [Guarantee.approximate(1, d) for d in ("1e-6", "2e-6", "2e-6")]),
        ({"epsilon": 9, "delta": "1e-5"}, [Guarantee.approximate(e, "1e-6") for e in (1, 2, 2)]),
        ({"epsilon": 9, "delta": "1e-5"}, [Guarantee.approximate(1, "1e-6"), Guarantee.pure(1)]),
        ({"rho": 9}, [Guarantee.pure(1), Guarantee.bounded_range(1), Guarantee.zcdp(1), Guarantee.zcdp(2)]),
    ],
)
def test_charges_that_differ_in_one_number_are_counted_apart(place, budget, charges):
    ledger = make(place, **budget)
    for charge in charges:
        ledger.charge(charge)
    if "rho" in budget:
        assert ledger.spent() == Cost(rho=sum((charge.concentrated for charge in charges), Fraction(0)))
        return
    epsilon, delta = (sum((getattr(c, name) for c in charges), Fraction(0)) for name in ("epsilon", "delta"))
    assert ledger.spent() == Cost(epsilon, delta)


@pytest.mark.parametrize(
    ("budget", "charge"),
    [
        ({"epsilon": 2}, Guarantee.approximate(1, "1e-9")),
        ({"epsilon": 2}, Guarantee.zcdp("0.01")),
        ({"epsilon": 2, "delta": "1e-5"}, Guarantee.zcdp("0.01")),
        ({"rho": 1}, Guarantee.approximate("0.1", "1e-9")),
    ],
)
def test_a_guarantee_that_a_budget_cannot_pay_exactly_is_refused(place, budget, charge):
    ledger = make(place, **budget)
    with pytest.raises(LedgerError, match="cannot pay"):
        ledger.charge(charge)
    assert ledger.charges() == []


def test_unit_and_neighbours_are_fixed(place):
    ledger = make(place)
    ledger.charge(Guarantee.pure("0.1", unit="person"))
    with pytest.raises(LedgerError, match="protects one person"):
        ledger.charge(Guarantee.pure("0.1", unit="household"))
    with pytest.raises(LedgerError, match="add-remove neighbours"):
        ledger.charge(Guarantee.pure("0.1", unit="person", neighbours="replace"))
    with pytest.raises(LedgerError, match="protects one person"):
        Ledger(place[0], dataset=place[1], unit="household")
    with pytest.raises(LedgerError, match="not replace"):
        Ledger(place[0], dataset=place[1], neighbours="replace")


def test_another_total_is_refused(place):
    make(place, epsilon=2)
    with pytest.raises(LedgerError, match="cannot be changed"):
        make(place, epsilon=3)
    with pytest.raises(LedgerError, match="cannot be changed"):
        make(place, rho=2)
    assert make(place, epsilon="2.0").budget.epsilon == 2


def test_rows_cannot_be_changed_or_removed(place):
    ledger = make(place)
    ledger.charge(Guarantee.pure(1))
    for statement in ("DELETE FROM isotone_charge", "UPDATE isotone_charge SET epsilon = '0'"):
        with pytest.raises(LedgerError, match="never changed or removed"):
            ledger.store.transact(lambda execute, sql=statement: execute(sql))
    assert ledger.spent() == Cost(epsilon=Fraction(1))


def test_a_charge_that_was_finished_says_so(place):
    ledger = make(place)
    ledger.charge(Guarantee.pure("0.1"), spec="a")
    ledger.charge(Guarantee.pure("0.1"), spec="a").finish()
    assert [(charge.spec, charge.finished) for charge in ledger.charges()] == [("a", False), ("a", True)]


def test_export_holds_every_charge_in_exact_numbers(place):
    ledger = make(place, epsilon="1/3")
    ledger.charge(Guarantee.pure("1/7"), "counts")
    out = ledger.export()
    assert out["budget"]["epsilon"] == "1/3"
    assert out["spent"]["epsilon"] == out["charges"][0]["guarantee"]["epsilon"] == "1/7"


def test_a_crowd_cannot_overspend(place, tmp_path):
    make(place, epsilon=1)
    marker = tmp_path / "released"
    crowd = [start(place[0], place[1], "0.3", marker) for _ in range(8)]
    for process in crowd:
        process.join()
    assert sorted(process.exitcode or 0 for process in crowd) == [0] * 3 + [REFUSED] * 5
    assert marker.read_bytes() == b"xxx"
    assert Ledger(place[0], dataset=place[1]).spent() == Cost(epsilon=Fraction(9, 10))


def test_a_kill_at_any_statement_never_releases_more_than_was_charged(place, tmp_path):
    marker = tmp_path / "released"
    marker.touch()
    ledger = make(place, epsilon=100)
    for moment in range(1, 200):
        process = start(place[0], place[1], "1", marker, moment)
        process.join()
        released, spent = len(marker.read_bytes()), ledger.spent().epsilon
        assert released <= spent <= moment, f"killed at moment {moment}"
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    else:
        pytest.fail("the worker never finished")
    assert moment > 20  # before and after: begin, checks, insert, commit; and the same for finish
    assert spent > released  # some kills fell between the charge and the release


@settings(max_examples=25, deadline=None)
@given(amounts=st.lists(st.fractions(min_value=Fraction(1, 50), max_value=1), min_size=1, max_size=8))
def test_what_is_spent_never_exceeds_the_total(tmp_path_factory, amounts):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "x.ledger", epsilon=1)
    accepted = Fraction(0)
    for amount in amounts:
        if accepted + amount <= 1:
            ledger.charge(Guarantee.pure(amount))
            accepted += amount
        else:
            with pytest.raises(BudgetError):
                ledger.charge(Guarantee.pure(amount))
    assert ledger.spent().epsilon == accepted <= 1


def test_a_missing_ledger_is_not_made_without_a_total(tmp_path):
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger(tmp_path / "none.ledger")
    assert not (tmp_path / "none.ledger").exists()


def test_a_ledger_of_another_data_set_is_refused(tmp_path):
    Ledger(tmp_path / "a.ledger", epsilon=1, dataset="survey 2021").create()
    with pytest.raises(LedgerError, match="belongs to the data set 'survey 2021'"):
        Ledger(tmp_path / "a.ledger", epsilon=1)


def test_a_ledger_file_that_is_only_opened_knows_its_data_set(tmp_path):
    Ledger(tmp_path / "a.ledger", epsilon=1, dataset="survey 2021").create()
    assert Ledger(tmp_path / "a.ledger").dataset == "survey 2021"
    with pytest.raises(LedgerError, match="belongs to the data set 'survey 2021'"):
        Ledger(tmp_path / "a.ledger", dataset="a")


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b""])
def test_a_file_that_is_no_ledger_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "a.ledger"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a"):
        Ledger(path, epsilon=1)
    assert path.read_bytes() == content


def test_a_damaged_ledger_is_refused(tmp_path):
    path = tmp_path / "a.ledger"
    ledger = Ledger(path, epsilon=1000)
    for _ in range(40):
        ledger.charge(Guarantee.pure(1), "x" * 400)
    content = bytearray(path.read_bytes())
    for position in range(4096 * 3, len(content), 512):
        content[position : position + 64] = b"\xff" * 64
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"damaged|not a readable ledger|could not be used"):
        Ledger(path).charge(Guarantee.pure(1))


def test_a_full_disk_spends_and_releases_nothing(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=1).create()

    class Full(sqlite3.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            super().execute(
                "PRAGMA max_page_count = 1"
            )  # sqlite reports the file system's "no space" the same way

    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite.sqlite3, "connect", lambda *a, **k: connect(*a, factory=Full, **k))
        with pytest.raises(LedgerError, match="is full"):
            ledger.charge(Guarantee.pure("0.5"), "x" * 100_000)
    assert ledger.charges() == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(LedgerError, match=r"folder .* does not exist"):
        Ledger(tmp_path / "nowhere" / "a.ledger", epsilon=1)


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1, "rho": 1}, {"delta": "1e-6"}, {"epsilon": 0}, {"epsilon": "one"}]
)
def test_a_budget_that_makes_no_sense_is_refused_before_a_file_is_made(tmp_path, budget):
    with pytest.raises(InputError):
        Ledger(tmp_path / "a.ledger", **budget)
    assert not (tmp_path / "a.ledger").exists()


def test_an_address_of_an_unknown_kind_is_refused():
    with pytest.raises(LedgerError, match="not at mysql:") as caught:
        Ledger("mysql://user:secret@somewhere/x", epsilon=1)
    assert "secret" not in str(caught.value)


# ---------------------------------------------------------------------------- made by the first charge


def test_a_ledger_is_made_by_its_first_charge(place, tmp_path):
    where, dataset = place
    ledger = Ledger(where, dataset=dataset, epsilon=2, unit="person")
    assert (ledger.total, ledger.remaining(), ledger.charges()) == (Cost(Fraction(2)), Cost(Fraction(2)), [])
    assert ledger.budget.unit == "person"
    ledger.check(Guarantee.pure(2, unit="person"))
    for wrong in (Guarantee.pure(3, unit="person"), Guarantee.pure(1, unit="dog"), Guarantee.zcdp(1)):
        with pytest.raises(LedgerError):
            ledger.charge(wrong)
        with pytest.raises(LedgerError), ledger.attempt(wrong, request="r"):
            pytest.fail("charged")
    assert list(tmp_path.iterdir()) == []  # a mistake leaves nothing behind, not even a lock
    with pytest.raises(LedgerError, match=r"no ledger|no data set"):
        Ledger(where, dataset=dataset)
    right = Ledger(where, dataset=dataset, epsilon=3)  # and can be mended
    with right.attempt(Guarantee.pure(3), request="r") as attempt:
        attempt.draw()
        attempt.seal("hash")
    assert Ledger(where, dataset=dataset).total == Cost(Fraction(3))
    with pytest.raises(LedgerError, match="cannot be changed once it is charged"):
        ledger.charge(Guarantee.pure(1, unit="person"))  # made meanwhile, with another total


def test_a_ledger_without_a_charge_is_changed_or_removed(place, tmp_path):
    where, dataset = place
    ledger = make(place, epsilon=2)
    changed = ledger.change(rho=1, unit="dog", neighbours="replace")
    assert (changed.total, changed.budget.unit) == (Cost(rho=Fraction(1)), "dog")
    with pytest.raises(InputError, match="needs its total"):
        ledger.change(unit="cat")
    opened = Ledger(where, dataset=dataset)
    assert opened.budget.neighbours == "replace"
    opened.remove()
    assert [p.name for p in tmp_path.iterdir() if "lock" not in p.name] == []
    for gone in (opened.remove, opened.charges, lambda: opened.charge(Guarantee.pure(1))):
        with pytest.raises(LedgerError, match=r"no ledger|no data set"):
            gone()
    again = make(place, epsilon=1)
    again.charge(Guarantee.pure("1/2"))
    for late in (again.remove, lambda: again.change(epsilon=5)):
        with pytest.raises(LedgerError, match="has charges"):
            late()
    assert Ledger(where, dataset=dataset).remaining() == Cost(Fraction(1, 2))


def test_a_removal_and_a_charge_at_once_lose_no_charge(place):
    """Whoever comes second finds the charge, or no ledger; a charge that returned is never gone."""
    where, dataset = place
    for turn in range(4):
        mine = (where if "://" in where else f"{where}{turn}", f"{dataset}{turn}")
        make(mine, epsilon=1000)
        crowd = [start_creation(*mine), start_removal(*mine), start_creation(*mine)]
        for process in crowd:
            process.join()
        assert [process.exitcode for process in crowd][::2] == [0, 0]
        assert len(Ledger(mine[0], dataset=mine[1]).charges()) == 2


def test_the_command_changes_what_has_no_charge(tmp_path):
    path, run = str(tmp_path / "a.ledger"), CliRunner().invoke
    assert run(app, ["ledger", "create", path, "--epsilon", "20", "--unit", "idd"]).exit_code == 0
    said = run(app, ["ledger", "change", path, "--epsilon", "2", "--unit", "person"]).output
    assert "is ε = 2." in said
    assert "It had no charge, and was ε = 20 before." in said
    for wrong in ([], ["--remove", "--epsilon", "2"]):
        assert isinstance(run(app, ["ledger", "change", path, *wrong]).exception, InputError)
    assert "had no charge and is removed" in run(app, ["ledger", "change", path, "--remove"]).output
    Ledger(path, epsilon=1).charge(Guarantee.pure(1))
    assert "has charges" in str(run(app, ["ledger", "change", path, "--remove"]).exception)


def test_rows_of_a_charged_data_set_stay_whoever_removes_them(place):
    ledger = make(place)
    ledger.charge(Guarantee.pure(1))
    with pytest.raises(LedgerError, match="never changed or removed"):
        ledger.store.transact(lambda run: run("DELETE FROM isotone_ledger WHERE dataset = ?", place[1]))
