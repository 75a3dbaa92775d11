"""How often intervals of derived figures contain the truth, over releases drawn by the code that releases.

Five orders from 15 to 1,000 elements, three mechanisms, surveys of 50 to 30,000 records. Noise is drawn by ``release``
itself, from cryptographic bits, and does not depend on the counts: one draw serves surveys of all sizes. A share holds
if the true ratio is in the set that the interval is the hull of; lengths, and how often a share is not known, are those
of the intervals shown. Standard errors are over releases, since figures of one release depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from common import DATA, read_table, save_figure, write_table
from consistency import debian
from isotone.counts import LaplaceMechanism, OrderGaussianMechanism, PosetMechanism
from isotone.inference import Measured, given_records, population_proportion, population_share
from isotone.linear.mechanism import rank
from isotone.mechanism import Progress
from isotone.order import Poset

Floats = NDArray[np.float64]
Sample = Callable[[int], Floats]
MECHANISMS: dict[str, Callable[[Poset], Any]] = {
    "poset": lambda P: PosetMechanism(P, 1),
    "order Gaussian": lambda P: OrderGaussianMechanism(P, rho="1/2"),
    "Laplace": lambda P: LaplaceMechanism(P, 1),
}
LEVEL = 0.95


def survey() -> tuple[Poset, Sample]:
    """Fifteen questions of the health survey; where no count is published, half of those asked say yes."""
    rows = read_table(DATA / "survey" / "nhis_15_questions.csv")
    P = Poset.from_mapping({row["question"]: row["parent"] or None for row in rows})
    shares: dict[str, float] = {}
    for row in rows:
        known = row["yes_count_2021"].strip()
        shares[row["question"]] = float(known) / 29_482 if known else 0.5 * shares.get(row["parent"], 0.2)
    order = np.array([shares[str(x)] for x in P.elements])
    return P, lambda records: np.rint(order * records)


def chain() -> tuple[Poset, Sample]:
    """Twenty elements one above the other, from 4 % to 90 % of the records."""
    return Poset.chain(range(20)), lambda records: np.rint(np.linspace(0.04, 0.9, 20) * records)


def tree(size: int, seed: int) -> tuple[Poset, Sample]:
    """A random tree in which each element keeps between a third and all of its parent's yeses."""
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(0, i)) if i else -1 for i in range(size)]
    kept, share = rng.uniform(0.33, 1.0, size), np.empty(size)
    for i, parent in enumerate(parents):
        share[i] = kept[i] * (share[parent] if i else 0.8)
    P = Poset(range(size), [(i, parent) for i, parent in enumerate(parents) if i])

    def sample(records: int) -> Floats:
        counts = np.rint(share * records)
        for i, parent in enumerate(parents):
            if i:
                counts[i] = min(counts[i], counts[parent])
        return counts

    return P, sample


def real_noise(m: Any, repeats: int) -> Floats:
    """Noise from real releases of zero counts, the number of records last where it is released."""
    zero, rows = np.zeros(len(m.P), np.int64), list[Floats]()
    for _ in range(repeats):
        if getattr(m, "has_total", False):
            counts, total = m.release_with_total(zero, 0)
            rows.append(np.append(counts, total).astype(float))
        else:
            rows.append(m.release(zero).astype(float))
    return np.array(rows)


def mean_and_error(hits: Floats) -> tuple[float, float]:
    """The mean over figures and releases, and its standard error over releases (rows)."""
    return float(hits.mean()), float(hits.mean(axis=1).std(ddof=1) / np.sqrt(len(hits)))


def measured(m: Any, law: Any, values: Floats, records: int | None = None) -> Measured:
    total = bool(getattr(m, "has_total", False))
    variance = m.error().variance
    if total:
        variance = np.append(variance, m.total_variance())
    more: dict[str, Any] = {}
    if total:
        more["slope"] = lambda: m.total_covariance().variance / m.total_variance()
    return Measured(m.P, values, law, variance, m.covariance, has_total=total, records=records, **more)


