"""What one run of the desk knows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from isotone.desk.drafts import Draft, open_draft
from isotone.desk.folder import DRAFT, Root
from isotone.desk.jobs import Jobs
from isotone.errors import IsotoneError

_MOST = 200


@dataclass(frozen=True)
class Said:
    """What came of a form, for the page that follows it."""

    problems: Sequence[str] = ()
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was typed."""
    unnamed: Sequence[str] = ()
    """Files that the steward has not named as public yet."""
    found: str = ""
    """What a look at the data found. It is shown once, and forgotten."""


@dataclass
class Desk:
    """The folder, the modes, the drafts and the releases under way."""

    root: Root
    read_only: bool = False
    allow_check: bool = False
    drafts: dict[str, Draft] = field(default_factory=dict)
    jobs: Jobs = field(default_factory=Jobs)
    said: dict[str, Said] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.looks = not self.read_only
        self.root.unsaved = lambda: [
            (draft.folder(self.root), draft.entries) for draft in list(self.drafts.values())
        ]

    @property
    def checks(self) -> bool:
        """Whether the page that looks at data is there."""
        return self.allow_check and not self.read_only

    def add(self, draft: Draft) -> Draft:
        """Remember a draft, and forget the oldest where there are too many: its file stays."""
        for old in list(self.drafts)[: max(0, len(self.drafts) + 1 - _MOST)]:
            del self.drafts[old]
        for other in [one for one in self.drafts.values() if one.name == draft.name]:
            if other.id == draft.id:
                return other
        if draft.id in self.drafts:  # a copy of a draft under another name
            draft = replace(draft, id=secrets.token_urlsafe(9))
        self.drafts[draft.id] = draft
        self.keep(draft)
        return draft

    def keep(self, draft: Draft) -> None:
        """Write a draft to the disk, unless this desk reads only."""
        if not self.read_only:
            draft.keep(self.root)

    def find(self, id: str) -> Draft | None:
        """The draft of an id, from the disk if this desk was started since."""
        if id not in self.drafts:
            for name in self.unfinished():
                try:
                    draft = open_draft(name, self.root)
                except IsotoneError:
                    continue
                if draft.id == id:
                    return self.add(draft)
        return self.drafts.get(id)

    def unfinished(self) -> list[str]:
        """The drafts in the folder."""
        return [self.root.shown(path) for path in self.root.walk(f"*{DRAFT}")]

    def tell(self, said: Said) -> str:
        """Keep what came of a form. The key stands in the address of the page that follows."""
        key = secrets.token_urlsafe(9)
        for old in list(self.said)[: max(0, len(self.said) + 1 - _MOST)]:
            self.said.pop(old, None)
        self.said[key] = said
        return key
