"""Counts broken down by public attributes, with margins that add up."""
