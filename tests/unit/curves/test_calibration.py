"""Calibration of frozen classifiers: what is read, what is guaranteed, and what the diagram is made of."""

from __future__ import annotations

import copy
import itertools
import logging
import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import isotone as iso
from isotone.curves import PrivateCalibrator, PrivateIsotonicRegression
from isotone.curves.bands import cumulant
from isotone.curves.calibration.frozen import Deferred, FrozenScores, outcomes, two_classes
from isotone.curves.calibration.reliability import CalibrationError, calibration_error, group_sums
from isotone.curves.posterior import NoisySums
from isotone.errors import InputError, LedgerError
from isotone.noise import simulate


class Frozen:
    """A classifier of one number, which refuses negative ones."""

    classes_ = np.array(["no", "yes"])
    n_features_in_ = 1

    def predict_proba(self, X: Any) -> Any:
        x = np.asarray(X, dtype=float).reshape(-1)
        if np.any(x < 0):
            raise ValueError(f"negative: {x}")
        return np.stack([1 - x, x], axis=1)


def test_a_row_that_is_refused_has_no_score_and_changes_no_other() -> None:
    X = np.array([[0.2], [-1.0], [0.7]])
    np.testing.assert_array_equal(FrozenScores(Frozen()).of_private(X), [0.2, np.nan, 0.7])
    np.testing.assert_array_equal(FrozenScores(Frozen()).of_private(X[[0, 2]]), [0.2, 0.7])
    with pytest.raises(ValueError, match="negative"):
        FrozenScores(Frozen()).of(X)


def test_a_score_of_another_shape_is_no_score() -> None:
    class Odd(Frozen):
        """A classifier that gives more scores than rows, where a row is large."""

        def predict_proba(self, X: Any) -> Any:
            found = super().predict_proba(X)
            return np.concatenate([found, found]) if found[0, 1] > 0.5 else found

    X = np.array([[0.2], [0.7], [0.4]])
    np.testing.assert_array_equal(FrozenScores(Odd()).of_private(X), [0.2, np.nan, 0.4])


def test_the_classifier_sees_one_row_at_a_time() -> None:
    seen: list[tuple[int, ...]] = []

    class Watched(Frozen):
        def predict_proba(self, X: Any) -> Any:
            seen.append(np.shape(X))
            return super().predict_proba(X)

    FrozenScores(Watched()).of_private(np.arange(40.0).reshape(-1, 1))
    assert set(seen) == {(1, 1)}


@pytest.mark.parametrize("how", ["warn", "print", "log"])
def test_what_the_classifier_says_of_a_row_stays_inside(
    how: str, recwarn: Any, capfd: Any, caplog: Any
) -> None:
    class Loud(Frozen):
        def predict_proba(self, X: Any) -> Any:
            {"warn": lambda text: warnings.warn(text, stacklevel=2), "print": print, "log": logging.error}[
                how
            ](f"seen {X}")
            return super().predict_proba(X)

    scores = FrozenScores(Loud())
    scores.rows([[0.1]])
    assert scores.of_private([[0.1]]).tolist() == [0.1]
    assert not recwarn.list
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_an_end_of_the_process_in_a_row_is_a_row_without_a_score() -> None:
    class Panics(Frozen):
        def predict_proba(self, X: Any) -> Any:
            if np.asarray(X)[0, 0] == 3:
                raise SystemExit("3")
            return super().predict_proba(X)

    np.testing.assert_array_equal(
        FrozenScores(Panics()).of_private([[0.5], [3], [0.25]]), [0.5, np.nan, 0.25]
    )


