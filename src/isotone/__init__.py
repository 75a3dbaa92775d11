"""Differentially private statistics that respect order: counts, tables and curves.

Describe the order, plan without data, release against a ledger, verify. See the README for a first example.
"""

from typing import TYPE_CHECKING, Any

from isotone import counts, curves, noise, order, tables
from isotone.errors import BudgetError, InputError, IsotoneError, LedgerError, OrderError, SpecError
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from isotone.release import (
        Answers,
        Ledger,
        Release,
        load_release,
        release_counts,
        release_curve,
        release_table,
        verify,
    )

__all__ = [
    "Answers",
    "BudgetError",
    "Guarantee",
    "InputError",
    "IsotoneError",
    "Ledger",
    "LedgerError",
    "OrderError",
    "Poset",
    "Release",
    "SpecError",
    "counts",
    "curves",
    "load_release",
    "noise",
    "order",
    "release_counts",
    "release_curve",
    "release_table",
    "tables",
    "verify",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The names of ``isotone.release``, which brings the database engines: imported when first asked for."""
    if name in __all__:
        from isotone import release

        return getattr(release, name)
    raise AttributeError(f"module 'isotone' has no attribute {name!r}")
