"""Compiled first steps of exact samplers, on 64- and 128-bit integers."""
