"""The closed-form optimum: against exact vertices, against HiGHS, and at the limits of floats."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tables_exact import cost, exact_optimum, shapes, solve

from isotone.errors import InputError
from isotone.published.tables import lp
from isotone.tables import fixed_point, truncated_geometric
from isotone.tables.matrices.factored import UNIT, FactoredMechanism, comonotone
from isotone.tables.matrices.geometric import geometric_matrix, loss_matrix, push_through


def convex_loss(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random convex function of the difference, plus what no mechanism can change."""
    slopes = np.sort(rng.normal(size=2 * n - 2))
    values = np.concatenate([[0.0], np.cumsum(slopes)])
    i = np.arange(n)
    return values[i[:, None] - i[None, :] + n - 1] + rng.normal(size=(n, 1))


def random_distribution(n: int, rng: np.random.Generator) -> np.ndarray:
    p = rng.exponential(size=n) * (rng.random(n) < 0.75)
    return p / p.sum() if p.sum() > 0 else np.eye(n)[int(rng.integers(n))]


def test_no_vertex_of_the_polytope_beats_the_closed_form_in_exact_arithmetic() -> None:
    half, rng = Fraction(1, 2), np.random.default_rng(1)
    third = Fraction(1, 3)
    for z in (
        [third] * 3,
        [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)],
        [Fraction(3, 4), Fraction(0), Fraction(1, 4)],
    ):
        vertices = lp.fixed_polytope(z, half).vertices()
        best = exact_optimum(z, z, half)
        for _ in range(20):
            mixed = rng.integers(0, 5, (3, 3))
            loss = [
                [Fraction(-int(mixed[i:, j:].sum()) + int(3 * i - j)) for j in range(3)] for i in range(3)
            ]  # Monge
            mine = cost(best, z, loss)
            assert min(cost([list(v[0:3]), list(v[3:6]), list(v[6:9])], z, loss) for v in vertices) == mine


def test_the_closed_form_equals_highs_for_random_distributions_and_convex_losses() -> None:
    rng = np.random.default_rng(2)
    for _ in range(250):
        n = int(rng.integers(2, 13))
        epsilon = float(rng.choice([0.02, 0.1, 0.5, 1.0, 2.0, 4.0]))
        z, loss = random_distribution(n, rng), convex_loss(n, rng)
        target = z if rng.random() < 0.6 else random_distribution(n, rng)
        mechanism = fixed_point(z, epsilon, target=target)
        least = solve(z[:, None] * loss, epsilon, z, target)
        assert abs(mechanism.count_error(z, loss) - least) <= 1e-10 * max(1.0, np.abs(loss).max())


def joint(z: np.ndarray, T: np.ndarray) -> np.ndarray:
    """The probability that input and output are at most i and j."""
    return np.cumsum(np.cumsum(z[:, None] * T, axis=0), axis=1)


