"""The losses that a curve can be fitted by, and their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.losses.loss import ROWS, Loss, differences, largest_range
from isotone.curves.losses.slopes import Slopes
from isotone.errors import InputError
from isotone.privacy.checks import exact, shown

__all__ = [
    "LOSSES",
    "ROWS",
    "Absolute",
    "Huber",
    "Logistic",
    "Loss",
    "Pinball",
    "Squared",
    "largest_range",
    "parse_loss",
]


@dataclass(frozen=True)
class Squared(Loss):
    """``(prediction − y)²``."""

    name, usage = "squared", "'squared'"
    by_means, degree = True, 2

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """Half the derivative, ``v − u``."""
        return Slopes(0, 1, 1, cap=levels)

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """Squared distances in squared grid units."""
        return differences(levels, values)[0] ** 2

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        return float(span / max(levels, values)) ** 2

    def steepest(self, span: Fraction) -> float:
        """Twice the width of ``y_range``."""
        return 2 * float(span)

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself."""
        return (prediction - y) ** 2


@dataclass(frozen=True)
class Pinball(Loss):
    """``q·(y − prediction)`` below ``y`` and ``(1 − q)·(prediction − y)`` above. Fits the ``q``-quantile."""

    quantile: Fraction
    name, usage = "pinball", "('pinball', q)"

    @classmethod
    def parse(cls, argument: Any) -> Pinball | None:
        """A quantile with a small denominator, in which slopes are whole numbers."""
        if argument is None:
            return None
        q = exact(argument, "the quantile of the pinball loss")
        if not 0 < q < 1 or q.denominator > 1024:
            raise InputError(
                f"The quantile of the pinball loss must be strictly between 0 and 1, and a fraction with a "
                f"denominator of at most 1024, not {argument!r}."
            )
        return cls(q)

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """``1 − q`` above ``y``, ``−q`` below, 0 at ``y``, times the denominator of ``q``."""
        below = self.quantile.numerator
        return Slopes(0, 1, 1, cap=1, above=self.quantile.denominator - below, below=below)

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """Distances in grid units times the two integer slopes."""
        away, _ = differences(levels, values)
        rule = self.slopes(levels, span)
        return np.where(away > 0, away * rule.above, -away * rule.below)

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        return float(span / max(levels, values)) / self.quantile.denominator

    def steepest(self, span: Fraction) -> float:
        """The larger of ``q`` and ``1 − q``."""
        return float(max(self.quantile, 1 - self.quantile))

    def flipped(self) -> Pinball:
        """Pinball of the opposite quantile."""
        return Pinball(1 - self.quantile)

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself."""
        away = prediction - y
        q = float(self.quantile)
        return np.where(away > 0, (1 - q) * away, -q * away)


@dataclass(frozen=True)
class Absolute(Loss):
    """``|prediction − y|``."""

    name, usage = "absolute", "'absolute'"

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """The sign of ``v − u``."""
        return Slopes(0, 1, 1, cap=1)

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """Distances in grid units."""
        return np.abs(differences(levels, values)[0])

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        return float(span / max(levels, values))

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself."""
        return np.abs(prediction - y)


