"""Plain and compiled code do the same: every kernel that small problems run plainly is run both ways."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.count_plans import plan
from tests.support.estimators import grouped

from isotone import noise, tables
from isotone.counts import OrderGaussianMechanism, consistent
from isotone.counts.sampler import norms
from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression, ProductOrder
from isotone.kernels import PLAIN_STEPS, Kernel
from isotone.noise.bits import PLAIN_CANDIDATES, choose_segments
from isotone.order import Poset
from isotone.order.bipartitions.counting import tables as bipartition_tables
from isotone.order.bipartitions.moments import expected_squares
from isotone.tables import smooth as bands
from isotone.tables.matrices.factored import UNIT, comonotone, draw_remap

N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
FOREST = Poset(range(8), [(1, 0), (2, 0), (3, 1), (5, 4), (6, 4), (7, 6)])
ORDERS = [FOREST, Poset.series(Poset.disjoint_union(N_ORDER, Poset.antichain("xy")), Poset.chain("uv"))]


def assert_same(one: Any, two: Any, name: str) -> None:
    """Integers and booleans agree exactly, floats up to rounding."""
    if isinstance(one, tuple):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert_same(a, b, name)
    elif one is not None:
        first, second = np.asarray(one), np.asarray(two)
        if first.dtype.kind == "f":
            np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(first, second, err_msg=name)


@pytest.fixture
def both_ways(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every call of a kernel that may run plainly is made plainly and compiled, on copies of its arguments."""
    calls: Counter[str] = Counter()

    def call(self: Kernel[..., Any], *args: Any) -> Any:
        if self.steps is None or self.steps(*args) > PLAIN_STEPS:
            return self.compiled(*args)
        plain_args, name = deepcopy(args), self.name
        calls[name] += 1
        if calls[name] > 40:
            return self.plain(*args)
        plain = self.plain(*plain_args)
        compiled = self.compiled(*args)
        assert_same(plain, compiled, name)
        for one, two in zip(plain_args, args, strict=True):
            if isinstance(one, np.ndarray):
                assert_same(one, two, f"{name}: an argument that it writes to")
        return compiled

    monkeypatch.setattr(Kernel, "__call__", call)
    return calls


@pytest.mark.parametrize("P", ORDERS)
def test_orders_and_their_tables(both_ways: Counter[str], P: Poset) -> None:
    lower, upper = np.nonzero(P.leq_matrix() & ~np.eye(len(P), dtype=bool))
    again = Poset(P.elements, [(P.elements[x], P.elements[y]) for x, y in zip(lower, upper, strict=True)])
    assert again.covers == P.covers
    expected_squares(bipartition_tables(P))
    assert {"ends_by_start", "linear_order", "closure", "reduction", "sizes", "cumulate"} <= set(both_ways)


