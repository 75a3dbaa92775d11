"""What every mechanism shares about privacy: guarantees, units, calibration, checks and draws."""
