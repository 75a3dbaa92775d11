"""Constructors of count mechanisms that only reproduce the papers.

The heuristic and the linear programs.
"""
