"""What is published about errors, and how exactly, for those who compute it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDING", "Columns", "Floats"]

Columns = Mapping[str, Sequence[Any]]

Floats = NDArray[np.float64]

ROUNDING = 1e-4
"""Published errors are rounded to four decimal places; the last may differ."""
