"""Privacy budgets that survive crashes."""

from isotone.ledger.entries import Charge, Cost, LostError, SealedError
from isotone.ledger.ledger import Attempt, AttemptError, Ledger, extract_charge, open_or_start, read_extract
from isotone.ledger.stores.sqlite import BusyError

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
