"""What all tests share: no property test is timed, because a slow machine is not a bug, and 60 examples are usual."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None, max_examples=60)
settings.load_profile("untimed")
