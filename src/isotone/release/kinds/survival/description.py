"""Survival: times of an event in each of some public groups, where some are known up to a time alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from isotone.distribution.mechanism import MOST_CELLS, DistributionMechanism, MeasuredLine
from isotone.distribution.survival import SurvivalFigures
from isotone.errors import InputError
from isotone.reading.lines import EVENTS, USUAL_CELLS, CellLine, LineSource
from isotone.reading.questions import Codes, plain_words
from isotone.release.description import Amount, ColumnName, FrozenMapping, Section, Size, described
from isotone.release.kinds.distribution.description import By, DistributionManifest, LineDescription
from isotone.release.manifest import Manifest

_STARTS = (
    "every record must be followed from time 0: left truncation and states that change with time are not there. Leave out people "
    "who enter late, or count time from their entry."
)


@dataclass(frozen=True, kw_only=True)
class SurvivalManifest(DistributionManifest):
    """The manifest of survival. In ``lines`` events are the first row of counts, and censored times the second."""

    name: ClassVar[str] = "survival"


class SurvivalEntries(Section):
    """``[survival]``: how long it takes until an event."""


def _words(given: Any) -> Any:
    return given if given is None else plain_words(given, "event")


Words = Annotated[tuple[str, ...] | None, BeforeValidator(_words)]


@described
class Survival(LineDescription):
    """How long it takes until an event, where some were followed for a time without it: the survival curve with a band.

    The published columns are the upper ends of bins of time, found privately where there are enough records, ``x``, survival there, ``value``, its
    band, ``low`` and ``high``, and the number at risk afterwards. The band holds for the estimators of Kaplan and Meier and of
    Nelson and Aalen at once. Readers ask the release for survival and numbers at risk at any time, the median and the
    restricted mean, and for differences of groups. With ``delta`` it is made, and charged, with ``epsilon`` alone.

    >>> Survival("months", event="died", horizon=60, unit="patient")
    Survival('months', unit=Unit('patient'), event='died', horizon=60)
    """

    kind_name: ClassVar[str] = "survival"
    form: ClassVar[type[Manifest]] = SurvivalManifest
    key: ClassVar[str] = "survival"
    entries: ClassVar[type[Section]] = SurvivalEntries
    refused: ClassVar[Mapping[str, str]] = FrozenMapping(
        {
            **dict.fromkeys(("entry", "start", "left", "truncation", "enter", "states"), _STARTS),
            "bounds": "time begins at 0: give horizon, the end of the curve.",
            "band": "the band is that for these records.",
        }
    )
    statuses: ClassVar[int] = 2
    apart: ClassVar[int] = 1

    time: ColumnName
    """The column of the time until the event, or until a person was seen last. Below 0 it is taken for 0."""
    _: KW_ONLY
    event: ColumnName
    """The column that says whether there was an event at that time: 1 or 0, true or false. Others are left out."""
    horizon: Amount
    """The public end of the curve. Times beyond it count as censored there. Not chosen by the data."""
    yes: Words = None
    """The words of the event's column that mean an event, such as ["died"], in any case; rows with words that are not listed are left out. Without it the column is read as 1 or 0."""
    no: Words = None
    """With `yes`: the words that mean none, by default 0, false, f, no and n."""
    cells: Annotated[Size, Field(ge=2, le=MOST_CELLS)] | None = None
    """How many cells time has up to the horizon. By default as many as there are round steps, up to 65,536, and fewer for more than 7 groups. Where times are whole numbers, give the horizon."""
    by: By | None = None
    """A column of groups with the public list of its values, such as arm = ["old", "new"]: a curve for each, for the price of one. Rows of other values are left out."""
    public_n: Size | None = None
    """The number of records, if it is public. Otherwise a noisy one costs 2 % of the budget."""

    def __post_init__(self) -> None:
        if self.privacy_unit.most > 1:
            raise InputError(
                "A unit has one time and one event here, so contributions is 1: give its rows an end first."
            )
        if self.time == self.event:
            raise InputError("time and event must be two columns.")
        if self.no is not None and self.yes is None:
            raise InputError("no= goes with yes=, the words that mean an event.")
        self.answer_words  # noqa: B018 (words that mean both are refused)
        self.require_possible()

    @property
    def answer_words(self) -> Codes | None:
        """The words of the event, if it is read as words."""
        if self.yes is None:
            return None
        return Codes.listed(self.yes, self.no)

    @property
    def line(self) -> CellLine:
        """The public cells up to the horizon."""
        usual = max(min(USUAL_CELLS, MOST_CELLS // (2 * len(self.group_names)) - 1), 2)
        return CellLine.of(Fraction(0), Fraction(self.horizon), "even", self.cells, usual)

    @property
    def reading(self) -> str:
        """How the event is read."""
        words = self.answer_words
        if words is None:
            return f"{self.event} is read as 1 or 0, true or false; rows with anything else are left out, words too (yes = declares them)."
        yes, no = (", ".join(named) for named in (words.yes, words.no))
        return f"There is an event where {self.event} says {yes}, and none where it says {no}; rows with anything else are left out."

    @property
    def words(self) -> str:
        """The names of the columns."""
        return f"survival: {self.event} by {self.time}"

    @property
    def title(self) -> str:
        """The name of the event."""
        return f"Time until {self.event}"

    def source(self, data: Any, mechanism: DistributionMechanism) -> LineSource:
        """The columns, the line and the groups."""
        return LineSource(
            data,
            self.time,
            self.line,
            self.groups,
            self.privacy_unit.column,
            self.privacy_unit.most,
            event=self.event,
            words=self.answer_words,
        )

    def rows(self, mechanism: DistributionMechanism, line: MeasuredLine) -> dict[str, Any]:
        """Survival at the ends of bins with its band, and how many records last longer."""
        result, ends = self.figures(mechanism, line, self.confidence), line.edges[1:-1]
        shares = {"value": result.below, "low": result.high, "high": result.low}
        alive = {name: 1 - share[ends] for name, share in shares.items()}
        return {"x": self.line.ends()[1][ends - 1], **alive, "at_risk": result.longer[ends]}

    def figures(
        self, mechanism: DistributionMechanism, line: MeasuredLine, confidence: float, band: str = "records"
    ) -> SurvivalFigures:
        """Shares that have ended, and records that last longer."""
        if band != "records":
            raise InputError("Survival has a band for the records alone: estimators of them are inside.")
        return SurvivalFigures.measured(mechanism, line, self.line.ends(), confidence)

    def findings(self, source: Any) -> list[str]:
        """Times that are missing, no numbers or outside, and groups that are not listed."""
        from isotone.release.check import other_words, outside

        lines = outside(source, [(self.time, (Fraction(0), Fraction(self.horizon)))])
        lines += other_words(source, self.event, self.answer_words or EVENTS)
        return lines + self.others(source)
