"""What all tests share: no property test is timed, because a slow machine is not a bug."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
