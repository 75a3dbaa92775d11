"""Whatever can release has a law test, and so have the ways into it that are no mechanisms: OpenDP, the calibrator, a fit with units.

The classes are found in all packages. One that is in no list of the law tests fails here.
"""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import ast
import itertools
import pkgutil
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pytest

import isotone
from isotone.curves import PrivateIsotonicRegression
from isotone.curves.calibration.calibrator import PrivateCalibrator
from isotone.interop import opendp as bridge
from isotone.tables import TwoStageMechanism
from tests.laws import test_counts, test_tables
from tests.laws.test_counts import MECHANISMS, SETTINGS, TREE, used_by
from tests.laws.test_curves import Given, loss_between
from tests.support.curve_outcomes import scripted
from tests.support.estimators import grouped
from tests.support.mechanisms import mechanisms
from tests.support.noise_scripts import drawn_from, linear_map

dp.enable_features("contrib", "honest-but-curious")  # pyright: ignore[reportPrivateImportUsage]

FOUND_IN = {
    "counts": test_counts.MECHANISMS.keys() | {"MarginsMechanism"},
    "tables": test_tables.SINGLE.keys() | test_tables.TABLES.keys(),
    "distribution": {"DistributionMechanism"},
    "series": {"CausalGaussianMechanism", "SeriesMechanism", "TwoScaleMechanism"},
    "curves": mechanisms("isotone.curves", "draw").keys(),  # looked for in test_curves
    "published": {
        "PosetThresholdTree",  # both: tests/attacks/curves
        "ShapeTree",
        "RowByRowMechanism",  # tests/unit/tables/test_row_by_row.py
        "ScaleMechanism",  # tests/unit/tables/test_heuristic.py
    },
    "release": {"Counts", "Curve", "Distribution", "Series", "Spec", "Survival", "Table", "Job"},
    "ledger": {"Charge"},
}
"""What has a law test, by package. Descriptions release by a mechanism above, and a charge is a row of the ledger."""


DRAWING = {
    "tables.pairs.release_pair": "a way to release a table, in test_tables",
    "tables.distribution.privatize_distribution": "test_tables",
    "curves.circuits.exact_draws": "gives the draws to those that call it, which are looked at too",
    "curves.regression.PrivateIsotonicRegression": "whole fits, in test_curves",
    "curves.poset_regression.PrivatePosetRegression": "whole fits, in test_curves",
    "counts.sampler.sample_extended_bipartition": "draws from public numbers alone",
}
"""What begins to draw for a release and is no mechanism of the list above, and where its law is tested."""


def found() -> dict[str, dict[str, type[Any]]]:
    """All classes that can release, by package or module."""
    modules = [module.name for module in pkgutil.iter_modules(isotone.__path__) if module.name != "__main__"]
    ways = {
        name: mechanisms(f"isotone.{name}", "release") | mechanisms(f"isotone.{name}", "draw")
        for name in modules
    }
    return {name: kinds for name, kinds in ways.items() if kinds}


def test_whatever_can_release_has_a_law() -> None:
    assert {package: kinds.keys() for package, kinds in found().items()} == FOUND_IN


