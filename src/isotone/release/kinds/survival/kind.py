"""What strangers and readers do with published survival: verify it, ask it for times, shares and differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from isotone.errors import InputError
from isotone.inference import Estimate
from isotone.privacy.checks import exact, shown
from isotone.release.kinds.distribution.description import LineDescription
from isotone.release.kinds.distribution.kind import LineKind, LineReader, estimate_of
from isotone.release.kinds.survival.description import Survival, SurvivalManifest
from isotone.release.kinds.survival.report import SurvivalPage

if TYPE_CHECKING:
    from isotone.release.kinds.kind import Page, Reader
    from isotone.release.result import Release


class SurvivalReader(LineReader):
    """Survival, numbers at risk and mean times, from the band: all intervals of one group hold at once."""

    described: ClassVar[type[LineDescription]] = Survival

    def survival(self, what: str, time: Any, confidence: float | None, group: Any) -> Estimate:
        """Survival, the cumulative hazard, the number at risk or the restricted mean at a time, by name."""
        figures, level, about = self.figures(confidence, group, None)
        horizon = float(figures.stop[-2])
        at = horizon if time is None else float(exact(time, "a time"))
        if not 0 <= at <= horizon:
            raise InputError(f"The curve is from 0 to {horizon:g}, and says nothing about {shown(time)}.")
        return estimate_of(getattr(figures, what)(at), level, about)

    def figure_at(self, what: Any, confidence: float, group: Any) -> Estimate:
        """Survival at a time."""
        if what is None:
            raise InputError("Say at which time survival is compared, such as 12.")
        return self.survival("survival", what, confidence, group)


class SurvivalKind(LineKind):
    """How long it takes until an event."""

    described = Survival
    manifest = SurvivalManifest

    def page(self, release: Release) -> Page:
        """The curve with its band, and numbers at risk."""
        return SurvivalPage()

    def reader(self, release: Release) -> Reader:
        """Survival at any time, from the band."""
        return SurvivalReader(release, self.why_no_answers)


KIND = SurvivalKind()
