"""What every mechanism for counts promises holds for what its code releases, between all neighbours.

The mechanisms are found, not listed: one that has no case here fails. Each is built over several orders, for both kinds of
neighbours, for one and for three contributions, under every kind of guarantee that it takes. Its release, the release of two
groups, the release with the number of records and two parts of it are then taken apart:

- noise that is a linear image of independent numbers: the loss between neighbours that differ by ``d`` is the least norm of the
  numbers that make up for ``d``, exactly;
- other noise: the whole law by all paths, and the largest ratio of two probabilities.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import ndtr
from scipy.stats import chi2_contingency

from isotone.counts.breakdown import read_breakdown
from isotone.counts.margins import MarginsMechanism
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from tests.support.chisquare import FALSE_ALARM
from tests.support.mechanisms import mechanisms
from tests.support.noise_scripts import LinearMap, NotInScriptError, enumerated, linear_map

MECHANISMS = {
    name: kind for name, kind in mechanisms("isotone.counts", "release").items() if name != "MarginsMechanism"
}
"""All of them; breakdowns are made of the others, and have their own test below."""

TREE = Poset.from_mapping({"a": "all", "b": "all"}, children="partition")
DEEP = Poset.from_mapping(
    {"a": "all", "b": "all", "a1": "a", "a2": "a"}, children={"all": "partition", "a": "exclusive"}
)
WALKED = {
    Poset.antichain("ab"): ("release", "total", "part"),
    Poset.chain("ab"): ("release", "total", "part"),
    TREE: ("release", "part"),
}
"""Orders on which all paths can be walked, and the ways to release that are short enough there."""
ORDERS = (
    *WALKED,
    Poset.from_mapping({"a": "q", "b": "q"}, children={"q": "exclusive"}),
    Poset(range(3), [(0, 2), (1, 2)]),
    Poset.chain("abc"),
    Poset(range(4), [(0, 2), (1, 2), (1, 3)]),
    DEEP,
)
MORE = {"records": 12, "catch_all": "b", "groups": 2}
"""Arguments that some mechanisms need besides."""

SETTINGS = list(itertools.product(("add-remove", "replace"), (1, 3)))
ONLY = {"FixedRootMechanism": "replace"}
"""Those that refuse one kind of neighbours."""


def budgets(neighbours: str, contributions: int) -> list[dict[str, Any]]:
    """Pure, zCDP and approximate. A pure epsilon grows with the change, so that few outputs hold most of the mass."""
    pure = contributions * (2 if neighbours == "replace" else 1)
    return [{"epsilon": pure}, {"rho": Fraction(1, 3)}, {"epsilon": 1, "delta": "0.01"}]


def records_of(P: Poset, max_size: int | None) -> list[NDArray[np.int64]]:
    """Every record, by brute force: closed upward, its choices respected, no larger than the bound."""
    found: list[NDArray[np.int64]] = []
    for bits in itertools.product((0, 1), repeat=len(P)):
        if any(bits[P.index(low)] > bits[P.index(high)] for low, high in P.covers):
            continue
        if max_size is not None and sum(bits) > max_size:
            continue
        if all(_chosen(P, choice, bits) for choice in P.choices):
            found.append(np.array(bits, np.int64))
    return found


def _chosen(P: Poset, choice: Any, bits: tuple[int, ...]) -> bool:
    taken = sum(bits[P.index(option)] for option in choice.options)
    above = [high for low, high in P.covers if low == choice.options[0]]
    return taken <= 1 and (choice.kind == "exclusive" or not above or taken == bits[P.index(above[0])])


@dataclass(frozen=True)
class View:
    """One way to release: ``run`` releases the counts of nobody, and neighbours differ by ``changes``."""

    name: str
    run: Callable[[], Any]
    changes: list[NDArray[np.int64]]
    guarantee: Guarantee


def unit_changes(P: Poset, mechanism: Any) -> list[tuple[NDArray[np.int64], int]]:
    """The changes by a unit whose records are all the same, and the change of the number of records.

    A loss is a norm of the change or grows with one, so those of different records, which lie between, cost no more.
    """
    records, k = records_of(P, mechanism.max_size), mechanism.contributions
    if hasattr(mechanism, "with_root"):  # their number is public: each of them has the root
        records = [r for r in records if r[P.index(P.maximal[0])]]
    if mechanism.neighbours == "add-remove":
        return [(k * r, k) for r in records]
    return [(k * (r - s), 0) for r in records for s in records if not np.array_equal(r, s)]


def moves(P: Poset, mechanism: Any) -> list[NDArray[np.int64]]:
    """The changes of two groups by a unit that moves from one to the other, where that is one change."""
    if mechanism.neighbours == "add-remove":
        return []
    records, k = records_of(P, mechanism.max_size), mechanism.contributions
    return [k * np.array([r, -s]) for r in records for s in records]


def views(P: Poset, mechanism: Any) -> Iterator[View]:
    """All ways to release that a mechanism has."""
    whole, nobody = mechanism.guarantee, np.zeros(len(P), np.int64)
    changes = unit_changes(P, mechanism)
    groups = getattr(mechanism, "groups", 1)
    if groups == 1:
        yield View("release", lambda: mechanism.release(nobody), [d for d, _ in changes], whole)
    rows = [np.array([d, 0 * d]) for d, _ in changes] + [np.array([0 * d, d]) for d, _ in changes]
    if groups > 1:  # a unit that is replaced may change its group
        rows += moves(P, mechanism)
    yield View("rows", lambda: mechanism.release_rows(np.array([nobody, nobody])), rows, whole)
    if getattr(mechanism, "has_total", False):
        yield View(
            "total",
            lambda: np.append(*mechanism.release_with_total(nobody, 0)),
            [np.append(d, number) for d, number in changes],
            whole,
        )
    if hasattr(mechanism, "part") and groups == 1:
        try:
            third, rest = mechanism.part(Fraction(1, 3)), mechanism.part(Fraction(2, 3))
        except InputError:
            return
        if whole.kind == "pure":
            part = replace(whole, epsilon=whole.epsilon * Fraction(2, 3))
            yield View("part", lambda: rest.release(nobody), [d for d, _ in changes], part)
        yield View(
            "parts",
            lambda: np.append(third.release(nobody), rest.release(nobody)),
            [np.append(d, d) for d, _ in changes],
            whole,
        )


def built(kind: type, P: Poset, neighbours: str, contributions: int) -> Iterator[Any]:
    """The mechanism with every kind of budget and every bound on sizes that it takes."""
    takes = inspect.signature(kind).parameters
    more = {name: value for name, value in MORE.items() if name in takes}
    sizes = (None, 1) if "max_size" in takes else (None,)
    for budget, size in itertools.product(budgets(neighbours, contributions), sizes):
        if not budget.keys() <= takes.keys():
            continue
        bound = {"max_size": size} if "max_size" in takes else {}
        try:
            yield kind(P, **budget, neighbours=neighbours, contributions=contributions, **bound, **more)
        except InputError:
            continue


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least δ of Gaussian noise between two points so many standard deviations apart."""
    if mu == 0:
        return 0.0
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def discrete_delta(epsilon: float, variance: float, step: int) -> float:
    """The least δ of a discrete Gaussian that is shifted by a whole number."""
    reach = int(12 * math.sqrt(variance)) + abs(step) + 2
    k = np.arange(-reach, reach + 1)
    law = np.exp(-(k**2) / (2 * variance))
    losses = (step**2 - 2 * step * k) / (2 * variance)
    return float(np.sum(law / law.sum() * np.maximum(0.0, -np.expm1(epsilon - losses))))


