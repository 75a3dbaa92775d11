"""Hasse diagrams."""
