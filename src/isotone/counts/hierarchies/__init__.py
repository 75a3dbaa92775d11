"""Counts that add up along a hierarchy, in which a record has one leaf."""
