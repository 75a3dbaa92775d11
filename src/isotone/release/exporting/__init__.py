"""Descriptions of a release for catalogues and registries, made from a list of what they may say."""

__all__ = ["DESCRIPTIONS"]

DESCRIPTIONS = ("dcat.jsonld", "croissant.json", "deployment.json")
"""The files that ``isotone export`` writes beside a release."""
