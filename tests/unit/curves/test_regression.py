"""The estimator: parameters, private contents, guarantees, what it keeps."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.estimators import grouped

from isotone import noise
from isotone.curves import PrivacyWarning, PrivateIsotonicRegression
from isotone.curves import regression as chain
from isotone.curves.circuits import ExactCurveDraws
from isotone.curves.regression import ComparisonWarning
from isotone.errors import BudgetError, InputError, LedgerError
from isotone.ledger.ledger import Ledger
from isotone.privacy.guarantee import Guarantee


def regression(**changes: Any) -> PrivateIsotonicRegression:
    settings: dict[str, Any] = {"epsilon": 1, "bounds": (0, 10), "y_range": (0, 1), "x_grid": 64}
    return PrivateIsotonicRegression(**grouped(**(settings | changes)))


def line(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(0, 10, n)
    return x, x / 10


EVERY_METHOD = [
    {"method": "additive"},
    {"method": "threshold"},
    {"method": "baseline"},
    {"method": "bins"},
    {"method": "auto"},
    {"loss": "absolute"},
    {"loss": "absolute", "method": "threshold"},
    {"loss": "absolute", "method": "bins"},
    {"loss": ("huber", 0.1)},
    {"loss": ("pinball", 0.5)},
    {"loss": "absolute", "public_n": 20_000},
    {"loss": ("huber", 0.1), "public_n": 20_000},
    {"loss": "logistic"},
    {"increasing": "auto"},
    {"shape": ("constant", 8)},
    {"shape": ("linear", 2), "x_grid": 17},
    {"shape": ("lipschitz", 1), "x_grid": 9},
    {"shape": "convex", "x_grid": 9, "value_levels": 16},
    {"shape": "concave", "x_grid": 9, "value_levels": 16, "method": "threshold"},
]


@pytest.mark.parametrize("changes", EVERY_METHOD)
def test_every_method_follows_a_line(changes: dict[str, Any]) -> None:
    model = regression(epsilon=50, **changes).fit(*line())
    assert np.abs(model.predict([1, 5, 9]) - [0.1, 0.5, 0.9]).max() < 0.2
    assert model.increasing_
    assert np.diff(model.y_thresholds_).min() >= 0
    assert (model.X_min_, model.X_max_) == (0.0, 10.0)
    assert model.epsilon_spent_ == 50
    assert model.guarantee_ == Guarantee.pure(50)


@pytest.mark.parametrize(
    "changes", [{}, {"shape": ("constant", 3)}, {"shape": "convex", "x_grid": 9}, {"method": "threshold"}]
)
def test_a_falling_curve_falls(changes: dict[str, Any]) -> None:
    x, y = line()
    model = regression(epsilon=50, increasing=False, **changes).fit(x, 1 - y)
    assert np.diff(model.predict(np.linspace(0, 10, 50))).max() <= 1e-12
    assert np.abs(model.predict([2, 5, 8]) - [0.8, 0.5, 0.2]).max() < 0.25
    assert model.increasing_ is False


def test_the_direction_is_found() -> None:
    x, y = line()
    assert regression(epsilon=20, increasing="auto").fit(x, 1 - y).increasing_ is False


ODD_DATA: list[tuple[Any, Any]] = [
    ([], []),
    ([5], [0.5]),
    ([5] * 30, [0.5] * 30),
    (range(10), [0.25] * 10),
    ([np.nan] * 5, [0.5] * 5),
    ([np.inf, -np.inf, 3, 4], [np.inf, 0.1, -np.inf, np.nan]),
    ([-1e300, 1e300, 2], [-5, 5, 1e308]),
    (["a", None, "3", b"x"], [0.5, "?", "0.25", 1]),
    ([True, False], [1, 0]),
]


@pytest.mark.parametrize("changes", EVERY_METHOD)
def test_odd_data_are_fitted_like_any_other(changes: dict[str, Any]) -> None:
    for x, y in ODD_DATA:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ComparisonWarning)
            values = regression(**changes).fit(x, y).predict(np.linspace(0, 10, 21))
        assert np.all((values >= 0) & (values <= 1))


@pytest.mark.parametrize(
    "changes",
    [
        {"bounds": None},
        {"y_range": None},
        {"bounds": (10, 0)},
        {"y_range": (1, 1)},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": "much"},
        {"method": "magic"},
        {"loss": "cubic"},
        {"shape": "round"},
        {"increasing": "maybe"},
        {"increasing": None},
        {"increasing": np.array([1, 2])},
        {"shape": np.array([1, 2])},
        {"bounds": 5},
        {"bounds": {0, 10}},
        {"levels": 0},
        {"levels": 17},
        {"levels": 1.5},
        {"value_levels": 48},
        {"x_grid": 1},
        {"neighbours": "friends"},
        {"public_n": 0},
        {"public_n": 2.5},
        {"contributions": 0},
        {"contributions": 2},
        {"out_of_bounds": "explode"},
        {"ledger": "a book"},
        {"loss": "logistic", "y_range": (0, 2)},
        {"shape": "convex", "x_grid": 3000},
        {"epsilon": "1e-12", "method": "bins"},
        {"epsilon": 10**12},
    ],
)
def test_unusable_parameters_are_refused_with_a_reason(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        regression(**changes).fit(*line(20))


def test_whole_numbers_may_be_numpys() -> None:
    x, y = line(50)
    counts = {"public_n": 50, "levels": 2, "contributions": 2, "x_grid": 32, "value_levels": 8}
    given: dict[str, Any] = {name: np.int64(size) for name, size in counts.items()}
    model = regression(increasing=np.bool_(True), bounds=np.array([0, 10]), **given).fit(
        x, y, groups=range(50)
    )
    assert model.guarantee_ == Guarantee.pure(1)


def test_missing_bounds_say_why_the_data_must_not_give_them() -> None:
    with pytest.raises(InputError, match=r"bounds=\(low, high\) is missing.*must not be the data's own"):
        PrivateIsotonicRegression(y_range=(0, 1)).fit([1], [1])
    with pytest.raises(InputError, match=r"y_range=\(low, high\) is missing.*must not be the data's own"):
        PrivateIsotonicRegression(bounds=(0, 1)).fit([1], [1])


def test_the_usual_grids_have_the_stated_sizes() -> None:
    """And linear pieces end where the documentation says."""
    sizes = {
        None: 4096,
        ("constant", 2): 256,
        ("linear", 2): 257,
        ("lipschitz", 1): 65,
        "convex": 33,
        "concave": 33,
    }
    for shape, points in sizes.items():
        assert regression(shape=shape, x_grid=None).check().grid.points == points
    assert regression(method="baseline", x_grid=None).check().grid.points == 256
    model = regression(shape=("linear", 16), x_grid=None, epsilon=50).fit(*line())
    assert set(model.X_thresholds_) <= set(np.linspace(0, 10, 17))


def test_weights_need_a_largest_weight() -> None:
    x, y = line(50)
    with pytest.raises(InputError, match="max_weight"):
        regression().fit(x, y, sample_weight=np.ones(50))


def test_weights_count() -> None:
    x = np.tile([2.0, 8.0], 2000)
    y = np.r_[np.zeros(2000), np.ones(2000)]
    weight = np.r_[np.full(2000, 0.5), np.full(2000, 1.5)]
    model = regression(epsilon=50, max_weight=2).fit(x, y, sample_weight=weight)
    assert np.abs(model.predict([2, 8]) - 0.75).max() < 0.05


def test_groups_bound_what_a_unit_contributes() -> None:
    x = np.r_[np.full(5000, 5.0), np.arange(1000) % 10]
    y = np.r_[np.ones(5000), np.zeros(1000)]
    groups = np.r_[np.zeros(5000), np.arange(1, 1001)]
    model = regression(epsilon=50, contributions=2).fit(x, y, groups=groups)
    assert model.predict([9.0])[0] < 0.1


def test_predictions_beyond_the_bounds() -> None:
    x, y = line()
    model = regression(epsilon=50).fit(x, y)
    assert model.predict([-1, 11]).tolist() == model.predict([0, 10]).tolist()
    assert np.isnan(model.set_params(out_of_bounds="nan").predict([-1, 5, 11, np.nan])).tolist() == [
        True,
        False,
        True,
        True,
    ]
    with pytest.raises(InputError, match="outside bounds"):
        model.set_params(out_of_bounds="raise").predict([11])
    assert np.isnan(model.predict([np.nan])).all()
    with pytest.raises(InputError, match="out_of_bounds must be"):
        model.set_params(out_of_bounds="explode").predict([5])


@pytest.mark.parametrize("points", [None, 3, np.array([[1, 2], [3, 4]]), "5"])
def test_points_that_are_no_column_are_refused_by_their_shape(points: Any) -> None:
    model = regression().fit(*line(50))
    with pytest.raises(InputError, match="X must have one dimension"):
        model.predict(points)
    assert model.predict([]).shape == (0,)


def test_a_column_is_as_good_as_a_list() -> None:
    x, y = line()
    model = regression(epsilon=50).fit(x[:, None], y[:, None])
    np.testing.assert_array_equal(model.predict(x[:, None]), model.transform(x))


def test_steps_are_released_between_grid_points() -> None:
    x, y = line()
    model = regression(epsilon=50, method="bins").fit(x, y)
    grid = np.linspace(0, 10, 64)
    np.testing.assert_array_equal(model.predict(grid), model.predict(grid + 0.07))


def test_thresholds_are_the_corners_of_the_curve() -> None:
    for changes in ({}, {"shape": ("linear", 3), "x_grid": 33}, {"shape": ("constant", 3)}):
        model = regression(epsilon=20, **changes).fit(*line())
        np.testing.assert_allclose(model.predict(model.X_thresholds_), model.y_thresholds_)
        assert np.all(np.diff(model.X_thresholds_) > 0)


def test_the_true_number_of_records_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a public n, the mechanism is the same whatever the data; without, it sees a noisy one."""
    seen: list[Any] = []
    build = chain.mechanism_for
    monkeypatch.setattr(chain, "mechanism_for", lambda problem: seen.append(problem.n) or build(problem))
    for size in (10, 5000):
        regression(public_n=700).fit(*line(size))
    assert seen == [700, 700]
    monkeypatch.setattr(ExactCurveDraws, "perturb", lambda self, values, rate: values + 7)
    regression(loss="absolute").fit(*line(20))
    assert seen[-1] == 27