class Half(Frozen):
    """It gives half as many scores as rows."""

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X)[: len(X) // 2]


class Double(Frozen):
    """It gives twice as many scores as rows."""

    def predict_proba(self, X: Any) -> Any:
        return np.tile(super().predict_proba(X), (2, 1))


class Ranks(Frozen):
    """It says how many rows it has seen."""

    seen = 0

    def predict_proba(self, X: Any) -> Any:
        self.seen += 1
        return np.array([[0, self.seen]])


class Refuses(Frozen):
    def predict_proba(self, X: Any) -> Any:
        raise ValueError("two rows at least")


@pytest.mark.parametrize("classifier", [Half(), Double(), Ranks(), Refuses()])
def test_a_classifier_that_cannot_score_single_rows_is_refused_on_made_up_ones(classifier: Any) -> None:
    class Ledger:
        def charge(self, guarantee: Any, description: str) -> None:
            raise AssertionError("charged")

    with pytest.raises(InputError, match="made-up row"):
        PrivateCalibrator(classifier, ledger=Ledger()).fit([[0.5]], ["no"])


def test_rows_of_every_container_have_the_same_scores() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    X = rng.integers(0, 9, (30, 3)).astype(float)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model, named = LogisticRegression().fit(X, X[:, 0] > 4), LogisticRegression().fit(frame, X[:, 0] > 4)
    wanted = [model.predict_proba(row.reshape(1, -1))[0, 1] for row in X]
    odd = pd.concat([frame.astype(object), pd.DataFrame({"a": ["x"], "b": [None], "c": [1j]})])
    for scores, given in [
        (model, X), (model, X.tolist()), (model, X.astype(int)), (model, frame), (named, frame), (named, frame.astype(int)),
        (named, odd), (model, pl.from_pandas(frame)), (named, pl.from_pandas(frame)), (model, [*X.tolist(), [1, 2]]),
    ]:  # fmt: skip
        FrozenScores(scores).rows(given)
        found = FrozenScores(scores).of_private(given)
        np.testing.assert_array_equal(found[:30], wanted)
        assert np.isnan(found[30:]).all()
    with pytest.raises(InputError, match="in its order"):
        FrozenScores(named).rows(frame[["b", "a", "c"]])
    with pytest.raises(InputError, match="one dimension"):
        FrozenScores(model).rows(X[:, 0])


def test_texts_are_scored_one_by_one() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    said = ["good day", "bad day", "good", "bad bad"]
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(said, [1, 0, 1, 0])
    FrozenScores(model).rows(said)
    found = FrozenScores(model).of_private([*said, None, 3])
    np.testing.assert_array_equal(found[:4], [model.predict_proba([text])[0, 1] for text in said])
    assert np.isnan(found[4:]).all()


def test_outcomes_are_the_two_classes_and_nothing_else() -> None:
    np.testing.assert_array_equal(
        outcomes(["yes", "no", "maybe", None, 1], ("no", "yes")), [1, 0] + [np.nan] * 3
    )
    np.testing.assert_array_equal(outcomes([1, True, "0", 2, math.nan], (0, 1)), [1, 1, 0, np.nan, np.nan])
    assert two_classes(None, None) == (0, 1)
    assert two_classes(Frozen(), None) == ("no", "yes")
    for wrong in ("ab", (1, 1), (0, 1, 2), 5, (None, 1)):
        with pytest.raises(InputError, match="two classes"):
            two_classes(None, wrong)


def test_the_ledger_is_charged_before_a_row_is_looked_at() -> None:
    events: list[str] = []

    class Ledger:
        def charge(self, guarantee: Any, description: str) -> None:
            events.append(f"charged {guarantee.epsilon}")

    class Watched(Frozen):
        def predict_proba(self, X: Any) -> Any:
            events.append(f"scored {np.asarray(X).tolist()}")
            return super().predict_proba(X)

    model = PrivateCalibrator(Watched(), "1/2", ledger=Ledger()).fit([[0.3]] * 2, ["no"] * 2)
    made_up = [f"scored [[{value}]]" for value in (0.0, 1.0, 0.0)]
    assert events == [*made_up, "charged 1/2", *["scored [[0.3]]"] * 2]
    assert model.guarantee_.epsilon == Fraction(1, 2)
    assert list(model.classes_) == ["no", "yes"]
    assert model.curve_.ledger is None


@pytest.mark.parametrize(
    ("given", "X", "y"),
    [
        ({"estimator": 3}, [0.5], [1]),
        ({"estimator": Frozen()}, np.zeros((4, 2)), ["no"] * 4),
        ({"classes": (0, 1, 2)}, [0.5], [1]),
        ({"strict": "very"}, [0.5], [1]),
        ({"epsilon": 0}, [0.5], [1]),
        ({"bounds": None}, [0.5], [1]),
        ({"contributions": 2}, [0.5], [1]),
        ({}, [0.5], None),
        ({}, [0.5], [1, 0]),
        ({}, np.zeros((2, 2)), [1, 0]),
    ],
)
def test_what_is_wrong_in_public_is_refused_before_the_charge(given: dict[str, Any], X: Any, y: Any) -> None:
    class Ledger:
        def charge(self, guarantee: Any, description: str) -> None:
            raise AssertionError("charged")

    every: dict[str, Any] = {"ledger": Ledger(), **given}
    with pytest.raises(InputError):
        PrivateCalibrator(**every).fit(X, y)


def test_contents_never_raise() -> None:
    X: Any = [0.1, "x", None, math.inf, -5, object(), 0.9]
    model = PrivateCalibrator(epsilon=1).fit(X, [1, 0, 1, 0, "?", 1, 0])
    assert model.predict_proba([0.5]).shape == (1, 2)
    empty = PrivateCalibrator(epsilon=1).fit([], [])
    assert empty.reliability().error is not None


def calibrated(**given: Any) -> PrivateCalibrator:
    x = np.arange(1_000) % 20 / 20 + 1 / 40
    y = np.arange(1_000) // 20 * 7 % 50 < 50 * x**2
    every: dict[str, Any] = {"epsilon": 4, "public_n": 1_000, "x_grid": 41, **given}
    return PrivateCalibrator(**every).fit(x, y)


def test_strict_predictions_never_tie_and_stay_probabilities() -> None:
    x = np.linspace(0, 1, 2_001)
    model = calibrated(strict=True)
    p = model.predict_proba(x)
    assert np.all(np.diff(p[:, 1]) > 0)
    assert np.all((p >= 0) & (p <= 1))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    plain = copy.copy(model)
    plain.strict = False
    share = plain.predict_proba(x)[:, 1]
    np.testing.assert_allclose(p[:, 1], 0.999 * share + 0.001 * x)
    assert model.predict([0.05, 0.99]).tolist() == [
        int(p >= 0.5) for p in model.predict_proba([0.05, 0.99])[:, 1]
    ]


def test_the_curve_is_the_regression_of_labels() -> None:
    model = calibrated()
    assert isinstance(model.curve_, PrivateIsotonicRegression)
    x = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], model.curve_.predict(x))
    np.testing.assert_allclose(model.band(x, 0.9, "records"), model.curve_.band(x, 0.9, "records"))


