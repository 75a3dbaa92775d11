"""What the private estimators share. That is scikit-learn's conventions, the ledger and the flow of a fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.curves.circuits.selection import CurveDraws, ExactCurveDraws
from isotone.curves.estimator_base import EstimatorBase, LedgerKeeper, not_fitted
from isotone.curves.grids import FINE, Grid
from isotone.curves.records import RawRecords, Records
from isotone.curves.setting import ConcentratedSetting, CurveSetting
from isotone.errors import InputError
from isotone.privacy.checks import Number, exact, positive, whole_number
from isotone.privacy.draws import require_exact
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Neighbours, Unit

__all__ = ["COUNTING_SHARE", "ComparisonWarning", "PrivacyWarning", "PrivateEstimator", "Public"]

COUNTING_SHARE = Fraction(2, 100)
"""The share of epsilon that a noisy number of records costs, when ``public_n`` is not given."""

MOST_RECORDS = 2**62
"""A larger ``public_n`` is refused."""

WEIGHT_STEPS = 64


class PrivacyWarning(UserWarning):
    """Something was computed that must not be published."""


class ComparisonWarning(UserWarning):
    """A published method is used that is kept for comparison."""


Problem = TypeVar("Problem")


@dataclass(frozen=True)
class Public(Generic[Problem]):
    """The constructor's arguments, checked. What may be known before the budget is charged."""

    problem: Problem
    whole: CurveSetting
    rest: Fraction
    max_weight: float
    public_n: int | None

    @property
    def setting(self) -> CurveSetting:
        """What the fit itself may spend."""
        return self.whole.part(self.rest)


