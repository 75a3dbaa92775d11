"""Hierarchies whose root is a public number: their law, what one unit can change, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from tests.support.count_plans import plan

import isotone as iso
from isotone.audit.exact import audit_exact
from isotone.counts import FixedRootMechanism, TreeFieldMechanism
from isotone.errors import InputError
from isotone.order import Poset

TREE = Poset.from_mapping(
    {"a": "all", "b": "all", "other": "all", "a1": "a", "a2": "a"}, children="partition"
)
OPEN = Poset.from_mapping({"a": "all", "b": "all", "other": "all"}, children="exclusive")
FLAT = Poset.from_mapping({"a": "top", "other": "top", "top": "all"}, children="partition")
CODES = {"a1": ("a", "all"), "a2": ("a", "all"), "b": ("all",), "other": ("all",), "?": ()}


def counts_of(P: Poset, rows: tuple[str, ...]) -> dict[Any, int]:
    """The counts of rows with one code each, of which "?" is not listed."""
    counted = dict.fromkeys(P.elements, 0)
    for code in rows:
        for x in (code, *CODES[code]) if code != "?" else ():
            counted[x] += 1
    return counted


def released_law(
    m: FixedRootMechanism, counts: Any, monkeypatch: pytest.MonkeyPatch, reach: int
) -> dict[Any, float]:
    """The law of what is released, by walking the code that releases through all noise on leaves up to a reach."""
    within = m.within
    assert isinstance(within, TreeFieldMechanism)
    tree, types = within.tree, within.node_law.types
    leaves = np.flatnonzero(tree.leaf)
    shares = np.array([float(types.shares[t]) for t in types.of])
    law: dict[Any, float] = {}
    for values in product(range(-reach, reach + 1), repeat=leaves.size):
        h = np.zeros(len(tree), np.int64)
        h[leaves] = values
        h = tree.sums(h)
        monkeypatch.setattr(TreeFieldMechanism, "_node_noise", lambda self, draws, h=h: h)
        output = tuple(m.release(counts).tolist())
        law[output] = law.get(output, 0.0) + math.exp(-float(within.rate) * float(np.abs(h) @ shares))
    return law


@pytest.mark.parametrize("care", ["nodes", "worst"])
def test_no_row_that_is_replaced_shows_by_more_than_epsilon(
    care: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All places of a row, listed or not, beside another row, and all outputs in a box, by the code that releases."""
    m = FixedRootMechanism(TREE, epsilon=1, records=2, catch_all="other", care=care)
    laws = [released_law(m, counts_of(TREE, ("b", code)), monkeypatch, 2) for code in CODES]
    worst = 0.0
    for first, second in combinations(laws, 2):
        common = first.keys() & second.keys()
        assert len(first) == len(second) == 5**3
        assert len(common) >= 4 * 4 * 5  # the same outcomes but for the edge of the box
        worst = max(worst, *(abs(math.log(first[y] / second[y])) for y in common))
    assert 0.9 < worst <= 1 + 1e-9  # kept, and not wasted


