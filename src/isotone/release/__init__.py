"""Releases from start to end, with ledger, manifest, spec and report."""

from isotone.lazy import public_names

__all__, __getattr__ = public_names(__name__)
