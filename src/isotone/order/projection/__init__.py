"""Isotonic regression on a partial order.

The least-squares projection onto the monotone functions on an order.
"""
