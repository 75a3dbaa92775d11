"""Differentially private counts, tables and curves that respect order.

Describe the order, plan without data, release against a ledger, verify. See the README for a first example.
"""

from typing import TYPE_CHECKING

from isotone import counts, curves, noise, order, tables
from isotone.errors import BudgetError, InputError, IsotoneError, LedgerError, OrderError, SpecError
from isotone.lazy import lazy_names

if TYPE_CHECKING:
    from isotone.order import Poset
    from isotone.privacy.guarantee import Guarantee
    from isotone.reading.columns.asking import order_of
    from isotone.reading.columns.question import Question
    from isotone.release import (
        Answers,
        Ledger,
        Release,
        combine,
        load_release,
        plan_waves,
        release_counts,
        release_curve,
        release_surface,
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
    "Question",
    "Release",
    "SpecError",
    "combine",
    "counts",
    "curves",
    "load_release",
    "noise",
    "order",
    "order_of",
    "plan_waves",
    "release_counts",
    "release_curve",
    "release_surface",
    "release_table",
    "tables",
    "verify",
]
__version__ = "0.1.0"

# Where the names live that bring more than numpy with them.
_HOMES = {
    "Answers": "isotone.reading.columns.answers",
    "Guarantee": "isotone.privacy.guarantee",
    "Ledger": "isotone.ledger.ledger",
    "Poset": "isotone.order.poset",
    "Question": "isotone.reading.columns.question",
    "Release": "isotone.release.result",
    "combine": "isotone.release.reader_questions",
    "load_release": "isotone.release.result",
    "order_of": "isotone.reading.columns.asking",
    "plan_waves": "isotone.release",
    "release_counts": "isotone.release",
    "release_curve": "isotone.release",
    "release_surface": "isotone.release",
    "release_table": "isotone.release",
    "verify": "isotone.release",
}

__getattr__ = lazy_names(__name__, _HOMES)
