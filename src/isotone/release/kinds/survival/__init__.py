"""Survival: how long it takes until an event, with censored times, from one charge."""