@pytest.mark.parametrize("P", ORDERS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_plans_and_draws_of_counts(both_ways: Counter[str], P: Poset, neighbours: Any) -> None:
    plan(P, epsilon=1, delta=Fraction(1, 10**6), neighbours=neighbours)
    mechanism = OrderGaussianMechanism(P, epsilon=1, delta=Fraction(1, 10**6), neighbours=neighbours)
    mechanism.release([5] * len(P))
    assert both_ways["nearest"] or both_ways["nearest_integers"]  # of other orders, of forests


def test_norms_and_projections(both_ways: Counter[str]) -> None:
    y = np.random.default_rng(1).integers(-9, 9, (5, len(FOREST))).astype(float)
    norms(FOREST, y)
    consistent(FOREST, y[0])
    assert {"maxima", "merge_up_the_forest"} <= set(both_ways)


def test_noise_from_the_same_words(both_ways: Counter[str]) -> None:
    for rate in (Fraction(1, 1000), Fraction(1, 7), Fraction(3)):
        noise.two_sided_geometrics(rate, 60)
        noise.rounded_gaussians(1 / rate, 20)
        noise.discrete_gaussians(1 / rate, 20)
        noise.choose_exponential([-5, 3, 0, 2**40, -(2**62), 2**62], rate, [1, 2, 3, 2**50, 0, 1])
        noise.choose_exponential_segments([7, 5, -3, 8, 8, 9], [0, 2, 5, 6], rate)
    assert {"fill", "accept", "choose_segments"} <= set(both_ways)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_tables_and_their_matrices(both_ways: Counter[str], loss: Any) -> None:
    z = np.exp(-0.3 * np.arange(20.0)) * np.where(np.arange(20) % 7 == 3, 0.0, 1.0)
    z /= z.sum()
    made = tables.fixed_point(z, 1)
    made.count_error(z, loss)
    made.privacy_loss()
    tables.unfixed_optimum(z, 1, loss=loss)
    tables.certificate(z, 1, loss)
    tables.TwoStageMechanism(upper=19, epsilon=1).release([0, 3, 3, 19, 7] * 9)
    assert {"couple", "decayed_sums", "slack", "sweep"} <= set(both_ways)


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_banded_matrices(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    rng = np.random.default_rng(width)
    for n in (1, 2, 3, 10):
        band = rng.normal(size=(width + 1, n))
        band[0] = (1 + 2 * np.abs(band).sum()) * rng.choice([-1.0, 1.0], n)
        dense = np.zeros((n, n))
        for k in range(min(width + 1, n)):
            place = np.arange(n - k)
            dense[place + k, place] = dense[place, place + k] = band[k, : n - k]
        for few in (1 << 13, -1):  # lists in plain Python, and compiled
            monkeypatch.setattr(bands, "most_steps", lambda few=few: few)
            inverse, wanted = bands.factor(band).inverse(), np.linalg.inv(dense)
            for k in range(min(width + 1, n)):
                np.testing.assert_allclose(
                    inverse[k, : n - k], np.diagonal(wanted, -k), rtol=1e-9, atol=1e-15
                )


def test_draws_of_a_remap_follow_its_ceilings_exactly() -> None:
    remap = comonotone(np.array([0.5, 0.125, 0.375]), np.array([0.1, 0.2, 0.3, 0.35, 0.05]))
    for row in range(len(remap)):
        entries = slice(int(remap.starts[row]), int(remap.starts[row + 1]))
        floor = 0
        for column, ceiling in zip(
            remap.columns[entries].tolist(), remap.ceilings[entries].tolist(), strict=True
        ):
            if ceiling == floor:
                continue
            ends = np.array([floor << 2, (ceiling << 2) - 1], np.uint64)  # 62 of the 64 bits count
            drawn = draw_remap(np.full(2, row), ends, remap.starts, remap.columns, remap.ceilings)
            assert drawn.tolist() == [column, column]
            floor = ceiling
        assert floor == UNIT


def test_curves_and_orders_of_few_elements(both_ways: Counter[str]) -> None:
    curve: dict[str, Any] = {"bounds": (0, 9), "y_range": (0, 1), "x_grid": 10, "public_n": 40}
    xs, ys = list(range(10)) * 4, [k / 39 for k in range(40)]
    for more in ({"method": "baseline"}, {"shape": "convex"}, {"shape": ("linear", 2, 3), "x_grid": 7}):
        options: dict[str, Any] = {**curve, **more, "value_levels": 4}
        PrivateIsotonicRegression(1, **grouped(**options)).fit(xs, ys)
    PrivateIsotonicRegression(300, **curve, loss="absolute").fit(xs, ys)
    names = ["a", "b", "c", "d"] * 10
    cells, cubes = [(k % 2, k % 3) for k in range(40)], [(k % 2, k % 3, k % 2) for k in range(40)]
    for order, places in ((N_ORDER, names), (ProductOrder((2, 3)), cells), (ProductOrder((2, 3, 2)), cubes)):
        PrivatePosetRegression(order, y_range=(0, 1), loss="absolute").fit(places, ys)
    assert {"totals", "piece_costs", "staircases", "row_costs", "best_steps", "sums"} <= set(both_ways)


@pytest.mark.filterwarnings("ignore:method='additive' is kept for comparison")
def test_which_code_chooses_a_cut_does_not_depend_on_the_number_of_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []
    for name, kept in (("plain", "plain"), ("compiled", "_machine_code")):
        real = getattr(choose_segments, name)
        monkeypatch.setitem(
            vars(choose_segments), kept, lambda *args, n=name, r=real: (ran.append(n), r(*args))[1]
        )
    for points, expected in ((PLAIN_CANDIDATES, "plain"), (PLAIN_CANDIDATES + 1, "compiled")):
        for rows in (0, 3, PLAIN_CANDIDATES):
            model = PrivateIsotonicRegression(
                1, (0, 1), (0, 1), x_grid=points, public_n=50, method="additive"
            )
            model.fit(np.linspace(0, 1, rows), np.zeros(rows))
            assert set(ran) == {expected}
            ran.clear()


CURVE_WITHOUT_COMPILING = """
import sys
from isotone import kernels
def refuse(function, *_): raise SystemExit(f"{function.__module__}.{function.__name__} would be compiled")
kernels._compile = refuse
from isotone.cli import main
for command in (["plan", sys.argv[1], "--records", "569"], ["release", sys.argv[1]]):
    sys.argv = ["isotone", *command]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
assert "numba" not in sys.modules
"""


def test_the_example_of_a_curve_is_planned_and_released_without_compiling(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    spec = (root / "examples/calibration/spec.toml").read_text(encoding="utf-8")
    (tmp_path / "spec.toml").write_text(spec.replace("../../data", f"{root}/data"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CURVE_WITHOUT_COMPILING, str(tmp_path / "spec.toml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "release.csv").exists()


WITHOUT_COMPILING = """
import sys
import isotone as iso
from isotone.order import Poset
for P in (Poset("abcdefghijk", [("a", "c"), ("b", "c"), ("b", "d"), ("e", "d")]),
          Poset(range(100), [(k, k // 3) for k in range(3, 100)])):
    for guarantee in ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.5}):
        chosen = iso.Counts(P).plan(**guarantee)
        for row in chosen:
            row.mechanism.release([5] * len(P))
    iso.counts.consistent(P, [1.0] * len(P))
    if len(P) < 20:
        for row in iso.Counts(P, max_size=4).plan(epsilon=1, delta=1e-6):
            row.mechanism.release([5] * len(P))
iso.Table("c", range(300), upper=9).plan(epsilon=1)
iso.tables.TwoStageMechanism(upper=50, epsilon=1).release([0, 3, 3, 19, 7, 80] * 50)
print([name for name in ("numba", "scipy.stats", "matplotlib", "duckdb", "pyarrow") if name in sys.modules])
"""


def test_counts_of_small_orders_and_tables_are_planned_and_released_without_compiling() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMPILING], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
