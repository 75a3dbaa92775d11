"""PrivateIsotonicRegression, what all private estimators share, and which mechanism fits a curve."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Generator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Bools, Floats, Ints
from isotone.curves.bands import Band, Law, MeasuredSums, PossibleSums, PosteriorFit, no_band, possible_sums
from isotone.curves.circuits import CurveDraws, exact_draws
from isotone.curves.cuts import (
    MANY,
    ChainProblem,
    Curve,
    CurveMechanism,
    MeanBins,
    MechanismRule,
    QuantileBins,
    StepFit,
    TreeMechanism,
    TurnedMechanism,
    usual_points,
)
from isotone.curves.histograms import HistogramFit
from isotone.curves.lines import LineFit, RefinedLineFit
from isotone.curves.losses import WeightedLevels, add_linear_losses, parse_loss
from isotone.curves.problem import (
    COUNTING_SHARE,
    FINE,
    CurveSetting,
    FitBudget,
    FitMethod,
    Grid,
    GridSpec,
    Records,
    check_columns,
    counted_records,
    make_grid,
    numbers_of,
    only_column,
    parse_interval,
    parse_y,
    read_records,
    row_count,
)
from isotone.curves.shape_posterior import BinnedDraw, CurveDraw, NearestOfShape, PosteriorOfShape
from isotone.curves.shapes import Convex, Lipschitz, parse_shape
from isotone.curves.tree import Runs
from isotone.errors import InputError, LedgerError
from isotone.privacy.checks import Number, one_of, shown, truth
from isotone.privacy.guarantee import Guarantee

# What the private estimators share. That is scikit-learn's conventions, and what becomes of a ledger.
#
# Their base classes are scikit-learn's where it is installed, and a small one elsewhere.


class PlainBase:
    """Parameters as scikit-learn keeps them, for installations without it."""

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Any:
        """Change constructor arguments."""
        unknown = sorted(set(params) - set(self._names()))
        if unknown:
            raise InputError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}; it has {self._names()}."
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then transform the same points."""
        return self.fit(X, y, **fit_params).transform(X)  # pyright: ignore[reportAttributeAccessIssue] - subclasses

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [f"{k}={v!r}" for k, v in self.get_params().items() if v is not defaults[k].default]
        return f"{type(self).__name__}({', '.join(shown)})"


if TYPE_CHECKING:
    ClassifierBase = EstimatorBase = PlainBase
else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    except ImportError:
        ClassifierBase = EstimatorBase = PlainBase
    else:

        class EstimatorBase(RegressorMixin, TransformerMixin, BaseEstimator):
            """A regressor and transformer of scikit-learn."""

        class ClassifierBase(ClassifierMixin, BaseEstimator):
            """A classifier of scikit-learn."""


def not_fitted(message: str) -> Exception:
    """The error of an estimator that is used before it is fitted, scikit-learn's where it is installed."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return InputError(message)
    return NotFittedError(message)


class LeftBehind:
    """What a pickle holds in place of a ledger."""

    def charge(self, guarantee: Guarantee, description: str = "") -> None:
        """Refuse, since this copy does not know its ledger any more."""
        raise LedgerError(
            "This estimator was copied through a pickle, and its ledger stayed behind. Attach it again before "
            "fitting: estimator.set_params(ledger=...)."
        )

    def __repr__(self) -> str:
        return "<a ledger, left behind by a pickle>"


class LedgerKeeper:
    """Parameters with a ledger, which a copy shares and a pickle leaves behind."""

    _shared: ClassVar[tuple[str, ...]] = ("ledger",)
    """What a copy has in common with its original. A copied ledger would spend the same budget twice."""

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep the constructor's arguments as they are, as scikit-learn asks for. ``fit`` checks them."""
        own = {name: value for name, value in parameters.items() if name not in ("self", "__class__")}
        self.__dict__.update(own)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.get("ledger") is not None:
            state["ledger"] = LeftBehind()
        return state

    def __sklearn_clone__(self) -> Any:
        """A copy with the same parameters, and the same ledger."""
        params: dict[str, Any] = self.get_params(deep=False)  # pyright: ignore[reportAttributeAccessIssue] - subclasses
        return type(self)(**{k: v if k in self._shared else deepcopy(v) for k, v in params.items()})


class PrivacyWarning(UserWarning):
    """Something was computed that must not be published."""


