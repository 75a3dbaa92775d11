"""The type of everything that a seeded float simulation returns.

A simulated draw has the right distribution for planning, and none of the properties that make a release
private: its bits can be guessed from the seed and its low digits carry rounding. So it has a type of its
own, which survives arithmetic, indexing and numpy's functions, and which every release refuses
(:func:`refuse_simulated`). It is a guard rail against mistakes: ``np.asarray`` and ``float`` take it off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotone.errors import InputError

__all__ = ["Simulated", "refuse_simulated"]


class Simulated(np.ndarray):
    """A numpy array that came out of a simulation.

    Anything computed from it is simulated too.

    >>> noise = Simulated.wrap([0.5, -1.25])
    >>> type(noise + np.ones(2)).__name__, type(noise[0]).__name__, type(np.concatenate([noise, noise])).__name__
    ('Simulated', 'Simulated', 'Simulated')
    """

    @classmethod
    def wrap(cls, values: ArrayLike) -> Simulated:
        """``values`` marked as simulated (no copy where numpy needs none)."""
        return np.asarray(values).view(cls)

    def __getitem__(self, key: Any) -> Any:
        """The entries at ``key``, marked as simulated even if there is only one."""
        return _marked(super().__getitem__(key))

    def __array_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """The result of a numpy function, its arrays marked as simulated."""
        return _marked(super().__array_function__(func, types, args, kwargs))


def _marked(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        parts = [_marked(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if isinstance(result, (np.ndarray, np.number)) and not isinstance(result, Simulated):
        return Simulated.wrap(result)
    return result


def refuse_simulated(values: Any) -> None:
    """Raise if ``values`` is a simulated array, or a mapping, list or tuple that holds one."""
    if isinstance(values, Simulated):
        raise InputError(
            "This array comes from simulate(): seeded float noise for planning, which is not private and "
            "must not be released. Pass the true statistic to release() instead."
        )
    if isinstance(values, Mapping):
        refuse_simulated(list(values.values()))
    elif isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        for part in values:
            if not isinstance(part, (int, float)):
                refuse_simulated(part)