def cell(m: Any, law: Any, noise: Floats, truth: Floats, records: int, shown: int) -> dict[str, Any]:
    """Coverage of counts, differences, shares and of all together, and what the intervals shown look like."""
    n, P = len(m.P), m.P
    k = rank(law.size, LEVEL) - 1
    positive = [(x, z) for x, z in P.cover_pairs.tolist() if truth[z] > 0]
    pairs = [positive[i] for i in np.linspace(0, len(positive) - 1, min(len(positive), 40)).astype(int)]
    counts = np.abs(noise[:, :n]) <= law.half_widths(LEVEL)[:n]
    steps, ratios = [], []
    for x, z in pairs:
        drawn = law.draws[:, x].astype(float), law.draws[:, z].astype(float)
        half = np.partition(np.abs(drawn[0] - drawn[1]), k)[k]
        steps.append(np.abs(noise[:, z] - noise[:, x]) <= half)
        r = truth[x] / truth[z]
        half = np.partition(np.abs(drawn[0] - r * drawn[1]), k)[k]
        ratios.append(np.abs(noise[:, x] - r * noise[:, z]) <= half + 1e-9)
    full = np.append(truth, records) if law.draws.shape[1] > n else truth
    region = measured(m, law, full).region(LEVEL)
    member = np.concatenate((noise, noise[:, region.pairs[:, 1]] - noise[:, region.pairs[:, 0]]), axis=1)
    together = np.all(np.abs(member) <= region.half_widths, axis=1)[:, None]
    widths, unknown, limit, hits = [], 0, 0, []
    few = pairs[:: max(1, len(pairs) // 5)][:5]
    for row in noise[:shown]:
        found, inside = measured(m, law, full + row), []
        for x, z in few:
            share = found.share(P.elements[x], P.elements[z], LEVEL)
            widths.append(share.high - share.low)
            unknown += share.value is None
            limit += share.note.startswith("at the limit") or share.low == 0 or share.high == 1
            inside.append(share.low <= truth[x] / truth[z] <= share.high)
        hits.append(inside)
    size = shown * len(few)
    result: dict[str, Any] = {}
    for name, part in (
        ("count", counts),
        ("difference", np.array(steps).T),
        ("share", np.array(ratios).T),
        ("all together", together),
        ("share as shown", np.array(hits)),
    ):
        result[name], result[f"{name} se"] = (round(x, 4) for x in mean_and_error(part.astype(float)))
    result |= {"width": round(float(np.mean(widths)), 4), "not known": round(unknown / size, 3)}
    return result | {"clipped": round(limit / size, 3)}


def populations(m: Any, law: Any, noise: Floats, records: int, rng: np.random.Generator) -> dict[str, float]:
    """Coverage of the share in the population: noise and sampling, and what intervals of noise alone would cover."""
    p, r, x, z = 0.36, 0.82, 1, 0
    hits = np.zeros((len(noise), 4))
    for i, row in enumerate(noise):
        whole = rng.binomial(records, p)
        part = rng.binomial(whole, r)
        values = np.zeros(law.draws.shape[1])
        values[[z, x, -1]] = whole, part, records
        found = measured(m, law, values + row)
        known = measured(m, law, values + row, records)
        names = m.P.elements[x], m.P.elements[z]
        alone = found.share(*names, LEVEL), known.share(names[1], None, LEVEL)
        both = population_share(found, *names, LEVEL), population_proportion(known, names[1], LEVEL)
        for k, (share, true) in enumerate(zip((*both, *alone), (r, p, r, p), strict=True)):
            hits[i, k] = share.low <= true <= share.high
    names = ("share", "proportion", "share by noise alone", "proportion by noise alone")
    return dict(zip(names, hits.mean(axis=0).round(3).tolist(), strict=True))


SIZES = (50, 300, 1_000, 30_000)


def cases(rng: np.random.Generator) -> dict[str, tuple[tuple[Poset, Sample], int, int]]:
    """The orders, each with how many releases are drawn and of how many the intervals are looked at."""
    return {
        "survey, 15 questions": (survey(), 12_000, 100),
        "chain of 20": (chain(), 6_000, 100),
        "Debian, 25 packages": (debian(40, 25, rng), 6_000, 60),
        "tree of 200": (tree(200, 1), 2_000, 30),
        "tree of 1,000": (tree(1_000, 2), 600, 20),
    }


def rows_of(
    case: str, name: str, P: Poset, sample: Sample, repeats: int, shown: int, sizes: Sequence[int]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of one order and one mechanism: coverage, and what a public number of records is worth."""
    m = MECHANISMS[name](P)
    total = bool(getattr(m, "has_total", False))
    noise, law = real_noise(m, repeats), m.law(total=total)
    rows = list[dict[str, Any]]()
    for records in sizes:
        truth = sample(min(records, 1_000)) * max(1, records // 1_000)  # of at most so many real records
        found = cell(m, law, noise, truth, records, min(shown, len(noise)))
        rows.append({"order": case, "mechanism": name, "records": records, **found})
    adjusted = [{"order": case, "mechanism": name, **control(m, law, noise)}] if total else []
    return rows, adjusted


def people_of(name: str, P: Poset, repeats: int, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """The rows of one mechanism about the population."""
    m, rng = MECHANISMS[name](P), np.random.default_rng(0)
    noise, law = real_noise(m, repeats), m.law(total=True)
    head = {"order": "survey, 15 questions", "mechanism": name}
    return [{**head, "records": n, **populations(m, law, noise, n, rng)} for n in sizes]


def write(out: Path, name: str, rows: list[dict[str, Any]]) -> None:
    write_table(out, name, {key: [row[key] for row in rows] for key in rows[0]})


def run(out: Path, quick: bool, progress: Progress) -> None:
    found = cases(np.random.default_rng(0))
    if quick:
        found = {case: (order, 10, 10) for case, (order, _, _) in list(found.items())[:1]}
    rows, adjusted = list[dict[str, Any]](), list[dict[str, Any]]()
    for done, (case, ((P, sample), repeats, shown)) in enumerate(found.items()):
        for k, name in enumerate(MECHANISMS):
            progress((done + k / 3) / (len(found) + 1), f"{case}, {name}")
            more, given = rows_of(case, name, P, sample, repeats, shown, [300] if quick else SIZES)
            rows, adjusted = rows + more, adjusted + given
        write(out, "inference_coverage", rows)
        write(out, "given_records", adjusted)
    progress(len(found) / (len(found) + 1), "populations")
    who = [name for name in MECHANISMS if name != "Laplace"]  # which releases no number of records
    sizes = [300] if quick else [300, 1_000]
    write(
        out,
        "populations",
        [row for name in who for row in people_of(name, survey()[0], 10 if quick else 200, sizes)],
    )
    picture(out, rows)
    progress(1.0, "done")


def picture(out: Path, rows: list[dict[str, Any]]) -> None:
    """How often intervals hold, against the 95 % that are claimed."""
    figure = Figure(figsize=(6.4, 3.6))
    axis = figure.subplots()
    for name, marker in (("count", "o"), ("difference", "s"), ("share", "^"), ("all together", "D")):
        heights = [float(row[name]) for row in rows]
        spread = [3 * float(row[f"{name} se"]) for row in rows]
        axis.errorbar(range(len(rows)), heights, spread, fmt=marker, ms=4, lw=0.8, label=name)
    axis.axhline(0.95, color="0.4", lw=0.8)
    axis.set_xlabel("order, mechanism and number of records, in the sequence of the table")
    axis.set_ylabel("coverage, ± 3 standard errors")
    axis.legend(fontsize=8, ncols=4, loc="upper center")
    save_figure(figure, out, "inference_coverage")


def control(m: Any, law: Any, noise: Floats) -> dict[str, float]:
    """What a public number of records is worth: squared error after and before, in theory too, and coverage."""
    n = len(m.P)
    found = given_records(measured(m, law, np.zeros(n + 1)), 0)
    after = noise[:, :n] - np.outer(noise[:, n], m.total_covariance().variance / m.total_variance())
    hits = np.abs(after) <= found.law.half_widths(LEVEL)
    coverage, error = mean_and_error(hits.astype(float))
    return {
        "error left": round(float(np.sum(after**2) / np.sum(noise[:, :n] ** 2)), 4),
        "in theory": round(float(np.sum(found.variance) / np.sum(m.error().variance)), 4),
        "coverage": round(coverage, 4),
        "coverage se": round(error, 4),
    }