def sums_of(ones: Any, zeros: Any, rate: Any = Fraction(1)) -> NoisySums:
    size = len(ones)
    return NoisySums(np.arange(size) * 5, np.array(ones), np.array(zeros), 1, rate, 5 * size)


def test_without_noise_the_error_is_the_plain_one() -> None:
    ones, zeros = np.array([10, 40, 70, 200]), np.array([90, 60, 130, 100])
    scores, halves = np.array([0.2, 0.3, 0.6, 0.5]), np.zeros(4)
    n = ones + zeros
    found = calibration_error(sums_of(ones, zeros, Fraction(30)), scores, halves, 4, 0.95)
    wanted = np.abs(ones - scores * n).sum() / n.sum()
    assert found.low <= wanted <= found.high
    assert found.high - found.low < 0.02
    assert found.value == pytest.approx(wanted, abs=1e-3)
    none = calibration_error(
        sums_of(ones, zeros, Fraction(30)), np.asarray(ones / n, np.float64), halves, 4, 0.95
    )
    assert none.value == none.low == 0  # what noise explains is no error
    both = calibration_error(sums_of(ones, zeros, Fraction(30)), scores, halves, 2, 0.95)
    gaps = ones - scores * n
    assert both.value == pytest.approx((abs(gaps[:2].sum()) + abs(gaps[2:].sum())) / n.sum(), abs=1e-3)


