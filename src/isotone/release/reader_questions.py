"""What a reader may ask of a release, such as shares, changes, sums and comparisons, each with an interval that holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from isotone.errors import InputError, IsotoneError
from isotone.privacy.checks import truth

if TYPE_CHECKING:
    from isotone.inference.estimates import Estimate
    from isotone.release.kinds.reader import Reader
    from isotone.release.result import Release

__all__ = ["Questions", "answered", "combine"]

P = ParamSpec("P")
T = TypeVar("T")

_STRANGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a manifest that a stranger wrote can lead to, beside errors of our own."""


def answered(ask: Callable[P, T]) -> Callable[P, T]:
    """A question to a release that anyone may have written. What cannot be read is a sentence, never a traceback."""

    known = signature(ask)

    @wraps(ask)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        known.bind(*args, **kwargs)  # a call with other arguments is the caller's error
        try:
            # such errors may raise, if a caller has said so, and are no fault of the release
            with np.errstate(all="ignore"):
                return ask(*args, **kwargs)
        except IsotoneError:
            raise
        except _STRANGE as error:
            raise InputError(
                f"The manifest of a release does not describe what was released ({type(error).__name__}: "
                f"{str(error)[:100]}). isotone verify says what is wrong with it."
            ) from error

    return answer


class Questions:
    """The questions of a reader.

    Every answer comes from published numbers and from the law of the noise, which is public. ``confidence`` is that of
    the release unless it is given; ``group`` names the group where there are groups, and the cell of a breakdown as a
    mapping, such as ``{"region": "north"}`` (the total if it is left out).
    """

    def _reader(self) -> Reader:
        from isotone.release.kinds import kind_named

        release = cast("Release", self)
        return kind_named(release.kind).reader(release)

    @answered
    def group_named(self, words: Sequence[str]) -> Any:
        """What ``group`` is, given the words that name it on a command line, ``north``, or ``region=north`` and ``sex=f``."""
        return self._reader().group_named(list(words))

    @answered
    def contrast(
        self, coefficients: Mapping[Any, float], *, confidence: float | None = None, group: Any = None
    ) -> Estimate:
        """A linear combination of counts. ``{"hyp": 1, "meds": -1}`` is how many have the first but not the second."""
        return self._reader().contrast(coefficients, confidence, group)

    @answered
    def share(
        self,
        part: Any,
        of: Any = None,
        *,
        confidence: float | None = None,
        group: Any = None,
        records: Any = None,
        after_rules: bool = False,
        population: bool = False,
        deff: Any = 1,
    ) -> Estimate:
        """The share of ``part`` in ``of``, or in all records where ``of`` is left out.

        The share of all uses the noisy number of records, or the public one that ``records`` states (see
        :meth:`given` for ``after_rules``). The interval is about the records that were counted. With ``population`` it
        is about the population that they are a sample of, where noise and sampling are both uncertain; ``deff`` is
        the design effect of the sample.
        """
        reader = self._reader()
        if not truth(population, "population") and deff != 1:
            raise InputError("deff is of a sample: say population=True with it.")
        return reader.share(part, of, confidence, group, records, after_rules, population, deff)

    @answered
    def shares(
        self,
        pairs: Sequence[tuple[Any, Any]] | None = None,
        *,
        together: bool = False,
        confidence: float | None = None,
        group: Any = None,
    ) -> dict[tuple[str, str], Estimate]:
        """Shares of pairs (part, whole), by default of all covers. With ``together`` all intervals hold at once."""
        return self._reader().shares(pairs, together, confidence, group)

    @answered
    def change(
        self,
        other: Release,
        what: Any = None,
        *,
        confidence: float | None = None,
        group: Any = None,
        follows_order: bool = False,
    ) -> Any:
        """The change from this release to ``other``, of one element or of each.

        Refused as in :func:`isotone.combine` where the two count different things. Neighbours may differ.
        """
        return self._reader().change(other, what, confidence, group, follows_order)

    @answered
    def rank(self, what: Any = None, *, confidence: float | None = None, group: Any = None) -> Any:
        """The place of a count among all, 1 for the largest, of one element or of each."""
        return self._reader().rank(what, confidence, group)

    @answered
    def sum(self, what: Any = None, *, confidence: float | None = None) -> Estimate:
        """A sum of published values, of elements, of one element over all groups, or of categories of a table."""
        return self._reader().sum(what, confidence)

    @answered
    def sums(
        self, groups: Mapping[str, Iterable[Any]], *, confidence: float | None = None
    ) -> dict[str, Estimate]:
        """Sums over public groups of the categories of a table, such as states of counties.

        Each value is between the unbiased sum and the sum of the estimates, by how much the groups differ.
        """
        return self._reader().sums(groups, confidence)

    @answered
    def at(self, x: Any, *, confidence: float | None = None) -> Estimate:
        """The value of a curve at ``x``, with its interval."""
        return self._reader().at(x, confidence)

    @answered
    def difference(
        self, first: Any, second: Any, what: Any = None, *, confidence: float | None = None
    ) -> Any:
        """The value at ``second`` minus that at ``first``, for two points of a curve, two groups, or two cells of a breakdown.

        For groups and cells ``what`` is an element; without it there is an answer for each.
        """
        return self._reader().difference(first, second, what, confidence)

    @answered
    def given(self, *, records: Any, after_rules: bool = False) -> Release:
        """The release adjusted by a public number of records, which takes much of the noise off.

        ``records`` is stated by you, and never read from data: the number of records as the rules of the release count
        them, a mapping by group where there are groups. Where the rules can leave a unit out, ``after_rules=True``
        states that your number excludes it too. A wrong number biases every count. For whoever knows the number, a
        guarantee about adding or removing is one about replacing at twice ε; the manifest says so.
        """
        return self._reader().given(records, after_rules)


@answered
def combine(releases: Iterable[Release], *, follows_order: bool = False) -> Release:
    """Several releases of the same or overlapping counts as one, with the law of its noise.

    Refused: one draw twice, another unit, neighbours, rules or definition of yes. Where an element is implied by others
    that one of the releases did not ask about, ``follows_order=True`` states that every record follows the order.
    """
    found = list(releases) if isinstance(releases, Iterable) else []  # pyright: ignore[reportUnnecessaryIsInstance]
    if len(found) < 2 or not all(isinstance(release, Questions) for release in found):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("combine() takes two or more releases.")
    if len({release.kind for release in found}) > 1:
        raise InputError("Releases of different kinds cannot be combined.")
    return found[0]._reader().combine(found[1:], follows_order)  # pyright: ignore[reportPrivateUsage]