def test_a_noisy_number_of_records_and_the_direction_cost_their_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent: list[Fraction] = []
    build = chain.mechanism_for
    monkeypatch.setattr(
        chain, "mechanism_for", lambda problem: spent.append(problem.setting.epsilon) or build(problem)
    )
    regression(public_n=50).fit(*line(50))
    regression().fit(*line(50))
    regression(increasing="auto").fit(*line(50))
    assert spent == [Fraction(1), Fraction(98, 100), Fraction(93, 100)]


def test_the_number_of_records_is_counted_at_its_share_for_a_whole_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates: list[Fraction] = []
    draw = noise.two_sided_geometrics
    monkeypatch.setattr(
        noise, "two_sided_geometrics", lambda rate, size: rates.append(rate) or draw(rate, size)
    )
    x, y = line(50)
    regression(contributions=3, neighbours="replace").fit(x, y, groups=np.arange(50))
    assert rates[0] == Fraction(2, 100) / 6


class Book:
    def __init__(self) -> None:
        self.charges: list[tuple[Guarantee, str]] = []

    def charge(self, guarantee: Guarantee, description: str) -> None:
        self.charges.append((guarantee, description))


class Column:
    """A column that says how long it is, and notes whether a charge was there when somebody looked inside."""

    def __init__(self, values: list[float], book: Any) -> None:
        self.shape = (len(values),)
        self.values, self.book = values, book
        self.seen: list[int] = []

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[float]:
        self.seen.append(len(self.book.charges))
        return self.values