def test_the_joint_law_is_largest_everywhere() -> None:
    """Theorem 2, part 2: each entry alone is maximised by a linear program, and the closed form attains all."""
    rng = np.random.default_rng(6)
    for _ in range(12):
        n = int(rng.integers(2, 6))
        z, target = random_distribution(n, rng), random_distribution(n, rng)
        best = joint(z, fixed_point(z, 1, target=target).matrix())
        for i, j in np.ndindex(n, n):
            inside = np.zeros((n, n))
            inside[: i + 1, : j + 1] = z[: i + 1, None]
            assert -solve(-inside, 1.0, z, target) == pytest.approx(best[i, j], abs=1e-9)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_optimum_is_unique_where_it_should_be(loss: Any) -> None:
    """Theorem 2, part 4: among all optimal mechanisms no entry of the rows in the support can be changed."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(7)
    n, a = 4, np.exp(-1.0)
    for z in (np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 0.5, 0.5, 0.0])):
        costs = z[:, None] * loss_matrix(loss, n)
        T = fixed_point(z, 1).matrix()
        private = [
            (sign, i, j) for sign in (0, 1) for i in range(n - 1) for j in range(n)
        ]  # a·T[i, j] ≤ T[i + 1, j] and the other way round
        above = np.zeros((len(private) + 1, n, n))
        for row, (sign, i, j) in zip(above, private, strict=False):
            row[i + sign, j], row[i + 1 - sign, j] = a, -1
        above[-1] = costs
        limits = np.append(np.zeros(len(private)), np.sum(costs * T) + 1e-11)
        equal = np.concatenate(
            [np.eye(n)[:, :, None] * np.ones(n), np.eye(n)[:, None, :] * z[None, :, None]]
        ).reshape(2 * n, -1)
        held = [i for i in range(n) if z[: i + 1].any() and z[i:].any()]
        for _ in range(6):
            way = np.zeros((n, n))
            way[held] = rng.normal(size=(len(held), n))
            found = linprog(
                way.ravel(), above.reshape(len(above), -1), limits, equal, np.append(np.ones(n), z)
            )
            assert found.fun == pytest.approx(np.sum(way * T), abs=1e-6)


def test_a_loss_that_is_not_monge_has_distributions_where_the_closed_form_is_beaten() -> None:
    """Theorem 2, part 5: with a positive second difference at (i, j), the constant mechanism is better."""
    n = 4
    for i, j in np.ndindex(n - 1, n - 1):
        loss = np.zeros((n, n))
        loss[i, j] = 1.0  # its second difference at (i, j) is 1
        z, target = np.zeros(n), np.zeros(n)
        z[i : i + 2], target[j : j + 2] = 0.5, 0.5
        constant = float(z @ loss @ target)
        assert fixed_point(z, 1, target=target).count_error(z, loss) > constant + 0.05


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.7, 5, 20, 60])
@pytest.mark.parametrize("n", [1, 2, 3, 40, 300])
def test_rows_sum_to_one_the_distribution_is_kept_and_neighbours_are_close(n: int, epsilon: float) -> None:
    for name, z in shapes(n, np.random.default_rng(n)).items():
        t = fixed_point(z, epsilon)
        matrix = t.matrix()
        assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12, name
        assert t.fixed_point_error(z) <= 1e-12, name
        assert np.abs(z @ matrix - z).max() <= 1e-12, name
        seen = np.minimum(matrix[:-1], matrix[1:]) > 1e-290
        logs = np.log(np.where(seen, matrix[:-1], 1)) - np.log(np.where(seen, matrix[1:], 1))
        assert np.abs(logs).max(initial=0) <= epsilon * (1 + 1e-12) + 1e-12, name
        assert t.privacy_loss() <= epsilon


def test_a_million_counts_need_linear_memory_and_keep_the_distribution() -> None:
    n = 10**6
    z = np.random.default_rng(3).exponential(size=n)
    z /= z.sum()
    t = fixed_point(z, 1)
    assert isinstance(t, FactoredMechanism)
    assert len(t.remap.columns) <= 2 * n - 1
    assert t.fixed_point_error(z) <= 1e-12
    assert t.privacy_loss() == 1


def test_a_point_mass_is_published_as_it_is() -> None:
    z = np.zeros(9)
    z[4] = 1
    t = fixed_point(z, "0.5")
    assert np.array_equal(t.release(np.arange(9)), np.full(9, 4))
    assert t.privacy_loss() <= 1e-15


def test_without_a_target_the_remap_of_a_uniform_source_is_the_identity() -> None:
    remap = comonotone(np.full(8, 0.125), np.full(8, 0.125))
    assert np.array_equal(remap.dense(), np.eye(8))


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12),
    st.lists(st.floats(0, 1), min_size=12, max_size=12),
)
@settings(max_examples=200, deadline=None)
def test_every_row_of_a_coupling_sums_to_exactly_one(a: list[float], b: list[float]) -> None:
    n = len(a)
    y, z = np.array(a) + 1e-9, np.array(b[:n]) + (1e-9 if sum(b[:n]) == 0 else 0)
    remap = comonotone(y / y.sum(), z / z.sum())
    assert len(remap.columns) <= 2 * n + 1
    assert np.all(remap.ceilings[remap.starts[1:] - 1] == UNIT)
    for start, stop in zip(remap.starts[:-1], remap.starts[1:], strict=True):
        assert np.all(np.diff(remap.ceilings[start:stop]) >= 0)
        assert np.all(np.diff(remap.columns[start:stop]) > 0)
    assert np.abs(remap.push(y / y.sum()) - z / z.sum()).max() <= 1e-12


def test_pushing_through_the_noise_is_multiplication_by_its_matrix() -> None:
    rng = np.random.default_rng(4)
    for n, epsilon in ((1, 1.0), (2, 0.1), (30, 0.01), (30, 3.0)):
        z = random_distribution(n, rng)
        assert np.abs(push_through(z, epsilon) - z @ geometric_matrix(n, epsilon)).max() <= 1e-15
        assert np.abs(geometric_matrix(n, epsilon).sum(axis=1) - 1).max() <= 1e-14


def test_the_truncated_geometric_is_clamped_two_sided_noise() -> None:
    a = np.exp(-0.5)
    t = truncated_geometric(4, "0.5").matrix()
    inside = (1 - a) / (1 + a)
    assert np.allclose(t[1], [a / (1 + a), inside, inside * a, a**2 / (1 + a)], atol=1e-15)


def test_sharing_among_contributions_and_replace_neighbours_shrinks_the_step() -> None:
    z = [0.4, 0.3, 0.2, 0.1]
    shared = fixed_point(z, 6, contributions=3, neighbours="replace")
    assert np.allclose(shared.matrix(), fixed_point(z, 1).matrix(), atol=1e-15)
    assert shared.guarantee.epsilon == 6
    assert shared.guarantee.neighbours == "replace"
    assert shared.privacy_loss() == 1


def test_raising_the_weight_of_the_end_counts_never_changes_the_optimum() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = int(rng.integers(3, 9))
        z = random_distribution(n, rng)
        weights = z.copy()
        weights[[0, -1]] *= 1 + 3 * rng.random(2)
        costs = weights[:, None] * loss_matrix("absolute", n)
        mine = float(np.sum(costs * fixed_point(z, 1).matrix()))
        assert abs(mine - solve(costs, 1.0, z, z)) <= 1e-10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"z": [0.5, 0.4]}, "sum to 1"),
        ({"z": [1.5, -0.5]}, "none below 0"),
        ({"z": [[1.0]]}, "non-empty list"),
        ({"z": [0.5, 0.5], "target": [1.0]}, "as many"),
        ({"z": [0.5, 0.5], "epsilon": 0}, "above 0"),
        ({"z": [0.5, 0.5], "constructor": "magic"}, "constructor"),
        ({"z": [0.5, 0.5], "constructor": "lp", "price": 1}, "price"),
        ({"z": [0.5, 0.5], "price": -1}, "at least 0"),
        ({"z": [0.5, 0.5], "contributions": 0}, "contributions"),
        ({"z": [0.5, 0.5], "neighbours": "swap"}, "neighbours"),
        ({"z": "half"}, "Distribution"),
    ],
)
def test_public_arguments_are_refused_with_the_reason(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fixed_point(**({"epsilon": 1} | arguments))  # type: ignore[arg-type]
