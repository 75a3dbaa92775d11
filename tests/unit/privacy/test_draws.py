"""Only exact draws make a release, and the three forms of draws have one law."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support import flat, fuzz
from tests.support.chisquare import chi_square_p

import isotone
import isotone.counts as counts
import isotone.tables as tables
from isotone.errors import InputError
from isotone.mechanism import HasTotal
from isotone.noise import Simulated, refuse_simulated
from isotone.order import Poset
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.published.tables import row_by_row
from isotone.release import load_spec
from isotone.tables import pairs


class Exhaustive:
    """Stands for the draws of tests that walk through all outcomes: the outcome of least effort each time."""

    def choice(self, scores: Any, rate: Fraction) -> int:
        return 0

    def segments(
        self, scores: Any, offsets: Any, rates: Any, multiplicity: Any, size: int | None = None
    ) -> Any:
        return np.zeros(len(offsets) - 1, np.int64)

    def below(self, sizes: Any) -> Any:
        return np.zeros(len(sizes), np.int64)

    def perturb(self, values: Any, rate: Fraction) -> Any:
        return values

    def geometrics(self, rate: Fraction, size: int) -> Any:
        return np.zeros(size, np.int64)

    def uneven(self, values: Any, line: Any) -> Any:
        return values

    def rounded_gaussians(self, variance: Fraction, size: int) -> Any:
        return np.zeros(size, np.int64)

    def discrete_gaussians(self, variance: Fraction, size: int) -> Any:
        return np.zeros(size, np.int64)

    def one_sided_geometrics(self, rate: Fraction, size: int) -> Any:
        return np.zeros(size, np.int64)

    def lazy_geometrics(self, rate: Fraction, size: int) -> Any:
        return np.zeros(size, np.int64)

    def geometric_sums(self, rate: Fraction, terms: int, size: int) -> Any:
        return np.zeros(size, np.int64)

    def coins(self, rate: Fraction, multiples: Any) -> Any:
        return np.ones(len(multiples), np.bool_)

    def words(self, size: int) -> Any:
        return np.zeros(size, np.uint64)


OTHERS: list[Draws] = [SeededDraws(np.random.default_rng(0)), Exhaustive()]
PAIR = Poset.chain("ab")
OPTION = Poset("ab", (), [("exclusive", ["a", "b"])])
BUILT: list[Any] = [
    counts.PosetMechanism(PAIR, 1),
    counts.BoundedPosetMechanism(Poset.antichain("ab"), 1, max_size=1),
    counts.LaplaceMechanism(PAIR, 1),
    counts.DiscreteLaplaceMechanism(PAIR, 1),
    counts.LInfinityMechanism(PAIR, 1),
    counts.HierarchicalMechanism(PAIR, 1),
    counts.MatrixMechanism(PAIR, 1),
    counts.GaussianMechanism(PAIR, rho=1),
    counts.DiscreteGaussianMechanism(PAIR, rho=1),
    counts.OrderGaussianMechanism(PAIR, rho=1),
    counts.DifferenceBodyMechanism(PAIR, 1),
    counts.GroupedDifferenceMechanism(PAIR, 1, groups=1),
    counts.TreeFieldMechanism(OPTION, 1),
    counts.TreeGaussianMechanism(OPTION, rho=1),
    counts.TreeLaplaceMechanism(OPTION, 1),
    tables.TwoStageMechanism(3, 1),
    tables.GaussianTableMechanism(3, isotone.Guarantee.zcdp(1)),
    tables.truncated_geometric(4, 1),
    tables.staircase(4, 1),
    tables.discrete_gaussian(4, 1, "1e-6"),
    tables.fixed_point([0.5, 0.3, 0.1, 0.1], 1),
]


def releasing() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Every public entry of counts and tables that releases, with arguments that it takes."""
    for m in BUILT:
        yield f"{type(m).__name__}.release", m.release, ([3, 3],)
        if hasattr(m, "release_rows"):
            yield f"{type(m).__name__}.release_rows", m.release_rows, (np.array([[3, 3]]),)
        if isinstance(m, HasTotal) and m.has_total:
            yield f"{type(m).__name__}.release_with_total", m.release_with_total, ([3, 3], 5)
    yield "release_in_full", tables.TwoStageMechanism(3, 1).release_in_full, ([3, 3],)
    yield "release_pair", partial(pairs.release_pair, tables.TwoStageMechanism(3, 1)), ([3, 3], [1, 0])
    yield "sample_extended_bipartition", counts.sample_extended_bipartition, (PAIR,)
    yield "row by row", row_by_row.RowByRowMechanism(3, 1).release, ([3, 3],)
    yield "privatize_distribution", tables.privatize_distribution, ([0, 1], 3, 1)