class ComparisonWarning(UserWarning):
    """A published method is used that is kept for comparison."""


def warn_of_published(method: str, published: Collection[str]) -> None:
    """Warn the caller of ``fit`` of a method that is kept for comparison."""
    if method in published:
        warnings.warn(
            f"method={method!r} is kept for comparison with the literature: 'auto' is more accurate.",
            ComparisonWarning,
            stacklevel=3,
        )


@contextmanager
def charged(ledger: Any, guarantee: Guarantee, description: str) -> Generator[None]:
    """Charge a ledger, if there is one, before what follows, and mark the charge as finished after it."""
    if ledger is not None and not hasattr(ledger, "charge"):
        raise InputError(f"ledger must have a method charge(guarantee, description), not {ledger!r}.")
    receipt: Any = None if ledger is None else ledger.charge(guarantee, description)
    with np.errstate(all="ignore"):  # what was paid for is not lost where a caller has made such errors raise
        yield
    if hasattr(receipt, "finish"):
        receipt.finish()


class PrivateEstimator(LedgerKeeper, EstimatorBase):
    """A private regressor, which charges its ledger before it reads data and keeps none."""

    epsilon: Number | Guarantee
    y_range: Any
    increasing: Any
    loss: Any
    method: str | FitMethod
    public_n: int | None
    max_weight: Number | None
    contributions: Any
    ledger: Any

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


# The direction of a curve, chosen privately. Which way is the isotonic fit better?

AUTO_SHARE = Fraction(5, 100)
"""The share of epsilon that finding the direction costs."""


def choose_direction(records: Records, points: int, setting: CurveSetting, draws: CurveDraws) -> bool:
    """Whether the curve rises, by the exponential mechanism.

    The score of a direction is the least absolute loss of a curve in that direction. One record raises it by something
    between 0 and the width of ``y_range`` (docs/theory/curves.md, section 10).
    """
    scores = [least_absolute_loss(records), least_absolute_loss(records.mirrored(points))]
    rate = setting.rate(AUTO_SHARE, FINE)
    chosen = draws.segments(np.array(scores), np.array([0, 2]), [rate], np.ones(2, dtype=np.int64))
    return int(chosen[0]) == 0


def least_absolute_loss(records: Records) -> int:
    """The least absolute loss of a rising curve, in steps of ``y``."""
    runs = Runs.of(records)
    losses = np.zeros(runs.point.size + 1, dtype=np.int64)
    heap, heights = np.empty((2, records.cells.size + 1), dtype=np.int64)
    weighted = WeightedLevels(records.levels, records.weights, runs.start)
    add_linear_losses(weighted, (0, runs.point.size, 1), (0, FINE), (1, 1), (heap, heights), losses)
    return int(losses[-1])


# Isotonic regression on a chain.

# Which mechanism fits a curve. A table of public conditions and classes.
#
# Nothing here has seen a record. The limits were chosen by the experiment in docs/reproduction/curves_quality, and no
# guarantee depends on them. A new mechanism is a class with ``of(problem)``, and a rule in the table.

FEW = 30
"""Below this product of epsilon and records quantiles off the middle have a few bins: cuts that find nothing but noise
do harm to them."""
FAINT, FAINT_OF_MANY = 12, 7
"""Epsilon times the records, over the records to the power 2/3: below this, the noise of the mechanism is larger than
what a curve can gain by following the noise of the records, and losses without means are fitted by lines. The first
holds below ``MANY``, the second from there on."""
AMPLE = 2
"""Epsilon times the records, over the records: from this on histograms find values better than one draw of them does, and
earlier for quantiles far from the median."""
CERTAIN, CERTAIN_FAR_OUT, FAR_OUT = 500, 1000, 0.3
"""From this product of evenness, epsilon and records on, lines go through bins that hold equally many records: later for
quantiles far from the median, those with less than the last evenness."""


def _faint(problem: ChainProblem) -> bool:
    limit = FAINT if problem.strength < MANY else FAINT_OF_MANY
    return problem.evenness * problem.strength < limit * max(1, problem.n) ** (2 / 3)


def _certain(problem: ChainProblem) -> bool:
    return problem.evenness * problem.strength >= (
        CERTAIN if problem.evenness >= FAR_OUT else CERTAIN_FAR_OUT
    )


