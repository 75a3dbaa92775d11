"""Curves of lines through drawn values."""
