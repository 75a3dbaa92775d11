"""The rivals that are written here are the ones that they are said to be, and the page is that of the stored rows."""

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks import _rows, rivals
from benchmarks._rivals import breakdowns, curve_ways, graphical, hierarchies, orders, table_ways, tables
from benchmarks._rivals.about import RIVALS
from benchmarks._rivals.check import differences
from benchmarks._rivals.comparison import Ratio, comparisons, ratio
from benchmarks._rivals.counts import GAUSSIAN
from benchmarks._rivals.matrix_mechanism import (
    error_and_slope,
    p_identity,
    split,
    strategy,
    sums_and_slope,
    sums_of_counts,
    workload,
)
from benchmarks._rivals.page import COSTS, SECTIONS, body, runs_of
from benchmarks._rivals.published import CLOSE, gram, reproduced
from benchmarks._rivals.rows import Row, keep_times, read, times, write
from benchmarks._rivals.scales import canonical_variance
from benchmarks._rivals.sums_across import longest, sums_across
from benchmarks._rivals.tree_strategies import best_budgets, sparse_error_and_slope
from experiments._curve_populations import POINTS, Population
from experiments._curve_rivals import histogram
from scipy.sparse import csr_array

from isotone.counts import OrderGaussianMechanism, TreeLaplaceMechanism
from isotone.counts.hierarchy import gaussian_shares, require_hierarchy
from isotone.linear.least_squares import TreeLeastSquares
from isotone.mechanism import no_progress
from isotone.order import Poset

ROOT = Path(__file__).resolve().parents[3]
STAR = Poset("abcd", [("b", "a"), ("c", "a"), ("d", "a")])


@pytest.mark.parametrize("norm", [1, 2])
def test_the_error_of_a_strategy_is_that_of_dense_algebra_and_its_slope_that_of_differences(norm):
    W = workload(orders.filters(STAR)[1:])
    theta = np.random.default_rng(3).random((3, W.shape[1]))
    A = strategy(theta, norm)
    assert np.allclose(np.linalg.norm(A, ord=norm, axis=0), 1)
    error, slope = error_and_slope(theta, W, norm)
    assert error == pytest.approx(np.trace(W @ np.linalg.inv(A.T @ A) @ W.T))
    for at in ((0, 0), (1, 5), (2, 7)):
        step = np.zeros_like(theta)
        step[at] = 1e-6
        ahead, behind = (error_and_slope(theta + sign * step, W, norm)[0] for sign in (1, -1))
        assert slope[at] == pytest.approx((ahead - behind) / 2e-6, rel=1e-4, abs=1e-6)


def test_sums_of_counts_have_the_slope_of_differences_and_are_no_worse_than_the_best_known():
    records = orders.filters(STAR)[1:]
    A = np.random.default_rng(5).normal(size=(6, 4))
    _, slope = sums_and_slope(A, records.astype(float), 20.0)
    for at in ((0, 0), (3, 2), (5, 3)):
        step = np.zeros_like(A)
        step[at] = 1e-6
        ahead, behind = (sums_and_slope(A + sign * step, records.astype(float), 20.0)[0] for sign in (1, -1))
        assert slope[at] == pytest.approx((ahead - behind) / 2e-6, rel=1e-4, abs=1e-6)
    antichain = orders.filters(Poset("abc"))[1:]
    assert sums_of_counts(antichain, np.eye(3)).error <= 27 * 1.001  # noise on each count
    chain = orders.filters(Poset.chain(range(5)))[1:]
    steps = np.rint(np.linalg.inv(Poset.chain(range(5)).leq_matrix().astype(float))).T
    assert sums_of_counts(chain, steps).error <= p_identity(workload(chain), 1).error * 1.01


