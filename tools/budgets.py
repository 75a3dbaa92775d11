"""How large the house may be. One table, which ``tests/unit/test_budgets.py`` holds and ``docs/design/house.md`` explains.

A limit is the aim, or what was measured where the aim is not reached. Who makes a number smaller lowers its limit.
"""

FLOWS: dict[str, tuple[int, int]] = {
    "counts": (53, 540),
    "table": (40, 430),
    "curve": (41, 550),
    "breakdown": (59, 800),
    "spec, counts": (56, 720),
}
"""For each flow of ``tools/flows.py``, how many files it enters and how often it goes from one into another."""

MODULES = 120
"""Modules of isotone that a release of counts loads."""

PARAMETERS = 15
"""Parameters of a public callable, but for those below."""

WIDE = {"isotone.Curve": 17, "isotone.curves.PrivateIsotonicRegression": 20}
"""Public callables with more, and how many they may have: descriptions of curves and surfaces are one kind."""

TOUCHED = 3
"""Source files that a new parameter of counts touches."""