def least_numbers(found: LinearMap, change: NDArray[np.float64], *, squares: bool) -> NDArray[np.float64]:
    """The numbers of least norm that make up for a change: by least squares, or by the sum of their absolute values."""
    columns = found.columns
    numbers: Any = np.linalg.lstsq(columns, change, rcond=1e-9)[0]
    assert np.allclose(columns @ numbers, change, atol=1e-3), (
        "no noise makes up for this change: it is seen for sure"
    )
    if squares or np.linalg.matrix_rank(columns, tol=1e-6) == columns.shape[1]:
        return numbers
    wide = np.hstack([columns, -columns])
    # a basis of the equations: columns are known to a millionth only
    u, s, vt = np.linalg.svd(columns)
    rank = int(np.sum(s > 1e-4))
    equations = np.hstack([vt[:rank], -vt[:rank]])
    target = (u[:, :rank].T @ change) / s[:rank]
    best = linprog(np.ones(wide.shape[1]), A_eq=equations, b_eq=target)
    assert best.success
    half = columns.shape[1]
    return best.x[:half] - best.x[half:]


def used_by(found: LinearMap, change: NDArray[np.int64], guarantee: Guarantee) -> float:
    """Which part of the guarantee this change uses up: more than 1 is a broken promise."""
    flat = change.ravel().astype(np.float64)
    laplace = {law == "laplace" for law in found.laws}
    assert len(laplace) == 1, "noise of both kinds: the guarantee of neither is known"
    numbers = least_numbers(found, flat, squares=not laplace.pop())
    size, length = float(np.abs(numbers).sum()), float(np.sqrt(np.sum(numbers**2)))
    if guarantee.kind == "pure":
        assert set(found.laws) == {"laplace"}
        return size / float(guarantee.epsilon)
    if guarantee.kind == "zcdp":
        rho = size**2 / 2 if "laplace" in found.laws else length**2 / 2
        return rho / float(guarantee.rho)
    epsilon, delta = float(guarantee.epsilon), float(guarantee.delta)
    if set(found.laws) == {"laplace"}:
        return size / epsilon
    moved = np.flatnonzero(np.abs(numbers) > 1e-6)
    if (
        set(found.laws) == {"discrete gaussian"}
        and moved.size == 1
        and (scale := found.scales[moved[0]]) < 100
    ):
        step = round(numbers[moved[0]] * scale)  # one whole number moves: its own δ, not that of the limit
        return discrete_delta(epsilon, scale**2, step) / delta
    return gaussian_delta(epsilon, length) / delta


