"""Mechanisms for counts, one file each, with the base class they share."""
