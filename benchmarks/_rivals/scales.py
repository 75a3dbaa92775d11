"""Which noise other libraries add: they are asked, in their own environment, for their own calibration.

Reads a list of questions ``[name, sensitivity in coordinates, epsilon, delta]`` from standard input, and writes variances.
"""

# pyright: reportPrivateImportUsage=false, reportMissingImports=false

from __future__ import annotations

import importlib.metadata
import json
import math
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["VARIANCES", "answers", "canonical_variance"]


def opendp_laplace(coordinates: int, epsilon: float, delta: float) -> float:
    """Whole-numbered Laplace noise on the vector, calibrated in ℓ1."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)

    def make(scale: float) -> Any:
        return dp.m.make_laplace(*space, scale=scale)

    scale = dp.binary_search_param(make, d_in=coordinates, d_out=epsilon)
    return 0.5 / math.sinh(0.5 / scale) ** 2


def opendp_gaussian(coordinates: int, epsilon: float, delta: float) -> float:
    """Whole-numbered Gaussian noise on the vector, calibrated in ℓ2 and converted from zCDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)

    def make(scale: float) -> Any:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)), delta)

    return dp.binary_search_param(make, d_in=math.sqrt(coordinates), d_out=(epsilon, delta)) ** 2


def opendp_canonical(coordinates: int, epsilon: float, delta: float) -> float:
    """Canonical noise on each count by itself, with an equal part of the budget: it is a mechanism for one number."""
    return canonical_variance(epsilon / coordinates, delta / coordinates)


def canonical_variance(epsilon: float, delta: float) -> float:
    """The variance of the Tulap distribution (Awan and Vadhan 2023) at sensitivity 1.

    It is a two-sided geometric number plus a uniform one in (-½, ½), kept to the middle where δ > 0: the probability q
    in the tails is cut off and what is left scaled up.
    """
    b = math.exp(-epsilon)
    if delta == 0:
        return 2 * b / (1 - b) ** 2 + 1 / 12
    q = 2 * delta * b / (1 - b + 2 * delta * b)
    kept, square, k = 0.0, 0.0, 0
    while True:  # the density of |noise| in (k - ½, k + ½) is constant; cut where q/2 is left above
        height = (1 - b) / (1 + b) * b**k
        above = b ** (k + 1) / (1 + b)  # probability beyond k + ½
        top = k + 0.5 if above >= q / 2 else k + 0.5 - (q / 2 - above) / height
        low = 0.0 if k == 0 else k - 0.5
        kept += 2 * height * (top - low)
        square += 2 * height * (top**3 - low**3) / 3
        if above < q / 2:
            return square / kept
        k += 1


def diffprivlib_geometric(coordinates: int, epsilon: float, delta: float) -> float:
    from diffprivlib.mechanisms import Geometric

    return float(Geometric(epsilon=epsilon, sensitivity=coordinates).variance(0))


def diffprivlib_gaussian(coordinates: int, epsilon: float, delta: float) -> float:
    from diffprivlib.mechanisms import GaussianAnalytic

    mechanism = GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=math.sqrt(coordinates))
    return float(mechanism.variance(0))


def _pipeline(noise: str, coordinates: int, epsilon: float, delta: float) -> float:
    import pipeline_dp
    from pipeline_dp import dp_computations

    parameters = dp_computations.ScalarNoiseParams(
        epsilon, delta, 0.0, 1.0, None, None, coordinates, 1, getattr(pipeline_dp.NoiseKind, noise)
    )
    return float(dp_computations.compute_dp_count_noise_std(parameters)) ** 2


VARIANCES: dict[str, Callable[[int, float, float], float]] = {
    "opendp_laplace": opendp_laplace,
    "opendp_gaussian": opendp_gaussian,
    "opendp_canonical": opendp_canonical,
    "diffprivlib_geometric": diffprivlib_geometric,
    "diffprivlib_gaussian": diffprivlib_gaussian,
    "pipeline_laplace": lambda n, e, d: _pipeline("LAPLACE", n, e, d),
    "pipeline_gaussian": lambda n, e, d: _pipeline("GAUSSIAN", n, e, d),
}
PACKAGES = ("opendp", "diffprivlib", "pipeline-dp")


def answers(questions: list[tuple[str, int, float, float]]) -> dict[str, Any]:
    """A variance for each question, and the versions of the libraries."""
    found = [VARIANCES[name](n, epsilon, delta) for name, n, epsilon, delta in questions]
    return {"variances": found, "versions": {name: importlib.metadata.version(name) for name in PACKAGES}}


if __name__ == "__main__":
    json.dump(answers([tuple(each) for each in json.load(sys.stdin)]), sys.stdout)