def test_limits_of_the_error_follow_from_three_bounds_on_noise() -> None:
    sums = sums_of([120, 300, 550], [500, 330, 80], Fraction(1, 2))
    scores, halves = np.array([0.1, 0.5, 0.8]), np.array([0.02, 0.02, 0.01])
    found = calibration_error(sums, scores, halves, 3, 0.9)
    t = np.linspace(0.002, 0.99, 4000)[:, None] * 0.5

    def bound(a: Any, c: Any, extra: float) -> float:
        largest = max(a.max(), c.max())
        each = (cumulant(sums, t / largest * a) + cumulant(sums, t / largest * c)).sum(axis=1)
        return float(((math.log(6 / 0.1) + extra + each) / (t[:, 0] / largest)).min())

    ones, zeros = sums.in_records
    total = float(np.abs((1 - scores) * ones - scores * zeros).sum())
    off = bound(1 - scores, scores, 3 * math.log(2))
    moved = float((halves * (ones + zeros)).sum()) + bound(halves, halves, 0)
    count, apart = float((ones + zeros).sum()), bound(np.ones(3), np.ones(3), 0)
    assert found.high == pytest.approx(min(1, (total + off + moved) / (count - apart)), rel=0.03)
    assert found.low == pytest.approx((total - off - moved) / (count + apart), rel=0.03)


def test_the_error_of_the_records_is_inside_its_limits() -> None:
    """Seeded: 300 draws at 50 %, for scores that are off by 0.2, with scores that are not at the middles."""
    rng = np.random.default_rng(2)
    scores, halves = np.array([0.1, 0.3, 0.5, 0.7]), np.full(4, 0.05)
    missed, missed_by_fifth = 0, 0
    for _ in range(300):
        n = rng.integers(20, 60, 4)
        own = scores + rng.uniform(-0.05, 0.05, 4)
        ones = rng.binomial(n, np.minimum(scores + 0.2, 1))
        truth = np.abs(ones - own * n).sum() / n.sum()
        noise = np.asarray(simulate.two_sided_geometrics(rng, 1, 8)).reshape(2, 4)
        found = calibration_error(sums_of(ones + noise[0], n - ones + noise[1]), scores, halves, 4, 0.5)
        missed += not found.low <= truth <= found.high
        middle, half = (found.low + found.high) / 2, (found.high - found.low) / 10
        missed_by_fifth += abs(truth - middle) > half
    assert missed <= 15
    assert missed_by_fifth >= 40


