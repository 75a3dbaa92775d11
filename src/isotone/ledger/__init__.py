"""Privacy budgets that survive crashes."""

from isotone.ledger.attempt import Attempt, AttemptError
from isotone.ledger.composition import Cost
from isotone.ledger.entries import Charge, LostError, SealedError
from isotone.ledger.ledger import Ledger, extract_charge, open_or_start, read_extract
from isotone.ledger.stores.store import BusyError

__all__ = [
    "Attempt",
    "AttemptError",
    "BusyError",
    "Charge",
    "Cost",
    "Ledger",
    "LostError",
    "SealedError",
    "extract_charge",
    "open_or_start",
    "read_extract",
]
