"""Privacy budgets that survive crashes."""