def test_the_ledger_is_charged_before_the_data_are_read() -> None:
    book = Book()
    x, y = Column([0.1, 0.5, 0.9], book), Column([0.0, 0.5, 1.0], book)
    regression(ledger=book).fit(x, y)
    assert x.seen  # they were read,
    assert y.seen
    assert {*x.seen, *y.seen} == {1}  # and only when the charge was there


def test_a_refused_charge_reads_nothing() -> None:
    class Refusing(Book):
        def charge(self, guarantee: Guarantee, description: str) -> None:
            raise BudgetError("nothing left")

    book = Refusing()
    x = Column([0.1, 0.5, 0.9], book)
    with pytest.raises(BudgetError):
        regression(ledger=book).fit(x, x)
    assert not x.seen


def test_several_contributions_need_groups_before_the_charge() -> None:
    """Without them nothing keeps a unit from having more rows than the noise is made for."""
    book = Book()
    with pytest.raises(InputError, match="needs groups"):
        regression(contributions=2, ledger=book).fit(*line(5))
    assert not book.charges


def test_a_structural_error_costs_nothing() -> None:
    book = Book()
    with pytest.raises(InputError):
        regression(ledger=book).fit([1, 2], [1])
    assert book.charges == []


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": ("lipschitz", "1/1000")},
        {"shape": "convex", "x_grid": 3000},
        {"shape": ("constant", 64), "x_grid": 100_000},
        {"shape": ("linear", 64), "value_levels": 1024},
        {"shape": ("linear", 2), "x_grid": 100_000},
        {"shape": ("lipschitz", 1000), "x_grid": 3000, "value_levels": 1024, "method": "threshold"},
        {"shape": "concave", "x_grid": 3000, "value_levels": 256, "method": "threshold"},
        {"shape": ("constant", 8), "x_grid": 10**7, "method": "threshold"},
        {"shape": ("linear", 8), "value_levels": 1024, "method": "threshold"},
        {"shape": ("linear", 2), "x_grid": 100_000, "method": "threshold"},
        {"method": "baseline", "x_grid": 10**6},
        {"method": "baseline", "x_grid": 10**6, "public_n": 10**6},
    ],
)
def test_a_grid_too_large_for_its_shape_is_refused_before_the_charge(changes: dict[str, Any]) -> None:
    """Also where the size depends on a noisy number of records: whether there is room must not depend on chance."""
    book = Book()
    model = regression(ledger=book, **changes)
    for refused in (lambda: model.fit([1, 2], [0, 1]), model.check):
        with pytest.raises(InputError, match=r"x_grid|value_levels"):
            refused()
    assert book.charges == []


