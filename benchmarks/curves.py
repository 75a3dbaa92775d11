"""Private isotonic regression: our methods and the alternatives, excess risk and time in one run."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np

from isotone.curves.cuts import CURVES, DESIGNS, TREE_POINTS, ChainProblem, Reference, least_risk, risk
from isotone.curves.losses import parse_loss
from isotone.curves.problem import CurveSetting, Grid
from isotone.curves.regression import mechanism_for
from isotone.mechanism import Progress

UNIT = (Fraction(0), Fraction(1))
ALTERNATIVES = ("threshold", "baseline", "bins")


def _measure(method: str, loss_name: str, labels: bool, n: int, repetitions: int) -> tuple[float, float]:
    """Excess risk at ε = 1 (geometric mean over curves and designs) and CPU seconds of one exact release."""
    loss = parse_loss(loss_name)
    points = 256 if method == "baseline" else TREE_POINTS
    mechanism = mechanism_for(
        ChainProblem(loss, UNIT, Grid(*UNIT, points), method=method, labels=labels, output="records").sized(
            n, CurveSetting(Fraction(1))
        )
    )
    logs, seconds = [], []
    for curve in CURVES:
        for design in DESIGNS:
            found = []
            for repetition in range(repetitions):
                rng = np.random.default_rng([repetition, n])
                records = Reference(curve, design, labels).sample(n, points, rng)
                start = time.process_time()
                released = mechanism.release(records)
                seconds.append(time.process_time() - start)
                found.append(risk(released, records, loss) - least_risk(records, loss))
            logs.append(np.log(max(float(np.mean(found)), 1e-9)))
    return float(np.exp(np.mean(logs))), float(np.median(seconds))


def run(quick: bool, progress: Progress) -> str:
    sizes = (200,) if quick else (1_000, 10_000)
    lines = [
        "Excess risk over the fit without privacy at ε = 1, geometric mean over three curves and two designs; in brackets how many",
        "times that of `auto`. `threshold` is the algorithm of Ghazi, Kamath, Kumar and Manurangsi 2022 with the constants proved",
        "in docs/theory/curves.md, `baseline` their Appendix A, `bins` equal bins of noisy means (or quantiles) and pooling.",
        "",
        "| loss | records | auto | threshold | baseline | bins | CPU seconds: auto | threshold | baseline | bins |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    losses = (
        ("squared", True),
        ("logistic", True),
        ("absolute", False),
        ("huber", False),
        ("pinball(0.9)", False),
    )
    for done, (loss, labels) in enumerate(losses[:1] + losses[2:3] if quick else losses):
        for n in sizes:
            progress(done / len(losses), f"{loss} loss, {n} records")
            repetitions = 1 if quick else 3
            ours, ours_time = _measure("auto", loss, labels, n, repetitions)
            others = [_measure(method, loss, labels, n, repetitions) for method in ALTERNATIVES]
            cells = [f"{excess:.2g} ({excess / ours:.1f}×)" for excess, _ in others]
            times = [f"{seconds:.3f}" for _, seconds in others]
            lines.append(
                f"| {loss} | {n:,} | {ours:.2g} | {' | '.join(cells)} | {ours_time:.3f} | {' | '.join(times)} |"
            )
    progress(1.0, "done")
    return "\n".join(lines)