def test_sums_across_parts_are_measured_by_the_longest_of_all_records():
    chain = np.tril(np.ones((3, 2)), -1)  # records of two levels, with the empty one
    parts, rng = [chain, chain, np.array([[0.0], [1.0]])], np.random.default_rng(1)
    records = np.array([np.concatenate(some) for some in itertools.product(*parts)])
    for _ in range(5):
        A = rng.normal(size=(6, 5))
        assert longest(parts, A) == pytest.approx(np.abs(records @ A.T).sum(axis=1).max())
    steps = np.array([[1.0, -1.0], [0.0, 1.0]])
    alone = split([3.0, 3.0, 1.0], 1)  # the errors of these strategies by themselves
    across = sums_across(parts, [steps, steps, np.eye(1)])
    found = sums_of_counts(records[1:] > 0, np.eye(5)).error
    assert found * 0.98 <= across <= 0.85 * alone


def test_the_nearest_counts_of_many_people_have_the_errors_of_least_squares():
    people = np.ones((1_000, 2), np.bool_)
    drawn = graphical._nearest(Poset("ab"), people, np.eye(2) / 2)  # Laplace noise of scale 2 on either count
    assert np.mean(drawn) == pytest.approx(8, rel=0.2)  # with this seed; a standard error is 5 %
    few = graphical._nearest(Poset("ab"), people[:1], np.eye(2) / 2)
    assert np.mean(few) < 0.7 * np.mean(drawn)


def test_the_nearest_table_of_many_people_has_the_errors_of_least_squares():
    case = breakdowns.Case("", Poset(["people"]), {"a": 2, "b": 3}, ["", "a", "b", "*"])
    shares = np.array(breakdowns._ours(case, breakdowns.CONCENTRATED).shares, np.float64)
    wanted = breakdowns._mean(breakdowns._ours(case, breakdowns.CONCENTRATED))
    for each, least, most in ((10_000, 0.75, 1.25), (0, 0.0, 0.7)):
        cells = np.full((2, 3), each)
        truth = [cells.sum(axis=breakdowns._others(case, margin)) for margin in case.subsets]
        assert least < np.mean(breakdowns._nearest(case, cells, truth, shares)) / wanted < most


def test_what_the_certificate_leaves_possible_counts_as_a_rival():
    found = [one for one in comparisons(read("counts")) if any(row.rival == GAUSSIAN for row in one.rows)]
    assert len(found) == 5
    assert any(one.best("public").rival == GAUSSIAN for one in found)


@pytest.mark.parametrize("norm", [1, 2])
def test_a_sparse_workload_has_the_error_and_the_slope_of_a_dense_one(norm):
    rng = np.random.default_rng(6)
    W, theta = np.vstack([np.eye(5), np.ones((1, 5)), [[1, 1, 0, 0, 0]]]), rng.random((3, 5))
    dense, sparse = error_and_slope(theta, W, norm), sparse_error_and_slope(theta, csr_array(W), norm)
    assert sparse[0] == pytest.approx(dense[0])
    assert np.allclose(sparse[1], dense[1])


@pytest.mark.parametrize("worst", [False, True])
def test_budgets_of_nodes_reach_the_best_for_gaussian_noise_and_are_no_worse_than_those_of_levels(worst):
    tree = require_hierarchy(hierarchies.complete(3, 3))
    weights = np.ones(len(tree))

    def error(variance):
        return float(variance.max() if worst else variance.sum())

    for noise in (hierarchies.CONCENTRATED, hierarchies.PURE):
        start = hierarchies._node_shares(tree, np.full(3, 1 / 4))
        found = best_budgets(tree, weights, worst, noise.precision, error, [start])
        levels, _ = hierarchies._best_levels(
            tree, lambda shares, noise=noise: error(hierarchies.level_variances(tree, shares, noise))
        )
        assert found <= levels * 1.001
        if noise is hierarchies.CONCENTRATED and not worst:
            best = gaussian_shares(tree, weights)
            least = error(TreeLeastSquares.of(tree, best.shares).variance)
            assert least * (1 - best.gap - 1e-9) <= found <= least * 1.0001


def test_the_search_finds_strategies_that_are_known_to_be_best():
    assert p_identity(np.eye(6), 1).error == pytest.approx(6, rel=1e-4)
    assert p_identity(np.eye(6), 2).error == pytest.approx(6, rel=1e-4)
    assert p_identity(np.ones((1, 6)), 1).error == pytest.approx(1, rel=0.01)  # one total, in the limit


