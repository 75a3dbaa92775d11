"""What a series shows on tiny products, computed a second time: every choice of the code that releases is walked, and what follows is
integrated here, cell by cell.

For one way to take steps up and down, the whole numbers of a draw are ``⌊S_i − T_j + ½⌋`` of two rows of sums of exponentials. Their
parts above halves of whole numbers decide each of them by their sequence alone, and all sequences are listed. So masses of cells are
exact, whatever norm or table the code has, and a guarantee is looked at output by output, for every effect that a unit can have.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from isotone import noise
from isotone.counts import PosetMechanism
from isotone.order import Poset
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import Guarantee
from isotone.series import CausalGaussianMechanism, SeriesMechanism, TwoScaleMechanism
from isotone.series.two_scale import Scales, over_time
from tests.support.effort import effort

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Ways = dict[tuple[float, tuple[int, ...], tuple[int, ...]], Fraction]

SMALL = [(Poset.chain("ab"), 2), (Poset.antichain("ab"), 2), (Poset.chain("a"), 4)]
WIDER = [(Poset.chain("ab"), 3), (Poset.chain("abc"), 2)]
"""Six counts have seven hundred sequences of parts: these are for ``make audit``."""
UNITS = [("add-remove", 1), ("replace", 1), ("add-remove", 2), ("replace", 2)]
FEW = effort(2, 4)
"""Of these units, for ``make test``; others take a minute."""


def histories(stages: Poset, periods: int) -> list[tuple[int, ...]]:
    """What one history may add to all counts, nobody's included: each stage is reached in some period, or never, and stays."""
    names = list(stages.elements)
    found = []
    for since in itertools.product(range(periods + 1), repeat=len(names)):
        reached = dict(zip(names, since, strict=True))
        if all(reached[y] <= reached[x] for x in names for y in names if stages.leq(x, y)):
            found.append(tuple(int(since[s] <= t) for t in range(periods) for s in range(len(names))))
    return found


def effects(stages: Poset, periods: int, neighbours: str, most: int) -> Ints:
    """All changes by one unit of ``most`` histories."""
    own = np.array(histories(stages, periods))
    one = (
        own
        if neighbours == "add-remove"
        else np.unique((own[:, None] - own[None]).reshape(-1, own.shape[1]), axis=0)
    )
    every = np.zeros((1, own.shape[1]), np.int64)
    for _ in range(most):
        every = np.unique((every[:, None] + one[None]).reshape(-1, own.shape[1]), axis=0)
    both = np.unique(np.concatenate((every, -every)), axis=0)
    return both[np.any(both != 0, axis=1)]


# Every choice of a draw