def test_a_real_ledger_keeps_the_charge(tmp_path: Any) -> None:
    with Ledger(tmp_path / "study.ledger", epsilon=2) as ledger:
        regression(epsilon="0.75", ledger=ledger).fit(*line(50))
        (charge,) = ledger.charges()
        assert charge.guarantee.epsilon == Fraction(3, 4)
        assert charge.finished
        with pytest.raises(BudgetError):
            regression(epsilon=2, ledger=ledger).fit(*line(50))


def test_nothing_fitted_or_pickled_holds_data() -> None:
    x = np.linspace(0, 10, 200) + 1e-4
    x[7] = 4.123456789
    y = np.full(200, 0.5)
    y[7] = 0.987654321
    model = regression(max_weight=2, contributions=3).fit(
        x, y, sample_weight=np.full(200, 1.2345678), groups=[f"person-{i}" for i in range(200)]
    )
    stored = pickle.dumps(model)
    for needle in (x[7], y[7], 1.2345678):
        assert np.float64(needle).tobytes() not in stored
    assert b"person" not in stored
    values = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
    assert all(value.size < 200 for value in values)
    again = pickle.loads(stored)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


def test_a_pickled_estimator_does_not_forget_that_it_had_a_ledger() -> None:
    model = regression(ledger=Book()).fit(*line(50))
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(LedgerError, match="stayed behind"):
        again.fit(*line(50))
    assert again.set_params(ledger=None).fit(*line(50)) is again


def test_scores_are_not_private_and_say_so() -> None:
    x, y = line()
    model = regression(epsilon=50).fit(x, y)
    with pytest.warns(PrivacyWarning, match="not private"):
        score = model.score(x, y)
    assert score > 0.98
    with pytest.warns(PrivacyWarning):
        assert model.score(x, np.full(x.size, 0.5), sample_weight=np.ones(x.size)) == 0.0


def test_an_unfitted_estimator_says_so() -> None:
    with pytest.raises(ValueError, match="not fitted"):
        regression().predict([1])
