"""The screens of the desk, a file for each."""
