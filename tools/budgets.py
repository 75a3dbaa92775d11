"""How large the house may be. One table, which ``tests/unit/test_budgets.py`` holds and ``docs/design/house.md`` explains.

A limit is the aim, or what was measured where the aim is not reached. Who makes a number smaller lowers its limit.
"""

FLOWS: dict[str, tuple[int, int]] = {
    "counts": (46, 515),
    "table": (35, 405),
    "curve": (35, 505),
    "breakdown": (52, 785),
    "spec, counts": (49, 685),
}
"""For each flow of ``tools/flows.py``, how many files it enters and how often it goes from one into another."""

MODULES = 102
"""Modules of isotone that a release of counts loads."""

PARAMETERS = 15
"""Parameters of a public callable."""

TOUCHED = 2
"""Source files that a new parameter of counts touches."""
