"""Seeded noise for plans and experiments, marked so that it cannot be released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError
from isotone.noise.laplace import UnevenLine
from isotone.privacy.checks import Number, positive

__all__ = [
    "Simulated",
    "discrete_gaussians",
    "exponentials",
    "gaussians",
    "geometrics",
    "refuse_simulated",
    "rounded_gaussians",
    "two_sided_geometrics",
    "uneven_geometrics",
]


# The type of everything that a seeded float simulation returns.
#
# A simulated draw has the right distribution for planning, and none of the properties that make a release
# private: its bits can be guessed from the seed and its low digits carry rounding. So it has a type of its
# own, which survives arithmetic, indexing and numpy's functions, and which every release refuses
# (:func:`refuse_simulated`). It is a guard rail against mistakes: ``np.asarray`` and ``float`` take it off.


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


# Seeded float twins of the exact samplers, for planning and experiments.
#
# Same names, same distributions up to floating-point error, a numpy Generator first. Every result is
# :class:`Simulated`, which no release accepts.

Size = int | tuple[int, ...]


def exponentials(rng: np.random.Generator, rate: Number, size: Size) -> Simulated:
    """Exponential variables of the given rate."""
    return Simulated.wrap(rng.standard_exponential(size) / float(positive(rate, "rate")))


def geometrics(rng: np.random.Generator, rate: Number, size: Size) -> Simulated:
    """Simulate geometric variables.

    The probability of ``k >= 0`` is proportional to ``exp(-rate·k)``. They are exponentials, rounded down.
    """
    return Simulated.wrap(np.floor(exponentials(rng, rate, size)).astype(np.int64))


def two_sided_geometrics(rng: np.random.Generator, epsilon: Number, size: Size) -> Simulated:
    """Simulate two-sided geometric noise.

    The probability of ``k`` is proportional to ``exp(-epsilon·|k|)``. Each is the difference of two
    geometrics.

    >>> two_sided_geometrics(np.random.default_rng(0), 1, 3)
    Simulated([...])
    """
    return Simulated.wrap(geometrics(rng, epsilon, size) - geometrics(rng, epsilon, size))


def uneven_geometrics(rng: np.random.Generator, values: NDArray[np.int64], line: UnevenLine) -> Simulated:
    """Simulate geometric noise on a line of uneven steps."""
    drawn = rng.standard_exponential(values.size) / float(line.unit)
    far = np.floor(drawn)
    rests = np.array([crossing.rest for crossing in line.crossings])
    passed = (drawn - far)[:, None] >= rests
    return Simulated.wrap(line.moved(values, far.astype(np.int64), rng.random(values.size) < 0.5, passed))


def gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Gaussian variables of variance ``sigma2``."""
    return Simulated.wrap(rng.standard_normal(size) * np.sqrt(float(positive(sigma2, "sigma2"))))


def rounded_gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Gaussian variables of variance ``sigma2``, rounded to integers."""
    return Simulated.wrap(np.floor(gaussians(rng, sigma2, size) + 0.5).astype(np.int64))


def discrete_gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Integers with probability ∝ ``exp(-k²/(2·sigma2))``, accepted from two-sided geometrics."""
    variance = float(positive(sigma2, "sigma2"))
    scale = np.floor(np.sqrt(variance)) + 1.0
    wanted = int(np.prod(size))
    kept: list[NDArray[np.int64]] = []
    while wanted > 0:
        tried = np.asarray(two_sided_geometrics(rng, float(1.0 / scale), 2 * wanted + 16))
        exponent = (np.abs(tried) - variance / scale) ** 2 / (2 * variance)
        kept.append(tried[rng.standard_exponential(tried.size) >= exponent][:wanted])
        wanted -= kept[-1].size
    return Simulated.wrap(np.concatenate([np.zeros(0, dtype=np.int64), *kept]).reshape(size))
