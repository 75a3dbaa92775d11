"""Private regression on a partial order, as an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.curves.arrays import only_column, row_count
from isotone.curves.circuits.selection import exact_draws
from isotone.curves.estimator import PrivacyWarning, PrivateEstimator, charged, warn_of_published
from isotone.curves.fit_budget import FitBudget
from isotone.curves.grids import FINE, WHY_RANGE, parse_interval
from isotone.curves.losses.known_losses import parse_loss
from isotone.curves.poset.arrangement import Order
from isotone.curves.poset.choosing import mechanism_for, rule_for
from isotone.curves.poset.element_names import Elements
from isotone.curves.poset.problem import PosetProblem
from isotone.curves.poset.product import FeatureOrder, ProductOrder
from isotone.curves.records import check_columns, read_records
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.checks import Number, shown, truth
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Neighbours
from isotone.reading.values import values_of

__all__ = ["PrivatePosetRegression"]

PUBLISHED = ("threshold", "coupling")
"""Methods that are kept for comparison."""


class PrivatePosetRegression(PrivateEstimator):
    """Isotonic regression on a partial order, with differential privacy.

    Fits values ``f`` with ``f(a) <= f(b)`` whenever ``a <= b`` to records ``(element, y)``, so that the released values
    hardly depend on any one privacy unit. They are monotone on ``P``, always.

    Guarantee: ``epsilon``-DP, or ``rho``-zCDP, for adding or removing one unit (or replacing one, with ``neighbours="replace"``):
    docs/theory/curves-posets.md. All choices are exact and use cryptographic bits. Records are never stored.

    Parameters
    ----------
    P : Poset or ProductOrder
        The public order. How it is cut is chosen from the order alone (``arrangement_``).
    epsilon : number
        The privacy loss of one ``fit``.
    rho : number, optional
        In place of ``epsilon``: ρ-zCDP, by Gaussian noise on sums and by choices of bounded range.
    y_range : (low, high)
        Public limits of ``y``, which must not come from the data. Values outside are moved to the ends. Records with a
        missing, infinite or unreadable value or an unknown element are dropped, and nothing is said about it:
        :meth:`unknown` lists such elements.
    increasing : bool
        Whether predictions rise or fall along the order.
    loss : name or (name, number)
        As for :class:`PrivateIsotonicRegression`.
    method : "auto", "additive", "threshold", "baseline" or "coupling"
        "auto": for squared and logistic loss a noisy histogram of all elements and the nearest monotone values, where there
        are twelve records an element or more, and epsilon times their number is at least three; otherwise "additive".
        "additive": cuts by the additive score, and for squared and logistic loss noisy means between them.
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
        What the guarantee is about.
    ledger : object with ``charge(guarantee, description)``, optional
        Charged before the data are read.

    Attributes
    ----------
    values_ : array
        The released value of each element.
    arrangement_ : str
        How the order was cut: "grid", "grids", "forest", "series-parallel", "small prime parts", "listed", "relaxed" or
        "coupled".
    epsilon_spent_ : Fraction, or None with ``rho``
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

    P: Order

    def __init__(
        self,
        P: Order,
        epsilon: Number = 1,
        y_range: Any = None,
        *,
        rho: Number | None = None,
        increasing: Any = True,
        loss: Any = "squared",
        method: str = "auto",
        levels: int | None = None,
        value_levels: int | None = None,
        neighbours: Neighbours = "add-remove",
        public_n: int | None = None,
        max_weight: Number | None = None,
        contributions: Any = 1,
        unit: str = "record",
        ledger: Any = None,
    ) -> None:
        self._store(locals())

    @classmethod
    def from_features(
        cls,
        bounds: Iterable[Any],
        bins: int | Sequence[int] = 20,
        directions: bool | Sequence[bool] = True,
        **params: Any,
    ) -> PrivatePosetRegression:
        """A regression on several columns, monotone in each. ``fit(X, y)`` and ``predict(X)`` with a matrix ``X``.

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
        """Fit private values to records ``(element, y)``. With features, ``elements`` is a matrix.

        ``groups`` names the privacy unit of each record; of every unit the first ``contributions`` records count.
        """
        problem = self._problem(weighted=sample_weight is not None, grouped=groups is not None)
        check_columns(_row_count(problem.order, elements), y, sample_weight, groups)
        warn_of_published(problem.method, PUBLISHED)
        with charged(self.ledger, problem.guarantee, f"poset regression, {problem.method}"):
            records = read_records(_places(problem.order, elements), y, sample_weight, groups, problem)
            draws = exact_draws()
            problem = replace(problem, n=problem.budget.size(records.cells.size, draws))
            mechanism = mechanism_for(problem)
            if problem.increasing:
                values = mechanism.draw(records, draws)
            else:
                values = 1.0 - mechanism.draw(records.upside_down(FINE), draws)
            low, high = (float(end) for end in problem.loss.values(problem.y_range))
            self.values_ = low + (high - low) * values
            self.arrangement_ = problem.arrangement.way
            self.method_ = rule_for(problem).name
            self.guarantee_ = problem.guarantee
            self.epsilon_spent_ = problem.budget.whole.epsilon if self.rho is None else None
        return self

    def check(self) -> Guarantee:
        """Check every parameter, without data and without spending anything. Refuse what ``fit`` would refuse.

        Returns what a fit guarantees.
        """
        return self._problem(weighted=False, grouped=True).guarantee

    def unknown(self, elements: Any) -> list[Any]:
        """The different values that name no element, which ``fit`` drops. This is **not private**.

        For the person who holds the data, before anything is released: a fit of nothing looks like any other.
        """
        warnings.warn("unknown() shows values of the data: it is not private.", PrivacyWarning, stacklevel=2)
        _row_count(self.P, elements)
        missing = np.flatnonzero(_places(self.P, elements) < 0)
        rows = values_of(elements)
        return list({repr(rows[row]): rows[row] for row in missing.tolist()}.values())

    def band(self, T: Any, confidence: float = 0.95, kind: str = "population") -> NoReturn:
        """Refused. There is no band for values on an order."""
        raise InputError(
            "There is no band for values on an order: the limit of an element would come from sums over sets of elements above "
            "or below it, and there are too many such sets to hold for all at once. PrivateIsotonicRegression has bands, for "
            "one x at a time."
        )

    def predict(self, T: Any) -> Floats:
        """The released values of elements. With features, of the rows of a matrix (missing stays missing)."""
        self._require_fit()
        _row_count(self.P, T)
        places = _places(self.P, T)
        if not isinstance(self.P, FeatureOrder) and (places < 0).any():
            name = values_of(T)[int(np.argmax(places < 0))]
            raise InputError(f"There is no element {shown(name)} in the order.")
        return np.where(places < 0, np.nan, self.values_[np.maximum(places, 0)])

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn. Missing values and names allowed, random."""
        tags = self._tags(columns=isinstance(self.P, ProductOrder))
        tags.input_tags.string = True
        return tags

    def _problem(self, *, weighted: bool, grouped: bool) -> PosetProblem:
        """Check all parameters. The errors may name them, as they are public."""
        if not isinstance(self.P, (Poset, ProductOrder)) or not len(self.P):  # pyright: ignore[reportUnnecessaryIsInstance] - what users pass
            raise InputError(
                f"P must be a Poset or a ProductOrder with at least one element, not {self.P!r}."
            )
        if isinstance(self.increasing, str) and self.increasing == "auto":
            raise InputError(
                "increasing='auto' is for curves on a line. To compare both directions on a partial order, the least losses of "
                "both would be needed, which on many orders cannot be computed in reasonable time. Say True or False: what the "
                "order means is public."
            )
        budget = FitBudget.of(self, Fraction(0), weighted=weighted, grouped=grouped)
        problem = PosetProblem(
            parse_loss(self.loss),
            parse_interval(self.y_range, "y_range", WHY_RANGE),
            self.P,
            method=self.method,
            levels=self.levels,
            value_levels=self.value_levels,
            increasing=truth(self.increasing, "increasing"),
            budget=budget,
            n=budget.public_n or 1,
        )
        budget.whole.check_noise(budget.left / 2, FINE)
        if problem.method == "baseline":
            # an order that is no forest, or too large, fails before the charge
            mechanism_for(replace(problem, n=budget.largest_n))
        return problem


def _row_count(order: Order, x: Any) -> int:
    """The number of rows. A wrong shape is refused."""
    return order.rows(x) if isinstance(order, ProductOrder) else row_count(x, "elements")


def _places(order: Order, x: Any) -> NDArray[np.int64]:
    """The number of each row's element, −1 where it has none."""
    if isinstance(order, ProductOrder):
        return order.locate(x)
    return Elements.of(order.elements).locate(only_column(x, "elements"))
