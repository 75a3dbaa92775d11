"""Releases that are planned as several waves of one data set, such as one a year.

What all waves cost together is public before the first, and stands in the manifest of each. Readers get changes between
waves, whose noise is that of both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from isotone.counts.count_plan import Setting, choose_mechanism
from isotone.counts.mechanism import AdditiveMechanism, Care
from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError
from isotone.ledger import Cost
from isotone.ledger.entries import Composition
from isotone.privacy.checks import Number, confidence_level, truth, whole_number
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit
from isotone.release.manifest import GuaranteeEntry, Manifest, guarantee_from, guarantee_to

if TYPE_CHECKING:
    from rich.table import Table

    from isotone.ledger import Ledger
    from isotone.order import Poset

__all__ = [
    "WavePlan",
    "WavesEntry",
    "plan_waves",
    "planned_waves",
    "require_affordable",
    "wave_faults",
    "waves_entry",
    "waves_with",
]

MOST_WAVES = 1_000


class WavesEntry(TypedDict):
    """How many releases are planned, and what all of them guarantee together."""

    planned: int
    together: GuaranteeEntry


@dataclass(frozen=True)
class WavePlan:
    """What each wave costs, and how far its counts and the changes between two waves stay from the truth."""

    waves: int
    together: Guarantee
    each: Guarantee
    mechanism: AdditiveMechanism = field(repr=False)
    confidence: float
    sd: NDArray[np.float64] = field(repr=False)
    count: NDArray[np.float64] = field(repr=False)
    change: NDArray[np.float64] = field(repr=False)
    all_changes: float
    """How far all changes from one wave to another stay from the truth at once."""

    @property
    def title(self) -> str:
        """What the waves cost."""
        return f"{self.waves} waves with {self.each} each; all together: {self.together}"

    def plain(self) -> dict[str, Any]:
        """The plan as plain values."""
        numbers = zip(*(part.tolist() for part in (self.sd, self.count, self.change)), strict=True)
        return {
            "waves": self.waves,
            "together": guarantee_to(self.together),
            "each": guarantee_to(self.each),
            "mechanism": type(self.mechanism).__name__,
            "confidence": self.confidence,
            "all_changes": self.all_changes,
            "elements": [
                {"element": str(x), "sd": round(sd, 4), "count": count, "change": change}
                for x, (sd, count, change) in zip(self.mechanism.P.elements, numbers, strict=True)
            ],
        }

    def __rich__(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        level = f"{100 * self.confidence:g} %"
        result = Table(title=self.title, title_justify="left")
        for heading in ("element", "sd of a count", "a count within", "a change within"):
            result.add_column(heading, justify="left" if heading == "element" else "right")
        for row in self.plain()["elements"]:
            numbers = f"{row['sd']:,.4g}", f"± {row['count']:,.0f}", f"± {row['change']:,.0f}"
            result.add_row(Text(row["element"]), *numbers)
        result.caption = (
            f"{type(self.mechanism).__name__}. All changes from one wave to another stay within ± {self.all_changes:,.0f} at "
            f"once. Each ±: {level} of the time."
        )
        result.caption_justify = "left"
        return result

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        table = self.__rich__()
        table.title, table.caption, table.box = None, None, None
        Console(file=text, width=120, highlight=False).print(table)
        level = f"{100 * self.confidence:g} %"
        last = f"All changes at once: ± {self.all_changes:,.0f}, by {type(self.mechanism).__name__}. Each ±: {level} of the time."
        lines = [line.rstrip() for line in text.getvalue().rstrip().splitlines()]
        return "\n".join([self.title, *lines, last])


def planned_waves(waves: Any) -> int:
    """A number of waves, checked."""
    number = whole_number(waves, "waves")
    if number > MOST_WAVES:
        raise InputError(f"At most {MOST_WAVES:,} waves are planned, not {number:,}.")
    return number


def plan_waves(
    P: Poset,
    waves: int,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    same_units: bool = True,
    neighbours: Neighbours = "add-remove",
    contributions: int = 1,
    max_size: int | None = None,
    mechanism: str | None = None,
    care: Care | None = None,
    relaxation: Relaxation | None = None,
    confidence: float = 0.95,
) -> WavePlan:
    """Plan several releases of counts over ``P`` from one budget, such as one a year. Nothing is read and nothing is spent.

    ``epsilon`` (with ``delta``) or ``rho`` is what all waves cost together: each gets an equal part, unless
    ``same_units`` is False, which states that no unit is in two waves; each wave then has the whole. The plan says how far
    counts and the changes between two waves stay from the truth.

    >>> from isotone.order import Poset
    >>> plan = plan_waves(Poset.chain("ab"), 5, epsilon=5)
    >>> plan.each, plan.together
    (Guarantee(ε = 1, add-remove one record), Guarantee(ε = 5, add-remove one record))
    """
    number = planned_waves(waves)
    together = Unit(neighbours=neighbours).guarantee(epsilon, delta, rho)
    each = _part(together, number) if truth(same_units, "same_units") else together
    setting = Setting(P, contributions, max_size, relaxation, care)
    noise = choose_mechanism(setting, each, mechanism)
    return waves_with(noise, number, each, together, confidence_level(confidence))


def waves_with(
    noise: AdditiveMechanism, waves: int, each: Guarantee, together: Guarantee, level: float
) -> WavePlan:
    """So many releases with this noise, at these prices."""
    first, second = noise.law("0"), noise.law("1")
    off = np.abs(second.draws.astype(np.float64) - first.draws.astype(np.float64))
    return WavePlan(
        waves,
        together,
        each,
        noise,
        level,
        noise.error().sd,
        noise.half_widths(level),
        first.upper(off, level),
        float(first.upper(np.max(off, axis=1), level)),
    )


def _part(guarantee: Guarantee, waves: int) -> Guarantee:
    """An equal part for each wave, so that all together keep the guarantee."""
    share = Fraction(1, waves)
    parts = {name: getattr(guarantee, name) * share for name in ("epsilon", "delta", "rho")}
    return replace(guarantee, **parts)


def waves_entry(guarantee: Guarantee, waves: int) -> WavesEntry | None:
    """What a manifest says about a release that is one of several, or None if it stands alone."""
    return None if waves == 1 else {"planned": waves, "together": guarantee_to(guarantee.times(waves))}


def wave_faults(manifest: Manifest) -> list[str]:
    """What is wrong with what a manifest says about its waves, a phrase each."""
    wanted = waves_entry(guarantee_from(manifest.guarantee), planned_waves(manifest.description["waves"]))
    same = manifest.get("waves") == wanted
    return [] if same else ["what all waves cost together is not that many times what this one cost"]


def require_affordable(guarantee: Guarantee, waves: int, ledger: Ledger) -> None:
    """Refuse a plan that the ledger's total cannot pay by its own rule. What is left is looked at by the charge."""
    if waves == 1:
        return
    each = Composition(ledger.composition).cost(guarantee, ledger.budget.kind)
    if not sum([each] * waves, Cost()).within(ledger.total):
        raise InputError(
            f"{waves} waves at this price cost {guarantee.times(waves)}, and the ledger has {ledger.total}. Plan fewer waves, "
            "or spend less on each. Nothing was charged."
        )
