"""Shapes a curve may have besides rising, and exact draws from all curves of a shape."""
