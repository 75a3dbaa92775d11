"""Mechanisms whose noise is independent from count to count."""
