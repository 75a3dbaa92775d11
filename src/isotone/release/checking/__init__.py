"""Looking at the contents of the data at the desk of the steward. Nothing here is private."""