@pytest.mark.parametrize("kind", ["prefixes", "ranges"])
def test_workloads_of_published_errors_are_those_of_all_queries(kind):
    starts = {"prefixes": [0], "ranges": range(5)}[kind]
    W = np.array([[low <= x <= high for x in range(5)] for low in starts for high in range(low, 5)], float)
    G, queries = gram(kind, 5)
    assert queries == len(W)
    assert np.array_equal(G, W.T @ W)


def test_the_optimiser_reaches_errors_that_the_authors_of_hdmm_published():
    for each, ours in reproduced():
        assert ours == pytest.approx(each.error, rel=CLOSE), each.name


@pytest.mark.parametrize("P", [Poset.chain(range(6)), STAR])
def test_no_strategy_with_gaussian_noise_is_below_the_certificate(P):
    known = OrderGaussianMechanism(P, rho="1/2").certificate()
    assert known.lower_bound is not None
    found = p_identity(workload(orders.filters(P)[1:]), 2).error
    assert known.lower_bound <= found * (1 + 1e-9)
    assert found < 1.1 * known.trace


def test_parts_share_the_budget_as_well_as_any_grid_of_shares():
    shares = np.arange(1, 1000) / 1000
    assert split([5.0, 2.0], 1) == pytest.approx(min(5 / shares**2 + 2 / (1 - shares) ** 2), rel=1e-4)
    assert split([5.0, 2.0], 2) == pytest.approx(min(5 / shares + 2 / (1 - shares)), rel=1e-4)


def test_filters_are_all_records_that_follow_the_order():
    P = Poset("abcd", [("a", "b"), ("a", "c"), ("d", "c")])
    above = P.leq_matrix().astype(bool)
    every = [r for r in itertools.product([False, True], repeat=4) if all(r[y] for x in range(4) if r[x] for y in range(4) if above[x, y])]  # fmt: skip
    assert {tuple(each) for each in orders.filters(P).tolist()} == set(every)
    assert orders.number_of_filters(P) == len(every)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 0.01), (2.0, 1e-3)])
def test_canonical_noise_has_the_variance_of_its_law(epsilon, delta):
    b = math.exp(-epsilon)
    q = 2 * delta * b / (1 - b + 2 * delta * b)
    x = np.linspace(-60, 60, 240_001)
    k = np.rint(x)
    below = b ** np.maximum(-k, 0) / (1 + b) * (b + (x - k + 0.5) * (1 - b))
    above = 1 - b ** np.maximum(k, 0) / (1 + b) * (b + (k - x + 0.5) * (1 - b))
    cdf = np.clip((np.where(k <= 0, below, above) - q / 2) / (1 - q), 0, 1)
    middle = (x[1:] + x[:-1]) / 2
    assert canonical_variance(epsilon, delta) == pytest.approx(np.sum(middle**2 * np.diff(cdf)), rel=1e-4)


