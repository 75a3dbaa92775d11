"""Property tests that never fail because a machine is slow, or because a kernel is compiled first."""

from hypothesis import settings

__all__ = ["untimed"]

untimed = settings(deadline=None)
