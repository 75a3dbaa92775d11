"""Private isotonic regression on a chain, as an estimator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.blueprint import TREE_POINTS, Blueprint
from isotone.curves.choices import Choices, ExactChoices
from isotone.curves.curve import Curve, refuse_small_rate
from isotone.curves.direction import AUTO_SHARE, choose_direction
from isotone.curves.estimator import COUNTING_SHARE, PrivateEstimator, not_fitted, plain_integer
from isotone.curves.grids import FINE, Grid, GridSpec, make_grid, parse_interval
from isotone.curves.losses import parse_loss
from isotone.curves.privacy import Setting
from isotone.curves.records import MOST_ROWS, check_shapes
from isotone.curves.shapes.shape import Shape, parse_shape
from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Neighbours, Number, positive

__all__ = ["PrivateIsotonicRegression", "Setup"]

WEIGHT_STEPS = 64
WHY_BOUNDS = "x is placed on a public grid over bounds, and values outside are moved to its ends."
WHY_RANGE = "The noise that hides one record depends on how far its y can lie from the others."


@dataclass(frozen=True)
class Setup:
    """What is known of a fit before any data: the public grid of ``x``, the range of ``y``, and the promise."""

    grid: Grid
    y_range: tuple[Fraction, Fraction]
    guarantee: Guarantee


@dataclass(frozen=True)
class _Public:
    """The constructor's arguments, checked: what may be known before the budget is charged."""

    blueprint: Blueprint
    whole: Setting
    rest: Fraction
    choosing: Fraction
    max_weight: float

    @property
    def setting(self) -> Setting:
        """What the curve itself may spend."""
        return replace(self.whole, epsilon=self.whole.epsilon * self.rest)


