"""Private regression on a partial order, as an estimator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.regression import WEIGHT_STEPS, WHY_RANGE
from isotone.curves.choices import ExactChoices
from isotone.curves.curve import refuse_small_rate
from isotone.curves.estimator import PrivateEstimator, not_fitted
from isotone.curves.grids import FINE, Grid, parse_interval
from isotone.curves.losses import parse_loss
from isotone.curves.poset.arrangement import Order
from isotone.curves.poset.poset_blueprint import PosetBlueprint
from isotone.curves.poset.product import FeatureOrder, ProductOrder
from isotone.curves.privacy import Setting
from isotone.curves.records import MOST_ROWS, Records, check_shapes
from isotone.errors import InputError
from isotone.noise import refuse_simulated
from isotone.order import Poset
from isotone.privacy.guarantee import Neighbours, Number, positive

__all__ = ["PrivatePosetRegression"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Public:
    """The constructor's arguments, checked: what may be known before the budget is charged."""

    blueprint: PosetBlueprint
    whole: Setting
    rest: Fraction
    max_weight: float


class PrivatePosetRegression(PrivateEstimator):
    """Isotonic regression on a partial order, with differential privacy.

    Fits values ``f`` with ``f(a) <= f(b)`` whenever ``a <= b`` to records ``(element, y)``, so that the released values
    hardly depend on any one privacy unit. They are monotone on ``P``, always.

    Guarantee: ``epsilon``-DP for adding or removing one unit (or replacing one, with ``neighbours="replace"``):
    docs/theory/curves-posets.md. All choices are exact and use cryptographic bits. Records are never stored.

    Parameters
    ----------
    P : Poset or ProductOrder
        The public order. How it is cut is chosen from the order alone (``arrangement_``).
    epsilon : number
        The privacy loss of one ``fit``.
    y_range : (low, high)
        Public limits of ``y``, which must not come from the data. Values outside are moved to the ends; records with a
        missing value or an unknown element are dropped; nothing is said about either.
    increasing : bool
        Whether predictions rise or fall along the order.
    loss : "squared", "absolute", ("huber", delta), ("pinball", q), "logistic" or ("logistic", margin)
    method : "additive", "threshold", "baseline", "coupling" or "auto"
        "additive" (and "auto"): cuts by the additive score, and for squared and logistic loss noisy means between them.
        "threshold": the algorithm of Ghazi, Kamath, Kumar and Manurangsi 2022, for orders with at most a million
        ideals. "baseline": the exponential mechanism over all monotone functions on a grid, for chains and forests. "coupling": the
        additive score on any order without relaxing it, by coupling from the past; its **running time depends on the
        data** and has no limit, so use it only where nobody can measure it.
    levels : int, optional
        How often the range of values is halved.
    value_levels : power of two, optional
        Steps of the grid of values of the baseline.
    public_n : int, optional
        The number of records, if it is public. Otherwise a noisy number, which costs 2 % of epsilon, sets the depth.
    max_weight : number, optional
        The largest ``sample_weight``: weights are cut off there and rounded to 64 steps. Without it, no weights.
    contributions : int
        How many records of one unit count, when ``groups`` is given to ``fit``.
    neighbours, unit
        What the promise is about.
    ledger : object with ``charge(guarantee, description)``, optional
        Charged before the data are read.

    Attributes
    ----------
    values_ : array
        The released value of each element.
    arrangement_ : str
        How the order was cut: "grid", "grids", "forest", "series-parallel", "small prime parts", "listed", "relaxed" or
        "coupled".
    epsilon_spent_ : Fraction
    guarantee_ : Guarantee
    method_ : str

    Notes
    -----
    Scores, and selections made from them (cross-validation, grid search), are not private unless the scorer is.

    Examples
    --------
    >>> from isotone.order import Poset
    >>> P = Poset(["any", "mild", "severe"], [("severe", "any"), ("mild", "any")])
    >>> model = PrivatePosetRegression(P, epsilon=2, y_range=(0, 1), public_n=3000)
    >>> model = model.fit(["severe", "mild", "any"] * 1000, [0.0, 0.2, 1.0] * 1000)
    >>> low, high = model.predict(["severe", "any"])
    >>> bool(low <= high)
    True
    """

    def __init__(
        self,
        P: Order,
        epsilon: Number = 1,
        y_range: Any = None,
        *,
        increasing: Any = True,
        loss: Any = "squared",
        method: str = "additive",
        levels: int | None = None,
        value_levels: int | None = None,
        neighbours: Neighbours = "add-remove",
        public_n: int | None = None,
        max_weight: Number | None = None,
        contributions: Any = 1,
        unit: str = "record",
        ledger: Any = None,
    ) -> None:
        self.P = P
        self.epsilon = epsilon
        self.y_range = y_range
        self.increasing = increasing
        self.loss = loss
        self.method = method
        self.levels = levels
        self.value_levels = value_levels
        self.neighbours: Neighbours = neighbours
        self.public_n = public_n
        self.max_weight = max_weight
        self.contributions = contributions
        self.unit = unit
        self.ledger = ledger

    @classmethod
    def from_features(
        cls,
        bounds: Iterable[Any],
        bins: int | Sequence[int] = 20,
        directions: bool | Sequence[bool] = True,
        **params: Any,
    ) -> PrivatePosetRegression:
        """A regression on several columns, monotone in each: ``fit(X, y)`` and ``predict(X)`` with a matrix ``X``.

        ``bounds`` are public limits, one pair for each column; each column is cut into ``bins`` equal bins; a column
        with direction False makes predictions fall as it rises. Other parameters are those of the class.

        >>> model = PrivatePosetRegression.from_features([(0, 1), (0, 10)], bins=[8, 4], y_range=(0, 1), epsilon=1)
        >>> X = np.array([[0.1, 1.0], [0.9, 9.0]] * 500)
        >>> a, b = model.fit(X, [0, 1] * 500).predict([[0.2, 2], [0.8, 2]])
        >>> bool(a <= b)
        True
        """
        return cls(FeatureOrder.of(bounds, bins, directions), **params)

    def fit(
        self, elements: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> PrivatePosetRegression:
        """Fit private values to records ``(element, y)``; with features, ``elements`` is a matrix.

        ``groups`` names the privacy unit of each record; of every unit the first ``contributions`` records count.
        """
        public = self._public(weighted=sample_weight is not None, grouped=groups is not None)
        refuse_simulated(elements)
        names = _rows(self.P, elements)
        raw = check_shapes(
            np.zeros(len(names)), y, sample_weight, groups, MOST_ROWS // public.whole.weight_steps
        )
        receipt = self._charge(public.whole.guarantee, f"poset regression, {public.blueprint.method_used()}")
        columns = replace(raw, x=_numbers(self.P, names)).read(self.contributions)
        places = Grid(Fraction(0), Fraction(max(1, len(self.P) - 1)), max(2, len(self.P)))
        y_grid = Grid(*public.blueprint.y_range, FINE + 1)
        records = columns.records(places, y_grid, public.whole.weight_steps, public.max_weight)
        self._keep(self._draw(public, records), public)
        if hasattr(receipt, "finish"):
            receipt.finish()
        return self

    def _draw(self, public: _Public, records: Records) -> Floats:
        choices = ExactChoices()
        n = self._size(records.cells.size, public.whole, choices)
        rest = replace(public.whole, epsilon=public.whole.epsilon * public.rest)
        mechanism = public.blueprint.mechanism(n, rest)
        if self.increasing:
            return mechanism.draw(records, choices)
        return 1.0 - mechanism.draw(records.upside_down(FINE), choices)

    def check(self) -> None:
        """Check every parameter, without data and without spending anything; refuse what ``fit`` would refuse."""
        self._public(weighted=False, grouped=True)

    def predict(self, T: Any) -> Floats:
        """The released values of elements; with features, of the rows of a matrix (missing stays missing)."""
        if not hasattr(self, "values_"):
            raise not_fitted(self)
        names = _rows(self.P, T)
        places = _numbers(self.P, names)
        unknown = np.isnan(places)
        if isinstance(self.P, FeatureOrder):
            return np.where(unknown, np.nan, self.values_[np.where(unknown, 0, places).astype(np.int64)])
        if unknown.any():
            raise InputError(f"There is no element {names[int(np.argmax(unknown))]!r} in the order.")
        return self.values_[places.astype(np.int64)]

    def transform(self, T: Any) -> Floats:
        """The same as ``predict``, for pipelines."""
        return self.predict(T)

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: missing values allowed, random."""
        tags = super().__sklearn_tags__()  # pyright: ignore[reportAttributeAccessIssue] - scikit-learn's base has it
        tags.input_tags.one_d_array = not isinstance(self.P, FeatureOrder)
        tags.input_tags.two_d_array = isinstance(self.P, FeatureOrder)
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.non_deterministic = True
        return tags

    def _public(self, *, weighted: bool, grouped: bool) -> _Public:
        """Check all parameters; the errors may name them, as they are public."""
        if not isinstance(self.P, (Poset, ProductOrder)) or not len(self.P):  # pyright: ignore[reportUnnecessaryIsInstance] - what users pass
            raise InputError(
                f"P must be a Poset or a ProductOrder with at least one element, not {self.P!r}."
            )
        if self.increasing == "auto":
            raise InputError(
                "increasing='auto' is for curves on a line. To compare both directions on a partial order, the least losses of "
                "both would be needed, which on many orders cannot be computed in reasonable time. Say True or False: what the "
                "order means is public."
            )
        if not isinstance(self.increasing, bool):
            raise InputError(f"increasing must be True or False, not {self.increasing!r}.")
        loss = parse_loss(self.loss)
        blueprint = PosetBlueprint(
            self.P,
            loss if self.increasing else loss.flipped(),
            parse_interval(self.y_range, "y_range", WHY_RANGE),
            self.method,
            self.levels,
            self.value_levels,
        )
        whole = Setting(
            positive(self.epsilon, "epsilon"),
            self.neighbours,
            self._contributions(grouped),
            WEIGHT_STEPS if weighted else 1,
            self.unit,
        )
        _ = whole.guarantee  # refuses other neighbours
        rest = 1 - self._counting_share()
        refuse_small_rate(whole.rate(rest / 2, FINE), whole.epsilon)
        return _Public(blueprint, whole, rest, self._max_weight(weighted))

    def _keep(self, values: Floats, public: _Public) -> None:
        """Store what was released, and public numbers."""
        low, high = (float(end) for end in public.blueprint.predictions)
        self.values_ = low + (high - low) * values
        self.arrangement_ = public.blueprint.arrangement().way
        self.method_ = public.blueprint.method_used()
        self.guarantee_ = public.whole.guarantee
        self.epsilon_spent_ = public.whole.epsilon


def _rows(order: Order, elements: Any) -> Any:
    """The rows of what was passed: a matrix for features, names otherwise. Only the shape is looked at."""
    if isinstance(order, FeatureOrder):
        return order.matrix(elements)
    if isinstance(elements, (str, bytes)) or not hasattr(elements, "__iter__"):
        raise InputError("elements must be a list with one element of the order for each record.")
    if hasattr(elements, "to_numpy"):
        elements = elements.to_numpy()
    return elements.tolist() if isinstance(elements, np.ndarray) else list(elements)


def _numbers(order: Order, names: Any) -> Floats:
    """The number of each element; NaN where there is none, silently."""
    if isinstance(order, FeatureOrder):
        return order.locate(names)
    return np.array([_number(order, name) for name in names], dtype=np.float64)


def _number(order: Order, name: Any) -> float:
    if isinstance(name, list):
        name = tuple(name)
    try:
        return float(order.index(name)) if name in order else math.nan
    except TypeError:  # nothing that could be an element: a matter of contents
        return math.nan
