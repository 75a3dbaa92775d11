"""What readers ask of a release. Each kind answers what its law allows, and refuses the rest with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from isotone.errors import InputError

if TYPE_CHECKING:
    from isotone.inference.estimates import Estimate
    from isotone.release.result import Release

__all__ = ["Reader"]


class Reader:
    """Answers that follow from a release alone. This one refuses all."""

    def __init__(self, release: Release, reason: str = "") -> None:
        self.release, self.reason = release, reason

    def refuse(self, what: str) -> NoReturn:
        """Raise an error that says why there is no answer."""
        raise InputError(f"A release of a {self.release.kind} has no {what}. {self.reason}".rstrip())

    def group_named(self, words: Sequence[str]) -> Any:
        """The group that words on a command line name, or None."""
        if len(words) > 1:
            raise InputError("This release has one list of groups: name one group.")
        return words[0] if words else None

    def contrast(self, coefficients: Mapping[Any, float], confidence: float | None, group: Any) -> Estimate:
        """A linear combination of counts."""
        self.refuse("contrasts of counts")

    def share(
        self,
        part: Any,
        of: Any,
        confidence: float | None,
        group: Any,
        records: Any,
        after_rules: bool,
        population: bool,
        deff: Any,
    ) -> Estimate:
        """The share of one count in another, in the records or in the population that was sampled."""
        self.refuse("shares of a population" if population else "shares of counts")

    def shares(
        self, pairs: Sequence[tuple[Any, Any]] | None, together: bool, confidence: float | None, group: Any
    ) -> dict[tuple[str, str], Estimate]:
        """Several shares."""
        self.refuse("shares of counts")

    def change(
        self, other: Release, what: Any, confidence: float | None, group: Any, follows_order: bool
    ) -> Any:
        """The change from this release to another."""
        self.refuse("changes of counts")

    def rank(self, what: Any, confidence: float | None, group: Any) -> Any:
        """The place of a count among all."""
        self.refuse("ranks")

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """A sum of published values."""
        self.refuse("sums with an interval")

    def sums(self, groups: Mapping[str, Iterable[Any]], confidence: float | None) -> dict[str, Estimate]:
        """Sums over public groups."""
        self.refuse("sums over groups of categories")

    def at(self, x: Any, confidence: float | None) -> Estimate:
        """The value of a curve."""
        self.refuse("value between its numbers")

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Any:
        """The second value minus the first."""
        self.refuse("differences with an interval")

    def given(self, records: Any, after_rules: bool) -> Release:
        """The release adjusted by a public number of records."""
        self.refuse("noisy number of records to compare a public one with")

    def combine(self, others: Sequence[Release], follows_order: bool) -> Release:
        """This release and others of the same counts as one."""
        self.refuse("combination with others")