def _chain_fits(problem: ChainProblem) -> bool:
    carried = isinstance(problem.shape, Convex | Lipschitz)
    return carried and problem.loss.by_means and problem.output == "population"


def _one_draw(problem: ChainProblem) -> CurveMechanism:
    return CurveDraw.of(problem) if problem.shape is None else problem.shape.drawn(problem)


def _published_tree(problem: ChainProblem) -> CurveMechanism:
    from isotone.published.curves.threshold import threshold_tree

    return threshold_tree(problem)


def _published_shape(problem: ChainProblem) -> CurveMechanism:
    from isotone.published.curves.splits import shape_tree

    return shape_tree(problem)


Row = MechanismRule[ChainProblem, CurveMechanism]

TABLE = (
    Row("threshold", ("threshold",), lambda problem: problem.shape is not None, _published_shape),
    Row("threshold", ("threshold",), lambda problem: True, _published_tree),
    Row("baseline", ("baseline",), lambda problem: True, _one_draw),
    Row("bins", ("bins",), lambda problem: problem.loss.by_means, MeanBins.of),
    Row("bins", ("bins",), lambda problem: True, QuantileBins.of),
    Row("baseline", ("additive",), lambda problem: problem.shape is not None, _one_draw),
    Row("additive", ("additive",), lambda problem: True, TreeMechanism.of),
    Row("posterior of the shape", ("auto",), _chain_fits, PosteriorOfShape.of),
    Row(
        "nearest of the shape",
        ("auto",),
        lambda problem: problem.shape is not None and problem.loss.by_means,
        NearestOfShape.of,
    ),
    Row("baseline", ("auto",), lambda problem: problem.shape is not None, _one_draw),
    Row("additive", ("auto",), lambda problem: problem.levels is not None, TreeMechanism.of),
    Row("posterior", ("auto",), lambda problem: problem.loss.by_means, PosteriorFit.of),
    Row(
        "few bins", ("auto",), lambda problem: problem.strength < FEW and problem.evenness < 1, BinnedDraw.of
    ),
    Row("lines", ("auto",), lambda problem: _faint(problem) and not _certain(problem), LineFit.of),
    Row("refined lines", ("auto",), _faint, RefinedLineFit.of),
    Row(
        "steps",
        ("auto",),
        lambda problem: MANY <= problem.strength < AMPLE * problem.evenness**2 * problem.n,
        StepFit.of,
    ),
    Row("histograms", ("auto",), lambda problem: True, HistogramFit.of),
)


def rule_for(problem: ChainProblem) -> Row:
    """The first row of the table that applies."""
    return next(row for row in TABLE if problem.method in row.methods and row.when(problem))


def mechanism_for(problem: ChainProblem) -> CurveMechanism:
    """The mechanism for a problem. Its records are turned so that curves rise, and convex ones bend upward."""
    upside_down = problem.shape is not None and problem.shape.upside_down
    seen = replace(problem, loss=problem.loss.flipped()) if upside_down else problem
    inner = rule_for(seen).build(seen)
    mirror = upside_down == problem.increasing
    if not mirror and not upside_down:
        return inner
    return TurnedMechanism(problem.setting, problem.points, inner, mirror, upside_down)


def sums_for(problem: ChainProblem) -> dict[Law, PossibleSums]:
    """The sums that the curve may be made of, by the law of their noise; none for a curve that is not of means."""
    if rule_for(problem).name != "posterior":
        return {}
    return possible_sums(problem, problem.budget.public_n is not None)


# A fitted curve at any point, with its value and the band around it.

SEVERAL = " Reshape your data; for several features, see PrivatePosetRegression.from_features."
"""A hint where X has several columns."""


