"""Counts over time, with what they publish and how it is read and checked."""
