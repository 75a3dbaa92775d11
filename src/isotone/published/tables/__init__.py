"""Constructors of count mechanisms that only reproduce the papers: the heuristic and the linear programs."""