class PrivateIsotonicRegression(PrivateEstimator):
    """Isotonic regression with differential privacy.

    Fits a monotone curve to records ``(x, y)`` so that the released curve hardly depends on any one privacy unit.

    Guarantee: ``epsilon``-DP for adding or removing one unit (or replacing one, with ``neighbours="replace"``):
    docs/theory/curves.md. All choices are exact and use cryptographic bits. Records are never stored.

    Parameters
    ----------
    epsilon : number
        The privacy loss of one ``fit``.
    bounds, y_range : (low, high)
        Public limits of ``x`` and ``y``. They must not come from the data. Values outside are moved to the ends,
        missing values drop their record, and nothing is said about either.
    increasing : True, False or "auto"
        "auto" spends 5 % of epsilon on finding the direction.
    loss : "squared", "absolute", ("huber", delta), ("pinball", q), "logistic" or ("logistic", margin)
        Logistic predictions lie in ``[margin, 1 − margin]`` (default 1/64).
    method : "additive", "threshold", "baseline", "bins" or "auto"
        "additive": cuts by the additive score, and for squared and logistic loss noisy means between them. For other
        losses, by how much epsilon and records allow (docs/theory/curves.md, section 10): a draw on a few bins; one draw of
        all values, with lines through them or with all boundaries drawn again; a tree of cuts; or noisy histograms and
        private boundaries.
        "threshold": the algorithm of Ghazi, Kamath, Kumar and Manurangsi 2022. "baseline": the exponential mechanism over
        all monotone curves on a grid. "bins": equal bins and pooling. "auto": by a public rule.
    shape : None, ("constant", pieces), ("linear", pieces[, knots]), ("lipschitz", slope), "convex" or "concave"
        With a shape, "threshold" is the published tree for it, and every other method (but "bins") is one exact draw
        from all curves of that shape. The released curve has the shape exactly. Linear pieces end on ``knots``
        (17) evenly spread points of ``x`` (on all, if it has fewer). Shapes need an even grid of ``x``; one that is too
        large for the shape is refused before the ledger is charged.
    levels : int, optional
        How often the range of values is halved.
    x_grid : int, "integers" or list of points, optional
        The public grid of ``x``: so many even points, every integer of ``bounds``, or these points. By default 4096, and
        fewer for the baseline and for shapes: 256 (constant), 257 (linear), 65 (Lipschitz), 33 (convex, concave).
    value_levels : power of two, optional
        Steps of the grid of values of baseline and shapes: values are off by at most half a step.
    public_n : int, optional
        The number of records, if it is public. Otherwise a noisy number, which costs 2 % of epsilon, sets depths and
        numbers of bins. The true number decides nothing.
    max_weight : number, optional
        The largest ``sample_weight``: weights are cut off there and rounded to 64 steps. Without it, no weights.
    contributions : int
        How many records of one unit count, when ``groups`` is given to ``fit``.
    neighbours, unit
        What the promise is about.
    out_of_bounds : "clip", "nan" or "raise"
        What ``predict`` does beyond ``bounds``.
    ledger : object with ``charge(guarantee, description)``, optional
        Charged before the data are read.

    Attributes
    ----------
    X_thresholds_, y_thresholds_ : arrays
        The corners of the released curve.
    X_min_, X_max_ : float
        The public bounds.
    increasing_ : bool
    epsilon_spent_ : Fraction
    guarantee_ : Guarantee
    method_ : str
        The method that was used.

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

    def __init__(
        self,
        epsilon: Number = 1,
        bounds: Any = None,
        y_range: Any = None,
        *,
        increasing: Any = True,
        loss: Any = "squared",
        method: str = "additive",
        shape: Any = None,
        levels: int | None = None,
        x_grid: GridSpec | None = None,
        value_levels: int | None = None,
        neighbours: Neighbours = "add-remove",
        public_n: int | None = None,
        max_weight: Number | None = None,
        contributions: Any = 1,
        unit: str = "record",
        out_of_bounds: str = "clip",
        ledger: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.y_range = y_range
        self.increasing = increasing
        self.loss = loss
        self.method = method
        self.shape = shape
        self.levels = levels
        self.x_grid = x_grid
        self.value_levels = value_levels
        self.neighbours: Neighbours = neighbours
        self.public_n = public_n
        self.max_weight = max_weight
        self.contributions = contributions
        self.unit = unit
        self.out_of_bounds = out_of_bounds
        self.ledger = ledger

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PrivateIsotonicRegression:
        """Fit a private curve to ``X`` (one dimension or one column) and ``y``.

        ``groups`` names the privacy unit of each record; of every unit the first ``contributions`` records count.
        """
        public = self._public(weighted=sample_weight is not None, grouped=groups is not None)
        raw = check_shapes(X, y, sample_weight, groups, MOST_ROWS // public.whole.weight_steps)
        receipt = self._charge(public.whole.guarantee, f"isotonic regression, {public.blueprint.method}")
        choices = ExactChoices()
        columns = raw.read(public.whole.contributions)
        y_grid = Grid(*public.blueprint.y_range, FINE + 1)
        records = columns.records(public.blueprint.grid, y_grid, public.whole.weight_steps, public.max_weight)
        n = self._size(records.cells.size, public.whole, choices)
        blueprint = self._directed(public, records, choices)
        self._keep(blueprint.mechanism(n, public.setting).draw(records, choices), blueprint, public)
        self.method_ = blueprint.method_used(n, public.setting)
        if hasattr(receipt, "finish"):
            receipt.finish()
        return self

    def check(self) -> Setup:
        """Check every parameter, without data and without spending anything; refuse what ``fit`` would refuse."""
        public = self._public(weighted=False, grouped=True)
        return Setup(public.blueprint.grid, public.blueprint.y_range, public.whole.guarantee)

    def predict(self, T: Any) -> NDArray[np.float64]:
        """The curve at ``T`` (one dimension or one column); missing stays missing."""
        if not hasattr(self, "curve_"):
            raise not_fitted(self)
        self._check_out_of_bounds()
        x = check_shapes(T, np.zeros(0) if T is None else T, None, None).read(1).x
        curve, grid = self.curve_, self.grid_
        beyond = (x < float(grid.low)) | (x > float(grid.high))
        if self.out_of_bounds == "raise" and beyond.any():
            raise InputError(
                f"Some points lie outside bounds=({grid.low}, {grid.high}). Use out_of_bounds='clip' or 'nan'."
            )
        missing = np.isnan(x) | (beyond if self.out_of_bounds == "nan" else False)
        inside = np.where(np.isnan(x), float(grid.low), x)
        if curve.interpolated:
            values = np.interp(inside, grid.positions(curve.knots), curve.values)
        else:
            values = curve.at(grid.snap(inside))
        low, high = self._predictions
        return np.where(missing, np.nan, low + (high - low) * values)

    def transform(self, T: Any) -> NDArray[np.float64]:
        """The same as ``predict``, for pipelines."""
        return self.predict(T)

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: one-dimensional input, missing values allowed, random."""
        tags = super().__sklearn_tags__()  # pyright: ignore[reportAttributeAccessIssue] - scikit-learn's base has it
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags

    def _public(self, *, weighted: bool, grouped: bool) -> _Public:
        """Check all parameters; the errors may name them, as they are public."""
        y_range = parse_interval(self.y_range, "y_range", WHY_RANGE)
        bounds = parse_interval(self.bounds, "bounds", WHY_BOUNDS)
        shape = parse_shape(self.shape)
        if not isinstance(self.increasing, (bool, np.bool_)) and str(self.increasing) != "auto":
            raise InputError(f"increasing must be True, False or 'auto', not {self.increasing!r}.")
        self._check_out_of_bounds()
        blueprint = Blueprint(
            parse_loss(self.loss),
            y_range,
            make_grid(bounds, self.x_grid, self._usual_points(shape)),
            self.method,
            shape,
            plain_integer(self.levels),
            plain_integer(self.value_levels),
        )
        whole = Setting(
            positive(self.epsilon, "epsilon"),
            self.neighbours,
            self._contributions(grouped),
            WEIGHT_STEPS if weighted else 1,
            self.unit,
        )
        _ = whole.guarantee  # refuses other neighbours
        refuse_small_rate(whole.rate(COUNTING_SHARE, FINE), whole.epsilon)
        choosing = AUTO_SHARE if self.increasing == "auto" else Fraction(0)
        rest = 1 - choosing - self._counting_share()
        public = _Public(blueprint, whole, rest, choosing, self._max_weight(weighted))
        self._refuse_large(public)
        return public

    def _refuse_large(self, public: _Public) -> None:
        """Refuse a grid that is too large for its shape before anything is charged; a noisy number may be any."""
        if public.blueprint.shape is not None or public.blueprint.method == "baseline":
            most = MOST_ROWS if self.public_n is None else int(self.public_n)
            public.blueprint.mechanism(most, public.setting)

    def _check_out_of_bounds(self) -> None:
        if self.out_of_bounds not in ("clip", "nan", "raise"):
            raise InputError(f"out_of_bounds must be 'clip', 'nan' or 'raise', not {self.out_of_bounds!r}.")

    def _usual_points(self, shape: Shape | None) -> int:
        if shape is not None:
            return shape.points
        return Shape("any").points if self.method == "baseline" else TREE_POINTS

    def _directed(self, public: _Public, records: Any, choices: Choices) -> Blueprint:
        """The blueprint with its direction, found privately if that was asked for."""
        if self.increasing == "auto":
            up = choose_direction(records, public.blueprint.grid.points, public.whole, choices)
        else:
            up = bool(self.increasing)
        return replace(public.blueprint, increasing=up)

    def _keep(self, curve: Curve, blueprint: Blueprint, public: _Public) -> None:
        """Store what was released, and public numbers."""
        low, high = (float(end) for end in blueprint.predictions)
        self.curve_ = curve
        self.grid_ = blueprint.grid
        self._predictions = (low, high)
        points, values = curve.corners()
        self.X_thresholds_ = blueprint.grid.positions(points)
        self.y_thresholds_ = low + (high - low) * values
        self.X_min_, self.X_max_ = float(blueprint.grid.low), float(blueprint.grid.high)
        self.increasing_ = blueprint.increasing
        self.guarantee_ = public.whole.guarantee
        self.epsilon_spent_ = public.whole.epsilon
