"""The kinds of release, loaded when they are asked for: a folder for each, and one line in the table of ``kind``."""
