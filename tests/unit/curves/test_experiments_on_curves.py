"""What the experiments on curves compare with, and how they go on after an interruption."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import _curve_rivals
import curves_bands
from _curve_comparisons import comparisons, losses, summary
from _curve_goals import table_of_goals
from _curve_populations import POINTS, Population
from common import read_table, write_table
from isotone.curves.problem import FINE


def test_the_true_curve_is_the_mean_of_y_at_a_point() -> None:
    """On heaps it is a function of x, which the curve at each record's own rank is not."""
    population = Population("dose", "heaped")
    sample = population.sample(30_000, 0)
    cells, labels = sample.records.cells, sample.records.levels / FINE
    for cell in np.unique(cells):
        here = cells == cell
        assert np.unique(sample.truth[here]).size == 1
        # six standard errors for each of 15 heaps; the data are seeded, so the answer does not change
        assert abs(labels[here].mean() - sample.truth[here][0]) < 3 / here.sum() ** 0.5


def test_y_that_was_clipped_has_the_mean_of_what_is_left() -> None:
    sample = Population("square", "bell", "laplace").sample(40_000, 1)
    low = sample.truth < 0.12
    y = sample.records.levels[low] / FINE
    assert abs(y.mean() - sample.truth[low].mean()) < 6 * y.std() / low.sum() ** 0.5


def test_a_quantile_tree_without_noise_cuts_at_quantiles() -> None:
    cells = Population("plateaus", "skewed").sample(5_000, 0).records.cells
    seen = [
        np.bincount(cells * 16**level // POINTS, minlength=16**level).astype(np.float64)
        for level in (1, 2, 3)
    ]
    for share in (0.1, 0.5, 0.9):
        cut = _curve_rivals._quantile(seen, share, POINTS)
        assert np.mean(cells < cut) <= share <= np.mean(cells <= cut)
    nobody = [np.zeros(16**level) for level in (1, 2, 3)]
    assert _curve_rivals._quantile(nobody, 0.5, POINTS) == POINTS // 2


def test_a_rival_by_a_quantile_tree_rises_and_is_near_the_truth_with_little_noise() -> None:
    sample = Population("linear", "uniform").sample(4_000, 0)
    way = _curve_rivals.RIVALS["32 bins by a quantile tree"]
    values = way(sample.records, POINTS, 4_000, Fraction(1000), True, np.random.default_rng(0))
    assert (np.diff(values) >= 0).all()
    assert np.sqrt(np.mean((values[sample.records.cells] - sample.truth) ** 2)) < 0.06


def test_an_interrupted_run_keeps_rows_of_as_many_runs(tmp_path: Path) -> None:
    task = next(task for task in curves_bands.tasks(quick=False) if task.n == 300)
    width = {"population": 0.5, "records": 0.3, "credible": 0.1}
    rows = [
        {
            **{"population": task.population.name, "n": task.n, "epsilon": 1.0, "kind": kind},
            **{"runs": task.credible if kind == "credible" else task.runs, "all_points_covered": 7},
            **{"upper_limit": 1.0, "points_covered": 1.0, "width": wide},
        }
        for kind, wide in width.items()
    ]
    write_table(tmp_path, "coverage", {name: [row[name] for row in rows] for name in rows[0]})
    assert curves_bands.earlier(tmp_path) == {task: rows}
    rows[0]["runs"] = 2
    write_table(tmp_path, "coverage", {name: [row[name] for row in rows] for name in rows[0]})
    assert curves_bands.earlier(tmp_path) == {}


def test_losses_are_beyond_three_percent_and_two_standard_errors() -> None:
    def row(method: str, epsilon: float, value: float, error: float) -> dict[str, object]:
        measures = dict.fromkeys(("fit", "truth", "squared", "logistic"), value)
        errors = {f"{name}_error": error for name in measures}
        key = {"held_out": True, "population": "a, b, normal", "n": 300, "epsilon": epsilon}
        return {**key, "method": method, **measures, **errors}

    names = ("population", "records", "before", "8 bins")
    clear = [row(*each) for each in zip(names, [1.0] * 4, [4, 4, 8, 1], [0.1] * 4, strict=True)]
    chance = [row(*each) for each in zip(names, [3.0] * 4, [4, 4, 8, 1], [9] * 4, strict=True)]
    found = comparisons(clear + chance)
    assert {each.measure for each in found} == {"fit", "truth", "squared"}  # no labels
    assert {(each["measure"], each["epsilon"], each["best"]) for each in losses(found)} == {
        (measure, 1.0, "8 bins") for measure in ("fit", "truth", "squared")
    }
    table = {each["measure"]: each for each in summary(found) if each["n"] == "all"}
    assert table["fit"]["over_best"] == pytest.approx(2)
    assert table["fit"]["over_before"] == pytest.approx(0.5**0.5)
    assert table["squared"]["over_best"] == pytest.approx(4)
    assert (table["squared"]["more_than_3_percent_worse"], table["squared"]["beyond_chance"]) == (2, 1)


@pytest.mark.parametrize("file", ["goals", "others_goals"])
def test_the_page_of_the_quality_of_curves_has_the_stored_goals(file: str) -> None:
    folder = Path(__file__).resolve().parents[3] / "docs" / "reproduction" / "curves_quality"
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert table_of_goals(read_table(folder / f"{file}.csv")) in page
