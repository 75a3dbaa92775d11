"""Orders with large prime parts: what relaxing costs, and the time to search and to draw."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks._prime_before import searches
from benchmarks._prime_commands import DRAWS, HEAD, NOTE, command_row
from benchmarks._prime_orders import cpu_seconds, debian, layers, random_order, two_levels
from benchmarks._rows import Rows
from isotone.counts.relaxation import relax
from isotone.counts.sampler import build_sampler
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.order.bipartitions.counting import tables
from isotone.privacy.draws import ExactDraws

SEEDS = (1, 2, 3, 4)
SEARCHED = ("200 Debian packages", "random order of 120, mean degree 2")
DEGREES = (2, 4, 6)


def run(quick: bool, progress: Progress) -> str:
    """Every table, row by row, so that an interrupted run goes on where it ended."""
    for order in (two_levels(60, 3.0), layers(12)):  # load the compiled kernels
        build_sampler(order, relax(order, steps=1, reach=64), no_progress).draw(ExactDraws())
        cpu_seconds(lambda order=order: build_sampler(order, None, no_progress).draw(ExactDraws()))
    rows = [
        "CPU seconds of one run each, to which other work on the machine adds. The squared error is that of the order itself times the number given, with its standard error; 1 is exact. "
        "*Sampler* is the search, where there is one, with the choice of the relations that rejection restores, within a process that has "
        "loaded its code. A random order has each pair with the same probability, and what follows by transitivity.",
        "",
        "## Two levels",
        "",
        "| order | method | squared error | sampler | a draw |",
        "|---|---|---|---|---|",
    ]
    cases, kept = _cases(quick), Rows("prime-quick" if quick else "prime")
    for number, (name, order) in enumerate(cases):
        progress(number / len(cases) / 10, name)
        rows.append(kept.get(name, lambda name=name, order=order: _row(name, order().canonical.order)))
    if not quick:
        progress(0.1, "the search before and now")
        orders = _released()
        searched = searches({name: orders[name] for name in SEARCHED}, kept)
        rows += ["", *HEAD]
        for name, order in orders.items():
            progress(0.4, name)
            rows.append(kept.get(name, lambda name=name, order=order: command_row(name, order)))
        progress(0.8, "other seeds")
        rows += [NOTE, "", *searched, "", *SEEDS_HEAD]
        rows += [
            kept.get(f"seed {seed}", lambda seed=seed: _seed(debian().canonical.order, seed))
            for seed in SEEDS
        ]
    kept.done()
    progress(1.0, "done")
    return "\n".join(rows) + "\n"


SEEDS_HEAD = (
    "## Debian packages, other seeds",
    "",
    "Every plan searches with seed 0, as in the tables above.",
    "",
    "| seed | search | log count of the relaxed order | relations left out | a draw | squared error |",
    "|---|---|---|---|---|---|",
)


def _seed(P: Poset, seed: int) -> str:
    """A search that differs in its seed alone."""
    searched, found = cpu_seconds(lambda: relax(P, seed=seed))
    made = build_sampler(P, found, no_progress)
    drawn, _ = cpu_seconds(lambda: [made.draw(ExactDraws()) for _ in range(DRAWS)])
    count = tables(found.order(P)).log_count
    method = made.method
    return (
        f"| {seed} | {searched:.1f} s | {count:.2f} | {len(method.dropped)} of {int(P.leq_matrix().sum()) - len(P)} "
        f"| {1e3 * drawn / DRAWS:.0f} ms | {method.cost:.3f} ± {method.cost_error:.3f} |"
    )


def _row(name: str, P: Poset) -> str:
    built, made = cpu_seconds(lambda: build_sampler(P, None, no_progress))
    made.draw(ExactDraws())
    drawn, _ = cpu_seconds(lambda: [made.draw(ExactDraws()) for _ in range(DRAWS)])
    method = made.method
    cost = "1" if method.cost_error == 0 else f"{method.cost:.3f} ± {method.cost_error:.3f}"
    return f"| {name} | {method.name} | {cost} | {built:.2f} s | {1e3 * drawn / DRAWS:.1f} ms |"


def _cases(quick: bool) -> list[tuple[str, Callable[[], Poset]]]:
    """Orders of two levels, which need no preparation."""
    cases: list[tuple[str, Callable[[], Poset]]] = [
        ("two levels of 100, mean degree 3", lambda: two_levels(100, 3.0))
    ]
    if quick:
        return cases
    return [
        *cases,
        ("two levels of 400, mean degree 3", lambda: two_levels(400, 3.0)),
        ("two levels of 200, mean degree 25", lambda: two_levels(200, 25.0)),
    ]


def _released() -> dict[str, Poset]:
    """Orders that are released and verified."""
    return {
        "two levels of 200, mean degree 3": two_levels(200, 3.0),
        **{f"random order of 120, mean degree {d}": random_order(120, d) for d in DEGREES},
        "200 Debian packages": debian(),
    }
