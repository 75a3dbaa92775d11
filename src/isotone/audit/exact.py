"""Audits by explicit densities and exact probabilities, and of mechanisms for counts on neighbours made for them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats
from isotone.audit.black_box import Finding, audit, guarantee_of
from isotone.errors import InputError
from isotone.mechanism import HasGroups, Progress
from isotone.order import Poset
from isotone.order.closure import some_record
from isotone.privacy.guarantee import Guarantee, Number

# Exact audits of Gaussian noise.
#
# The privacy of two normal laws with one covariance is known in closed form.
#
# Between two such laws at distance μ (in the norm of the inverse covariance) the log ratio of the densities is itself
# normal, with mean μ²/2 and variance μ². So ρ = μ²/2 (Bun and Steinke 2016), and (ε, δ) hold together exactly if
# δ ≥ Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang 2018). The distance is read off the density given.


def gaussian_distance(
    log_density: Callable[..., Any], statistic: Any, neighbour: Any, rng: np.random.Generator
) -> float:
    """The distance μ between the laws of the output for two inputs. Raises an error if they are not normal."""
    here, there = np.asarray(statistic, dtype=float), np.asarray(neighbour, dtype=float)

    def density(points: Floats, center: Any) -> Floats:
        return np.asarray(log_density(points, center), dtype=float).reshape(len(points))

    # The logarithm of a normal density is quadratic: along any line its third differences are nil.
    start, step = here + rng.standard_normal((40, len(here))), 3 * rng.standard_normal((40, len(here)))
    lines = np.stack([density(start + k * step, statistic) for k in range(4)])
    size = np.abs(lines - lines.mean()).max() + 1.0
    bent = np.abs(lines[3] - 3 * lines[2] + 3 * lines[1] - lines[0]).max()
    if not np.isfinite(lines).all() or bent > 1e-6 * size:
        raise InputError(
            "An exact audit of δ or ρ needs Gaussian noise; for other densities use audit(), which draws."
        )
    middle = density(here[None, :], statistic)[0]
    return math.sqrt(max(0.0, 2 * (middle - density(there[None, :], statistic)[0])))


def gaussian_epsilon(distance: float, delta: float) -> float:
    """The least ε that two normal laws at this distance satisfy with this δ.

    >>> round(gaussian_epsilon(1.0, 1e-6), 4)
    4.8866
    """
    from scipy.special import log_ndtr

    def excess(epsilon: float) -> float:
        near, far = distance / 2 - epsilon / distance, -distance / 2 - epsilon / distance
        return math.exp(log_ndtr(near)) - math.exp(epsilon + log_ndtr(far)) - delta

    if distance == 0 or excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return low


# An exact audit from explicit densities or probabilities.
#
# It searches for the output with the largest privacy loss and prints it.
#
# The privacy loss at an output is the difference of two log densities (or log probabilities). Its largest value over
# outputs is searched from many starts; whatever is found is a true loss at a stated witness, so it is a lower bound that
# needs no statistics. A search can miss; for the mechanisms here it finds the claimed value to many digits
# (tests/unit/audit). Transition matrices are gone through completely, and Gaussian noise is judged in closed form.

_TINY = 1e-280  # below, a float has lost digits, and the mechanism is asked for the logarithm
_ROUNDING = 1e-6  # what a solver may leave behind in a row that should sum to 1, or below 0


@dataclass(frozen=True)
class ExactFinding:
    """The largest privacy loss found, and where.

    Two neighbours, and the output that reveals most about them.
    """

    claimed: float
    loss: float
    statistic: tuple[float, ...]
    neighbour: tuple[float, ...]
    output: tuple[float, ...]
    measure: str = "ε"
    delta: float = 0.0

    @property
    def broken(self) -> bool:
        """Whether the loss exceeds the claim by more than rounding."""
        return self.loss > self.claimed * (1 + 1e-9) + 1e-9

    def __str__(self) -> str:
        claim = f"{self.measure} = {self.claimed:g}" + (f", δ = {self.delta:g}" if self.delta else "")
        verdict = "BROKEN" if self.broken else "kept at every output searched"
        where = f", at the output {_shown(self.output)}" if self.output else ""
        return (
            f"claims {claim}; {verdict}: the largest loss found is {self.loss:.6g}{where}, between "
            f"{_shown(self.statistic)} and {_shown(self.neighbour)}"
        )


def audit_exact(
    mechanism: Any,
    statistic: Any = None,
    neighbours: Sequence[Any] = (),
    *,
    claimed: Guarantee | None = None,
    starts: int = 400,
    rounds: int = 60,
    seed: int = 0,
) -> ExactFinding:
    """Search for the largest privacy loss between ``statistic`` and each of its ``neighbours``.

    Parameters
    ----------
    mechanism
        Has ``log_density(output, statistic)``, or ``log_probability`` or ``probability`` for whole-number outputs: each
        for many outputs at once, one per row. Or has ``matrix()``, or is a matrix of transition probabilities: then all
        neighbouring rows and all outputs are compared, and no statistic is needed.
    statistic, neighbours
        An input of the mechanism, and inputs that the guarantee calls its neighbours.
    claimed
        The guarantee to test. Default: the mechanism's own. One with δ or ρ is tested if the noise is Gaussian.

    Examples
    --------
    >>> from isotone.counts import LaplaceMechanism, OrderGaussianMechanism
    >>> from isotone.order import Poset
    >>> found = audit_exact(LaplaceMechanism(Poset.chain("ab"), 1), [5, 5], [[5, 6], [6, 6]])
    >>> round(found.loss, 6), found.broken
    (1.0, False)
    >>> found = audit_exact(OrderGaussianMechanism(Poset.chain("ab"), rho="0.5"), [5, 5], [[5, 6], [6, 6]])
    >>> round(found.loss, 3), found.broken
    (0.5, False)
    >>> from isotone.privacy.guarantee import Guarantee
    >>> print(audit_exact([[0.75, 0.25], [0.25, 0.75]], claimed=Guarantee.pure(1)))
    claims ε = 1; BROKEN: the largest loss found is 1.09861, at the output (0), between (0) and (1)
    """
    if isinstance(mechanism, (np.ndarray, list, tuple)) or hasattr(mechanism, "matrix"):
        return _audit_matrix(mechanism, guarantee_of(mechanism, claimed))
    guarantee = guarantee_of(mechanism, claimed)
    if statistic is None or not len(neighbours):
        raise InputError("Give a statistic and at least one neighbour of it.")
    rng = np.random.default_rng(seed)
    if guarantee.kind != "pure":
        return _audit_gaussian(mechanism, statistic, neighbours, guarantee, rng)
    density, whole = _explicit(mechanism)
    outputs = _Outputs(whole, getattr(mechanism, "possible_outputs", None))
    best = ExactFinding(float(guarantee.epsilon), -np.inf, _numbers(statistic), (), ())
    for neighbour in neighbours:
        loss, output = _search(density, statistic, neighbour, rng, starts, rounds, outputs)
        if loss > best.loss:
            best = ExactFinding(
                best.claimed, loss, _numbers(statistic), _numbers(neighbour), tuple(map(float, output))
            )
    return best


def _explicit(mechanism: Any) -> tuple[Callable[[Floats, Any], Floats], bool]:
    """The logarithm of the density or of the probabilities, and whether outputs are whole numbers."""
    if hasattr(mechanism, "log_density"):
        return mechanism.log_density, False
    if hasattr(mechanism, "log_probability"):
        return mechanism.log_probability, True
    if hasattr(mechanism, "probability"):

        def logs(outputs: Floats, statistic: Any) -> Floats:
            with np.errstate(divide="ignore"):
                return np.log(np.asarray(mechanism.probability(outputs, statistic), dtype=float))

        return logs, True
    raise InputError(
        f"{type(mechanism).__name__} has no explicit density: use audit(), which only needs draws."
    )


class _Outputs(NamedTuple):
    """The outputs that a mechanism can have: whole numbers or any, and where they add up ``possible`` ones near others."""

    whole: bool
    possible: Callable[[Floats], Floats] | None

    def near(self, points: Floats) -> Floats:
        """Outputs near the points."""
        points = np.rint(points) if self.whole else points
        return points if self.possible is None else self.possible(points)


def _search(
    density: Callable[[Floats, Any], Floats],
    statistic: Any,
    neighbour: Any,
    rng: np.random.Generator,
    starts: int,
    rounds: int,
    outputs: _Outputs,
) -> tuple[float, Floats]:
    """Random starts, then random steps of shrinking size that are kept when they do not lose."""
    base, other = np.asarray(statistic, dtype=float), np.asarray(neighbour, dtype=float)
    if base.shape != other.shape or base.ndim != 1:
        raise InputError(
            f"Statistic and neighbour must be vectors of one length, not {base.shape} and {other.shape}."
        )

    def losses(outputs: Floats) -> Floats:
        here, there = (np.asarray(density(outputs, given), dtype=float) for given in (statistic, neighbour))
        with np.errstate(invalid="ignore"):  # impossible on both sides: nothing is learned
            return np.nan_to_num(np.abs(here - there), nan=0.0, posinf=np.inf)

    n = len(base)
    # Near the statistic, near the neighbour, and far away along random signs: ratios are extreme in cones.
    scale = 10.0 ** rng.uniform(-3, 2, (starts, 1))
    points = base + scale * rng.standard_normal((starts, n))
    points[: starts // 3] = other + 1e-6 * rng.standard_normal((starts // 3, n))
    points = outputs.near(points)
    values = losses(points)
    for step in np.geomspace(2.0, 1.0 if outputs.whole else 1e-3, rounds):
        moves = step * rng.standard_normal(points.shape) * (rng.random(points.shape) < max(0.2, 2 / n))
        moved = outputs.near(points + moves)
        result = losses(moved)
        better = result >= values
        points[better], values[better] = moved[better], result[better]
    top = int(np.argmax(values))
    return float(values[top]), points[top]


def _audit_matrix(mechanism: Any, guarantee: Guarantee) -> ExactFinding:
    if guarantee.kind != "pure":
        raise InputError("An exact audit of a matrix is about pure ε: give claimed=Guarantee.pure(…).")
    built = hasattr(mechanism, "matrix")
    loss, row, column = matrix_loss(mechanism.matrix() if built else mechanism, mechanism if built else None)
    steps = mechanism.unit.steps if hasattr(mechanism, "unit") else 1  # a unit may be several steps
    return ExactFinding(float(guarantee.epsilon), steps * loss, (row,), (row + 1,), (column,))


def matrix_loss(matrix: ArrayLike, mechanism: Any = None) -> tuple[float, int, int]:
    """The largest loss of a transition matrix over one step, the row before the step, and the column.

    A matrix says with which probability a true count (a row) is published as another (a column). Its privacy loss is the
    largest log ratio of two entries of a column in neighbouring rows. A zero beside a positive entry is an infinite
    loss: seeing that output rules one of the two counts out.

    >>> matrix_loss([[0.75, 0.25], [0.25, 0.75]])  # ln 3
    (1.09861228866810..., 0, 0)
    >>> matrix_loss([[1.0, 0.0], [0.5, 0.5]])
    (inf, 0, 1)
    """
    T = np.asarray(matrix, dtype=float)
    if T.ndim != 2 or not T.size or not np.isfinite(T).all():
        raise InputError("A transition matrix has one row of finite probabilities for each true count.")
    off = float(np.abs(T.sum(axis=1) - 1).max())
    if off > _ROUNDING or T.min() < -_ROUNDING:
        raise InputError("The rows of a transition matrix are probabilities, which sum to 1.")
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(T, 0.0))
    if hasattr(mechanism, "log_probability"):
        for i, j in np.argwhere(T < _TINY):
            logs[i, j] = mechanism.log_probability(int(j), int(i))
    if len(T) == 1:
        return 0.0, 0, 0
    with np.errstate(invalid="ignore"):
        losses = np.nan_to_num(
            np.abs(np.diff(logs, axis=0)), nan=0.0, posinf=np.inf
        )  # 0 beside 0 tells nothing
    row, column = np.unravel_index(int(np.argmax(losses)), losses.shape)
    return float(losses[row, column]), int(row), int(column)


def _audit_gaussian(
    mechanism: Any, statistic: Any, neighbours: Sequence[Any], guarantee: Guarantee, rng: np.random.Generator
) -> ExactFinding:
    if not hasattr(mechanism, "log_density"):
        raise InputError(
            f"{type(mechanism).__name__} has no explicit density: use audit(), which only needs draws."
        )
    distances = [gaussian_distance(mechanism.log_density, statistic, other, rng) for other in neighbours]
    top = int(np.argmax(distances))
    between = _numbers(statistic), _numbers(neighbours[top])
    if guarantee.kind == "zcdp":
        return ExactFinding(float(guarantee.rho), distances[top] ** 2 / 2, *between, (), measure="ρ")
    loss = gaussian_epsilon(distances[top], float(guarantee.delta))
    return ExactFinding(float(guarantee.epsilon), loss, *between, (), delta=float(guarantee.delta))


def _numbers(statistic: Any) -> tuple[float, ...]:
    return tuple(np.asarray(statistic, dtype=float).ravel().tolist())


def _shown(vector: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in vector[:12]) + (", …)" if len(vector) > 12 else ")")


# What an audit of one mechanism found, by its density and by draws.


@dataclass(frozen=True)
class AuditReport:
    """What was found about one mechanism. By its density where there is one, and by draws."""

    findings: tuple[Finding | ExactFinding, ...]

    @property
    def broken(self) -> bool:
        """Whether any finding proves that the guarantee is broken."""
        return any(finding.broken for finding in self.findings)

    def plain(self) -> dict[str, Any]:
        """The findings as plain values."""
        return {
            "broken": self.broken,
            "findings": [{**vars(finding), "broken": finding.broken} for finding in self.findings],
        }

    def __str__(self) -> str:
        return "\n".join(
            f"{'by its density' if isinstance(finding, ExactFinding) else 'by draws'}: {finding}"
            for finding in self.findings
        )


# Auditing a mechanism for counts on neighbouring statistics that the audit makes itself.
#
# A guarantee is about all neighbours. Where the noise has an explicit density it is searched for the output that
# reveals most; then the release itself is drawn from, on the neighbours that the search found worst, because a
# density says nothing about the program that draws.

_FILTERS = 12  # records tried by an exact audit, besides the longest


def example_of(kind: type[Any], epsilon: Number) -> Any:
    """A mechanism of this class on a gate and two questions that it opens, on a chain, or on a hierarchy."""
    P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    parameters = inspect.signature(kind).parameters
    budget: dict[str, Any] = {"rho": Fraction(1, 2)} if "rho" in parameters else {"epsilon": epsilon}
    budget |= {"p": 3} if "p" in parameters else {}
    budget |= {"groups": 2} if "groups" in parameters else {}
    settings: list[tuple[Poset, dict[str, Any]]] = [
        (P, {}),
        (P, {"max_size": 2}),
        (Poset.chain(P.elements), {}),
        (Poset.from_mapping(dict.fromkeys(("twice", "meds"), "hyp"), children="partition"), {}),
    ]
    if "catch_all" in parameters:
        budget |= {"records": 10, "catch_all": "meds"}
    for order, more in settings:
        with suppress(InputError):
            return kind(order, **budget, **more)
    raise InputError(f"{kind.__name__} could not be built for an example. Audit it in a spec.")


def audit_count_mechanism(mechanism: Any, trials: int, progress: Progress) -> AuditReport:
    """By density where there is one (any number of elements), and by draws on the neighbours found worst."""
    pairs = [(base, others) for base, others in _neighbouring_counts(mechanism) if others]
    statistic, neighbour = pairs[0][0], pairs[0][1][0]
    findings: list[Finding | ExactFinding] = []
    pure = mechanism.guarantee.kind == "pure"
    if hasattr(mechanism, "log_density") or (pure and hasattr(mechanism, "log_probability")):
        progress(0.0, "searching the density")
        result = max((audit_exact(mechanism, *pair) for pair in pairs), key=lambda finding: finding.loss)
        statistic, neighbour = (np.array(v, dtype=np.int64) for v in (result.statistic, result.neighbour))
        findings.append(result)
    try:
        mechanism.release(statistic)
    except InputError:  # for comparison only: there is nothing to draw
        if findings:
            return AuditReport(tuple(findings))
        raise
    by_draws = audit(
        mechanism, statistic, neighbour, trials, progress=lambda done, what: progress(0.1 + 0.9 * done, what)
    )
    return AuditReport((*findings, by_draws))


def _neighbouring_counts(
    mechanism: Any,
) -> Iterable[tuple[NDArray[np.int64], list[NDArray[np.int64]]]]:
    """Counts, and neighbouring counts. A unit has the same record in all its contributions."""
    P, size = mechanism.P, mechanism.max_size or len(mechanism.P)
    from_the_top = [P.elements[x] for x in P.linear_order[::-1][:size]]
    chosen = np.random.default_rng(0).permutation(len(P))[:_FILTERS]
    longest, *above = (
        np.array([x in record for x in P.elements], dtype=np.int64)
        for record in (
            some_record(P, names) for names in (from_the_top, *(P.up_set(P.elements[i]) for i in chosen))
        )
    )
    records = [mechanism.unit.changes * J for J in [longest, *above] if J.sum() <= size]
    nothing = np.zeros(len(P), dtype=np.int64)
    groups = mechanism.groups if isinstance(mechanism, HasGroups) else 1
    if groups > 1:  # a unit may also be in the second group
        rest = np.zeros((groups - 2) * len(P), dtype=np.int64)
        records = [np.concatenate((*pair, rest)) for J in records for pair in ((J, nothing), (nothing, J))]
        nothing = np.zeros(groups * len(P), dtype=np.int64)
    if not mechanism.guarantee.adjacency.exchanges:
        return [(nothing, records)]
    return [(base, [J for J in records if np.any(base != J)]) for base in [nothing, *records[:_FILTERS]]]
