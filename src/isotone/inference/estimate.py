"""A figure with its interval, as it is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["AT_THE_LIMIT", "NOT_KNOWN", "UNUSUAL", "Estimate"]

NOT_KNOWN = "not known"
AT_THE_LIMIT = "at the limit"
UNUSUAL = "at the limit; the noise was unusually large"


@dataclass(frozen=True)
class Estimate:
    """A figure, the interval that contains the truth with probability ``confidence``, and a word about it.

    ``value`` is None where nothing is known. ``about`` says of what the figure is: of the records that were counted,
    where noise is all that is uncertain, or of the population that they are a sample of.
    """

    value: float | None
    low: float
    high: float
    confidence: float
    note: str = ""
    about: Literal["records", "population"] = "records"

    def plain(self) -> dict[str, Any]:
        """The same as plain values. An end without limit is None."""
        ends = {"low": self.low, "high": self.high}
        return {
            "value": self.value,
            **{key: end if math.isfinite(end) else None for key, end in ends.items()},
            "confidence": self.confidence,
            "note": self.note,
            "about": self.about,
        }

    def percent(self) -> str:
        """A share in words, with as many digits as the interval is worth, and none that was clipped.

        >>> Estimate(0.756, 0.742, 0.771, 0.95).percent()
        '76 % (74 to 77)'
        >>> Estimate(1.0, 0.67, 1.0, 0.95, AT_THE_LIMIT).percent()
        'at the limit (67 to 100)'
        """
        if self.note == UNUSUAL:
            return AT_THE_LIMIT
        if self.value is None or self.note.startswith(NOT_KNOWN):
            return NOT_KNOWN
        digits = 0 if self.high - self.low >= 0.02 else 1 if self.high - self.low >= 0.002 else 2
        value, low, high = (f"{100 * x:.{digits}f}" for x in (self.value, self.low, self.high))
        return f"{AT_THE_LIMIT if self.note else f'{value} %'} ({low} to {high})"

    def __str__(self) -> str:
        if self.value is None:
            return f"{NOT_KNOWN} ({self.low:,.6g} to {self.high:,.6g})"
        words = f"{self.value:,.6g} ({self.low:,.6g} to {self.high:,.6g})"
        return f"{words}, {self.note}" if self.note else words
