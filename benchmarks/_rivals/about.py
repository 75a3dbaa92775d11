"""Who the rivals are: their public rules, what they leave open, and the command that runs them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["COMMAND", "RIVALS", "Rival", "pinned"]

COMMAND = "python -m benchmarks._rivals {}"
CURVES, CALIBRATION = "isotone reproduce curves-posterior", "python -m benchmarks calibration"


@dataclass(frozen=True)
class Rival:
    """One rival. Its name is how its rows begin."""

    name: str
    section: str
    rule: str
    hindsight: str = "nothing is open"
    version: str = "our own code"

    @property
    def command(self) -> str:
        """What makes its rows again."""
        return COMMAND.format(self.section)


def pinned(package: str) -> str:
    """The version that the environment of other libraries has."""
    path = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
    wanted = tomllib.loads(path.read_text(encoding="utf-8"))["dependency-groups"]["bench"]
    return next(each.split("==")[1] for each in wanted if each.startswith(f"{package}=="))


_BOUND = "the most yeses of a record that are counted, where there are records"
_HALF = "half of ε on {}, half on the counts, which are mapped by rank; posterior means as estimates"
_GIVEN = "counts by rank or as rounded posterior means, the noisy count as the estimate"
_SHARE = f"shares 0.003 to 1, which leaves nothing for the counts; {_GIVEN}"
_LINES = "means pooled by their precision, lines through the middles"
_JOINED = (
    "lines or steps, weights by precision or by records, sums spread over up to two bins, means pulled to that of all by up to 20/ε records, "
    "polynomials of degree 1 to 3"
)
RIVALS = (
    Rival("OpenDP Laplace", "counts", "ℓ1 sensitivity of all counts together", _BOUND),
    Rival("OpenDP Gaussian", "counts", "ℓ2 sensitivity of all counts together, by zCDP", _BOUND),
    Rival("OpenDP canonical noise", "counts", "one number at a time: ε and δ in equal parts", _BOUND),
    Rival("diffprivlib Geometric", "counts", "ℓ1 sensitivity of all counts together", _BOUND),
    Rival("diffprivlib GaussianAnalytic", "counts", "ℓ2 sensitivity of all counts together", _BOUND),
    Rival("PipelineDP Laplace", "counts", "max_partitions_contributed = number of counts", _BOUND),
    Rival("PipelineDP Gaussian", "counts", "max_partitions_contributed = number of counts", _BOUND),
    Rival(
        "matrix mechanism, p-Identity",
        "counts",
        "the least error of one strategy for all possible records (up to 1,000) and of strategies for each part of the order; "
        "3 starts for each of up to three numbers of rows, at most 40",
    ),
    Rival(
        "matrix mechanism, sums of counts",
        "counts",
        "the least error of any weights of counts with Laplace noise, for one strategy (up to 5,000 possible records) and for one for each part, 144 to 416 starts, 32 or 208 for a part; "
        "where there are more records, also of sums across parts, from those of the parts and four starts; in long chains the sums that isotone itself takes. "
        "For people, the counts of possible records that are nearest to what was measured",
    ),
    Rival(
        "Gaussian noise of any shape",
        "counts",
        "the least error that isotone's certificate leaves possible for Gaussian noise, whatever its covariance, as if a search had reached it",
    ),
    Rival("a tree for each chain", "counts", "the branching with the least error, which needs no data"),
    Rival(
        "private-pgm with structural constraints",
        "counts",
        "noisy marginals of each question, mirror descent, 1,000 steps, skip logic as constraints",
        "marginals of questions or of whole sections; Laplace noise under δ too",
    ),
    Rival("leaves only, added up", "hierarchies", "all of the budget on leaves"),
    Rival("levels alike, least squares", "hierarchies", "as much for each level, least squares on the tree"),
    Rival(
        "best budgets of levels",
        "hierarchies",
        "budgets of levels with the least error, which need no data",
    ),
    Rival(
        "best budgets of nodes",
        "hierarchies",
        "a budget for each node with the least error, by descent from up to nine starts, which needs no data",
    ),
    Rival(
        "HDMM, p-Identity over the leaves",
        "hierarchies",
        "the least error of two starts, from the sums below up to 160 inner nodes and from random ones, 80 steps; for the worst node four rounds of new weights",
    ),
    Rival(
        "OpenDP, consistent b-ary tree",
        "hierarchies",
        "`choose_branching_factor(leaves)`, nodes as sums of its consistent leaves",
        "the branching",
    ),
    Rival(
        "Laplace noise",
        "breakdowns",
        "full table, margins alike, with least squares, with the best shares; with these also on sums of the answers, as of counts",
    ),
    Rival(
        "Gaussian noise",
        "breakdowns",
        "full table, margins alike, with least squares, with the best shares; of people also the nearest table that is never negative",
    ),
    Rival("ResidualPlanner", "breakdowns", "the best variances of interactions, in closed form"),
    Rival(
        "OpenDP contingency_table",
        "breakdowns",
        "`Fixed` with the wanted margins, alike, and its own fit; its other algorithms choose margins, and all are wanted here. "
        "Values are given as `keys`, beside which it keeps a place for missing ones, or as `cuts`, which have none",
        "with `cuts`, its own fit (mirror descent, 1,000 steps) or L-BFGS",
    ),
    Rival("clamped noise", "tables", "all of ε on the counts"),
    Rival(
        "clamped noise, NPMLE",
        "tables",
        "all of ε on the counts; 400 steps, counts mapped by rank, posterior means as estimates",
        f"0 to 2,000 steps; {_GIVEN}",
    ),
    Rival(
        "clamped noise, g-modelling",
        "tables",
        "all of ε on the counts; natural splines of degree 5, penalty 1, without an atom at 0, as `deconvolveR` has it",
        f"degrees 2 to 40, penalties 0 to 100, the atom; {_GIVEN}",
    ),
    Rival("cumulative histogram, isotonic", "tables", _HALF.format("all thresholds"), _SHARE),
    Rival(
        "cumulative histogram, posterior mean",
        "tables",
        "half of ε on all thresholds, whose mean is exact under a uniform prior over rising sequences; half on the counts, which are mapped by rank",
        f"shares ¼ to 1, Dirichlet priors of 0.01 to 10, smoothed over up to 2 counts; {_GIVEN}",
    ),
    Rival(
        "cumulative histogram with all of ε",
        "tables",
        "the same with all of ε, for whoever wants the distribution alone: categories go by lot",
        "the prior, smoothed over up to 2 counts; rounded means",
    ),
    Rival("sorted counts, isotonic", "tables", _HALF.format("sorted counts"), _SHARE),
    Rival("Privelet", "tables", _HALF.format("wavelets of the histogram of counts"), _SHARE),
    Rival(
        "one histogram of (bin, label) at full ε, pooled",
        "curves",
        "1.4·√(εn) bins, rounded to a power of 2",
        "8 to 1,024 bins",
    ),
    Rival(
        "one histogram of (bin, label) at full ε, pooled and joined by lines",
        "curves",
        f"√(εn) bins, of those tried the nearest; {_LINES}",
        f"1 to 256 bins, {_JOINED}",
    ),
    Rival(
        "bins by a quantile tree, pooled and joined by lines",
        "curves",
        f"√(εn) bins, of those tried the nearest; three tenths of ε for the tree; {_LINES}",
        f"2 to 128 bins, 0.1 to 0.7 of ε for the tree, {_JOINED}",
    ),
    Rival(
        "bins of equal counts",
        "curves",
        "1.4·√(εn) bins, of 8, 32, 128 and 512 the nearest",
        "the number of bins",
    ),
    Rival(
        "bins by a quantile tree",
        "curves",
        "1.4·√(εn) bins, of 8, 32 and 128 the nearest; a tenth of ε for a tree with 16 children a node",
        "the number of bins",
    ),
    Rival(
        "logistic curve (Platt)",
        "curves",
        "objective perturbation with the least regularisation allowed",
    ),
    Rival(
        "diffprivlib LogisticRegression",
        "curves",
        "as it comes, scores within 0 and 1",
        version=pinned("diffprivlib"),
    ),
    Rival(
        "InterpretML DP-EBM",
        "curves",
        "as it comes, δ = 10⁻⁶",
        "its own learning rate or 0.1",
        pinned("interpret-core"),
    ),
)
