"""Privacy budgets that survive crashes."""

from isotone.ledger.ledger import Charge, Cost, Ledger

__all__ = ["Charge", "Cost", "Ledger"]
