"""Guarantees, units, calibration, checks and draws shared by all mechanisms."""