ENTRIES = list(releasing())


@pytest.mark.parametrize(("name", "entry", "arguments"), ENTRIES, ids=[name for name, _, _ in ENTRIES])
def test_no_entry_that_releases_takes_other_draws_or_what_they_made(
    name: str, entry: Any, arguments: Any
) -> None:
    for other in OTHERS:
        for keyword in ("draws", "choices", "rng"):
            with pytest.raises(TypeError):
                entry(*arguments, **{keyword: other})
        with pytest.raises((TypeError, InputError)):
            entry(*arguments, other)
    if not isinstance(arguments[0], Poset):
        with pytest.raises(InputError, match="simulate"):
            entry(Simulated.wrap(np.array(arguments[0])), *arguments[1:])
    taken = inspect.signature(entry).parameters.values()
    assert not any("Draws" in str(p.annotation) and "ExactDraws" not in str(p.annotation) for p in taken)


def places() -> list[Any]:
    """The modules in which a release of counts or tables takes its draws, wherever they stand."""
    root = Path(isotone.__file__).parent
    paths = [path for path in root.rglob("*.py") if "ExactDraws()" in path.read_text(encoding="utf-8")]
    return [
        import_module(".".join(("isotone", *path.relative_to(root).with_suffix("").parts))) for path in paths
    ]


PLACES = places()


