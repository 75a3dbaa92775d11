"""Privacy budgets that survive crashes."""

from isotone.ledger.attempt import Attempt, LostError, SealedError
from isotone.ledger.charge import Charge
from isotone.ledger.cost import Cost
from isotone.ledger.extract import extract_charge, read_extract
from isotone.ledger.ledger import Ledger
from isotone.ledger.starting import open_or_start
from isotone.ledger.stores.store import BusyError

__all__ = [
    "Attempt",
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
