"""Private transition matrices, the mechanisms for one count at a time."""
