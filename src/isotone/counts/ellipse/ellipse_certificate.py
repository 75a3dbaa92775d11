"""What is known about the quality of an ellipse."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EllipseCertificate"]


@dataclass(frozen=True)
class EllipseCertificate:
    """How good a Gaussian mechanism's covariance is, at sensitivity 1.

    ``sensitivity_squared`` is the exact integer that the noise is calibrated to, on the strategy's own scale.
    ``trace`` is the total variance at sensitivity 1; ``lower_bound`` one that no Gaussian can beat (None where
    none was computed); ``independent`` that of independent noise.

    >>> print(EllipseCertificate("forest", 2**56, 77.8, 76.6, 225.0))
    forest: total variance 77.8 at sensitivity 1 (independent noise: 225); within 1.57 % of the best Gaussian
    """

    method: str
    sensitivity_squared: int
    trace: float
    lower_bound: float | None
    independent: float

    @property
    def gap(self) -> float | None:
        """The relative excess over the lower bound. 0.004 reads "within 0.4 % of optimal"."""
        return None if self.lower_bound is None else self.trace / self.lower_bound - 1

    def __str__(self) -> str:
        known = "no bound computed" if self.gap is None else f"within {self.gap:.2%} of the best Gaussian"
        known = known.replace("%", " %")
        return (
            f"{self.method}: total variance {self.trace:.6g} at sensitivity 1 "
            f"(independent noise: {self.independent:.6g}); {known}"
        )
