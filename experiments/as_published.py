"""The published sampler is not uniform, so its mechanism is not ε-private: exact laws, losses and audits.

Joseph, Ribero and Yu (2025), Lemma 3.14. (a) The exact distribution over extended bipartitions where it can be
enumerated, and the spread of its logarithm where it cannot; (b) the true privacy loss at nominal ε = 1, exactly on
tiny orders, by search on the survey, and as proved by a black-box audit at 99.9 % confidence; (c) the exact sampler
under the same audit.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from _posets import survey_sections
from _published import PublishedSampler, log_probability
from _published_loss import audit, choose_event, exact_loss, search_loss
from common import save_figure, write_table
from isotone.counts.sampler import sampler
from isotone.mechanism import Progress
from isotone.order import Poset

ORDERS = {
    "x<v, y": Poset(["x", "v", "y"], [("x", "v")]),
    "2+2": Poset("abcd", [("a", "b"), ("c", "d")]),
    "survey, 1 section": survey_sections(1),
    "survey, 2 sections": survey_sections(2),
    "survey, 3 sections": survey_sections(3),
}
ENUMERABLE = 5
"""Orders of up to so many elements are enumerated; larger ones are sampled and searched."""


def run(out: Path, quick: bool, progress: Progress) -> None:
    laws: dict[str, list[float]] = {}
    rows: list[dict[str, Any]] = []
    for k, (name, P) in enumerate(ORDERS.items()):
        progress(k / len(ORDERS), name)
        rng = np.random.default_rng(k)
        if len(P) <= ENUMERABLE:
            law = [float(p) for p in sorted(PublishedSampler(P).distribution().values())]
            laws[name] = law
            spread, loss, how = math.log(law[-1] / law[0]), exact_loss(P), "linear programs"
        else:
            spread = _spread(P, 2_000 if quick else 200_000, rng)
            moves = 20_000 if quick else 400_000
            loss = max(search_loss(P, moves, rng)[0] for _ in range(1 if quick else 8))
            how = "search"
        draws = 20_000 if quick else 1_000_000
        event = choose_event(P, draws, rng)
        theirs, ours = (audit(P, event, published, draws, rng) for published in (True, False))
        rows.append(
            {
                "order": name,
                "elements": len(P),
                "extended_bipartitions": P.count_extended_bipartitions(),
                "log_spread": spread,
                "loss": loss,
                "loss_by": how,
                "audit_draws": draws,
                "audit_published": theirs.proven_loss,
                "audit_exact": ours.proven_loss,
            }
        )
    write_table(out, "as_published", {column: [row[column] for row in rows] for column in rows[0]})
    for name, law in laws.items():
        columns = {
            "rank": list(range(1, len(law) + 1)),
            "probability_times_count": [p * len(law) for p in law],
        }
        write_table(out, f"law_{name.replace('<', '_').replace(', ', '_').replace(' ', '_')}", columns)
    save_figure(_picture(laws, rows), out, "as_published")
    progress(1.0, "done")


def _spread(P: Poset, draws: int, rng: np.random.Generator) -> float:
    """The range of ln p over uniform extended bipartitions: at least so much, as the draws show."""
    published = PublishedSampler(P)
    orders, sizes = sampler(P).simulate(draws, rng)
    logs = [
        log_probability(published.less, published.inserted, row, a)
        for row, a in zip(orders.astype(np.int64), sizes, strict=True)
    ]
    return max(logs) - min(logs)


def _picture(laws: dict[str, list[float]], rows: list[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    for (name, law), style in zip(laws.items(), ("-", "-", "--"), strict=True):
        rank = (np.arange(len(law)) + 0.5) / len(law)
        left.step(rank, np.array(law) * len(law), style, lw=2, where="mid", label=f"{name} ({len(law)})")
    left.axhline(1, color="black", lw=1)
    left.set(
        xlabel="extended bipartitions, by probability", ylabel="probability × their number", ylim=(0, None)
    )
    left.set_title("the published law (uniform is 1)", fontsize=10)
    left.legend(fontsize=8)
    place = np.arange(len(rows))
    bars = (("loss", "true loss (exact or found)", "C3"), ("audit_published", "proved by audit", "C1"))
    for k, (column, label, colour) in enumerate(bars):
        right.bar(place + 0.27 * (k - 1), [row[column] for row in rows], 0.25, label=label, color=colour)
    exact = [row["audit_exact"] for row in rows]
    right.bar(place + 0.27, exact, 0.25, label="exact sampler, same audit", color="C0")
    right.axhline(1, color="black", lw=1)
    right.text(len(rows) - 0.45, 1.05, "guaranteed", fontsize=8, ha="right")
    right.set_xticks(place, [row["order"].replace("survey, ", "survey\n") for row in rows], fontsize=8)
    right.set(ylabel="privacy loss at nominal ε = 1")
    right.legend(fontsize=8)
    return figure
