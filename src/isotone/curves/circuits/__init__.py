"""Sums of products with exact draws."""