FLOOR, KNOWN = 1e-5, 2e-4
"""Paths below the first are not walked. Outputs below the second are not looked at: some of their paths are missing."""


def walked(view: View) -> float:
    """Which part of epsilon the largest ratio of two probabilities uses up, by the whole law."""
    law = enumerated(view.run, FLOOR)
    known = {out: mass for out, mass in law.reached.items() if mass >= KNOWN}
    epsilon, worst = float(view.guarantee.epsilon), 0.0
    for change in view.changes:
        for out, mass in known.items():
            other = tuple(a - b for a, b in zip(out, change.ravel().tolist(), strict=True))
            if other in known:
                worst = max(worst, abs(math.log(mass / known[other])))
            elif mass * math.exp(-epsilon) > 2 * KNOWN:
                return math.inf
    return worst / epsilon


def checked(P: Poset, mechanism: Any) -> dict[str, float]:
    """Which part of its guarantee each way to release uses up at most; ways that cannot be looked at here are left out."""
    used: dict[str, float] = {}
    linear = True
    for view in views(P, mechanism):
        if not any(change.any() for change in view.changes):
            continue
        if linear:
            try:
                found = linear_map(view.run)
                used[view.name] = max(used_by(found, change, view.guarantee) for change in view.changes)
                continue
            except NotInScriptError:
                linear = False
        if view.name in WALKED.get(P, ()):
            with suppress(NotInScriptError):
                used[view.name] = walked(view)
    if not linear and hasattr(mechanism, "norm"):
        used["density"] = density_use(P, mechanism, mechanism.guarantee.epsilon)
        if getattr(mechanism, "groups", 1) == 1:
            share = Fraction(1, 3)
            used["density of a part"] = density_use(P, mechanism.part(share), share * mechanism.epsilon)
    return used


def density_use(P: Poset, mechanism: Any, epsilon: Fraction) -> float:
    """The largest ratio of densities ``exp(−rate·norm)``, on orders of any size. Rounding is post-processing.

    That a release has this density is for the walks above, and for tests/statistical/counts/test_released_laws.py.
    """
    changes = [change for change, _ in unit_changes(P, mechanism)]
    if getattr(mechanism, "groups", 1) > 1:
        changes = [np.array([d, 0 * d]) for d in changes] + moves(P, mechanism)
    if not changes:
        return 0.0
    return float(mechanism.rate * Fraction(float(np.max(mechanism.norm(np.array(changes, float))))) / epsilon)


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_change_by_a_unit_costs_more_than_what_is_charged(name, neighbours, contributions):
    most = 0.0
    for P in ORDERS:
        for mechanism in built(MECHANISMS[name], P, neighbours, contributions):
            for way, part in checked(P, mechanism).items():
                # laws of three exponentials and more are computed to a part in a hundred
                assert part <= 1.02, f"{way} of {mechanism} uses {part:.4f} of its guarantee"
                most = max(most, part)
    if ONLY.get(name, neighbours) != neighbours:
        assert most == 0, f"{name} takes {neighbours} now: take it off the list above"
        return
    assert most > 0, f"{name} has no case: no order above is one that it can be built for"
    assert most > 0.85, "these neighbours are too near to tell anything"


ROWS = 1_000