class PrivateEstimator(LedgerKeeper, EstimatorBase, Generic[Problem]):
    """A private regressor, which charges its ledger before it reads data and keeps none."""

    description: ClassVar[str]
    published_methods: ClassVar[tuple[str, ...]] = ("threshold", "coupling")

    epsilon: Number
    rho: Number | None = None
    y_range: Any
    increasing: Any
    loss: Any
    method: str
    levels: int | None
    value_levels: int | None
    neighbours: Neighbours
    public_n: int | None
    max_weight: Number | None
    contributions: Any
    unit: str
    ledger: Any

    def _fit(self, x: Any, y: Any, weight: Any, groups: Any) -> None:
        """Check what is public, charge, read, draw, and keep what was drawn."""
        public = self._public(weighted=weight is not None, grouped=groups is not None)
        raw = RawRecords.of(self._rows(x), x, y, weight, groups)
        self._warn_of_published()
        receipt = self._charge(public.whole.guarantee)
        records = raw.read(
            partial(self._locate, public.problem),
            Grid(*self._y_range(public), FINE + 1),
            public.whole.unit.contributions,
            public.whole.weight_steps,
            public.max_weight,
            self._labels(public),
        )
        self._draw(public, records, ExactCurveDraws())
        self.guarantee_ = public.whole.guarantee
        self.epsilon_spent_ = public.whole.epsilon if self.rho is None else None
        if hasattr(receipt, "finish"):
            receipt.finish()

    def _draw(self, public: Public[Problem], records: Records, draws: ExactCurveDraws) -> None:
        require_exact(draws)
        self._release(public, records, self._size(records.cells.size, public, draws), draws)

    def _public(self, *, weighted: bool, grouped: bool) -> Public[Problem]:
        """Check all parameters. The errors may name them, as they are public."""
        raise NotImplementedError

    def _y_range(self, public: Public[Problem]) -> tuple[Fraction, Fraction]:
        """The public limits of ``y``."""
        raise NotImplementedError

    def _labels(self, public: Public[Problem]) -> tuple[float, float] | None:
        """The two values that ``y`` was declared to have, if it was."""
        return None

    def _rows(self, x: Any) -> int:
        """The number of rows of ``x``. A wrong shape is refused."""
        raise NotImplementedError

    def _locate(self, problem: Problem, x: Any) -> NDArray[np.int64]:
        """The place of every ``x``, −1 where there is none."""
        raise NotImplementedError

    def _release(self, public: Public[Problem], records: Records, n: int, draws: CurveDraws) -> None:
        """Draw a fit for about ``n`` records, and store it."""
        raise NotImplementedError

    def _checked(
        self, problem: Problem, *, weighted: bool, grouped: bool, spent: Fraction = Fraction(0)
    ) -> Public[Problem]:
        """The public arguments with the budget, of which ``spent`` is used otherwise."""
        unit = Unit(self.contributions, self.neighbours, self.unit)
        if unit.contributions > 1 and not grouped:
            raise InputError(
                f"contributions={unit.contributions} needs groups, the privacy unit of each record: "
                "fit(X, y, groups=...). Without them nothing could keep a unit from having more."
            )
        whole = self._budget(unit, WEIGHT_STEPS if weighted else 1)
        size = (
            None
            if self.public_n is None
            else whole_number(self.public_n, "public_n (or None)", most=MOST_RECORDS)
        )
        rest = 1 - spent - (COUNTING_SHARE if size is None else 0)
        return Public(problem, whole, rest, self._max_weight(weighted), size)

    def _budget(self, unit: Unit, weight_steps: int) -> CurveSetting:
        if self.rho is None:
            return CurveSetting(positive(self.epsilon, "epsilon"), unit, weight_steps)
        if exact(self.epsilon, "epsilon") != 1:
            raise InputError("Give rho or epsilon, not both: with rho, epsilon stays at its default.")
        return ConcentratedSetting.of(positive(self.rho, "rho"), unit, weight_steps)

    def _max_weight(self, weighted: bool) -> float:
        if not weighted:
            return 1.0
        if self.max_weight is None:
            raise InputError(
                "sample_weight needs max_weight: the largest weight that a record may have, known without the data. A "
                "record of unlimited weight cannot be hidden."
            )
        return float(positive(self.max_weight, "max_weight"))

    def _warn_of_published(self) -> None:
        if self.method in self.published_methods:
            warnings.warn(
                f"method={self.method!r} is kept for comparison with the literature: 'auto' is more accurate.",
                ComparisonWarning,
                stacklevel=4,
            )

    def _charge(self, guarantee: Guarantee) -> Any:
        """Spend the budget. What comes back may be marked as finished once the release exists."""
        if self.ledger is None:
            return None
        if not hasattr(self.ledger, "charge"):
            raise InputError(
                f"ledger must have a method charge(guarantee, description), not {self.ledger!r}."
            )
        return self.ledger.charge(guarantee, f"{self.description}, {self.method}")

    def _size(self, count: int, public: Public[Problem], draws: CurveDraws) -> int:
        """The public number of records, or a noisy one. The true one decides nothing."""
        if public.public_n is not None:
            return public.public_n
        unweighted = replace(public.whole, weight_steps=1)
        noisy, _, _ = unweighted.perturbed(np.array([count]), COUNTING_SHARE, 1, draws)
        return max(1, int(noisy[0]))

    def _require_fit(self) -> None:
        if hasattr(self, "guarantee_"):
            return
        raise not_fitted(f"This {type(self).__name__} is not fitted yet: call fit(X, y) first.")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """One name, as scikit-learn gives it."""
        self._require_fit()
        return np.asarray([type(self).__name__.lower() + "0"], dtype=object)

    def _tags(self, *, columns: bool) -> Any:
        """Tags for scikit-learn. Missing values allowed, random."""
        tags = super().__sklearn_tags__()  # pyright: ignore[reportAttributeAccessIssue] - scikit-learn's base has it
        tags.input_tags.one_d_array = not columns
        tags.input_tags.two_d_array = columns
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination of ``predict(X)`` — **not private** if ``X, y`` are not public.

        Scores of private data, and choices made from them (cross-validation, grid search), reveal the data they
        were computed from; every fit of a search also spends its own epsilon. A warning says so.
        """
        warnings.warn(
            "score() is computed from X and y without noise: it is not private, and neither is a model chosen "
            "by it (cross-validation, grid search). Use public or held-out data that may be revealed.",
            PrivacyWarning,
            stacklevel=2,
        )
        return self._r2(X, y, sample_weight)

    def _r2(self, X: Any, y: Any, sample_weight: Any) -> float:
        truth = np.asarray(y, dtype=float).ravel()
        weight = np.ones_like(truth) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        predicted = np.asarray(self.predict(X), dtype=float)
        spread = float(np.sum(weight * (truth - np.average(truth, weights=weight)) ** 2))
        missed = float(np.sum(weight * (truth - predicted) ** 2))
        return 1.0 - missed / spread if spread else (1.0 if missed == 0.0 else 0.0)

    def predict(self, T: Any) -> Any:
        """Predictions. See the subclass."""
        raise NotImplementedError

    def transform(self, T: Any) -> Any:
        """The same as ``predict``, for pipelines."""
        return self.predict(T)
