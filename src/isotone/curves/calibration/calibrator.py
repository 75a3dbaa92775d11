"""Private calibration of a frozen classifier."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.curves.bands import Band
from isotone.curves.calibration.frozen import Deferred, FrozenScores, outcomes, two_classes
from isotone.curves.calibration.reliability import Reliability, calibration_error, group_sums
from isotone.curves.problem import GridSpec, check_length
from isotone.curves.regression import (
    ClassifierBase,
    LedgerKeeper,
    PrivacyWarning,
    PrivateIsotonicRegression,
    not_fitted,
)
from isotone.errors import InputError
from isotone.privacy.checks import Number, confidence_level, truth, whole_number
from isotone.privacy.guarantee import Guarantee

TILT = 1e-3
"""With ``strict``, so much of a prediction is the score itself."""
MOST_GROUPS = 200


class PrivateCalibrator(LedgerKeeper, ClassifierBase):
    """Calibrates the scores of a classifier that is already fitted, with differential privacy.

    In the manner of scikit-learn's ``CalibratedClassifierCV`` with a frozen classifier: ``fit`` takes private rows and their
    classes, and learns which share of a score's rows is positive. The classifier is not changed, and nothing is cross-fitted.
    No records are kept.

    Guarantee: that of :class:`PrivateIsotonicRegression` with ``y_values=(0, 1)``, ``epsilon``-DP for one unit among the rows given to ``fit``
    (docs/theory/curves.md, section 8.1). It covers the calibration alone: a classifier that was fitted without privacy to the same people
    tells about them, whatever is done to its scores. Each row is scored alone, since in a batch its score could depend on the others: that takes
    about 0.2 ms a row for a logistic model and 5 for a forest. Where that is too slow, or the classifier cannot score one row, score the
    rows elsewhere, each by itself, and pass the scores with ``estimator=None``.

    Parameters
    ----------
    estimator : fitted classifier of two classes, or None
        With ``predict_proba`` or ``decision_function``. None: rows are scores.
    epsilon : number or Guarantee
        The privacy loss of one ``fit``.
    bounds : (low, high)
        Public limits of the scores: (0, 1) for probabilities. They must not come from the data.
    classes : (negative, positive), optional
        The two classes, by default those of the classifier, or 0 and 1. Rows of any other class are left out.
    strict : bool
        Whether different scores always get different probabilities: a thousandth of a prediction is then the score itself. An isotonic curve
        has flat parts, and ties destroy rankings.
    x_grid, public_n, contributions, ledger
        As for :class:`PrivateIsotonicRegression`.

    Attributes
    ----------
    classes_ : array
    curve_ : PrivateIsotonicRegression
        The released curve, with its :meth:`band`.
    guarantee_ : Guarantee

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(4000)
    >>> label = rng.random(4000) < score**2
    >>> calibrated = PrivateCalibrator(epsilon=1, strict=True).fit(score, label)
    >>> bool(abs(calibrated.predict_proba([0.5])[0, 1] - 0.25) < 0.15)
    True
    """

    _shared = ("ledger", "estimator")

    estimator: Any
    epsilon: Number | Guarantee
    bounds: Any
    classes: Any
    strict: Any
    x_grid: GridSpec | None
    public_n: int | None
    contributions: Any
    ledger: Any

    def __init__(
        self,
        estimator: Any = None,
        epsilon: Number | Guarantee = 1,
        *,
        bounds: Any = (0, 1),
        classes: Any = None,
        strict: Any = False,
        x_grid: GridSpec | None = None,
        public_n: int | None = None,
        contributions: Any = 1,
        ledger: Any = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, groups: Any = None) -> PrivateCalibrator:
        """Calibrate on private rows ``X`` and their classes ``y``. ``groups`` names the privacy unit of each row.

        The ledger is charged before a row is looked at. A row that the classifier cannot score is left out.
        """
        scores, classes = FrozenScores(self.estimator), two_classes(self.estimator, self.classes)
        truth(self.strict, "strict")
        curve = PrivateIsotonicRegression(
            self.epsilon,
            self.bounds,
            y_values=(0, 1),
            x_grid=self.x_grid,
            public_n=self.public_n,
            contributions=self.contributions,
            ledger=self.ledger,
        )
        size = scores.rows(X)
        if y is None:
            raise InputError("A calibration requires y to be passed, but the target y is None.")
        check_length(y, "y", size)
        curve.fit(
            Deferred(size, lambda: scores.of_private(X)),
            Deferred(size, lambda: outcomes(y, classes)),
            groups=groups,
        )
        curve.ledger = None  # a fitted curve is only looked at
        self.curve_, self.classes_, self.guarantee_ = curve, np.asarray(classes), curve.guarantee_
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of both classes. A score that is missing has none."""
        share = self._shares(FrozenScores(self.estimator).of(X))
        return np.stack([1.0 - share, share], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The more probable class of every row."""
        return self.classes_[(self.predict_proba(X)[:, 1] >= 0.5).astype(np.int64)]

    def band(self, X: Any, confidence: float = 0.95, kind: str = "population") -> Band:
        """A band for the probability of the positive class. See :meth:`PrivateIsotonicRegression.band`."""
        return self._fitted().band(FrozenScores(self.estimator).of(X), confidence, kind)

    def reliability(
        self, groups: int = 10, *, confidence: float = 0.95, kind: str | None = None
    ) -> Reliability:
        """A reliability diagram of the scores as they were, and their expected calibration error.

        All of it is made of the released noisy sums: nothing looks at the data again, and nothing is spent. The band is that of ``kind``, by default for the population,
        and for the records where units have several of them. The error is that of the records in equally wide groups of scores; its limits allow for the noise alone, and for
        the rounding of scores to bins.
        """
        curve = self._fitted()
        groups, level = whole_number(groups, "groups", 1, MOST_GROUPS), confidence_level(confidence)
        measured = curve.measured_
        assert measured is not None, "labels are fitted by sums"
        kind = kind or ("population" if measured.contributions == 1 else "records")
        sums, grid = measured.sums, curve.grid_
        low, high = float(grid.low), float(grid.high)
        first, last = (
            (grid.positions(at) - low) / (high - low)
            for at in (sums.starts, np.r_[sums.starts[1:], sums.points] - 1)
        )
        # a score was moved to the nearest point, by half a step at most
        step = float(np.diff(grid.listed).max() if grid.listed else grid.step) / (high - low)
        scores, halves = (first + last) / 2, (last - first + step) / 2
        place = group_sums(sums, groups)
        ones, zeros = (np.bincount(place, weights=part, minlength=groups) for part in sums.in_records)
        weight = np.maximum(sum(sums.in_records), 0.0)
        seen = np.bincount(place, weights=weight, minlength=groups)
        mean = np.bincount(place, weights=weight * scores, minlength=groups) / np.maximum(seen, 1e-9)
        corners = measured.band(level, kind).corners
        x = np.union1d(curve.X_thresholds_, grid.positions(corners))
        return Reliability(
            low + (high - low) * mean,
            np.clip(ones / np.maximum(ones + zeros, 1.0), 0.0, 1.0),
            np.maximum(ones + zeros, 0.0),
            x,
            curve.predict(x),
            curve.band(x, level, kind),
            kind,
            calibration_error(sums, scores, halves, groups, level) if (low, high) == (0, 1) else None,
        )

    def score(self, X: Any, y: Any) -> float:
        """The share of rows whose class is predicted — **not private** if ``X, y`` are not public. A warning says so."""
        warnings.warn(
            "score() is computed from X and y without noise: it is not private. Use public or held-out data that may be "
            "revealed.",
            PrivacyWarning,
            stacklevel=2,
        )
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def _fitted(self) -> PrivateIsotonicRegression:
        if hasattr(self, "curve_"):
            return self.curve_
        raise not_fitted("This PrivateCalibrator is not fitted yet: call fit first.")

    def _shares(self, scores: Floats) -> Floats:
        curve = self._fitted()
        share = curve.predict(scores)
        if not truth(self.strict, "strict"):
            return share
        low, high = float(curve.grid_.low), float(curve.grid_.high)
        return (1 - TILT) * share + TILT * (np.clip(scores, low, high) - low) / (high - low)
