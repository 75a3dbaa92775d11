"""What is stored in docs/reproduction against what the code gives now, by few cases or quick runs.

Simulations are seeded. An experiment with a function ``few`` makes some cases of its full run with it, with all their
draws, and these have to come out as stored. Of the others a quick run is made, with fewer cases and draws. Cases that are in
both are compared: numbers that are computed, to a relative 1e-6 or so; numbers that are simulated, to a tolerance that a quick
run keeps unless something changed. Times are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from common import read_table
from isotone.mechanism import no_progress

__all__ = ["RULES", "UNCOMPARED", "Outcome", "compare", "stored_folder"]


@dataclass(frozen=True)
class Rule:
    """Which columns name a case, and how far the numbers of each other column may be off, relatively."""

    keys: tuple[str, ...]
    tolerances: Mapping[str, float]
    without: str | None = None
    """Cases with this key are left out: means of so few draws say nothing."""


COMPUTED = 1e-6
OPTIMISED = 1e-3
ROUNDED = 2e-3
"""For seeded draws that are made again with as many repetitions: what is stored has three digits at least."""
_ELLIPSES = {"ratio": OPTIMISED, "lower_bound": OPTIMISED, "replace_ratio": OPTIMISED}
_MEASURED = {"fit": ROUNDED, "truth": ROUNDED, "squared": ROUNDED}
_CELL = ("loss", "y", "curve", "design", "n", "epsilon", "method", "repetitions")
_WAYS = ("shape", "number", "n", "epsilon", "repetition")
_LAW = Rule(("rank",), {"probability_times_count": COMPUTED})

RULES: dict[str, dict[str, Rule]] = {
    "lp-norms": {"lp_norms": Rule(("p", "d"), {"ball": COMPUTED})},
    "path-posets": {
        "path_posets": Rule(("d",), {"exact": COMPUTED, "error()": COMPUTED, "hierarchical": COMPUTED})
    },
    "random-posets": {"random_posets": Rule(("d",), {"mean": 0.15})},
    "posets-by-depth-and-edges": {"posets_by_depth_and_edges": Rule(("by", "value"), {"mean": 0.15})},
    "survey-table": {
        "survey_table": Rule(
            ("sections", "d", "codebook_2021_d"),
            {"exact_sampler": COMPUTED, "preprint_as_mechanisms": COMPUTED, "codebook_2021": COMPUTED},
        )
    },
    "linf-rejection": {"linf_rejection": Rule(("family", "d"), {"acceptance": COMPUTED}, without="random")},
    "gaussian-comparison": {
        "gaussian_comparison": Rule(
            ("d",),
            {
                "cube": COMPUTED,
                "analytic_gaussian": COMPUTED,
                "poset_antichain": COMPUTED,
                "poset_chain": COMPUTED,
                "order_gaussian_antichain": OPTIMISED,
                "order_gaussian_chain": OPTIMISED,
            },
        )
    },
    "gaussian-ellipse": {
        "traces": Rule(("order", "n", "method"), _ELLIPSES),
        "crossovers": Rule(("family", "n"), {"pure": COMPUTED, "gaussian": OPTIMISED, "zcdp": OPTIMISED}),
        "bounded": Rule(("order", "n", "k"), {"ratio": OPTIMISED}),
    },
    "as-published": {
        "as_published": Rule(("order", "elements", "extended_bipartitions", "loss_by"), {"loss": 0.4}),
        "law_2+2": _LAW,
        "law_survey_1_section": _LAW,
        "law_x_v_y": _LAW,
    },
    "consistency": {
        "consistency": Rule(
            ("noise", "case", "records"), dict.fromkeys(("clip", "equal", "variance"), ROUNDED)
        )
    },
    "curves-bands": {"coverage": Rule(("population", "n", "kind"), {"width": ROUNDED})},
    "curves-posets": {"posets": Rule(("order", "loss", "n", "method"), {"excess": ROUNDED})},
    "curves-posterior": {"cells": Rule(("population", "n", "epsilon", "method"), _MEASURED)},
    "curves-quality": {"cells": Rule(_CELL, {"excess": ROUNDED, "optimum": ROUNDED})},
    "curves-shapes": {"distances": Rule(_WAYS, {"nearest": ROUNDED, "states": ROUNDED})},
    "curves-survival": {"survival": Rule(("loss", "epsilon", "method"), {"excess": ROUNDED})},
    "curves-without-means": {"ratios": Rule(("loss", "n", "epsilon", "mechanism"), {"ratio": ROUNDED})},
    "tables-frontier": {"small": Rule(("categories", "epsilon"), {"worst": COMPUTED})},
    "tables-held-out-again": {
        "draws": Rule(("table", "epsilon", "seed"), {"estimate": ROUNDED, "distance": ROUNDED})
    },
    "tables-intervals": {
        "draws": Rule(("table", "epsilon", "seed"), {"held": ROUNDED, "width": ROUNDED}),
        "few": Rule(("table", "epsilon"), {"held": ROUNDED, "width": ROUNDED}),
    },
    "tables-open-questions": {
        "ratios": Rule(("question", "counts", "steps", "epsilon", "loss"), {"mean": 0.15})
    },
    "tables-scale": {
        "measured": Rule(
            ("group", "shape", "size", "upper", "epsilon", "way"), {"estimate": ROUNDED, "distance": ROUNDED}
        )
    },
    "tables-optimality-gap": {
        "objective": Rule(("data", "epsilon", "framework", "share"), {"objective": ROUNDED})
    },
    "tables-pairs-and-plans": {
        "gaussian": Rule(("table", "contributions", "noise"), {"estimate": ROUNDED, "distance": ROUNDED})
    },
    "tables-shapes": {
        "errors": Rule(
            ("data", "epsilon"), dict.fromkeys(("published_count", "rows_count", "auto_count"), ROUNDED)
        )
    },
    "tables-split": {"measured": Rule(("framework", "data", "epsilon", "share"), {"count_error": ROUNDED})},
    "tables-errors": {"errors": Rule(("data", "method", "epsilon"), {"count_error": ROUNDED})},
    "tables-privatisers": {"distances": Rule(("data", "n", "privatiser"), {"wasserstein": 0.6})},
    "tables-split-errors": {
        "measured": Rule(("data", "epsilon", "share"), {"absolute": 0.1, "squared": 0.2})
    },
    "tables-selectors": {
        "selectors": Rule(("data", "epsilon", "method"), {"absolute": 0.05, "squared": 0.1})
    },
}
"""What is compared, by experiment and file."""

UNCOMPARED = {
    "inference-coverage": "noise is from cryptographic bits, so no two runs are alike",
    "curves-speed": "times",
    "poset-running-time": "times",
    "tables-running-time": "times",
}
"""What is not, and why: only a full run, with --out, can be held against what is stored."""


@dataclass(frozen=True)
class Outcome:
    """How many numbers of an experiment were compared, and which of them are off."""

    numbers: int
    off: tuple[str, ...]


def stored_folder(name: str) -> Path:
    """Where the results of an experiment are stored."""
    return Path(__file__).resolve().parent.parent / "docs" / "reproduction" / name.replace("-", "_")


def compare(name: str, experiment: ModuleType, stored: Path | None = None) -> Outcome:
    """Make few cases of an experiment, or run it quickly, and hold its files against what is stored."""
    folder = stored or stored_folder(name)
    numbers, off = 0, list[str]()
    with TemporaryDirectory() as place:
        if hasattr(experiment, "few"):
            experiment.few(Path(place))
        else:
            experiment.run(Path(place), True, no_progress)
        for file, rule in RULES[name].items():
            if not (folder / f"{file}.csv").exists():
                off.append(f"{file}.csv is not stored")
                continue
            pairs = list(
                _pairs(read_table(folder / f"{file}.csv"), read_table(Path(place) / f"{file}.csv"), rule)
            )
            if not pairs:
                off.append(f"{file}.csv has no case in common with what the code gives")
            numbers += len(pairs)
            off += [words for words, fits in pairs if not fits]
    return Outcome(numbers, tuple(off))


def _pairs(
    stored: list[dict[str, str]], fresh: list[dict[str, str]], rule: Rule
) -> Iterator[tuple[str, bool]]:
    """Each number that is in both tables, in words, and whether they agree."""
    cases = {tuple(row.get(key, "") for key in rule.keys): row for row in stored}
    for row in fresh:
        case = tuple(row[key] for key in rule.keys)
        if case not in cases or rule.without in case:
            continue
        for column, tolerance in rule.tolerances.items():
            was, now = _number(cases[case][column]), _number(row[column])
            fits = (math.isnan(was) and math.isnan(now)) or abs(now - was) <= tolerance * abs(was)
            yield f"{', '.join(case)}: {column} is stored as {was:.6g}, the code gives {now:.6g}", fits


def _number(text: str) -> float:
    return float(text) if text else math.nan