def test_groups_are_equally_wide_parts_of_the_range() -> None:
    sums = sums_of([0] * 8, [0] * 8)
    assert group_sums(sums, 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert group_sums(sums, 1).tolist() == [0] * 8


def test_the_diagram_is_made_of_the_released_sums_alone() -> None:
    model = calibrated(epsilon=1)
    found = model.reliability(groups=5, confidence=0.9)
    measured = model.curve_.measured_
    assert measured is not None
    ones, zeros = measured.sums.in_records
    np.testing.assert_allclose(found.records.sum(), np.maximum(found.records, 0).sum())
    assert found.score.shape == found.share.shape == (5,)
    place = group_sums(measured.sums, 5)
    wanted = [ones[place == g].sum() + zeros[place == g].sum() for g in range(5)]
    np.testing.assert_allclose(found.records, np.maximum(wanted, 0))
    np.testing.assert_allclose(found.band, model.curve_.band(found.x, 0.9))
    assert isinstance(found.error, CalibrationError)
    assert 0 <= found.error.low <= found.error.value <= found.error.high <= 1
    assert found.error == model.reliability(groups=5, confidence=0.9).error  # no second draw
    axis = found.plot()
    assert axis.get_title().startswith("calibration error")
    dots = next(part for part in axis.collections if part.get_label() == "groups, noisy")
    of_records = found.records[found.records > 0] / found.records.max()
    np.testing.assert_allclose(dots.get_sizes(), np.maximum(160 * of_records, 6))  # areas, none invisible
    assert model.reliability(kind="credible").kind == "credible"


def test_scores_that_are_no_probabilities_have_no_calibration_error() -> None:
    x = np.linspace(-3, 3, 400)
    model = PrivateCalibrator(epsilon=1, bounds=(-4, 4)).fit(x, x > 0)
    found = model.reliability()
    assert found.error is None
    assert found.plot().get_title() == ""
    assert found.x[0] == -4


@pytest.mark.parametrize("groups", [0, 201, 1.5, "ten"])
def test_groups_are_a_small_whole_number(groups: Any) -> None:
    with pytest.raises(InputError, match="groups"):
        PrivateCalibrator().fit([0.5], [1]).reliability(groups)


def test_units_with_several_records_get_the_band_of_the_records() -> None:
    model = PrivateCalibrator(contributions=2).fit([0.2, 0.8, 0.5], [0, 1, 1], groups=["a", "a", "b"])
    assert model.reliability().kind == "records"
    with pytest.raises(InputError, match="not independent"):
        model.reliability(kind="population")


def test_copies_and_pickles_do_not_carry_a_ledger(tmp_path: Any) -> None:
    ledger = iso.Ledger(tmp_path / "l", epsilon=3, unit="record")
    model = PrivateCalibrator(ledger=ledger).fit([0.5], [1])
    assert ledger.spent().epsilon == 1
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba([0.3]).shape == (1, 2)
    with pytest.raises(LedgerError, match="pickle"):
        again.fit([0.5], [1])
    sklearn = pytest.importorskip("sklearn.base")
    assert sklearn.clone(model).ledger is ledger
    assert sklearn.is_classifier(model)


def test_it_must_be_fitted_first() -> None:
    with pytest.raises(Exception, match="not fitted"):
        PrivateCalibrator().predict_proba([0.5])


def test_a_deferred_column_is_computed_when_it_is_read() -> None:
    read: list[int] = []

    def compute() -> Any:
        read.append(1)
        return np.array([1.0, 2.0])

    column = Deferred(2, compute)
    assert (len(column), column.shape, read) == (2, (2,), [])
    assert list(column) == [1.0, 2.0]
    assert list(itertools.chain(read)) == [1]


def test_a_score_of_private_data_is_announced() -> None:
    model = calibrated()
    with pytest.warns(iso.curves.PrivacyWarning):
        assert 0 <= model.score([0.1, 0.9], [0, 1]) <= 1


def test_a_copy_of_a_calibrator_keeps_its_classifier() -> None:
    """Its parameters are those of the constructor alone, and none of the classifier's."""
    sklearn: Any = pytest.importorskip("sklearn.base")
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    copy = sklearn.clone(PrivateCalibrator(fitted, epsilon=2, bounds=(0, 1)))
    assert copy.epsilon == 2
    assert copy.estimator.C == 0.5
    assert np.array_equal(copy.estimator.predict([[3.0]]), [1])


def test_an_odd_value_among_objects_of_polars_takes_no_row_of_others_away():
    """One value can make a column one of objects. The others are the numbers and truths that they were."""

    def scores(odd: list[Any], kind: Any) -> list[float]:
        ages = pl.Series("0", [True, False, *odd], dtype=kind)
        doses = pl.Series("1", [4.0, 5.0, *[1.0] * len(odd)])
        return FrozenScores(_Sum()).of_private(pl.DataFrame([ages, doses])).tolist()

    assert scores([frozenset()], pl.Object)[:2] == scores([], pl.Boolean) == [5.0, 5.0]


def test_bytes_among_texts_of_polars_leave_the_texts_of_others_as_they_are():
    """One value of bytes makes a column of texts one of bytes."""

    def scores(*texts: Any) -> list[float]:
        frame = pl.DataFrame([pl.Series("0", texts, strict=False), pl.Series("1", [1.0] * len(texts))])
        return FrozenScores(_Length()).of_private(frame).tolist()

    assert scores("aa", "b", b"x", b"\xff")[:3] == scores("aa", "b", "x") == [2.0, 1.0, 1.0]


class _Length:
    classes_, n_features_in_ = np.array([0, 1]), 2

    def decision_function(self, X: Any) -> Any:
        return np.array([len(row[0]) for row in X])


class _Sum:
    classes_, n_features_in_ = np.array([0, 1]), 2

    def decision_function(self, X: Any) -> Any:
        return np.asarray(X, dtype=float).sum(axis=1)
