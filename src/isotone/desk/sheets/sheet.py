"""What the screens ask of a kind of release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from isotone.desk.drafts import Draft
from isotone.desk.folder import Root
from isotone.desk.words import FormError
from isotone.release.kinds.kind import Stamp
from isotone.release.result import Release
from isotone.release.spec import Spec

__all__ = ["SIMULATED", "Sheet"]

SIMULATED = Stamp(0, "2000-01-01T00:00:00+00:00", "simulated")
"""What stands in the place of a charge."""


class Sheet(ABC):
    """The second screen, the accuracy and the preview of one kind of release."""

    id: ClassVar[str]
    """What people choose."""
    key: ClassVar[str]
    """The section of the spec."""
    first: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """What that section holds in a new draft."""
    name: ClassVar[str]
    about: ClassVar[str]
    """What it is, in a sentence for people who choose."""
    template: ClassVar[str]
    """The template of the second screen."""

    def holds(self, section: Mapping[str, Any]) -> bool:
        """Whether it is the sheet for what the section asks for."""
        del section
        return True

    @abstractmethod
    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """Put what was typed into the draft, or refuse all of it."""

    @abstractmethod
    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str] | None) -> dict[str, Any]:
        """What the template of the second screen shows. ``typed`` is a form that was refused."""

    def require(self, spec: Spec) -> None:
        """Refuse what the spec allows and a release of this kind would not."""
        spec.job  # noqa: B018 (it is made, and what is wrong refused)

    def look(self, draft: Draft, form: Mapping[str, str]) -> str:
        """A piece of a page about what was typed so far."""
        del draft, form
        return ""

    @abstractmethod
    def accuracy(self, spec: Spec, asked: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What the accuracy screen shows of what it can. Nothing is read and nothing is spent."""

    def budget(self, spec: Spec, asked: Mapping[str, str]) -> str:
        """The least budget for an error that is asked for, as text for the spec."""
        raise FormError("For this kind of release a budget gives an error, and not the other way round.")

    @abstractmethod
    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """A release as it might be, from guesses and simulated noise."""