class EvaluatedCurve(PrivateEstimator):
    """An estimator that tells about its released curve."""

    out_of_bounds: str
    curve_: Curve
    grid_: Grid
    method_: str
    measured_: MeasuredSums | None
    _predictions: tuple[float, float]
    _y_ends: tuple[float, float]

    def predict(self, T: Any) -> Floats:
        """The curve at ``T`` (one dimension or one column). Missing stays missing."""
        inside, missing = self._places(T)
        curve, grid = self.curve_, self.grid_
        if curve.interpolated:
            values = np.interp(inside, grid.positions(curve.knots), curve.values)
        else:
            values = curve.at(grid.snap(inside))
        low, high = self._predictions
        return np.where(missing, np.nan, low + (high - low) * values)

    def band(self, X: Any, confidence: float = 0.95, kind: str = "population") -> Band:
        """Lower and upper ends of a band around the curve at ``X``, as a pair of arrays.

        It is made of the released noisy sums alone, and costs nothing. ``X`` counts as the point of the public grid that is
        nearest. For squared and logistic loss with ``method="auto"``, whatever the loss or ``output``:

        - "population": with probability ``confidence`` at least, the mean of ``y`` in the population lies inside at all
          points at once, for any number of records. Needs records that are independent given ``x``, one for each unit, and a mean that
          rises (or falls) with ``x`` as declared. Proof: docs/theory/bands.md, section 2.
        - "records": the same for the isotonic fit to these very records in the same bins, where noise is all that is
          uncertain. Needs nothing (section 3).
        - "credible": the central part of the posterior, point by point. A belief of the model that holds on average over
          curves like its priors. It guarantees nothing (section 4).

        The released curve is usually inside, and may be outside.
        """
        inside, missing = self._places(X)
        if self.measured_ is None:
            raise no_band(self.method_)
        result = self.measured_.band(confidence, kind).at(self.grid_.snap(inside))
        low, high = self._y_ends
        ends = (np.where(missing, np.nan, low + (high - low) * end) for end in result)
        return Band(*ends)

    def _places(self, T: Any) -> tuple[Floats, Bools]:
        """Points as numbers, and which of them have no value."""
        self._require_fit()
        beyond_is = self._out_of_bounds()
        row_count(T, "X", SEVERAL)
        x = numbers_of(only_column(T, "X"), public=True)
        grid = self.grid_
        beyond = (x < float(grid.low)) | (x > float(grid.high))
        if beyond_is == "raise" and beyond.any():
            raise InputError(
                f"Some points lie outside bounds=({grid.low}, {grid.high}). Use out_of_bounds='clip' or 'nan'."
            )
        missing = np.isnan(x) | (beyond if beyond_is == "nan" else False)
        return np.where(np.isnan(x), float(grid.low), x), missing

    def _out_of_bounds(self) -> str:
        return one_of(self.out_of_bounds, "out_of_bounds", ("clip", "nan", "raise"))


# Private isotonic regression on a chain, as an estimator.

PUBLISHED = ("additive", "threshold")
"""Methods that are kept for comparison."""
WHY_BOUNDS = "x is placed on a public grid over bounds, and values outside are moved to its ends."
MOST_LISTED = 4096
"""The corners of a curve over integers are all its points, up to so many."""