def test_every_place_that_releases_takes_exact_draws_by_name() -> None:
    assert PLACES
    assert all(place.ExactDraws is ExactDraws for place in PLACES)


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
@pytest.mark.parametrize(("name", "entry", "arguments"), ENTRIES, ids=[name for name, _, _ in ENTRIES])
def test_other_draws_in_the_place_of_exact_ones_are_refused(
    name: str, entry: Any, arguments: Any, other: Draws, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry(*arguments)
    for place in PLACES:
        monkeypatch.setattr(place, "ExactDraws", lambda: other)
    with pytest.raises(InputError, match="ExactDraws only"):
        entry(*arguments)


def released_counts(folder: Path, **more: Any) -> Any:
    data = pa.table({"a": [1, 0], "b": [1, 1]})
    with isotone.Ledger(folder / "counts.ledger", epsilon=9, unit="record") as ledger:
        return flat.counts(data, PAIR, epsilon=1, ledger=ledger, **more)


def released_table(folder: Path, **more: Any) -> Any:
    how: dict[str, Any] = {"category": "c", "categories": ["x", "y"], "upper": 3, "epsilon": 1}
    with isotone.Ledger(folder / "table.ledger", epsilon=9, unit="record") as ledger:
        return flat.table(pa.table({"c": ["x", "x"]}), ledger=ledger, **how, **more)


def released_spec(folder: Path, **more: Any) -> Any:
    (folder / "data.csv").write_text(fuzz.PEOPLE, encoding="utf-8")
    (folder / "spec.toml").write_text(fuzz.toml(fuzz.COUNTS), encoding="utf-8")
    asked = {name: more[name] for name in more if name != "title"}  # which has its place in the spec
    return flat.with_spec(load_spec(folder / "spec.toml"), **asked)[0]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
@pytest.mark.parametrize("release", [released_counts, released_table, released_spec])
def test_a_release_takes_no_other_draws_and_none_in_the_place_of_exact_ones(
    release: Any, other: Draws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of curves are tried in tests/attacks/curves/test_only_exact_draws.py."""
    for keyword in ("draws", "choices", "rng"):
        with pytest.raises((TypeError, InputError), match=r"unexpected keyword|has no parameter"):
            release(tmp_path, **{keyword: other})
    for place in PLACES:
        monkeypatch.setattr(place, "ExactDraws", lambda: other)
    with pytest.raises(Exception, match="ExactDraws only"):
        release(tmp_path)
    monkeypatch.undo()
    assert release(tmp_path, title="another request").columns["value"]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
def test_a_two_stage_run_with_other_draws_is_marked_as_simulated(other: Draws) -> None:
    run = tables.TwoStageMechanism(3, 1).run(np.array([0, 3, 1, 1]), other)
    assert isinstance(run.values, Simulated)
    with pytest.raises(InputError, match="simulate"):
        refuse_simulated(run.values)
    exact = tables.TwoStageMechanism(3, 1).run(np.array([0, 3, 1, 1]), ExactDraws())
    assert not isinstance(exact.values, Simulated)


def test_a_release_asks_for_exact_draws_by_type() -> None:
    exact = ExactDraws()
    assert require_exact(exact) is exact
    for other in (*OTHERS, None, ExactDraws, np.random.default_rng(0)):
        with pytest.raises(InputError, match="ExactDraws only"):
            require_exact(other)


def test_exact_and_seeded_draws_have_one_law() -> None:
    """Means and second moments, each within 5.5 standard errors: a false alarm in 1e-7 of runs."""
    size, rate = 40_000, Fraction(1, 2)
    seeded: Draws = SeededDraws(np.random.default_rng(1))
    q = float(np.exp(-0.5))
    second = 2 * q / (1 - q) ** 2
    fourth = second * (1 + 10 * q + q * q) / (1 - q) ** 2
    for draws in (ExactDraws(), seeded):
        for drawn in (draws.geometrics(rate, size), draws.perturb(np.zeros(size, np.int64), rate)):
            assert abs(np.mean(drawn)) < 5.5 * (second / size) ** 0.5
            off = abs(np.mean(drawn.astype(float) ** 2) - second)
            assert off < 5.5 * ((fourth - second**2) / size) ** 0.5
            assert abs(1.1**2 * second - second) > 5.5 * ((fourth - second**2) / size) ** 0.5
        upward = draws.one_sided_geometrics(rate, size)
        assert abs(np.mean(upward) - q / (1 - q)) < 5.5 * (q / (1 - q) ** 2 / size) ** 0.5
        assert np.min(upward) == 0
        spread = np.mean(draws.discrete_gaussians(Fraction(9), size).astype(float) ** 2)
        assert abs(spread - 9) < 5.5 * 9 * (2 / size) ** 0.5
        below = draws.below(np.full(size, 3, np.int64))
        assert max(abs(np.bincount(below, minlength=3) / size - 1 / 3)) < 5.5 * (2 / 9 / size) ** 0.5
        picked = [draws.choice(np.array([0, 1]), Fraction(1)) for _ in range(2_000)]
        p = float(np.exp(-1) / (1 + np.exp(-1)))
        assert abs(np.mean(picked) - p) < 5.5 * (p * (1 - p) / 2_000) ** 0.5


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (2, 3), (3, 1), (2, 2, 2)])
def test_every_value_gets_noise_of_its_own_whatever_the_shape(
    shape: tuple[int, ...], monkeypatch: Any
) -> None:
    """Numbers that tell where each went: none is used twice, and none is left out."""
    size = int(np.prod(shape))

    def marks(rate: Fraction, number: int) -> Any:
        assert number == size
        return 1 + np.arange(number)

    values = 100 * np.arange(size).reshape(shape)
    monkeypatch.setattr("isotone.noise.two_sided_geometrics", marks)
    noise = ExactDraws().perturb(values, Fraction(1)) - values
    assert noise.shape == shape
    assert sorted(noise.ravel().tolist()) == list(range(1, size + 1))


@pytest.mark.parametrize("shape", [(4000, 2), (2, 4000)])
def test_rows_and_columns_of_exact_and_seeded_noise_are_independent(shape: tuple[int, ...]) -> None:
    """Signs of two rows agree for half of the columns; false alarm 1e-8 (5.7 deviations)."""
    for draws in (ExactDraws(), SeededDraws(np.random.default_rng(3))):
        noise = draws.perturb(np.zeros(shape, np.int64), Fraction(1, 10))
        one, other = (noise[0], noise[1]) if shape[0] == 2 else (noise[:, 0], noise[:, 1])
        agree = np.sum(np.sign(one) * np.sign(other)) / np.sqrt(len(one))
        assert abs(agree) < 5.7
        assert abs(np.sum(np.sign(one) * np.sign(one)) / np.sqrt(len(one))) > 5.7


def test_seeded_choices_have_the_law_of_the_exact_ones():
    """A chi-square test of 20,000 seeded choices (false alarm 1e-9). A score that counts twice is 40 standard errors off."""
    scores, many, rate = np.array([1, 4, 2]), np.array([1, 5, 2]), Fraction(1, 2)
    size = 20_000
    chosen = SeededDraws(np.random.default_rng(0)).segments(
        np.tile(scores, size), 3 * np.arange(size + 1), [rate] * size, np.tile(many, size)
    )
    weights = many * np.exp(-float(rate) * scores)
    assert chi_square_p(np.bincount(chosen, minlength=3), weights / weights.sum()) > 1e-9
