"""The type of everything that a seeded float simulation returns.

A simulated draw has the right distribution for planning, and none of the properties that make a release
private: its bits can be guessed from the seed and its low digits carry rounding. So it has a type of its
own, which survives arithmetic, and which every release refuses (:func:`refuse_simulated`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotone.errors import InputError

__all__ = ["Simulated", "refuse_simulated"]


class Simulated(np.ndarray):
    """A numpy array that came out of a simulation; anything computed from it is simulated too.

    >>> noise = Simulated.wrap([0.5, -1.25])
    >>> type(noise + np.ones(2)).__name__
    'Simulated'
    """

    @classmethod
    def wrap(cls, values: ArrayLike) -> Simulated:
        """``values`` marked as simulated (no copy where numpy needs none)."""
        return np.asarray(values).view(cls)


def refuse_simulated(values: Any) -> None:
    """Raise if ``values`` is, or directly holds, a simulated array."""
    parts = (
        values.values() if isinstance(values, dict) else values if isinstance(values, (list, tuple)) else ()
    )
    if isinstance(values, Simulated) or any(isinstance(part, Simulated) for part in parts):
        raise InputError(
            "This array comes from simulate(): seeded float noise for planning, which is not private and "
            "must not be released. Pass the true statistic to release() instead."
        )
