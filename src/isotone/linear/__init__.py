"""Counts measured through a matrix with independent noise, and estimated by least squares.

A *strategy* says what is measured, how estimates follow from it and how far one record moves it; a *noise* is the law of
one number. Both together are a mechanism. Nothing here knows orders, records or guarantees.
"""