def walked(run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Ways:
    """The ways to take steps: rate, steps up and steps down of every count, with exact probabilities."""
    waiting: list[list[int]] = [[]]
    ways: Ways = defaultdict(Fraction)
    while waiting:
        given, taken, mass, seen = waiting.pop(), list[int](), [Fraction(1)], list[Any]()

        def integer(weights: Sequence[int], *, given=given, taken=taken, mass=mass) -> int:
            place = len(taken)
            if place == len(given):
                first, *others = [one for one, weight in enumerate(weights) if weight]
                waiting.extend([*given, other] for other in others)
                given.append(first)
            taken.append(given[place])
            mass[0] *= Fraction(int(weights[given[place]]), sum(int(w) for w in weights))
            return given[place]

        def sums(rate: Any, plus: Ints, minus: Ints, *, seen=seen) -> Ints:
            seen.append((float(rate), tuple(map(int, plus)), tuple(map(int, minus))))
            return np.zeros(len(plus), np.int64)

        with monkeypatch.context() as patched:
            for name in noise.__all__:  # nothing else may draw
                if name.startswith(
                    ("random_", "rounded_", "two_sided", "geometric", "discrete", "bernoulli", "choose")
                ):
                    patched.setattr(noise, name, None)
            patched.setattr(ExactDraws, "integer", staticmethod(integer))
            patched.setattr(ExactDraws, "bernoulli", staticmethod(lambda *_: pytest.fail("a coin")))
            patched.setattr(ExactDraws, "exponential_sums", staticmethod(sums))
            run()
        (way,) = seen
        ways[way] += mass[0]
    assert sum(ways.values()) == 1
    return ways


# What follows, cell by cell


def law_of(ways: Ways, reach: int, length: float) -> Floats:
    """The masses of all vectors of whole numbers within ``reach``, for sums up, and down, that are ``length`` together at most there."""
    n = len(next(iter(ways))[1])
    law = np.zeros([2 * reach + 1] * n)
    by_size: dict[tuple[float, int, int], list[Any]] = defaultdict(list)
    for (rate, plus, minus), mass in ways.items():
        assert max(plus) + max(minus) == n, "a step is in no count"
        by_size[rate, max(plus), max(minus)].append((np.array(plus), np.array(minus), float(mass)))
    for (rate, a, b), some in by_size.items():
        up, down = _halves(a, b, math.ceil(2 * length))
        weight = rate**n * np.exp(-rate / 2 * (up[:, -1] + down[:, -1]))
        parts = _parts(rate, n)
        for ranks in itertools.permutations(range(n)):
            first, second = np.array((-1, *ranks[:a])), np.array((-1, *ranks[a:]))
            fits = np.ones(len(up), bool)
            for sums, rank in ((up, first), (down, second)):
                for i in range(
                    1, sums.shape[1] - 1
                ):  # what stands in the same half stands there in its sequence
                    if rank[i] > rank[i + 1]:
                        fits &= sums[:, i] < sums[:, i + 1]
            gap = up[fits][:, :, None] - down[fits][:, None, :]
            whole = np.where(gap % 2 == 0, gap // 2, (gap + 1) // 2 - (first[:, None] < second[None, :]))
            mass = weight[fits] * parts[first[-1] if a else -1, second[-1] if b else -1]
            for plus, minus, share in some:
                shown = whole[:, plus, minus] + reach
                inside = np.all((shown >= 0) & (shown <= 2 * reach), axis=1)
                np.add.at(law, tuple(shown[inside].T), share * mass[inside])
    return law


def _halves(a: int, b: int, most: int) -> tuple[Ints, Ints]:
    """Two growing rows of whole numbers from 0, whose ends together are ``most`` at most; each with a 0 before it."""
    rows: list[tuple[int, ...]] = []
    for up in itertools.combinations_with_replacement(range(most + 1), a):
        left = most - (up[-1] if up else 0)
        rows += [(*up, *down) for down in itertools.combinations_with_replacement(range(left + 1), b)]
    table = np.array(rows, np.int64).reshape(len(rows), a + b)
    zero = np.zeros((len(rows), 1), np.int64)
    return np.hstack((zero, table[:, :a])), np.hstack((zero, table[:, a:]))


def _parts(rate: float, n: int) -> Floats:
    """``∫ exp(−rate·(u_i + u_j))`` over all ``0 ≤ u_0 < … < u_{n−1} ≤ ½``; a last row and column for none."""
    points, weights = np.polynomial.legendre.leggauss(40)
    table = np.zeros((n + 1, n + 1))
    at, weight = (points + 1) / 4, weights / 4

    def power(x: Any, k: int) -> Any:
        return x**k / math.factorial(k)

    for i in range(n):
        table[i, n] = table[n, i] = np.sum(
            weight * np.exp(-rate * at) * power(at, i) * power(0.5 - at, n - 1 - i)
        )
        for j in range(i + 1, n):
            late, scale = at[:, None] * 2 * at[None, :], (2 * at)[None, :]  # the earlier one below the later
            value = (
                np.exp(-rate * (late + at[None, :])) * power(late, i) * power(at[None, :] - late, j - i - 1)
            )
            value = value * power(0.5 - at[None, :], n - 1 - j) * scale * weight[:, None] * weight[None, :]
            table[i, j] = table[j, i] = np.sum(value)
    return table


def longest(P: Poset, reach: float) -> float:
    """How long, in filters of ``P`` and their negatives, a vector with entries up to ``reach`` is at most. By linear programs."""
    n, names = len(P), list(P.elements)
    filters = [
        f
        for f in itertools.product((0, 1), repeat=n)
        if all(f[y] for x in range(n) if f[x] for y in range(n) if P.leq(names[x], names[y]))
    ]
    hull = np.array([f for f in filters if any(f)], float).T
    hull = np.hstack((hull, -hull))
    corners = itertools.product((-reach, reach), repeat=n)
    return max(linprog(np.ones(hull.shape[1]), A_eq=hull, b_eq=np.array(corner)).fun for corner in corners)


def law_around(
    mechanism: PosetMechanism, run: Callable[[], Any], reach: int, monkeypatch: pytest.MonkeyPatch
) -> Floats:
    return law_of(walked(run, monkeypatch), reach, longest(mechanism.P, reach + 0.5) + 1e-6)


def worst(less: Floats, more: Floats, moves: Ints) -> float:
    """The largest log ratio between outputs up to 1 and what they become by a change."""
    middle = np.array(list(itertools.product((-1, 0, 1), repeat=less.ndim)))
    losses = [-np.inf]
    for d in moves:
        here, there = middle + less.shape[0] // 2, middle + d + more.shape[0] // 2
        inside = np.all((there >= 0) & (there < more.shape[0]), axis=1)
        losses.append(
            np.max(np.log(less[tuple(here[inside].T)] / more[tuple(there[inside].T)]), initial=-np.inf)
        )
    return float(max(losses))


def test_cells_of_one_count_are_those_of_rounded_laplace_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    made = PosetMechanism(Poset.chain("a"), 2)
    law = law_around(made, lambda: made.release([0]), 3, monkeypatch)
    tail = [math.exp(-2 * (k - 0.5)) * (1 - math.exp(-2)) / 2 for k in (1, 2, 3)]
    assert law == pytest.approx([*tail[::-1], 1 - math.exp(-1), *tail], rel=1e-12)


@pytest.mark.parametrize(("stages", "periods"), SMALL[: effort(2, 3)])
@pytest.mark.parametrize(("neighbours", "most"), UNITS[:FEW])
def test_one_draw_of_the_product_keeps_epsilon_in_every_cell(
    stages: Poset, periods: int, neighbours: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    epsilon = 3
    inner = PosetMechanism(over_time(stages, periods), epsilon, neighbours, most)
    series = SeriesMechanism(stages, periods, inner)
    moves, reach = effects(stages, periods, neighbours, most), 1 + most
    law = law_around(inner, series.draw, reach, monkeypatch)
    loss = worst(law, law, moves)
    assert 0.6 * epsilon < loss <= epsilon * (1 + 1e-9)


@pytest.mark.skipif(effort(0, 1) == 0, reason="minutes")
@pytest.mark.parametrize(("stages", "periods"), WIDER, ids=["2×3", "3×2"])
def test_one_draw_of_six_counts_keeps_epsilon_in_every_cell(
    stages: Poset, periods: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = PosetMechanism(over_time(stages, periods), 3)
    law = law_around(inner, SeriesMechanism(stages, periods, inner).draw, 1, monkeypatch)
    loss = worst(law, law, effects(stages, periods, "add-remove", 1))
    assert 0.6 * 3 < loss <= 3 * (1 + 1e-9)


def two_scales(
    mechanism: TwoScaleMechanism, reach: int, monkeypatch: pytest.MonkeyPatch, combined: Any = None
) -> Floats:
    """The law of what is shown, of all pairs of draws within ``reach``, through the code that combines them."""
    law = np.zeros([2 * reach + 7] * len(mechanism.P))
    parts: list[tuple[Ints, Floats]] = []
    for part in (mechanism.fine_noise, mechanism.coarse_noise):
        cells = law_around(
            part, lambda part=part: part.release(np.zeros(len(part.P), np.int64)), reach, monkeypatch
        )
        parts.append((np.argwhere(cells >= 0) - reach, cells.ravel()))
    (fine, one), (coarse, two) = parts
    for anchor, mass in zip(coarse, two, strict=True):
        shown = np.asarray((combined or mechanism._combined)(fine, anchor, mechanism.gain)) + reach + 3
        inside = np.all((shown >= 0) & (shown < law.shape[0]), axis=1)
        np.add.at(law, tuple(shown[inside].T), mass * one[inside])
    return law


@pytest.mark.parametrize(("neighbours", "most"), UNITS[:FEW])
@pytest.mark.parametrize("fine", ["product", "chains"][: effort(1, 2)])
def test_noise_on_two_scales_keeps_epsilon_in_every_cell(
    neighbours: Any, most: int, fine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change takes pairs of draws within reach to pairs within that and the change, so nothing that is cut off is missing."""
    stages, epsilon = Poset.chain("ab"), 5 * most * (1 + (neighbours == "replace"))
    made = TwoScaleMechanism(
        stages, 2, Guarantee.pure(epsilon, neighbours=neighbours), Scales((1,), "0.4", fine), most
    )
    less, more = (two_scales(made, reach, monkeypatch) for reach in (2, 2 + most))
    loss = worst(less, more, effects(stages, 2, neighbours, most))
    assert 0.5 * epsilon < loss <= epsilon * (1 + 1e-9)


def test_changes_that_do_not_pass_unchanged_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same look at noise that a careless hand combined: it sees what it is for."""
    stages, epsilon = Poset.chain("a"), 3
    made = TwoScaleMechanism(stages, 2, epsilon, Scales((1,), "0.4", "product"))
    bits = 2**20

    def twice(fine: Any, coarse: Any, gain: Any) -> Any:
        return (2 * (fine * bits + (coarse - fine[..., made.anchored]) @ gain.T) + bits) // (2 * bits) // 2

    def loss(combined: Any) -> float:
        less, more = (two_scales(made, reach, monkeypatch, combined) for reach in (6, 7))
        return worst(less, more, effects(stages, 2, "add-remove", 1))

    assert loss(None) <= epsilon * (1 + 1e-9)
    assert loss(twice) > 1.2 * epsilon


# Gaussian noise: what a change does to the code that releases is found by running it, and its worth by summing weights


@pytest.mark.parametrize(
    ("stages", "periods"), [*SMALL, *WIDER], ids=["2×2", "2×2 without", "1×4", "2×3", "3×2"]
)
@pytest.mark.parametrize(("neighbours", "most"), UNITS)
@pytest.mark.parametrize("kind", ["rho", "delta"])
def test_gaussian_noise_over_time_keeps_its_guarantee_whoever_reacts(
    stages: Poset, periods: int, neighbours: Any, most: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike: dict[str, Any] = {"neighbours": neighbours}
    guarantee = (
        Guarantee.zcdp("1/2", **alike) if kind == "rho" else Guarantee.approximate(1, "1/1000", **alike)
    )
    made = CausalGaussianMechanism(stages, periods, guarantee, most)
    many = 100 * made.P.leq_matrix().sum(
        axis=0
    )  # counts of which none is below 0, and that grow with the order
    variances = set[float]()

    def shown(counts: Any, drawn: Ints) -> Ints:
        def numbers(variance: Any, size: int) -> Ints:
            assert size == len(drawn)
            variances.add(float(variance))
            return drawn.copy()

        with monkeypatch.context() as patched:
            patched.setattr(noise, "discrete_gaussians" if kind == "rho" else "rounded_gaussians", numbers)
            return np.asarray(made.release(counts + many)) - many

    n, rng = len(made.P), np.random.default_rng(5)
    rows = made.strategy.rows
    base = rng.integers(-(2**30), 2**30, rows)
    plain = shown(np.zeros(n, int), base)
    moves = [np.zeros(n, np.int64), *effects(stages, periods, neighbours, most)]
    # the strategy is linear in whole numbers, so a change of one count shifts what is measured by a row of it
    unit = np.array([_shift(made, np.eye(n, dtype=np.int64)[x]) for x in range(n)])
    shifts = {tuple(d): d @ unit for d in moves}
    for d in moves:
        assert np.array_equal(shown(d, base), shown(np.zeros(n, int), base + shifts[tuple(d)]))
    # and rows that are measured in later periods never move what is shown before
    size, time = len(stages), _times(made, shown, plain, base, periods, len(stages))
    (variance,) = variances
    following: dict[tuple[int, ...], dict[tuple[int, ...], set[tuple[int, ...]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for d in shifts:
        for t in range(periods):
            # rows of this period look at nothing later, so every continuation has the same shifts in them
            past, now = tuple(map(int, d[: t * size])), tuple(map(int, d[: (t + 1) * size]))
            following[past][now].add(tuple(np.abs(shifts[d][time == t]).tolist()))

    def worth(past: tuple[int, ...], order: float) -> float:
        """The logarithm of the largest moment of what is shown from here on, by the worst reaction to it."""
        if len(past) == n:
            return 0.0
        best = -np.inf
        for now, moves_now in following[past].items():
            (moved,) = moves_now
            best = max(best, sum(_moment(s, variance, order) for s in moved) + worth(now, order))
        return best

    if kind == "rho":
        for order in (1.5, 4.0):
            assert worth((), order) <= order * (order - 1) / 2 * (1 + 1e-9)
        assert worth((), 2.0) > 0.2
        return
    far = math.sqrt(max(float(np.sum(s.astype(float) ** 2)) for s in shifts.values()) / variance)
    cdf = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))  # noqa: E731
    delta = cdf(far / 2 - 1 / far) - math.e * cdf(-far / 2 - 1 / far)
    assert 1e-5 < delta <= 1e-3 * (1 + 1e-9)


def _shift(made: CausalGaussianMechanism, change: Ints) -> Ints:
    """What a change of the counts adds to what is measured, as whole numbers."""
    return np.rint(made.strategy.within.multiply(change[None, made.strategy.active].astype(float))[0]).astype(
        np.int64
    )


def _times(made: Any, shown: Any, plain: Ints, base: Ints, periods: int, size: int) -> Ints:
    """The first period that each drawn number moves, found by moving it."""
    times = np.full(len(base), periods)
    for row in range(len(base)):
        other = base.copy()
        other[row] += 2**40
        moved = np.flatnonzero(shown(np.zeros(len(made.P), int), other) != plain)
        if moved.size:
            times[row] = moved.min() // size
    return times


@cache
def _moment(s: int, variance: float, order: float) -> float:
    """``log Σ p(k)^order p(k − s)^(1 − order)`` of a discrete Gaussian, by its weights."""
    if s == 0:
        return 0.0
    sd = math.sqrt(variance)
    step = max(
        1, int(sd / 50)
    )  # of a fine lattice every so many points: sums of Gaussians are exact to many digits
    reach = int((order + 12) * sd / step) + s // step
    k = np.arange(-reach, reach + 1, dtype=float) * step
    one, other = -(k**2) / (2 * variance), -((k - s) ** 2) / (2 * variance)
    return float(np.log(np.sum(np.exp(order * one + (1 - order) * other))) - np.log(np.sum(np.exp(one))))
