"""The text of the files of a release."""