def test_a_record_without_a_place_shows_no_more_than_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the leaf for the rest counted, a row in no leaf would leave the outcomes of all others."""
    m = FixedRootMechanism(TREE, epsilon=1, records=7, catch_all="other")
    kept, dropped, other = (
        released_law(m, counts_of(TREE, rows), monkeypatch, 2)
        for rows in (("a1", "b"), ("b",), ("b", "other"))
    )
    assert {sum(y[TREE.index(x)] for x in ("a", "b", "other")) for y in (*kept, *dropped)} == {7}
    assert dropped == pytest.approx(other)  # it is in the leaf for the rest, whatever the data say about that
    assert all(abs(math.log(kept[y] / dropped[y])) <= 1 + 1e-9 for y in kept.keys() & dropped.keys())


def test_errors_and_probabilities_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    for P, top in ((TREE, ("all",)), (OPEN, ("all",)), (FLAT, ("all", "top"))):
        m = FixedRootMechanism(P, epsilon=6, records=0, catch_all="other")
        law = released_law(m, dict.fromkeys(P.elements, 0), monkeypatch, 3)
        outputs, weights = np.array(list(law)), np.array(list(law.values()))
        weights /= weights.sum()
        assert np.allclose(m.error().variance, weights @ outputs.astype(float) ** 2, rtol=4e-3, atol=1e-12)
        assert all(m.error().sd[P.index(x)] == 0 == m.half_widths()[P.index(x)] for x in top)
        zero = np.zeros(len(P), np.int64)
        assert np.allclose(np.exp(m.log_probability(outputs, zero)), weights, rtol=4e-3)
        one = m.log_probability(outputs[0], zero)
        assert one.shape == ()
        assert np.exp(one) == pytest.approx(weights[0], rel=4e-3)
        off = outputs[len(outputs) // 2] + np.eye(len(P), dtype=np.int64)
        off = off[[P.index(x) for x in top]] if P is OPEN else off  # there a row may be at the root itself
        assert np.all(np.isneginf(m.log_probability(off, zero)))
        assert np.array_equal(m.possible_outputs(outputs.astype(float)), outputs)
        half = m.half_widths(0.9)
        assert np.all(weights @ (np.abs(outputs) <= half) >= 0.9 - 1e-3)
        together = np.all(np.abs(outputs) <= m.simultaneous_half_width(0.9), axis=1)
        assert weights @ together >= 0.9 - 1e-3


def test_simulated_noise_adds_up_and_has_the_errors_stated() -> None:
    for budget in ({"epsilon": 1}, {"rho": "1/2"}):
        m = FixedRootMechanism(TREE, **budget, records=50, catch_all="other")  # type: ignore[arg-type]
        rows = np.asarray(m.simulate_released(4000, np.random.default_rng(5)))
        place = TREE.index
        assert np.array_equal(
            rows[:, [place("a"), place("b"), place("other")]].sum(axis=1), rows[:, place("all")]
        )
        assert not rows[:, place("all")].any()
        spread = m.error().sd[1:] if place("all") == 0 else m.error().sd
        assert np.all(
            np.abs(np.std(np.asarray(m.simulate(4000, np.random.default_rng(6))), axis=0) - spread) < 0.12
        )
        out = m.release(counts_of(TREE, ("a1", "b", "other", "?")))
        assert out[place("all")] == 50 == out[place("a")] + out[place("b")] + out[place("other")]


def test_a_fixed_root_needs_less_noise_than_one_with_noise() -> None:
    for care in ("levels", {"a1": 1}):
        fixed = FixedRootMechanism(TREE, 1, records=9, catch_all="other", care=care).error()
        noisy = TreeFieldMechanism(TREE, 1, "replace", care=care).error()
        assert np.all(fixed.sd <= noisy.sd + 1e-6)
    # the share of the root is spent on the rest, which is not the same as none for it
    leaves = FixedRootMechanism(
        TREE, 1, records=9, catch_all="other", shares=dict.fromkeys(("a1", "a2", "b"), 1)
    )
    assert isinstance(leaves.within, TreeFieldMechanism)
    assert leaves.within.rate * 2 == 1
    assert (
        plan(TREE, 1, neighbours="replace", records=9, catch_all="other").best.error().rmse
        < leaves.error().rmse
    )


def test_an_audit_finds_the_guarantee_and_no_more() -> None:
    m = FixedRootMechanism(TREE, epsilon=1, records=9, catch_all="other")
    base = np.array([counts_of(TREE, ("a1", "b"))[x] for x in TREE.elements])
    others = [np.array([counts_of(TREE, ("b", code))[x] for x in TREE.elements]) for code in CODES]
    found = audit_exact(m, base, others, starts=50, rounds=20)
    assert not found.broken
    assert found.loss == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("P", "given", "why"),
    [
        (TREE, {"neighbours": "add-remove"}, "replace neighbours only"),
        (TREE, {"catch_all": "a"}, "a leaf directly below the root"),
        (TREE, {"catch_all": "a1"}, "a leaf directly below the root"),
        (TREE, {"catch_all": "all"}, "a leaf directly below the root"),
        (TREE, {"catch_all": "others"}, "did you mean"),
        (TREE, {"records": -1}, "records"),
        (TREE, {"records": np.True_}, "records"),
        (TREE, {"records": 2.5}, "records"),
        (TREE, {"epsilon": None}, "Give epsilon"),
        (Poset.from_mapping({"a": "x", "other": None}, children="partition"), {}, "put an element above"),
        (Poset.from_mapping({"other": "all"}, children="partition"), {}, "directly below the root"),
        (Poset.chain(["other", "all"]), {}, "no hierarchy"),
    ],
)
def test_what_cannot_be_fixed_is_refused(P: Poset, given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        FixedRootMechanism(P, **{"epsilon": 1, "records": 9, "catch_all": "other"} | given)  # type: ignore[arg-type]


def test_plans_ask_for_both_and_refuse_groups() -> None:
    for given in ({"records": 9}, {"catch_all": "other"}):
        with pytest.raises(InputError, match="go together"):
            iso.Counts(TREE, root=given)
    with pytest.raises(InputError, match="may change groups"):
        plan(TREE, 1, neighbours="replace", records=9, catch_all="other", groups=2)
    with pytest.raises(InputError, match="one table"):
        FixedRootMechanism(TREE, 1, records=9, catch_all="other").part(Fraction(1, 2))