@dataclass(frozen=True)
class Huber(Loss):
    """``d²/(2·delta)`` up to a distance ``delta`` and ``|d| − delta/2`` beyond, with slope at most 1.

    ``delta`` is rounded to the grid of ``y`` (at least one step); None is a tenth of ``y_range``.
    """

    delta: Fraction | None = None
    name, usage = "huber", "('huber', delta)"

    @classmethod
    def parse(cls, argument: Any) -> Huber:
        """A width above 0, or none for a tenth of ``y_range``."""
        delta = None if argument is None else exact(argument, "the width of the Huber loss")
        if delta is not None and delta <= 0:
            raise InputError(f"The width of the Huber loss must be above 0, not {argument!r}.")
        return cls(delta)

    def on_unit(self, span: Fraction) -> Huber:
        """The width shrinks with ``y``."""
        return self if self.delta is None else Huber(self.delta / span)

    def _steps(self, levels: int, span: Fraction) -> int:
        """``delta`` in steps of the grid."""
        delta = span / 10 if self.delta is None else self.delta
        return max(1, round(delta / span * levels))

    def _cap(self, levels: int, span: Fraction) -> int:
        """The same, but no more than there are steps. No two values are further apart."""
        return min(levels, self._steps(levels, span))

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """``v − u``, cut off at ``delta``."""
        return Slopes(0, 1, 1, cap=self._cap(levels, span))

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """``d²`` up to ``delta``, ``2·delta·|d| − delta²`` beyond."""
        away, unit = differences(levels, values)
        cap = self._cap(unit, span)
        far = np.abs(away)
        return np.where(far <= cap, far**2, 2 * cap * far - cap**2)

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        unit = max(levels, values)
        return float(span / unit / (2 * self._steps(unit, span)))

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself. ``delta`` None means a tenth here (``y_range`` of width 1)."""
        delta = 0.1 if self.delta is None else float(self.delta)
        far = np.abs(prediction - y)
        return np.where(far <= delta, far**2 / (2 * delta), far - delta / 2)


@dataclass(frozen=True)
class Logistic(Loss):
    """``−y·ln p − (1 − y)·ln(1 − p)`` for predictions ``p`` in ``[margin, 1 − margin]`` and ``y`` in [0, 1].

    Cutting ``p`` off inside the loss would not be convex, so the *range* of predictions is restricted instead
    (docs/theory/curves.md, section 2). ``margin`` is rounded to a multiple of 1/1024.
    """

    margin: Fraction = Fraction(1, 64)
    name, usage = "logistic", "'logistic' or ('logistic', margin)"
    by_means = True

    PARTS = 1024
    ROUNDING = 1 << 24
    LARGEST = Fraction(503, 1024)
    """Up to here every slope of every table is at least 1: at 504 some are rounded to 0, at 505 all of them."""

    @classmethod
    def parse(cls, argument: Any) -> Logistic:
        """A margin, or none for 1/64."""
        margin = Fraction(1, 64) if argument is None else exact(argument, "the margin of the logistic loss")
        if not Fraction(1, cls.PARTS) <= margin <= cls.LARGEST:
            raise InputError(
                f"The margin of the logistic loss must be at least 1/1024 and at most 503/1024, not {shown(argument)}: "
                "predictions closer to 0 or 1 can cost without limit, so no noise would hide a record, and between "
                "margins closer to 1/2 all predictions are the same."
            )
        return cls(margin)

    @property
    def _share(self) -> int:
        return max(1, round(self.margin * self.PARTS))

    def values(self, y_range: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """``(margin, 1 − margin)``. The labels must be declared to lie between 0 and 1."""
        if y_range != (0, 1):
            raise InputError(
                f"The logistic loss needs y_range=(0, 1): its y are labels or shares, not values between "
                f"{y_range[0]} and {y_range[1]}."
            )
        margin = Fraction(self._share, self.PARTS)
        return margin, 1 - margin

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """``p − y`` times 1024·levels. The derivative up to the positive factor ``1/(p·(1 − p))``."""
        share = self._share
        return Slopes(share * levels, self.PARTS - 2 * share, self.PARTS, cap=self.PARTS * levels)

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """Integer slopes of the two losses at ``y = 0`` and ``y = 1``, added up and mixed by ``y``."""
        low, high = self.values((Fraction(0), Fraction(1)))
        p = np.linspace(float(low), float(high), values + 1)
        scale = self.ROUNDING / levels
        rising = np.sort(np.rint(np.diff(-np.log1p(-p)) * scale).astype(np.int64))
        falling = np.sort(np.rint(np.diff(-np.log(p)) * scale).astype(np.int64))
        zero = np.concatenate([[0], np.cumsum(rising)])
        one = np.concatenate([[0], np.cumsum(falling)])
        one = one - one[-1]
        u = np.arange(levels + 1, dtype=np.int64)[:, None]
        return u * one[None, :] + (levels - u) * zero[None, :]

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        return 1.0 / self.ROUNDING

    def steepest(self, span: Fraction) -> float:
        """At the margin, for the label that is further away."""
        return self.PARTS / self._share

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself."""
        return -(y * np.log(prediction) + (1 - y) * np.log1p(-prediction))


LOSSES: tuple[type[Loss], ...] = (Squared, Absolute, Huber, Pinball, Logistic)


def parse_loss(spec: Any) -> Loss:
    """The loss that a name, a pair or a text such as ``"pinball(0.9)"`` stands for.

    >>> parse_loss("pinball(0.9)")
    Pinball(quantile=Fraction(9, 10))
    >>> parse_loss(("huber", 2)).delta
    Fraction(2, 1)
    """
    name, argument = _split(spec)
    for kind in LOSSES:
        found = kind.parse(argument) if kind.name == name else None
        if found is not None:
            return found
    *others, last = (kind.usage for kind in LOSSES)
    raise InputError(f"There is no loss {shown(spec)}. Use {', '.join(others)}, {last}.")


def _split(spec: Any) -> tuple[str, Any]:
    if isinstance(spec, str):
        called = re.fullmatch(r"\s*(\w+)\s*\(\s*([^()]+?)\s*\)\s*", spec)
        return (called[1], called[2]) if called else (spec, None)
    if isinstance(spec, (tuple, list)) and len(parts := list(spec)) == 2:
        return str(parts[0]), parts[1]
    if isinstance(spec, LOSSES):
        return spec.name, next(iter(vars(spec).values()), None)
    return "", None
