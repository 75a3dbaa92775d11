"""Scores and trees of the papers on private isotonic regression."""
