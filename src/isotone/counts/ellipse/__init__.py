"""Gaussian noise shaped by an order.

Nearly smallest ellipses, lower bounds for them, and their integer form.
"""