def drawing(tree: ast.AST, inside: str) -> Iterator[str]:
    """The classes and functions of a module that make the draws of a release."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.ClassDef | ast.FunctionDef)
        own = f"{inside}.{node.name}" if named and isinstance(tree, ast.Module) else inside
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "ExactDraws",
            "ExactCurveDraws",
            "exact_draws",
        ):
            yield own
        yield from drawing(node, own)


def test_whatever_draws_for_a_release_belongs_to_a_law() -> None:
    """The names of functions and classes: a function that releases has no guarantee by which it could be found."""
    source = Path(isotone.__path__[0])
    owners: set[str] = set()
    for path in source.rglob("*.py"):
        module = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        owners |= set(drawing(ast.parse(path.read_text(encoding="utf-8")), module))
    classes = {kind for kinds in found().values() for kind in kinds.values()}
    bases = {f"{kind.__module__}.{kind.__qualname__}" for one in classes for kind in one.__mro__}
    assert {name for name in owners if f"isotone.{name}" not in bases} == DRAWING.keys()


@pytest.mark.parametrize("package", ["counts", "tables", "distribution", "series"])
def test_whatever_can_release_cannot_be_changed(package: str) -> None:
    """What was checked when a mechanism was made still holds when it releases."""
    for name, kind in mechanisms(f"isotone.{package}", "release").items():
        frozen: Any = vars(kind).get("__dataclass_params__")
        assert frozen is not None, name
        assert frozen.frozen, name


# OpenDP: from rows to what is released, against the map


def metric_of(neighbours: str, contributions: int) -> Any:
    """Rows are units, or a column says which unit a row is of."""
    if contributions == 1:
        return dp.symmetric_distance() if neighbours == "add-remove" else dp.change_one_distance()
    by_id = dp.symmetric_id_distance if neighbours == "add-remove" else dp.change_one_id_distance
    return by_id(identifier=pl.col("unit"))


NO_NOISE: dict[str, Any] = {
    **dict.fromkeys(
        ("two_sided_geometrics", "rounded_laplaces", "rounded_gaussians", "discrete_gaussians"),
        lambda law, size: np.zeros(size, np.int64),
    ),
    "random_words": lambda size: np.full(size, 1 << 63, np.uint64),
}
ROWS = pd.DataFrame({"unit": ["u", "v"], "a": [1, 0], "b": [0, 1], "all": [1, 1]})


def rows_of(unit: str, *answers: tuple[int, int, int]) -> pd.DataFrame:
    return pd.DataFrame([(unit, *row) for row in answers], columns=["unit", "a", "b", "all"])


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize("name", ["DiscreteLaplaceMechanism", "OrderGaussianMechanism"])
def test_a_measurement_of_counts_loses_what_its_map_says(name, neighbours, contributions):
    """From rows, of which a unit has more than count. The noise is that of the mechanism, for what the rows of a unit change."""
    looked_at = 0
    more = contributions + 2 if contributions > 1 else 1
    tables = [pd.concat([ROWS, rows_of("w", *[row] * more)]) for row in ((1, 0, 1), (0, 1, 1))]
    others = [ROWS] if neighbours == "add-remove" else tables
    for mechanism in test_counts.built(MECHANISMS[name], TREE, neighbours, contributions):
        if mechanism.max_size is not None:
            continue
        made = bridge.make_counts(bridge.table_domain(), metric_of(neighbours, contributions), mechanism)
        with drawn_from(NO_NOISE):
            counts = {id(table): np.asarray(made(table)) for table in [ROWS, *tables]}
        changes = [counts[id(a)] - counts[id(b)] for a, b in itertools.product(tables, others)]
        found = linear_map(partial(made, ROWS))
        used = max(used_by(found, change, mechanism.guarantee) for change in changes if change.any())
        assert 0.2 < used <= 1.02
        looked_at += 1
    assert looked_at


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
def test_a_measurement_of_a_table_counts_no_more_than_its_noise_hides(neighbours, contributions, monkeypatch):
    monkeypatch.setattr(TwoStageMechanism, "release", lambda self, counts: counts)
    unit: dict[str, Any] = {"neighbours": neighbours, "contributions": contributions}
    names = ["x", "y", "z", "w"]
    made = bridge.make_table(
        bridge.table_domain(),
        metric_of(neighbours, contributions),
        TwoStageMechanism(9, 1, **unit),
        category="place",
        categories=names,
    )

    def counted(*places: str) -> np.ndarray:
        rows = [("u", "x"), ("v", "y"), *(("w", place) for place in places)]
        return np.asarray(made(pd.DataFrame(rows, columns=["unit", "place"])))

    own = names if contributions > 1 else names[:1]
    moved = np.abs(counted(*own, *own) - counted()) if contributions > 1 else np.abs(counted("x") - counted())
    assert moved.max() == 1
    assert moved.sum() == contributions


def calibrated(epsilon: Any, unit: dict[str, Any]) -> Any:
    model = PrivateCalibrator(**grouped(epsilon=epsilon, x_grid=11, **unit))
    return lambda x, y, groups: model.fit(x / 10, y, groups=groups)


def measured(epsilon: Any, unit: dict[str, Any]) -> Any:
    """The same through OpenDP, from rows."""
    model = PrivateIsotonicRegression(
        **grouped(epsilon=epsilon, bounds=(0, 10), y_range=(0, 1), x_grid=11, **unit)
    )
    metric = metric_of(unit["neighbours"], unit["contributions"])
    made = bridge.make_curve(bridge.table_domain(), metric, model, x="x", y="y")
    assert made.map(1) == float(epsilon)
    return lambda x, y, groups: made(pd.DataFrame({"x": x, "y": y, "unit": groups}))


@pytest.mark.parametrize("way", [calibrated, measured])
@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
def test_a_calibration_and_a_measured_curve_cost_epsilon(way, neighbours, contributions):
    """A unit of more rows than count, at either end of the scores, in data that are otherwise the same."""
    unit: dict[str, Any] = {"neighbours": neighbours, "contributions": contributions}
    x = np.arange(30) % 11.0
    y = (x > 4).astype(float)
    epsilon, worst = Fraction(3, 2), 0.0
    seeds, places = (
        (range(4), (0.0, 5.0, 10.0)) if way is calibrated else (range(2), (0.0,))
    )  # rows take longer
    for seed, place in itertools.product(seeds, places):
        fits = []
        for at, level in ((place, 1.0), (10 - place, 0.0)):
            own = 0 if neighbours == "add-remove" and fits else contributions + 2 * (contributions > 1)
            draws = Given(seed)
            with scripted(draws):
                groups = np.append(np.arange(30), np.full(own, 99))
                way(epsilon, unit)(np.append(x, np.full(own, at)), np.append(y, np.full(own, level)), groups)
            fits.append(draws)
        worst = max(worst, loss_between(*fits))
    assert 0.9 < worst / float(epsilon) <= 1 + 1e-9
