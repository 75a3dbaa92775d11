"""Bands around a released curve, made of its noisy sums alone. All of it is post-processing."""
