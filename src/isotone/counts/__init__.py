"""Counts of yes/no answers over a partial order: mechanisms, their errors, and the plan that picks one."""

__all__: list[str] = []
