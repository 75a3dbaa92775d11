"""What one run of the desk knows."""

from __future__ import annotations

from dataclasses import dataclass, field

from isotone.desk.drafts import Draft
from isotone.desk.folder import Root
from isotone.desk.jobs import Jobs

__all__ = ["Desk"]

_MOST = 200


@dataclass
class Desk:
    """The folder, the modes, the drafts and the releases under way."""

    root: Root
    read_only: bool = False
    allow_check: bool = False
    drafts: dict[str, Draft] = field(default_factory=dict)
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self.root.unsaved = lambda: [
            (draft.folder(self.root), draft.entries) for draft in self.drafts.values()
        ]

    @property
    def checks(self) -> bool:
        """Whether the page that looks at data is there."""
        return self.allow_check and not self.read_only

    def keep(self, draft: Draft) -> Draft:
        """Remember a draft, and forget the oldest where there are too many."""
        for old in list(self.drafts)[: max(0, len(self.drafts) + 1 - _MOST)]:
            del self.drafts[old]
        self.drafts[draft.id] = draft
        return draft