def test_residual_planner_is_what_dense_algebra_gives_at_its_variances():
    sizes = {"a": 2, "b": 3}
    margins = [frozenset(), frozenset("a"), frozenset("ab")]
    interactions = [frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")]
    centre = {a: np.eye(n) - 1 / n for a, n in sizes.items()}

    def over(kinds):
        return np.kron(*(kinds[a] for a in sizes))

    p = {A: math.prod(1 - 1 / sizes[a] for a in A) for A in interactions}
    v = {
        A: sum(p[A] * math.prod(sizes[a] ** -2 for a in M - A) for M in margins if A <= M) / 3
        for A in interactions
    }
    total = sum(math.sqrt(p[A] * v[A]) for A in interactions)
    sigma = {A: math.sqrt(p[A] / v[A]) * total for A in interactions}
    tables_of = {
        A: over({a: centre[a] if a in A else np.ones((1, n)) for a, n in sizes.items()}) for A in interactions
    }
    cost = sum(np.square(tables_of[A]).sum(axis=0) / sigma[A] for A in interactions)
    assert np.allclose(cost, 1)  # every record costs 2ρ = 1
    variances = []
    for M in margins:
        covariance = 0
        for A in (A for A in interactions if A <= M):
            spread = over({a: centre[a] if a in A else np.full((n, 1), 1 / n) if a in M else np.ones((1, 1)) for a, n in sizes.items()})  # fmt: skip
            covariance = covariance + sigma[A] * spread @ spread.T
        variances.append(np.diag(np.atleast_2d(covariance)).mean())
    assert breakdowns.residual_planner(sizes, margins) == pytest.approx(np.mean(variances))


def test_trees_have_the_variances_of_dense_least_squares():
    up = {
        "a": "r",
        "c": "r",
        "a1": "a",
        "a2": "a",
        "c1": "c",
        "c2": "c",
        "x": "a2",
        "y": "a2",
        "u": "c2",
        "v": "c2",
    }
    P = Poset.from_mapping(up, children="partition")
    tree = require_hierarchy(P)
    alike = hierarchies.level_variances(tree, np.full(3, 1 / 4), hierarchies.PURE)
    assert np.allclose(alike[tree.node], TreeLaplaceMechanism(P, 1).error().variance)

    def walk(x):
        below = sorted((y for y in up if up[y] == x), key=lambda y: tree.node[P.index(y)])
        return [leaf for y in below for leaf in walk(y)] or [x]

    line = walk("r")
    below = np.array([[leaf in walk(x) for leaf in line] for x in P.elements], float)
    pairs = np.kron(np.eye(3), np.ones(2))
    fours = np.array([[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])
    measured = np.vstack([np.eye(6), pairs, fours, np.ones((1, 6))])
    wanted = np.diag(below @ np.linalg.inv(measured.T @ measured) @ below.T) * 4
    found = hierarchies.bary_variances(tree, 2, hierarchies.CONCENTRATED)[tree.node]
    assert np.allclose(found, wanted)


def test_deconvolution_finds_the_distribution_behind_clamped_noise():
    law, z = table_ways.clamped_law(6, 1.5), np.array([0.4, 0, 0.3, 0, 0, 0.2, 0.1])
    assert np.allclose(law.sum(axis=1), 1)
    assert np.exp(1.5) == pytest.approx(max((law[1:] / law[:-1]).max(), (law[:-1] / law[1:]).max()))
    noisy = np.repeat(np.arange(7), np.rint(1e5 * z @ law).astype(int))
    found = table_ways.npmle(noisy, 6, 1.5)
    assert np.abs(found - z).sum() < 0.05
    smooth = np.exp(-0.5 * (np.arange(7) - 3.0) ** 2)
    noisy_smooth = np.repeat(np.arange(7), np.rint(1e5 * smooth / smooth.sum() @ law).astype(int))
    near = table_ways.efron(noisy_smooth, 6, 1.5, 5, 0.01, atom=False)
    assert np.abs(near - smooth / smooth.sum()).sum() < 0.02
    values = table_ways.rank_map(noisy, np.array([0.5, 0, 0, 0, 0, 0, 0.5]), np.random.default_rng(0))
    assert np.bincount(values, minlength=7)[[0, 6]] == pytest.approx(len(noisy) / 2, abs=1)
    for low, high in itertools.pairwise(range(7)):
        assert values[noisy == low].max() <= values[noisy == high].min()


def test_the_posterior_of_a_cumulative_histogram_is_that_of_all_rising_sequences():
    rng = np.random.default_rng(0)
    for prior, epsilon in itertools.product((0.1, 1.0, 3.0), (0.3, 1.0, 3.0)):
        size, thresholds = int(rng.integers(2, 7)), int(rng.integers(2, 4))
        noisy = rng.integers(-4, size + 5, thresholds)
        weights, means = 0.0, np.zeros(thresholds + 1)
        for below in itertools.combinations_with_replacement(range(size + 1), thresholds):
            counts = np.diff([0, *below, size])
            logs = sum(math.lgamma(c + prior) - math.lgamma(prior) - math.lgamma(c + 1) for c in counts)
            weight = math.exp(logs - epsilon * np.abs(np.array(below) - noisy).sum())
            weights, means = weights + weight, means + weight * counts
        found = table_ways.monotone_posterior(noisy, size, epsilon, prior)
        assert np.allclose(found, means / weights / size)
    belief = np.array([0.5, 0.0, 0.0, 0.2, 0.3])
    assert table_ways.smoothed(belief, 0.5).sum() == pytest.approx(1)
    assert np.allclose(table_ways.smoothed(belief, 0.05), belief)


def test_means_joined_by_lines_begin_with_their_rule_and_have_the_steps_of_a_histogram():
    sample = Population("square", "uniform").sample(1_000, 0)
    given = sample.records, POINTS, 1_000, Fraction(1), True
    found = curve_ways.ways(*given, [5])
    assert [next(iter(fits)) for fits in found.values()] == [
        "32 bins, lines",
        "32 bins, 3/10 for the tree, lines",
    ]
    steps = histogram(32)(*given, np.random.default_rng([5, 1_000]))[sample.records.cells]
    equal = found[curve_ways.EQUAL]
    assert np.array_equal(equal["32 bins, steps, weights by records"], steps)
    assert np.allclose(
        equal["32 bins, lines, weights by records"], steps, atol=np.diff(np.unique(steps)).max()
    )
    assert np.ptp(equal["1 bins, lines"]) == 0
    for choice in ("32 bins, lines", "32 bins, lines, degree 3", "32 bins, lines, pulled by 20/ε"):
        assert np.allclose(equal[choice], steps, atol=0.3), choice
        assert (np.diff(equal[choice]) >= 0).all(), choice
    sure = curve_ways.ways(*given[:3], Fraction(10_000), True, [5])
    for fits in sure.values():
        for choice in ("64 bins, lines", "64 bins, 3/10 for the tree, lines"):
            if choice in fits:
                assert np.sqrt(np.mean((fits[choice] - sample.truth) ** 2)) < 0.1
                assert (np.diff(fits[choice]) >= 0).all()


def test_clamped_noise_and_a_release_without_thresholds_draw_the_same_noise():
    many = table_ways.noisy_counts(tables.Table("many", np.full(20_000, 2), 9), 0.5, np.random.default_rng(1))
    law = np.bincount(many, minlength=10) / len(many)
    assert (
        np.abs(law - table_ways.clamped_law(9, 0.5)[2]).max() < 0.015
    )  # with this seed; a standard error is 0.003
    table, mechanism = tables.Table("few", np.repeat([0, 2, 9], 100), 60), tables.TwoStageMechanism(60, 1)
    assert not mechanism.measurement(300).places
    full = mechanism.run(table.counts, table_ways.PairedDraws(np.random.default_rng(1)))
    noisy = table_ways.noisy_counts(table, 1.0, np.random.default_rng(1))
    assert np.array_equal(np.clip(full.strata[0].noisy_counts, 0, 60), noisy)


KEY = ("tables", "c", "ε = 1", "rms error in the table", False)


def test_ratios_have_the_standard_errors_of_paired_or_of_independent_draws():
    rng = np.random.default_rng(2)
    own = rng.gamma(9, size=400)
    ours, rival = Row.of_draws((*KEY, "isotone"), own), Row.of_draws((*KEY, "a"), 4 * own)
    assert (rival.public, ratio(rival, ours, "public").error) == pytest.approx((2 * ours.public, 0))
    assert ours.error == pytest.approx(ours.public / 2 * own.std(ddof=1) / own.mean() / 20)
    other = Row.of_draws((*KEY, "b"), rng.gamma(9, size=200))
    relative = math.hypot(other.error / other.public, ours.error / ours.public)
    found = ratio(other, ours, "public")
    assert found.error == pytest.approx(found.value * relative)
    apart = Row.of_draws((*KEY, "c"), rng.gamma(9, size=400))
    assert ratio(apart, ours, "public").error == pytest.approx(ours.error / ours.public * 2**0.5, rel=0.1)
    exact = Row(*KEY, "d", 1.0, hindsight=0.5)
    assert ratio(exact, Row(*KEY, "isotone", 1.0), "hindsight") == Ratio(0.5, 0.0, "d")


def test_a_comparison_is_lost_only_beyond_chance():
    assert [Ratio(0.9, error, "").outcome for error in (0, 0.04, 0.06)] == ["lost", "lost", "drawn"]
    assert [Ratio(1.1, error, "").outcome for error in (0, 0.04, 0.06)] == ["won", "won", "drawn"]
    assert Ratio(0.996, 0, "").outcome == Ratio(1.004, 0, "").outcome == "drawn"


def test_the_page_says_whether_its_rows_are_of_one_run(tmp_path):
    rows = [Row(*KEY, "isotone", 1.0, draws=(1.0, 2.5)), Row(*KEY, "a", 1.0)]
    write("tables", rows, tmp_path, run="today 12345678")
    write("curves", rows, tmp_path, run="today 12345678")
    found = {section: read(section, tmp_path) for section in ("tables", "curves")}
    assert found["tables"][0].draws == (1.0, 2.5)
    assert runs_of(found).startswith("All rows of this page are of one run, today 12345678")
    write("curves", rows, tmp_path)
    assert "**not** of one run" in runs_of(found | {"curves": read("curves", tmp_path)})
    keep_times("today 12345678", {"tables": 90.0}, tmp_path)
    assert times("another", tmp_path) == {}
    assert times("today 12345678", tmp_path) == times(None, tmp_path) == {"tables": 90.0}


STORED = {section: read(section) for section in (*SECTIONS, COSTS)}


def test_every_rival_has_a_row_and_half_of_the_comparisons_are_on_new_populations():
    names = {row.rival for section in SECTIONS for row in STORED[section]}
    for rival in RIVALS:
        assert any(name.startswith(rival.name) for name in names), rival.name
    for section in SECTIONS:
        found = comparisons(STORED[section])
        assert 2 * sum(not one.ours.seen for one in found) >= len(found), section


def test_the_page_is_that_of_the_stored_rows():
    text = (ROOT / "docs" / "benchmarks" / "rivals.md").read_text(encoding="utf-8")
    assert body(STORED) in text


def test_costs_of_every_library_stand_beside_those_of_isotone():
    found = {(row.case, row.measure): set[str]() for row in STORED[COSTS]}
    for row in STORED[COSTS]:
        found[row.case, row.measure].add(row.rival)
    assert len(found) == 10  # three of each of three cases, and the size of the installation
    assert all({"isotone", "OpenDP", "diffprivlib", "PipelineDP"} <= names for names in found.values())


def test_an_interrupted_section_leaves_what_was_stored(tmp_path):
    rows = STORED["counts"][:3]
    write("counts", rows, tmp_path)

    def broken():
        yield rows[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write("counts", broken(), tmp_path)
    assert [row.rival for row in read("counts", tmp_path)] == [row.rival for row in rows]


def test_a_run_goes_on_with_the_sections_that_are_missing(monkeypatch, tmp_path):
    made, stops, names = list[str](), ["breakdowns"], set[str]()

    def make(section: str, name: str) -> str:
        names.add(name)
        if section in stops:
            stops.remove(section)
            raise KeyboardInterrupt
        made.append(section)
        return "1"

    monkeypatch.setattr(_rows, "PLACE", tmp_path)
    monkeypatch.setattr(rivals, "_make", make)
    monkeypatch.setattr(rivals, "write_page", lambda: "all")
    monkeypatch.setattr(rivals, "keep_times", lambda run, seconds: kept.append((run, list(seconds))))
    kept = list[tuple[str, list[str]]]()
    with pytest.raises(KeyboardInterrupt):
        rivals.run(False, no_progress)
    assert rivals.run(False, no_progress) == "all"
    assert sorted(made) == sorted([*SECTIONS, COSTS])  # each once
    assert kept == [(names.pop(), [*SECTIONS, COSTS])]  # one name for all sections
    assert not list(tmp_path.rglob("*.json"))  # the next run makes everything again


@pytest.mark.parametrize("section", ["hierarchies", "breakdowns", "tables", "curves"])
def test_small_cases_are_stored_as_the_code_gives_them(section):
    assert differences(section) == []
