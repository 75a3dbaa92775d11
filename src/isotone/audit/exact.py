"""An exact audit: where the density is explicit, search for the output that reveals most, and print it.

For a mechanism with ``log_density(output, statistic)`` the privacy loss at an output is the difference of two log
densities. Its largest value over outputs is searched from many starts; whatever is found is a true loss at a stated
witness, so it is a lower bound that needs no statistics. A search can miss; for the mechanisms here it finds the
claimed value to many digits (tests/unit/audit).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.guarantee import Guarantee

__all__ = ["ExactFinding", "audit_exact"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ExactFinding:
    """The largest privacy loss found, and where."""

    claimed: float
    loss: float
    neighbour: tuple[float, ...]
    output: tuple[float, ...]

    @property
    def broken(self) -> bool:
        """Whether the loss exceeds the claim by more than rounding."""
        return self.loss > self.claimed * (1 + 1e-9) + 1e-9

    def __str__(self) -> str:
        verdict = "BROKEN" if self.broken else "kept at every output searched"
        shown = ", ".join(f"{x:.4g}" for x in self.output[:12]) + (" …" if len(self.output) > 12 else "")
        return f"claims ε = {self.claimed:g}; {verdict}: the largest loss found is {self.loss:.6f}, at the output ({shown})"


def audit_exact(
    mechanism: Any,
    statistic: Any,
    neighbours: Sequence[Any],
    *,
    claimed: Guarantee | None = None,
    starts: int = 400,
    rounds: int = 60,
    seed: int = 0,
) -> ExactFinding:
    """Search for the largest log ratio of densities between ``statistic`` and each neighbour.

    >>> from isotone.counts import LaplaceMechanism
    >>> from isotone.order import Poset
    >>> found = audit_exact(LaplaceMechanism(Poset.chain("ab"), 1), [5, 5], [[5, 6], [6, 6]])
    >>> round(found.loss, 6), found.broken
    (1.0, False)
    """
    promise = claimed or getattr(mechanism, "guarantee", None)
    if not isinstance(promise, Guarantee) or promise.kind != "pure":
        raise InputError("An exact audit is about pure ε: give claimed=Guarantee.pure(…).")
    if not hasattr(mechanism, "log_density"):
        raise InputError(
            f"{type(mechanism).__name__} has no explicit density: use audit(), which only needs draws."
        )
    rng = np.random.default_rng(seed)
    best = ExactFinding(float(promise.epsilon), -np.inf, (), ())
    base = np.asarray(statistic, dtype=float)
    for neighbour in neighbours:
        loss, output = _search(mechanism, statistic, neighbour, base, rng, starts, rounds)
        if loss > best.loss:
            best = ExactFinding(
                float(promise.epsilon), loss, tuple(np.asarray(neighbour, dtype=float)), tuple(output)
            )
    return best


def _search(
    mechanism: Any,
    statistic: Any,
    neighbour: Any,
    base: Floats,
    rng: np.random.Generator,
    starts: int,
    rounds: int,
) -> tuple[float, Floats]:
    """Random starts, then random steps of shrinking size that are kept when they do not lose."""

    def losses(outputs: Floats) -> Floats:
        return np.abs(mechanism.log_density(outputs, statistic) - mechanism.log_density(outputs, neighbour))

    n = len(base)
    # Near the statistic, near the neighbour, and far away along random signs: ratios are extreme in cones.
    scale = 10.0 ** rng.uniform(-3, 2, (starts, 1))
    points = base + scale * rng.standard_normal((starts, n))
    points[: starts // 3] = np.asarray(neighbour, dtype=float) + 1e-6 * rng.standard_normal((starts // 3, n))
    values = losses(points)
    for step in np.geomspace(2.0, 1e-3, rounds):
        moved = points + step * rng.standard_normal(points.shape) * (
            rng.random(points.shape) < max(0.2, 2 / n)
        )
        found = losses(moved)
        better = found >= values
        points[better], values[better] = moved[better], found[better]
    top = int(np.argmax(values))
    return float(values[top]), points[top]
