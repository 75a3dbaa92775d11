"""Mechanisms for counts that only reproduce the papers."""
