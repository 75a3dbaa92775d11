"""Gaussian noise shaped by an order: nearly smallest ellipses, what bounds them, and their integer form."""