class PrivateIsotonicRegression(EvaluatedCurve):
    """Isotonic regression with differential privacy.

    Fits a monotone curve to records ``(x, y)`` so that the released curve hardly depends on any one privacy unit.

    Guarantee: ``epsilon``-DP for adding or removing one unit, or what a :class:`~isotone.Guarantee` says:
    docs/theory/curves.md. All choices are exact and use cryptographic bits. Records are never stored.

    Parameters
    ----------
    epsilon : number or Guarantee
        The privacy loss of one ``fit``. A Guarantee says also what neighbours are and what the unit is called, and may be
        ρ-zCDP, by Gaussian noise on sums and by choices of bounded range.
    bounds, y_range : (low, high)
        Public limits of ``x`` and ``y``. They must not come from the data. Values outside are moved to the ends,
        missing, infinite and unreadable values drop their record, and nothing is said about either.
    y_values : (low, high), optional
        In place of ``y_range``: the two values of ``y``, such as ``(0, 1)`` for labels. They are declared, never detected.
        Any other ``y`` drops its record.
    increasing : True, False or "auto"
        "auto" spends 5 % of epsilon on finding the direction.
    loss : name or (name, number)
        Such as "squared" or ("pinball", 0.9). All losses and shapes are listed for ``[curve]`` in docs/reference/spec.md.
        Logistic predictions lie in ``[margin, 1 − margin]``, with a margin from 1/1024 to 503/1024 (default 1/64).
    method : "auto", "additive", "threshold", "baseline" or "bins", or a FitMethod
        A :class:`FitMethod` says also how finely the range of values is cut.
        "auto": for squared and logistic loss rounds of noisy sums and the posterior of a rising curve
        (docs/theory/curves.md, section 8). For other losses, by how much epsilon and records allow (section 10): a draw on
        a few bins; one draw of all values, with lines through them or with all boundaries drawn again; a tree of cuts; or
        noisy histograms and private boundaries.
        For comparison: "threshold", the algorithm of Ghazi, Kamath, Kumar and Manurangsi 2022, and "additive", its tree
        with the additive score; "baseline", the exponential mechanism over all monotone curves on a grid; "bins", equal
        bins and pooling.
    output : "population" or "records"
        What "auto" estimates for squared and logistic loss: the curve that the records were drawn from (the posterior
        mean), or the fit to these records without privacy.
    shape : None, name or (name, numbers …)
        Such as "convex" or ("linear", 4). With a shape, "auto" for squared and logistic loss is the posterior mean of all
        curves that bend so or have such slopes; for pieces and ``output="records"``, the curve of the shape nearest to it;
        "threshold" is the published tree for it, and every other method (but "bins") is one exact draw from all curves
        of that shape, as is "auto" for other losses. The released curve has the shape, up to the rounding of floats.
        Linear pieces end on ``knots`` (17) evenly spread points of ``x`` (on all, if it has fewer). Shapes need an even
        grid of ``x``; one that is too large for the shape is refused before the ledger is charged.
    x_grid : int, "integers" or list of points, optional
        The public grid of ``x``: so many even points, every integer of ``bounds``, or these points. By default 4096, and
        fewer for the baseline and for shapes.
    public_n : int, optional
        The number of records, if it is public. Otherwise a noisy number, which costs 2 % of epsilon, sets depths and
        numbers of bins. The true number decides nothing.
    max_weight : number, optional
        The largest ``sample_weight``: weights are cut off there and rounded to 64 steps. Without it, no weights.
    contributions : int
        How many records of one unit count, when ``groups`` is given to ``fit``.
    out_of_bounds : "clip", "nan" or "raise"
        What ``predict`` does beyond ``bounds``.
    ledger : object with ``charge(guarantee, description)``, optional
        Charged before the data are read.

    Attributes
    ----------
    X_thresholds_, y_thresholds_ : arrays
        The corners of the released curve; with ``x_grid="integers"`` all of its points, up to 4096.
    X_min_, X_max_ : float
        The public bounds.
    increasing_ : bool
    epsilon_spent_ : Fraction
    guarantee_ : Guarantee
    method_ : str
        The mechanism that was used.
    measured_ : object or None
        The noisy sums behind a curve of means, which :meth:`band` is made of.

    Notes
    -----
    Scores, and selections made from them (cross-validation, grid search), are not private unless the scorer is; each
    fit of a search spends its own epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10_000) % 100
    >>> y = x / 100
    >>> model = PrivateIsotonicRegression(epsilon=1, bounds=(0, 100), y_range=(0, 1)).fit(x, y)
    >>> bool(np.abs(model.predict([20, 80]) - [0.2, 0.8]).max() < 0.2)
    True
    >>> model.epsilon_spent_
    Fraction(1, 1)
    """

    bounds: Any
    y_values: Any
    output: str
    shape: Any
    x_grid: GridSpec | None
    out_of_bounds: str

    def __init__(
        self,
        epsilon: Number | Guarantee = 1,
        bounds: Any = None,
        y_range: Any = None,
        *,
        y_values: Any = None,
        increasing: Any = True,
        loss: Any = "squared",
        method: str | FitMethod = "auto",
        output: str = "population",
        shape: Any = None,
        x_grid: GridSpec | None = None,
        public_n: int | None = None,
        max_weight: Number | None = None,
        contributions: Any = 1,
        out_of_bounds: str = "clip",
        ledger: Any = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PrivateIsotonicRegression:
        """Fit a private curve to ``X`` (one dimension or one column) and ``y``.

        ``groups`` names the privacy unit of each record; of every unit the first ``contributions`` records count.
        """
        problem = self._problem(weighted=sample_weight is not None, grouped=groups is not None)
        check_columns(row_count(X, "X", SEVERAL), y, sample_weight, groups)
        warn_of_published(problem.method, PUBLISHED)
        with charged(self.ledger, problem.guarantee, f"isotonic regression, {problem.method}"):
            return self._draw(
                read_records(_places(problem.grid, X), y, sample_weight, groups, problem), problem
            )

    def fit_counted(
        self, problem: ChainProblem, places: Ints, levels: Ints, count: Ints
    ) -> PrivateIsotonicRegression:
        """Fit to ``count`` records at each place of the grid and level of ``y``, which are bounded by unit already.

        ``problem`` is that of :meth:`check`. Nothing is charged: a release has paid for it.
        """
        warn_of_published(problem.method, PUBLISHED)
        return self._draw(counted_records(places, levels, count, problem), problem)

    def _draw(self, records: Records, problem: ChainProblem) -> PrivateIsotonicRegression:
        draws = exact_draws()
        problem = replace(problem, n=problem.budget.size(records.cells.size, draws))
        if not problem.direction_given:
            rises = choose_direction(records, problem.points, problem.budget.whole, draws)
            problem = replace(problem, increasing=rises)
        self._keep(mechanism_for(problem).draw(records, draws), problem)
        return self

    def check(self) -> ChainProblem:
        """Check every parameter, without data and without spending anything. Refuse what ``fit`` would refuse.

        Returns what is known of a fit before any data, such as the ``grid`` of ``x``, the range of ``y`` and the ``guarantee``.
        """
        return self._problem(weighted=False, grouped=True)

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn. One-dimensional input, missing values allowed, random."""
        return self._tags(columns=False)

    def _problem(self, *, weighted: bool, grouped: bool) -> ChainProblem:
        """Check all parameters. The errors may name them, as they are public."""
        bounds = parse_interval(self.bounds, "bounds", WHY_BOUNDS)
        shape, method = parse_shape(self.shape), FitMethod.of(self.method)
        y_range, labels = parse_y(self.y_range, self.y_values)
        result = isinstance(self.increasing, str) and self.increasing == "auto"
        self._out_of_bounds()
        spent = AUTO_SHARE if result else Fraction(0)
        budget = FitBudget.of(self, spent, weighted=weighted, grouped=grouped)
        problem = ChainProblem(
            parse_loss(self.loss),
            y_range,
            make_grid(bounds, self.x_grid, usual_points(method.name, shape)),
            method=method.name,
            shape=shape,
            levels=method.levels,
            value_levels=method.value_levels,
            increasing=result or self._rises(),
            labels=labels,
            output=self.output,
            budget=budget,
            n=budget.public_n or 1,
        )
        budget.whole.check_noise(COUNTING_SHARE, FINE)
        if shape is not None or method.name == "baseline":
            # a grid that is too large for its shape fails before the charge
            mechanism_for(replace(problem, n=budget.largest_n))
        return problem

    def _rises(self) -> bool:
        if isinstance(self.increasing, str):
            raise InputError(f"increasing must be True, False or 'auto', not {shown(self.increasing)}.")
        return truth(self.increasing, "increasing (or 'auto')")

    def _keep(self, curve: Curve, problem: ChainProblem) -> None:
        """Store what was released, and public numbers."""
        grid = problem.grid
        low, high = (float(end) for end in problem.loss.values(problem.y_range))
        self.curve_ = curve
        self.grid_ = grid
        self._predictions = (low, high)
        self._y_ends = float(problem.y_range[0]), float(problem.y_range[1])
        if isinstance(self.x_grid, str) and grid.points <= MOST_LISTED:
            points = np.arange(grid.points)
            values = curve.at(points)
        else:
            points, values = curve.corners()
        self.X_thresholds_ = grid.positions(points)
        self.y_thresholds_ = low + (high - low) * values
        self.X_min_, self.X_max_ = float(grid.low), float(grid.high)
        self.increasing_ = problem.increasing
        self.measured_ = curve.sums and MeasuredSums(
            curve.sums,
            problem.increasing,
            problem.labels,
            PosteriorFit.of(problem).levels,
            problem.budget.whole.unit.contributions,
            problem.direction_given,
        )
        self.method_ = rule_for(problem).name
        self.guarantee_ = problem.guarantee
        self.epsilon_spent_ = problem.guarantee.epsilon or None


def _places(grid: Grid, x: Any) -> Ints:
    """The point of the grid that is nearest to every ``x``, −1 where there is none."""
    numbers = numbers_of(only_column(x, "X"))
    return np.where(np.isnan(numbers), -1, grid.snap(np.nan_to_num(numbers)))
