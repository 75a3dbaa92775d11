"""Columns and single values, read by declared types."""