@pytest.mark.parametrize("name", [*MECHANISMS])
def test_groups_have_draws_of_their_own_with_the_law_of_one(name):
    """False alarm: 1e-7 for each of two tests. Noise that is shared, or of another scale, is seen."""
    kind = MECHANISMS[name]
    neighbours = ONLY.get(name, "add-remove")
    P = next(P for P in ORDERS if any(True for _ in built(kind, P, neighbours, 1)))
    mechanism = next(built(kind, P, neighbours, 1))
    if getattr(mechanism, "groups", 1) > 1:
        pytest.skip("its groups have one draw together")
    rows = mechanism.release_rows(np.zeros((ROWS, len(P)), np.int64))
    single = np.array([mechanism.release(np.zeros(len(P), np.int64)) for _ in range(ROWS)])
    place = int(np.argmax(single.var(axis=0)))  # a count that is not fixed
    one, other = rows[:, place], single[:, place]
    low, high = np.quantile(np.concatenate([one, other]), [0.25, 0.75])
    table = [[np.sum(x <= low), np.sum((x > low) & (x < high)), np.sum(x >= high)] for x in (one, other)]
    assert contingency_p(table) > FALSE_ALARM
    up, next_up = one[:-1:2] > np.median(one), one[1::2] > np.median(one)
    pairs = [[int(np.sum((up == a) & (next_up == b))) for b in (False, True)] for a in (False, True)]
    assert contingency_p(pairs) > FALSE_ALARM
    shared = [[int(np.sum((up == a) & (up == b))) for b in (False, True)] for a in (False, True)]
    assert contingency_p(shared) < FALSE_ALARM  # so many pairs would tell


def contingency_p(table: Any) -> float:
    """The p-value of independent rows and columns; those without an entry tell nothing."""
    seen = np.asarray(table, dtype=float)
    seen = seen[seen.sum(axis=1) > 0][:, seen.sum(axis=0) > 0]
    if min(seen.shape) < 2:
        return 1.0
    found: Any = chi2_contingency(seen, correction=False)
    return float(found.pvalue)


BASES = (
    "DiscreteLaplaceMechanism",
    "TreeLaplaceMechanism",
    "OrderGaussianMechanism",
    "TreeGaussianMechanism",
)
BREAKDOWN = read_breakdown(["sex", "place"], {"sex": ["f", "m"], "place": ["x", "y"]}, ["", "sex", "*"])


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("name", BASES)
def test_a_breakdown_costs_what_its_base_guarantees(name, contributions):
    """A unit's records are in one cell of each margin. The margins are a function of what was measured."""
    looked_at = 0
    for P, squares in itertools.product((Poset.chain("ab"), TREE), (False, True)):
        for base in built(MECHANISMS[name], P, "add-remove", contributions):
            if (squares and base.guarantee.kind != "pure") or base.max_size is not None:
                continue
            mechanism = MarginsMechanism(base, BREAKDOWN, rho=base.epsilon**2 / 2 if squares else None)
            nobody = np.zeros((BREAKDOWN.cells, len(P)), np.int64)

            found, used = linear_map(partial(mechanism.release, nobody)), 0.0
            for record, cell in itertools.product(records_of(P, None), range(BREAKDOWN.cells)):
                change = nobody.copy()
                change[cell] = contributions * record
                tables = [
                    table
                    for table, share in zip(BREAKDOWN.tables(change), mechanism.shares, strict=True)
                    if share
                ]
                used = max(used, breakdown_use(found, tables, mechanism.guarantee))
            assert 0.5 < used <= 1.001
            looked_at += 1
    assert looked_at


def breakdown_use(found: LinearMap, tables: list[Any], guarantee: Guarantee) -> float:
    """What all margins together use up; under zCDP the squares of pure losses add up, margin by margin."""
    flat = np.concatenate([np.ravel(table) for table in tables])
    if guarantee.kind != "zcdp" or "laplace" not in found.laws:
        return used_by(found, flat, guarantee)
    ends, rho = np.cumsum([0, *(table.size for table in tables)]), 0.0
    for start, end in itertools.pairwise(ends):
        own = np.flatnonzero(np.abs(found.columns[start:end]).sum(axis=0) > 1e-9)
        part = LinearMap(found.columns[start:end, own], ("laplace",) * own.size, (1.0,) * own.size)
        rho += float(np.abs(least_numbers(part, flat[start:end], squares=False)).sum()) ** 2 / 2
    return rho / float(guarantee.rho)
