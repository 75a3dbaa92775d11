"""One charge against a budget, and the states it goes through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from isotone.ledger.cost import Cost
from isotone.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from isotone.ledger.ledger import Ledger

__all__ = ["Charge", "State"]

State = Literal["charged", "drawn", "sealed", "failed"]
"""charged → drawn → sealed, or charged → failed. Each is durable, and none is ever left backwards."""


@dataclass(frozen=True)
class Charge:
    """One charge against the budget.

    It is durable from the moment this value exists, and spent whatever its state.
    """

    ledger: Ledger = field(repr=False, compare=False)
    number: int
    time: str
    guarantee: Guarantee
    mechanism: str
    description: str
    spec: str = ""
    request: str | None = None
    state: State = "charged"
    release: str | None = None

    @property
    def cost(self) -> Cost:
        """What the charge took from the budget, in the charge's own numbers."""
        return Cost.of(self.guarantee)

    @property
    def finished(self) -> bool:
        """Whether a release was completed under this charge."""
        return self.state == "sealed"

    @property
    def meaning(self) -> str:
        """The state in words."""
        if self.state == "charged":
            return "charged, same request resumes it" if self.request is not None else "charged"
        return {
            "drawn": "drawn, not sealed: lost",
            "sealed": "sealed",
            "failed": "failed before the draw: spent",
        }[self.state]

    def finish(self, release: str = "") -> None:
        """Record that the release under this charge is complete.

        ``release`` is its public content hash.

        For releases that were drawn elsewhere. A release of ours goes through :meth:`Ledger.attempt`.
        """
        self.ledger._finish(self.number, release)  # pyright: ignore[reportPrivateUsage]  # same package

    def export(self) -> dict[str, Any]:
        """The charge as plain values with exact numbers."""
        return {
            "number": self.number,
            "time": self.time,
            "kind": self.guarantee.kind,
            "guarantee": self.cost.export(),
            "mechanism": self.mechanism,
            "description": self.description,
            "spec": self.spec,
            "request": self.request,
            "state": self.state,
            "release": self.release,
        }
